"""Oracle of L2Loss and InTopK."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]


@reference("L2Loss")
def l2_loss(attrs: Any, t: Array) -> Any:
    """Half the sum of squares."""
    return np.float64(sum(float(v) ** 2 for v in t.reshape(-1)) / 2)


def _in_top_k(predictions: Array, targets: Array, k: int) -> Array:
    out = np.zeros(len(targets), np.bool_)
    for row, (scores, target) in enumerate(zip(predictions, targets, strict=True)):
        if 0 <= target < len(scores) and all(math.isfinite(s) for s in scores):
            out[row] = sum(s > scores[target] for s in scores) < k
    return out


@reference("InTopK")
def in_top_k(attrs: Any, predictions: Array, targets: Array) -> Array:
    """Whether fewer than k scores beat the target's."""
    return _in_top_k(predictions, targets, int(attrs["k"]))


@reference("InTopKV2")
def in_top_k_v2(attrs: Any, predictions: Array, targets: Array, k: Array) -> Array:
    """Whether fewer than k scores beat the target's."""
    return _in_top_k(predictions, targets, int(k))
