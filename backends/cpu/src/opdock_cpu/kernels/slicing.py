"""Slices of variables, written where they are; slices of tensors are portable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.plugin import KernelTable, NodeSig, checks
from opdock_cpu.changes import change

__all__ = ["table"]

table = KernelTable()


@table.binder(
    "StridedSliceAssign", "ResourceStridedSliceAssign", keeps=(),
    host_inputs=("begin", "end", "strides"),
)  # fmt: skip
def strided_slice_assign(sig: NodeSig) -> Callable[..., Any]:
    """Another value in a part of a variable, which is written where it is."""
    returns_ref = bool(sig.out_dtypes)

    def run(cell: Any, begin: Any, end: Any, strides: Any, value: Any) -> Any:
        with cell.lock:
            part = checks.subscript(sig, cell.read().shape, begin, end, strides)
            if 0 not in part.shape:  # of nothing the value may be anything
                checks.check_sliced_value(value, part.shape)
                change(cell, lambda whole: _put(whole, part.subscript, value))
        return cell if returns_ref else None

    return run


def _put(whole: Any, part: Any, value: Any) -> None:
    whole[part] = value
