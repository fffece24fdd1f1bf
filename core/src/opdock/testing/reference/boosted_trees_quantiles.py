"""Oracle of quantile summaries, of so few values that none is left out, and of buckets."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = Mapping[str, Any]


@reference("BoostedTreesMakeQuantileSummaries")
def summaries(attrs: Attrs, float_values: Any, example_weights: Array, epsilon: Array) -> Any:
    """Each value, its weight, and the weight before and after it."""
    found = []
    for values in float_values:
        weights = np.broadcast_to(example_weights, values.shape)
        totals: dict[float, float] = {}
        for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
            if weight > 0:
                totals[value] = totals.get(value, 0.0) + weight
        rows, before = [], 0.0
        for value in sorted(totals):
            rows.append((value, totals[value], before, before + totals[value]))
            before += totals[value]
        found.append(np.array(rows, np.float32).reshape(-1, 4))
    return found


@reference("BoostedTreesBucketize")
def buckets(attrs: Attrs, float_values: Any, bucket_boundaries: Any) -> Any:
    """The first boundary that is not below a value; the last where all are."""
    found = []
    for values, limits in zip(float_values, bucket_boundaries, strict=True):
        ordered = limits.tolist()
        places = [min(bisect.bisect_left(ordered, v), max(len(ordered) - 1, 0)) for v in values]
        found.append(np.array(places, np.int32))
    return found
