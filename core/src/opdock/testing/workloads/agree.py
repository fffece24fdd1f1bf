"""Whether two libraries computed the same: results as digests, and how far digests are apart."""

from __future__ import annotations

import math
from typing import Any

SAMPLE = 500  # numbers of each array that are compared one by one
Digest = list[Any]


def digest(value: Any) -> Digest:
    """Of each array its shape, every so-manieth number, and the sum of all magnitudes."""
    import numpy as np

    out = []
    for v in value if isinstance(value, (list, tuple)) else [value]:
        if v is not None:
            flat = np.asarray(v, np.float64).reshape(-1)
            some = flat[:: max(1, flat.size // SAMPLE)]
            out.append([list(np.shape(v)), some.tolist(), float(np.abs(flat).sum())])
    return out


def apart(a: Digest, b: Digest) -> float:
    """The largest difference, in parts of its array's largest magnitude; infinite for NaN, another
    shape or another number of arrays.
    """
    if [shape for shape, *_ in a] != [shape for shape, *_ in b]:
        return math.inf
    worst = 0.0
    for (_, these, sum_a), (_, those, sum_b) in zip(a, b):
        scale = max((abs(v) for v in (*these, *those)), default=0.0) or 1.0
        gaps = [abs(x - y) / scale for x, y in zip(these, those)]
        gaps.append(abs(sum_a - sum_b) / (max(sum_a, sum_b) or 1.0))
        worst = max(worst, *(math.inf if math.isnan(g) else g for g in gaps))
    return worst
