"""CTC kernels: forward and backward sums over alignments in log space, one sequence at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, checks

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()


def _log_softmax(x: Array) -> Array:
    shifted = x - x.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


def _labels_of(indices: Array, values: Array, batch: int) -> list[Array]:
    """The label sequence of each batch entry."""
    rows = indices[:, 0]
    if rows.size and (rows.min() < 0 or rows.max() >= batch):
        raise checks.invalid(f"labels indices name batch {int(rows.max())}, expected [0, {batch})")
    return [values[rows == b] for b in range(batch)]


def _with_blanks(labels: Array, blank: int) -> Array:
    """Labels with a blank before, between and after."""
    out = np.full(2 * len(labels) + 1, blank, np.int64)
    out[1::2] = labels
    return out


def _shift(row: Array, by: int) -> Array:
    out = np.full_like(row, -np.inf)
    if by < len(row):
        out[by:] = row[: len(row) - by]
    return out


def _alignments(logp: Array, path: Array, blank: int, merge: bool) -> tuple[float, Array]:
    """The log probability of a path and, per step and state, of the alignments through it."""
    steps, states = logp.shape[0], len(path)
    emit = logp[:, path]
    stay = np.where(merge | (path == blank), 0.0, -np.inf)
    same = np.zeros(states, np.bool_)
    same[2:] = path[2:] == path[:-2]
    skip = np.where((path != blank) & ~(merge & same), 0.0, -np.inf)
    skip[:2] = -np.inf
    alpha = np.full((steps, states), -np.inf)
    alpha[0, :2] = emit[0, :2]
    for t in range(1, steps):
        before = alpha[t - 1]
        reach = np.logaddexp(before + stay, _shift(before, 1))
        alpha[t] = np.logaddexp(reach, _shift(before, 2) + skip) + emit[t]
    beta = np.full((steps, states), -np.inf)
    beta[-1, -2:] = 0.0
    for t in range(steps - 2, -1, -1):
        # Going back, the state after decides whether it may be entered by staying or skipping.
        after = beta[t + 1] + emit[t + 1]
        reach = np.logaddexp(after + stay, _shift(after[::-1], 1)[::-1])
        beta[t] = np.logaddexp(reach, _shift((after + skip)[::-1], 2)[::-1])
    through = alpha + beta
    total = np.logaddexp.reduce(alpha[-1, -2:])
    return float(total), through


def _sequence(
    logits: Array, labels: Array, collapse: bool, merge: bool, ignore: bool, b: int
) -> tuple[float, Array]:
    """The loss of one sequence and its gradient with respect to the logits."""
    steps, classes = logits.shape
    blank = classes - 1
    if labels.size and (labels.min() < 0 or labels.max() >= blank):
        raise checks.invalid(
            "Saw a non-null label (index >= num_classes - 1) following a null label, "
            f"batch: {b} num_classes: {classes} labels: {','.join(map(str, labels))}"
        )
    if collapse and labels.size:
        labels = labels[np.concatenate(([True], labels[1:] != labels[:-1]))]
    zero = np.zeros_like(logits)
    if steps == 0:
        return 0.0, zero
    required = len(labels)
    if merge:
        required += int((labels[1:] == labels[:-1]).sum())
    if required > steps:
        if ignore:
            return 0.0, zero
        raise checks.invalid(
            "Not enough time for target transition sequence (required: "
            f"{required}, available: {steps}){b}You can turn this error into a warning by using "
            "the flag ignore_longer_outputs_than_inputs"
        )
    logp = _log_softmax(logits)
    path = _with_blanks(labels, blank)
    total, through = _alignments(logp, path, blank, merge)
    if total == -np.inf:
        return np.inf, zero
    share = np.exp(through - total)
    seen = np.zeros_like(logits)
    for state, label in enumerate(path):
        seen[:, label] += share[:, state]
    return -total, np.exp(logp) - seen


@table.binder("CTCLoss")
def ctc_loss(sig: NodeSig) -> Callable[..., tuple[Array, Array]]:
    """Losses [batch] and their gradient with respect to the logits."""
    attrs = sig.attrs
    collapse = bool(attrs["preprocess_collapse_repeated"])
    merge = bool(attrs["ctc_merge_repeated"])
    ignore = bool(attrs["ignore_longer_outputs_than_inputs"])

    def run(inputs: Array, indices: Array, values: Array, lengths: Array) -> tuple[Array, Array]:
        steps, batch, _ = inputs.shape
        _check_lengths(lengths, steps, batch)
        loss, gradient = np.zeros(batch, inputs.dtype), np.zeros_like(inputs)
        wide = inputs.astype(np.float64)
        for b, labels in enumerate(_labels_of(indices, values, batch)):
            length = int(lengths[b])
            value, grad = _sequence(wide[:length, b], labels, collapse, merge, ignore, b)
            loss[b], gradient[:length, b] = value, grad
        return loss, gradient

    return run


def _check_lengths(lengths: Array, steps: int, batch: int) -> None:
    if lengths.shape != (batch,):
        raise checks.invalid(f"len(sequence_length) != batch_size: {lengths.shape} vs {batch}")
    if lengths.size and lengths.max() > steps:
        b = int(np.argmax(lengths))
        raise checks.invalid(f"sequence_length({b}) <= {steps}")


@table.binder("CTCGreedyDecoder")
def ctc_greedy_decoder(sig: NodeSig) -> Callable[..., tuple[Array, ...]]:
    """The best class of each step without blanks and, optionally, repeats."""
    merge = bool(sig.attrs["merge_repeated"])

    def run(inputs: Array, lengths: Array) -> tuple[Array, ...]:
        steps, batch, classes = inputs.shape
        _check_lengths(lengths, steps, batch)
        rows: list[tuple[int, int]] = []
        values: list[int] = []
        score = np.zeros((batch, 1), inputs.dtype)
        longest = 0
        for b in range(batch):
            best = inputs[: lengths[b], b].argmax(axis=-1)
            score[b, 0] = -inputs[: lengths[b], b].max(axis=-1).sum() if lengths[b] else 0
            keep = best != classes - 1
            if merge and best.size:
                keep &= np.concatenate(([True], best[1:] != best[:-1]))
            found = best[keep]
            longest = max(longest, len(found))
            rows.extend((b, i) for i in range(len(found)))
            values.extend(int(v) for v in found)
        indices = np.array(rows, np.int64).reshape(-1, 2)
        return indices, np.array(values, np.int64), np.array([batch, longest], np.int64), score

    return run
