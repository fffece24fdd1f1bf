"""Comparison within a tolerance; the exact ones come from their expressions."""

from __future__ import annotations

from collections.abc import Callable

from opdock.plugin import REALS, KernelTable, NodeSig, dtypes
from opdock_ckernels.pointwise import formula
from opdock_ckernels.protocols import Array

__all__ = ["table"]

table = KernelTable()


@table.binder("ApproximateEqual", T=REALS)
def approximate_equal(sig: NodeSig) -> Callable[[Array, Array], Array]:
    """Whether the difference is below the tolerance."""
    dtype = sig.in_dtypes[0]
    wide = dtypes.float64 if sig.device.has_double else dtypes.float32
    # The larger less the smaller: an unsigned difference the other way would wrap around.
    difference = "max(x, y) - min(x, y)"
    if dtype in (dtypes.float16, dtypes.bfloat16):
        x, y = "cast(x, float32)", "cast(y, float32)"
        difference = f"max({x}, {y}) - min({x}, {y})"
    text = f"cast({difference}, {wide.name}) < cast(tolerance, {wide.name})"
    number = float(sig.attrs["tolerance"])
    return formula(sig.device, text, {"x": dtype, "y": dtype}, dtypes.bool, tolerance=number)
