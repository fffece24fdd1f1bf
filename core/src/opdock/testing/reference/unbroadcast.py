"""The oracle for shapes of gradients of what broadcasts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


@reference("BroadcastGradientArgs")
def broadcast_gradient_args(attrs: Attrs, s0: Array, s1: Array) -> tuple[Array, Array]:
    """For each shape the axes that it lacks or has size 1 in, unless the shapes are the same."""
    sizes = [[int(d) for d in s] for s in (s0, s1)]
    rank = max(len(s) for s in sizes)
    padded = [[1] * (rank - len(s)) + s for s in sizes]
    if padded[0] == padded[1]:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    first, second = (
        np.array([axis for axis, dim in enumerate(dims) if dim == 1], np.int64) for dims in padded
    )
    return first, second
