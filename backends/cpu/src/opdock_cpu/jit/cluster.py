"""Elementwise clusters on the processor: one pass over memory in generated code."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from opdock.plugin import CLUSTER, OPEN_CLUSTER, KernelTable, NodeSig
from opdock_cpu.jit import llvm, render
from opdock_cpu.jit.generated import Generated, folds_well
from opdock_cpu.jit.sized import Sized, unsaid

__all__ = ["table"]

table = KernelTable()
_SMALL: Final = 1 << 10
"""Elements below which a few NumPy calls cost less than a call of generated code."""
_FEW: Final = 3


def _shapes(shapes: Any) -> list[tuple[int, ...]]:
    return [tuple(n or 0 for n in s or ()) for s in shapes]  # a cluster's are fully known


def _when(sig: NodeSig) -> bool | str:
    if not llvm.available():
        return llvm.why_not()
    reduces, shape = sig.attrs["reduces"], sig.attrs["shape"]
    answer = render.renders(sig.attrs["line"])
    if answer is not True:
        return answer
    if reduces:
        if not all(t.is_floating for t in sig.out_dtypes[-len(reduces) :]):
            return "only floating-point numbers are folded"
        gone = [r.axes for r in reduces]
        if not folds_well(_shapes(sig.in_shapes), shape, gone):
            return f"reductions over axes {gone} of {shape} leave much"
    members = len(sig.attrs["members"])
    if 1 < members < _FEW and math.prod(shape) < _SMALL:
        return f"{members} ops on so few elements are quicker one by one"
    return True


@table.binder(CLUSTER, when=_when, out=True)
def cluster(sig: NodeSig) -> Callable[..., Any]:
    """The cluster as generated code."""
    attrs = sig.attrs
    inputs = list(zip(sig.in_dtypes, _shapes(sig.in_shapes), strict=True))
    outputs = list(zip(sig.out_dtypes, _shapes(sig.out_shapes), strict=True))
    code = Generated(
        attrs["line"], attrs["names"], inputs, attrs["shape"], outputs, attrs["reduces"]
    )
    if len(outputs) == 1:
        return lambda *args: code(args[:-1], None if args[-1] is None else args[-1:])[0]
    return lambda *args: tuple(code(args[:-1], args[-1]))


def _opens(sig: NodeSig) -> bool | str:
    if not llvm.available():
        return llvm.why_not()
    if unsaid(_open(sig.in_shapes), sig.attrs["shape"]):
        return "no input says all sizes"
    return render.renders(sig.attrs["line"])


def _open(shapes: Any) -> list[tuple[int | None, ...]]:
    return [tuple(s or ()) for s in shapes]  # the ranks of a cluster's are known


@table.binder(OPEN_CLUSTER, when=_opens)
def open_cluster(sig: NodeSig) -> Callable[..., Any]:
    """The cluster as generated code for whatever sizes come."""
    attrs = sig.attrs
    inputs = list(zip(sig.in_dtypes, _open(sig.in_shapes), strict=True))
    code = Sized(
        attrs["line"], attrs["names"], inputs, attrs["shape"], sig.out_dtypes,
        len(attrs["members"]),
    )  # fmt: skip
    if len(sig.out_dtypes) == 1:
        return lambda *args: code(*args)[0]
    return lambda *args: tuple(code(*args))
