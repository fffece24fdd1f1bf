"""Oracle of stochastic dual coordinate ascent, for examples that share no feature.

Then no step sees another, so their order does not matter. The best dual is found from the slope of
the loss alone: it is minus the slope at the prediction that the dual leads to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference
from opdock.testing.reference.hashing import M, city128

Array = npt.NDArray[Any]
Attrs = Mapping[str, Any]
Function = Callable[[float, float], float]

_SLOPES: Final[dict[str, Function]] = {
    "logistic_loss": lambda y, p: -y / (1 + math.exp(y * p)),
    "squared_loss": lambda y, p: p - y,
    "hinge_loss": lambda y, p: -y if y * p < 1 else 0.0,
    "smooth_hinge_loss": lambda y, p: -y * min(max(1 - y * p, 0.0), 1.0),
    "poisson_loss": lambda y, p: math.exp(p) - y,
}
_LOSSES: Final[dict[str, Function]] = {
    "logistic_loss": lambda y, p: math.log(1 + math.exp(-y * p)),
    "squared_loss": lambda y, p: (p - y) ** 2 / 2,
    "hinge_loss": lambda y, p: max(1 - y * p, 0.0),
    "smooth_hinge_loss": lambda y, p: 0.5 - y * p if y * p < 0 else max(1 - y * p, 0.0) ** 2 / 2,
    "poisson_loss": lambda y, p: math.exp(p) - y * p,
}


def _entropy(p: float) -> float:
    return p * math.log(p) if p > 0 else 0.0


_CONJUGATES: Final[dict[str, Function]] = {
    "logistic_loss": lambda y, a: _entropy(a * y) + _entropy(1 - a * y),
    "squared_loss": lambda y, a: a * a / 2 - a * y,
    "hinge_loss": lambda y, a: -a * y,
    "smooth_hinge_loss": lambda y, a: a * a / 2 - a * y,
    "poisson_loss": lambda y, a: _entropy(y - a) - (y - a),
}


def _best(slope: Function, y: float, dual: float, p: float, scale: float) -> float:
    """The dual at which the prediction, moved by it, has minus that slope."""
    low, high = -50.0, 50.0
    for _ in range(100):
        middle = (low + high) / 2
        if (middle - p) / scale + dual + slope(y, middle) < 0:
            low = middle
        else:
            high = middle
    return dual + (low - p) / scale


@reference("SdcaOptimizer")
@reference("SdcaOptimizerV2")
def sdca_optimizer(
    attrs: Attrs, examples: list[Array], features: list[Array], values: list[Array],
    tables: list[Array], weights: Array, labels: Array, ids: list[Array],
    sparse_weights: list[Array], dense_weights: list[Array], state: Array,
) -> tuple[Any, ...]:  # fmt: skip
    """Example by example, feature by feature."""
    kind, sparse, valued = attrs["loss_type"], len(examples), len(values)
    model = [*sparse_weights, *dense_weights]
    l2, shrinkage = attrs["l2"], attrs["l1"] / attrs["l2"]
    shrunk = [np.sign(w) * np.maximum(abs(w) - shrinkage, 0) for w in model]
    deltas, fresh = [np.zeros(w.shape) for w in model], np.array(state)
    for i, (weight, label) in enumerate(zip(weights, labels, strict=True)):
        parts: list[tuple[int, int, float]] = []
        for group in range(sparse):
            for at in np.flatnonzero(examples[group] == i):
                place = int(np.flatnonzero(ids[group] == features[group][at])[0])
                parts.append((group, place, values[group][at] if group < valued else 1.0))
        for group, table in enumerate(tables, sparse):
            parts += [(group, place, value) for place, value in enumerate(table[i])]
        p = sum(value * shrunk[group][place] for group, place, value in parts)
        y = 2 * label - 1 if kind.startswith(("logistic", "hinge", "smooth")) else label
        scale = attrs["num_loss_partitions"] * weight * sum(v * v for *_, v in parts) / l2
        dual = state[i, 0]
        best = _best(_SLOPES[kind], y, dual, p, scale)
        for group, place, value in parts:
            deltas[group][place] += value * (best - dual) * weight / l2
        losses = _LOSSES[kind](y, p) * weight, _CONJUGATES[kind](y, dual) * weight
        fresh[i] = best, *losses, weight
    return (fresh, *deltas)


@reference("SdcaShrinkL1")
def sdca_shrink_l1(attrs: Attrs, weights: list[Array]) -> tuple[Array, ...]:
    """Each weight nearer to zero by l1 / l2, and no further."""
    by = attrs["l1"] / attrs["l2"]
    return tuple(np.sign(w) * np.maximum(abs(w) - by, 0) for w in weights)


@reference("SdcaFprint")
def sdca_fprint(attrs: Attrs, strings: Array) -> Array:
    """FarmHash's Fingerprint128, whose low half is neither 0 nor 1."""
    out = np.empty((len(strings), 2), np.uint64)
    for i, text in enumerate(strings):
        low, high = city128(bytes(text))
        out[i] = low if low >= 2 else (low - 2) & M, high
    return out.view(np.int64)
