"""Every op that a scalar expression describes, rendered from it; and the few beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.plugin import Kernel, KernelTable, NodeSig, codegen, dtypes
from opdock_ckernels.pointwise import Pointwise, formula
from opdock_ckernels.protocols import Array

__all__ = ["table"]

table = KernelTable()
_TYPES = codegen.RENDERED
_AT_ONCE = 8


def _when(sig: NodeSig) -> bool | str:
    if not sig.attrs.get("incompatible_shape_error", True):
        return "shapes that do not broadcast have one truth value"
    return True


def _bind(sig: NodeSig) -> Callable[..., Any]:
    """The expression as a kernel; its result may take the place of an input of the same shape."""
    names = codegen.input_names(sig.op)
    inputs = list(zip(names, (t.base_dtype for t in sig.in_dtypes), strict=True))
    outputs = [sig.out_dtypes[0].base_dtype]
    return Pointwise(sig.device, codegen.node_line(sig), inputs, outputs).planned


for _op, _types in codegen.elementwise_claims().items():
    table.add(Kernel(op=_op, bind=_bind, dtypes=_types, when=_when, out=True))


@table.binder("AddN", "AccumulateNV2", T=_TYPES - {dtypes.bool}, out=True)
def add_n(sig: NodeSig) -> Callable[..., Array]:
    """The sum of the inputs, several in one kernel."""
    device, dtype = sig.device, sig.out_dtypes[0]
    programs: dict[int, Pointwise] = {}

    def total(count: int) -> Pointwise:
        if count not in programs:
            names = [f"x{i}" for i in range(count)]
            types = dict.fromkeys(names, dtype)
            text = " + ".join(names) if count > 1 else "where(True, x0, x0)"
            programs[count] = formula(device, text, types, dtype)
        return programs[count]

    def run(*args: Any) -> Array:
        values, out = args[:-1], args[-1]
        for other in values:
            if other.shape != values[0].shape:
                raise codegen.invalid(
                    "Inputs to operation of type AddN must have the same size and shape. "
                    f"Input 0: {codegen.dims(values[0].shape)} != {codegen.dims(other.shape)}"
                )
        rest = list(values)
        while True:
            head, rest = rest[:_AT_ONCE], rest[_AT_ONCE:]
            last = not rest
            partial: Array = total(len(head))(*head, into=out if last else None)
            if last:
                return partial
            rest.insert(0, partial)

    return run


@table.binder("Select", T=_TYPES, out=True)
def select(sig: NodeSig) -> Callable[..., Array]:
    """A choice by element, or by row for a vector condition."""
    dtype = sig.out_dtypes[0]
    types = {"c": dtypes.bool, "x": dtype, "y": dtype}
    program = formula(sig.device, "where(c, x, y)", types, dtype)

    def run(condition: Array, then: Array, otherwise: Array, out: Array | None) -> Array:
        if condition.ndim == 1 and then.ndim > 1:
            condition = condition.reshape(condition.shape[0], *[1] * (then.ndim - 1))
        elif condition.ndim and condition.shape != then.shape:
            raise codegen.invalid(
                "'condition' must be of the same shape as 'then' and 'else': "
                f"{codegen.dims(condition.shape)} vs. {codegen.dims(then.shape)}"
            )
        chosen: Array = program(condition, then, otherwise, into=out)
        return chosen

    return run
