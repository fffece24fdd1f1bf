"""Tensors of one value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.plugin import KernelTable, NodeSig, codegen
from opdock_ckernels.families.array import HELD
from opdock_ckernels.pointwise import formula
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import take

__all__ = ["table"]

table = KernelTable()


@table.binder("ZerosLike", T=HELD)
def zeros_like(sig: NodeSig) -> Callable[[Array], Array]:
    """Zeros in the input's shape."""
    device = sig.device

    def run(x: Array) -> Array:
        out: Array = device.allocate(x.shape, x.dtype)
        device.fill_zero(out)
        return out

    return run


@table.binder("OnesLike", T=codegen.RENDERED)
def ones_like(sig: NodeSig) -> Callable[[Array], Any]:
    """Ones in the input's shape."""
    dtype = sig.out_dtypes[0]
    return formula(sig.device, "where(True, 1, x)", {"x": dtype}, dtype)


@table.binder("Fill", T=HELD, host_inputs=("dims",))
def fill(sig: NodeSig) -> Callable[[Any, Array], Array]:
    """One value everywhere."""
    device = sig.device

    def run(dims: Any, value: Array) -> Array:
        if getattr(dims, "ndim", 1) != 1:
            raise codegen.invalid(f"dims must be a vector, got shape {codegen.dims(dims.shape)}")
        if value.ndim:
            raise codegen.invalid(f"value must be a scalar, got shape {codegen.dims(value.shape)}")
        shape = codegen.ints(dims)
        for n in shape:
            if n < 0:
                raise codegen.invalid(f"Dimension {n} must be >= 0")
        return take(device, value, shape, [0] * len(shape))

    return run
