"""Every op that a scalar expression describes, rendered from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.plugin import Kernel, KernelTable, NodeSig, codegen
from opdock_ckernels.pointwise import Pointwise

__all__ = ["table"]

table = KernelTable()
_TYPES = codegen.RENDERED


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
