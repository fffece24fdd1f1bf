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
        if batch == 0:
            raise checks.invalid("batch_size must not be 0")
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


# ---------------------------------------------------------------- beam search
class _Beam:
    """The likeliest prefixes after some steps.

    Of each prefix three log probabilities are known: of the alignments that end with a blank, of
    those that end with its last label, and of both.
    """

    def __init__(self, width: int, classes: int) -> None:
        self.width, self.classes = width, classes
        self.prefixes: list[tuple[int, ...]] = [()]
        self.blank = np.zeros(1)
        self.label = np.full(1, -np.inf)

    @property
    def total(self) -> Array:
        return np.asarray(np.logaddexp(self.blank, self.label))

    def step(self, logp: Array) -> None:
        """Reads one step: prefixes stay, or grow by one label, and the best ones are kept."""
        total, at = self.total, {prefix: i for i, prefix in enumerate(self.prefixes)}
        last = np.array([prefix[-1] if prefix else -1 for prefix in self.prefixes])
        # What a prefix gives to a longer one; a repeated label needs a blank between.
        grown = np.repeat(total[:, None], self.classes - 1, axis=1)
        ends = np.flatnonzero(last >= 0)
        grown[ends, last[ends]] = self.blank[ends]
        label = self.label.copy()
        for i, prefix in enumerate(self.prefixes):
            parent = at.get(prefix[:-1]) if prefix else None
            if parent is not None:
                label[i] = np.logaddexp(label[i], grown[parent, prefix[-1]])
                grown[parent, prefix[-1]] = -np.inf  # it is in the beam already
        label[ends] += logp[last[ends]]
        blank = total + logp[-1]
        grown += logp[:-1]
        self._keep(blank, label, grown)

    def _keep(self, blank: Array, label: Array, grown: Array) -> None:
        count = len(self.prefixes)
        scores = np.concatenate([np.logaddexp(blank, label), grown.ravel()])
        order = np.argsort(-scores, kind="stable")[: self.width]
        order = order[(scores[order] > -np.inf) | (order < count)]
        old = self.prefixes
        self.prefixes = [
            old[i] if i < count else (*old[(i - count) // (self.classes - 1)],
                                      int((i - count) % (self.classes - 1)))
            for i in order
        ]  # fmt: skip
        is_old = order < count
        self.blank = np.where(is_old, blank[np.where(is_old, order, 0)], -np.inf)
        self.label = np.where(is_old, label[np.where(is_old, order, 0)], scores[order])

    def best(self, paths: int) -> tuple[list[tuple[int, ...]], Array]:
        """The likeliest prefixes, with the logarithms of their probabilities."""
        if paths > len(self.prefixes):
            raise checks.invalid("Less leaves in the beam search than requested.")
        return self.prefixes[:paths], self.total[:paths]


@table.binder("CTCBeamSearchDecoder")
def ctc_beam_search_decoder(sig: NodeSig) -> Callable[..., tuple[Array, ...]]:
    """The likeliest sequences of labels."""
    width, paths = int(sig.attrs["beam_width"]), int(sig.attrs["top_paths"])
    merge = bool(sig.attrs["merge_repeated"])
    if paths > width:
        raise checks.invalid("requested more paths than the beam width.")

    def run(inputs: Array, lengths: Array) -> tuple[Array, ...]:
        steps, batch, classes = inputs.shape
        _check_lengths(lengths, steps, batch)
        logp = _log_softmax(inputs.astype(np.float64))
        score = np.zeros((batch, paths), inputs.dtype)
        found: list[list[tuple[int, ...]]] = []
        for b in range(batch):
            beam = _Beam(width, classes)
            for t in range(int(lengths[b])):
                beam.step(logp[t, b])
            labels, score[b] = beam.best(paths)
            found.append([_merged(path) if merge else path for path in labels])
        sparse = [_as_sparse([rows[i] for rows in found]) for i in range(paths)]
        return (*(part[k] for k in range(3) for part in sparse), score)

    return run


def _merged(path: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(c for i, c in enumerate(path) if i == 0 or path[i - 1] != c)


def _as_sparse(rows: list[tuple[int, ...]]) -> tuple[Array, Array, Array]:
    """Indices, values and shape of rows of different lengths."""
    indices = [(b, i) for b, row in enumerate(rows) for i in range(len(row))]
    values = np.array([value for row in rows for value in row], np.int64)
    longest = max(map(len, rows), default=0)
    return np.array(indices, np.int64).reshape(-1, 2), values, np.array([len(rows), longest])
