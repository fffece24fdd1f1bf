"""Comparison within a tolerance, and choice by row; the rest comes from expressions."""

from __future__ import annotations

from collections.abc import Callable

from opdock.plugin import REALS, KernelTable, NodeSig, checks, codegen, dtypes
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


@table.binder("Select", T=codegen.RENDERED, out=True)
def select(sig: NodeSig) -> Callable[..., Array]:
    """A choice by element, or by row for a vector condition."""
    dtype = sig.out_dtypes[0]
    types = {"c": dtypes.bool, "x": dtype, "y": dtype}
    program = formula(sig.device, "where(c, x, y)", types, dtype)

    def run(condition: Array, then: Array, otherwise: Array, out: Array | None) -> Array:
        if checks.check_choice(condition, then):
            condition = condition.reshape(condition.shape[0], *[1] * (then.ndim - 1))
        chosen: Array = program(condition, then, otherwise, into=out)
        return chosen

    return run
