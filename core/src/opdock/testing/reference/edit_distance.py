"""The distance between two sequences, by its recursive definition."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from opdock.testing.reference._registry import reference


def _distance(a: list[Any], b: list[Any]) -> int:
    @functools.cache
    def between(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        if a[i - 1] == b[j - 1]:
            return between(i - 1, j - 1)
        return 1 + min(between(i - 1, j), between(i, j - 1), between(i - 1, j - 1))

    return between(len(a), len(b))


@reference("EditDistance")
def edit_distance(attrs: Any, hi: Any, hv: Any, hs: Any, ti: Any, tv: Any, ts: Any) -> Any:
    """Gathers the sequences and compares each pair."""
    lead = tuple(int(n) for n in np.maximum(hs, ts)[:-1])
    out = np.zeros(lead, np.float64)
    for place in np.ndindex(*lead):
        first, second = (
            [v for cell, v in zip(cells, values, strict=True) if tuple(cell[:-1]) == place]
            for cells, values in ((hi, hv), (ti, tv))
        )
        steps = float(_distance(first, second))
        if attrs["normalize"] and steps:
            steps = steps / len(second) if second else np.inf
        out[place] = steps
    return out
