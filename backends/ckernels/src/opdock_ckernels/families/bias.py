"""Adding a vector along the channels, and its gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.plugin import FLOATS, REALS, KernelTable, NodeSig
from opdock_ckernels.folding import fold
from opdock_ckernels.pointwise import formula
from opdock_ckernels.protocols import Array

__all__ = ["table"]

table = KernelTable()


@table.binder("BiasAdd", "BiasAddV1", T=REALS)
def bias_add(sig: NodeSig) -> Callable[[Array, Array], Any]:
    """A broadcast sum."""
    dtype = sig.out_dtypes[0]
    program = formula(sig.device, "x + b", {"x": dtype, "b": dtype}, dtype)
    if sig.attrs.get("data_format") != "NCHW":
        return program
    return lambda x, bias: program(x, bias.reshape(*bias.shape, *[1] * (x.ndim - 2)))


@table.binder("BiasAddGrad", T=FLOATS)
def bias_add_grad(sig: NodeSig) -> Callable[[Array], Array]:
    """The sum over all dimensions but the channels."""
    device, first = sig.device, sig.attrs["data_format"] == "NCHW"

    def run(grad: Array) -> Array:
        channel = 1 if first else grad.ndim - 1
        return fold(device, "sum", grad, [a for a in range(grad.ndim) if a != channel])

    return run
