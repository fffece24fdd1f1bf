"""Concatenation and stacking into planned buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, axes, checks

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()


def _known(shapes: Any) -> bool:
    return all(s is not None and None not in s for s in shapes)


@table.binder("ConcatV2", out=True, host_inputs=("axis",))
def concat_v2(sig: NodeSig) -> Callable[..., Array]:
    """The inputs one after the other."""
    concatenate = np.concatenate
    axis = sig.const(len(sig.in_shapes) - 1)
    if axis is not None and _known(sig.in_shapes[:-1]):
        # The compiler has checked these shapes.
        at = int(axis)
        return lambda *args: concatenate(args[:-2], at, args[-1])

    def run(*args: Any) -> Array:
        values = args[:-2]
        return concatenate(values, axes.joined(values, int(args[-2])), args[-1])

    return run


@table.binder("Concat", out=True, host_inputs=("concat_dim",))
def concat(sig: NodeSig) -> Callable[..., Array]:
    """The inputs one after the other."""

    def run(*args: Any) -> Array:
        values = args[1:-1]
        return np.concatenate(values, axes.joined(values, int(args[0])), args[-1])

    return run


@table.binder("ParallelConcat", out=True)
def parallel_concat(sig: NodeSig) -> Callable[..., Array]:
    """The inputs one after the other, along the first dimension."""
    return lambda *args: np.concatenate(args[:-1], 0, args[-1])


@table.binder("Pack", out=True)
def pack(sig: NodeSig) -> Callable[..., Array]:
    """The inputs along a new dimension."""
    axis, dtype = sig.attrs["axis"], sig.out_dtypes[0].np
    count = len(sig.in_shapes)
    if _known(sig.in_shapes) and not dtype.hasobject and not any(sig.in_shapes):
        # Numbers, mostly the parts of a shape.
        return _stack_numbers(dtype)
    known = _known(sig.in_shapes)

    def run(*args: Any) -> Array:
        values, out = args[:-1], args[-1]
        first = np.shape(values[0])
        if not known:
            checks.check_alike(values)
        at = axis % (len(first) + 1)
        if out is None:
            out = np.empty((*first[:at], count, *first[at:]), dtype)
        rows = out if at == 0 else np.moveaxis(out, at, 0)
        for i, value in enumerate(values):
            rows[i, ...] = value  # the dots: an item of an object array would be the array
        return out  # type: ignore[no-any-return]

    return run


def _stack_numbers(dtype: np.dtype[Any]) -> Callable[..., Array]:
    def run(*args: Any) -> Array:
        out = args[-1]
        if out is None:
            return np.array(args[:-1], dtype)
        out[:] = args[:-1]
        return out  # type: ignore[no-any-return]

    return run
