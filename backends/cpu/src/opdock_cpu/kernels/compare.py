"""Comparisons, logic, and the choice between two tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import ALL, QUANTIZED, KernelTable, NodeSig, checks, dtypes
from opdock_cpu.jit.looped import Looped

__all__ = ["table"]

Array = Any  # an ndarray, or the NumPy scalar that stands for a 0-d one
Binary = Callable[..., Array]

table = KernelTable()

_DATA = ALL - {dtypes.resource, dtypes.variant}
_STRING = frozenset({dtypes.string})


def _or_scalar(ufunc: np.ufunc) -> Binary:
    """`ufunc`, but one truth value for shapes that do not broadcast: they are not equal."""

    def run(x: Array, y: Array, out: Array | None = None) -> Array:
        try:
            np.broadcast_shapes(np.shape(x), np.shape(y))
        except ValueError:
            return np.asarray(ufunc is np.not_equal)
        return ufunc(x, y, out)

    return run


@table.binder("Equal", "NotEqual", T=_STRING | QUANTIZED)
def _equal_other(sig: NodeSig) -> Binary:
    ufunc: np.ufunc = np.equal if sig.op == "Equal" else np.not_equal
    compare: Binary = ufunc if sig.attrs["incompatible_shape_error"] else _or_scalar(ufunc)
    fields = sig.in_dtypes[0].np.names

    def run(x: Array, y: Array) -> Array:
        if fields:
            x, y = x[fields[0]], y[fields[0]]
        return np.asarray(compare(x, y), np.bool_)

    return run


# ---------------------------------------------------------------- choice
def _chosen(begin: int, end: int, out: Array, test: Array, then: Array, otherwise: Array) -> None:
    for i in range(begin, end):
        out[i] = then[i] if test[i] else otherwise[i]


_CHOSEN: Final = Looped(_chosen)


@table.binder("Select", T=_DATA, out=True)
def _select(sig: NodeSig) -> Binary:
    dtype = sig.out_dtypes[0].np

    def run(condition: Array, then: Array, otherwise: Array, out: Array | None = None) -> Array:
        if checks.check_choice(condition, then):
            condition = condition.reshape(-1, *[1] * (then.ndim - 1))
        if condition.shape == then.shape == otherwise.shape and then.size:
            target = np.empty(then.shape, dtype) if out is None else out
            if _CHOSEN(then.size, then.size, target, condition, then, otherwise):
                return target
        if out is None:
            return np.asarray(np.where(condition, then, otherwise), dtype)
        np.copyto(out, otherwise)
        np.copyto(out, then, where=condition)
        return out

    return run


@table.binder("SelectV2", T=_DATA)
def _select_v2(sig: NodeSig) -> Binary:
    dtype = sig.out_dtypes[0].np
    return lambda condition, then, otherwise: np.asarray(
        np.where(condition, then, otherwise), dtype
    )
