"""CTC kernels: forward and backward sums over alignments in log space, one sequence at a time.

A generated loop goes through the states of all sequences; NumPy takes a step of a sequence at once.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, isnan, log1p
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, checks, dtypes
from opdock_cpu.jit.looped import Looped, double
from opdock_cpu.portable import portable_kernel

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


def _align(
    begin: int, end: int, loss: Array, grad: Array, logp: Array, paths: Array, states: Array,
    lengths: Array, alpha: Array, beta: Array, steps: int, batch: int, classes: int, most: int,
    merge: int, nothing: float,
) -> None:  # fmt: skip
    """What `_alignments` and `_differentiated` compute; `nothing` is the logarithm of zero."""
    for b in range(begin, end):
        n, last, p, blank = states[b], lengths[b], b * most, classes - 1
        for t in range(last):
            now, row = (b * steps + t) * most, (t * batch + b) * classes
            for s in range(n):
                v, label = nothing, paths[p + s]
                if t == 0:
                    v = double(0) if s < 2 else nothing
                else:
                    before = now - most + s
                    if merge > 0 or label == blank:
                        v = alpha[before]
                    if s > 0:
                        high, low = max(v, alpha[before - 1]), min(v, alpha[before - 1])
                        v = high + log1p(exp(low - high)) if low > nothing else high
                    if s > 1 and label != blank and not (merge > 0 and label == paths[p + s - 2]):
                        high, low = max(v, alpha[before - 2]), min(v, alpha[before - 2])
                        v = high + log1p(exp(low - high)) if low > nothing else high
                alpha[now + s] = v + logp[row + label]
        if last == 0:
            continue
        total = alpha[(b * steps + last - 1) * most + n - 1]
        if n > 1:
            other = alpha[(b * steps + last - 1) * most + n - 2]
            high, low = max(total, other), min(total, other)
            total = high + log1p(exp(low - high)) if low > nothing else high
        loss[b] = -total
        if total == nothing:
            continue
        for t in range(last - 1, -1, -1):
            row, after = (t * batch + b) * classes, ((t + 1) * batch + b) * classes
            now, then = (2 * b + t % 2) * most, (2 * b + (t + 1) % 2) * most
            for s in range(n):
                v, label = nothing, paths[p + s]
                if t == last - 1:
                    v = double(0) if s > n - 3 else nothing
                else:
                    # Going back, the state after decides if it may be entered by staying.
                    if merge > 0 or label == blank:
                        v = beta[then + s] + logp[after + label]
                    if s + 1 < n:
                        u = beta[then + s + 1] + logp[after + paths[p + s + 1]]
                        high, low = max(v, u), min(v, u)
                        v = high + log1p(exp(low - high)) if low > nothing else high
                    if s + 2 < n and paths[p + s + 2] != blank:
                        u = beta[then + s + 2] + logp[after + paths[p + s + 2]]
                        if not (merge > 0 and label == paths[p + s + 2]):
                            high, low = max(v, u), min(v, u)
                            v = high + log1p(exp(low - high)) if low > nothing else high
                beta[now + s] = v
            for c in range(classes):
                grad[row + c] = exp(logp[row + c])
            for s in range(n):
                share = exp(alpha[(b * steps + t) * most + s] + beta[now + s] - total)
                label = paths[p + s]
                grad[row + label] = grad[row + label] - share


_ALIGN: Final = Looped(_align)


def _aligned(
    logp: Array, paths: list[Array | None], lengths: Array, merge: bool
) -> tuple[Array, Array] | None:
    """Losses and gradients of all sequences that have a path; None while there is no code."""
    steps, batch, classes = logp.shape
    sizes = np.array([0 if path is None else len(path) for path in paths], np.int64)
    most = int(sizes.max())
    table = np.zeros((batch, most), np.int64)
    for row, path in zip(table, paths, strict=True):
        if path is not None:
            row[: len(path)] = path
    loss, grad = np.zeros(batch), np.zeros_like(logp)
    alpha, beta = np.empty((batch, steps, most)), np.empty((batch, 2, most))
    turns = np.where(sizes > 0, lengths, 0)
    work = int((turns * (16 * sizes + classes)).sum())
    arrays = (loss, grad, logp, table, sizes, turns, alpha, beta)
    numbers = (steps, batch, classes, most, int(merge), -np.inf)
    return (loss, grad) if _ALIGN(batch, work, *arrays, *numbers) else None


def _differentiated(logp: Array, path: Array, merge: bool) -> tuple[float, Array]:
    """The loss of one sequence and its gradient with respect to the logits."""
    total, through = _alignments(logp, path, logp.shape[1] - 1, merge)
    if total == -np.inf:
        return np.inf, np.zeros_like(logp)
    share = np.exp(through - total)
    seen = np.zeros_like(logp)
    for state, label in enumerate(path):
        seen[:, label] += share[:, state]
    return -total, np.exp(logp) - seen


def _path(
    labels: Array, steps: int, classes: int, b: int, collapse: bool, merge: bool, ignore: bool
) -> Array | None:
    """The states of a sequence; None where its loss is zero.

    Raises:
        InvalidArgumentError: a label is none, or there are too few steps.
    """
    blank = classes - 1
    if labels.size and (labels.min() < 0 or labels.max() >= blank):
        raise checks.invalid(
            "Saw a non-null label (index >= num_classes - 1) following a null label, "
            f"batch: {b} num_classes: {classes} labels: {','.join(map(str, labels))}"
        )
    if collapse and labels.size:
        labels = labels[np.concatenate(([True], labels[1:] != labels[:-1]))]
    if steps == 0:
        return None
    required = len(labels)
    if merge:
        required += int((labels[1:] == labels[:-1]).sum())
    if required > steps:
        if ignore:
            return None
        raise checks.invalid(
            "Not enough time for target transition sequence (required: "
            f"{required}, available: {steps}){b}You can turn this error into a warning by using "
            "the flag ignore_longer_outputs_than_inputs"
        )
    return _with_blanks(labels, blank)


@table.binder("CTCLoss")
def ctc_loss(sig: NodeSig) -> Callable[..., tuple[Array, Array]]:
    """Losses [batch] and their gradient with respect to the logits."""
    attrs = sig.attrs
    collapse = bool(attrs["preprocess_collapse_repeated"])
    merge = bool(attrs["ctc_merge_repeated"])
    ignore = bool(attrs["ignore_longer_outputs_than_inputs"])

    def run(inputs: Array, indices: Array, values: Array, lengths: Array) -> tuple[Array, Array]:
        steps, batch, classes = inputs.shape
        if batch == 0:
            raise checks.invalid("batch_size must not be 0")
        checks.check_ctc_lengths(lengths, steps, batch)
        paths = [
            _path(labels, int(lengths[b]), classes, b, collapse, merge, ignore)
            for b, labels in enumerate(_labels_of(indices, values, batch))
        ]
        used = int(np.max(lengths))  # what no sequence reaches has no part in it
        logp = _log_softmax(inputs[:used].astype(np.float64))
        found = _aligned(logp, paths, lengths, merge)
        if found is None:
            loss, gradient = found = np.zeros(batch), np.zeros_like(logp)
            for b, path in enumerate(paths):
                n = lengths[b]
                if path is not None:
                    loss[b], gradient[:n, b] = _differentiated(logp[:n, b], path, merge)
        whole = np.zeros(inputs.shape, inputs.dtype)
        whole[:used] = found[1]
        return found[0].astype(inputs.dtype), whole

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
        checks.check_ctc_lengths(lengths, steps, batch)
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


# ---------------------------------------------------------------- the best class of each step
def _greedy(
    begin: int, end: int, found: Array, counts: Array, score: Array, inputs: Array, lengths: Array,
    steps: int, batch: int, classes: int, merge: int,
) -> None:  # fmt: skip
    """A turn is a sequence; the last class is the blank."""
    for b in range(begin, end):
        have, before, total = 0, -1, double(0)
        for t in range(lengths[b]):
            first, best = (t * batch + b) * classes, 0
            top = inputs[first]
            for c in range(1, classes):
                value = inputs[first + c]
                if value > top or (isnan(value) and not isnan(top)):
                    top = value
                    best = c
            total -= top
            if best != classes - 1 and (merge == 0 or best != before):
                found[b * steps + have] = best
                have += 1
            before = best
        counts[b] = have
        score[b] = total


_GREEDY: Final = Looped(_greedy)


@table.binder(
    "CTCGreedyDecoder", T={dtypes.float32, dtypes.float64}, host_inputs=("sequence_length",)
)
def ctc_greedy_decoder(sig: NodeSig) -> Callable[..., Any]:
    """The best class of each step without blanks and, optionally, repeats."""
    merge, plain = bool(sig.attrs["merge_repeated"]), portable_kernel(sig)

    def run(inputs: Array, lengths: Array) -> Any:
        steps, batch, classes = inputs.shape
        checks.check_ctc_lengths(lengths, steps, batch)
        if not inputs.size:
            return plain(inputs, lengths)
        found, counts = np.empty((batch, steps), np.int64), np.empty(batch, np.int64)
        score = np.empty((batch, 1), inputs.dtype)
        arrays, numbers = (found, counts, score, inputs, lengths), (steps, batch, classes)
        if not _GREEDY(batch, inputs.size, *arrays, *numbers, int(merge)):
            return plain(inputs, lengths)
        places = np.argwhere(np.arange(steps) < counts[:, None])
        shape = np.array([batch, counts.max()], np.int64)
        return places, found[tuple(places.T)], shape, score

    return run
