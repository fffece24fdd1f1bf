"""Oracle of softmax and the cross entropies fused with it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]


def _log_row(row: Array) -> list[float]:
    top = max(row, default=0.0)
    total = math.log(sum(math.exp(v - top) for v in row)) if len(row) else 0.0
    return [v - top - total for v in row]


@reference("LogSoftmax")
def log_softmax(attrs: Any, logits: Array) -> Array:
    """X - log(sum(exp(x))) of each row."""
    out = np.zeros(logits.shape)
    for at in np.ndindex(logits.shape[:-1]):
        out[at] = _log_row(logits[at])
    return out


@reference("Softmax")
def softmax(attrs: Any, logits: Array) -> Array:
    """exp(x) / sum(exp(x)) of each row."""
    return np.exp(log_softmax(attrs, logits))


@reference("SoftmaxCrossEntropyWithLogits")
def xent(attrs: Any, features: Array, labels: Array) -> tuple[Array, Array]:
    """Minus the labels' expectation of the log probabilities, and its gradient."""
    features, labels = np.broadcast_arrays(features, labels)
    loss, back = np.zeros(len(features)), np.zeros(features.shape)
    for row, (scores, target) in enumerate(zip(features, labels, strict=True)):
        logs = _log_row(scores)
        loss[row] = -sum(t * v for t, v in zip(target, logs, strict=True))
        back[row] = np.exp(logs) - target
    return loss, back


@reference("SparseSoftmaxCrossEntropyWithLogits")
def sparse_xent(attrs: Any, features: Array, labels: Array) -> tuple[Array, Array]:
    """Minus the log probability of each row's class, and its gradient."""
    loss, back = np.zeros(len(features)), np.zeros(features.shape)
    for row, (scores, target) in enumerate(zip(features, labels, strict=True)):
        logs = _log_row(scores)
        loss[row] = -logs[target]
        back[row] = np.exp(logs)
        back[row, target] -= 1
    return loss, back
