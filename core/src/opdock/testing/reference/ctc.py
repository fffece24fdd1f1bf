"""Oracle of CTC: every alignment is enumerated, so keep samples tiny."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]


def _softmax(logits: Array) -> Array:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def _reads(path: tuple[int, ...], blank: int, merge: bool) -> list[int]:
    """The labels that an alignment reads as."""
    out: list[int] = []
    for t, label in enumerate(path):
        if label != blank and not (merge and t and path[t - 1] == label):
            out.append(label)
    return out


@reference("CTCLoss")
def ctc_loss(
    attrs: Any, inputs: Array, indices: Array, values: Array, lengths: Array
) -> tuple[Array, Array]:
    """Minus the log of the summed probability of all alignments, and its gradient."""
    _, batch, classes = inputs.shape
    loss, grad = np.zeros(batch), np.zeros(inputs.shape)
    for b in range(batch):
        steps = int(lengths[b])
        wanted = [int(v) for (row, _), v in zip(indices, values, strict=True) if row == b]
        if attrs["preprocess_collapse_repeated"]:
            wanted = [v for i, v in enumerate(wanted) if i == 0 or wanted[i - 1] != v]
        y = _softmax(inputs[:steps, b])
        total, seen = 0.0, np.zeros((steps, classes))
        for path in itertools.product(range(classes), repeat=steps):
            if _reads(path, classes - 1, attrs["ctc_merge_repeated"]) == wanted:
                chance = float(np.prod([y[t, label] for t, label in enumerate(path)]))
                total += chance
                for t, label in enumerate(path):
                    seen[t, label] += chance
        if total == 0.0:
            loss[b] = 0.0 if attrs["ignore_longer_outputs_than_inputs"] else np.inf
            continue
        loss[b] = -np.log(total)
        grad[:steps, b] = y - seen / total
    return loss, grad


@reference("CTCGreedyDecoder")
def ctc_greedy_decoder(attrs: Any, inputs: Array, lengths: Array) -> Any:
    """The likeliest class of each step, read as labels."""
    _, batch, classes = inputs.shape
    indices, values, score = [], [], np.zeros((batch, 1))
    longest = 0
    for b in range(batch):
        scores = inputs[: int(lengths[b]), b]
        path = tuple(int(np.argmax(s)) for s in scores)
        score[b] = -sum(float(max(s)) for s in scores)
        labels = _reads(path, classes - 1, attrs["merge_repeated"])
        longest = max(longest, len(labels))
        indices += [(b, i) for i in range(len(labels))]
        values += labels
    return (
        np.array(indices, np.int64).reshape(-1, 2), np.array(values, np.int64),
        np.array([batch, longest], np.int64), score,
    )  # fmt: skip


@reference("CTCBeamSearchDecoder")
def ctc_beam_search_decoder(attrs: Any, inputs: Array, lengths: Array) -> Any:
    """The likeliest readings of all alignments; the beam must be wide enough for all of them."""
    _, batch, classes = inputs.shape
    paths = attrs["top_paths"]
    score = np.zeros((batch, paths))
    rows: list[list[list[int]]] = [[] for _ in range(paths)]
    for b in range(batch):
        steps = int(lengths[b])
        y = _softmax(inputs[:steps, b])
        chances: dict[tuple[int, ...], float] = {}
        for path in itertools.product(range(classes), repeat=steps):
            reading = tuple(_reads(path, classes - 1, True))
            chance = float(np.prod([y[t, label] for t, label in enumerate(path)]))
            chances[reading] = chances.get(reading, 0.0) + chance
        best = sorted(chances, key=chances.__getitem__, reverse=True)[:paths]
        for i, reading in enumerate(best):
            score[b, i] = np.log(chances[reading])
            merge = attrs["merge_repeated"]
            rows[i].append([v for k, v in enumerate(reading)
                            if not (merge and k and reading[k - 1] == v)])  # fmt: skip
    indices = [
        np.array([(b, k) for b, row in enumerate(r) for k in range(len(row))], np.int64)
        .reshape(-1, 2) for r in rows
    ]  # fmt: skip
    values = [np.array([v for row in r for v in row], np.int64) for r in rows]
    shapes = [np.array([batch, max(map(len, r))], np.int64) for r in rows]
    return (*indices, *values, *shapes, score)
