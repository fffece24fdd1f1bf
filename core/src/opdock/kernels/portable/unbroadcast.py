"""Portable kernel of the axes over which a broadcast repeats."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.kernels.portable import portable
from opdock.kernels.portable.array import broadcast_shapes
from opdock.kernels.select.signature import NodeSig


@portable("BroadcastGradientArgs", host_inputs=("s0", "s1"), host_outputs=("r0", "r1"))
def broadcast_gradient_args(xp: Any, sig: NodeSig) -> Any:
    """The axes over which each side of a broadcast was repeated."""
    kind = sig.out_dtypes[0].np

    def axes(s0: Any, s1: Any) -> tuple[Any, Any]:
        sizes = [[int(d) for d in s] for s in (s0, s1)]
        rank = max(len(s) for s in sizes)
        first, second = ([1] * (rank - len(s)) + s for s in sizes)
        broadcast_shapes(*sizes)
        if first == second:
            return np.empty(0, kind), np.empty(0, kind)
        return repeated(first), repeated(second)

    def repeated(sizes: list[int]) -> Any:
        return np.asarray([axis for axis, size in enumerate(sizes) if size == 1], kind)

    return axes
