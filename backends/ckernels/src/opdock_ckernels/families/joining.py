"""Ops that make one tensor of several: a kernel moves some inputs to their places."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from opdock.plugin import KernelTable, NodeSig, axes, checks
from opdock_ckernels.families.array import HELD
from opdock_ckernels.pieces import move_pieces
from opdock_ckernels.protocols import Array

__all__ = ["join", "table"]

table = KernelTable()


def join(device: Any, values: Sequence[Array], axis: int, into: Array | None = None) -> Array:
    """The values one after the other along a non-negative axis, in `into` or a new array."""
    first = values[0]
    shape = list(first.shape)
    shape[axis] = sum(v.shape[axis] for v in values)
    out: Array = device.allocate(tuple(shape), first.dtype) if into is None else into
    inner, rows = math.prod(shape[axis + 1 :]), math.prod(shape[:axis])
    move_pieces(device, out, values, [v.shape[axis] * inner for v in values], rows)
    return out


@table.binder("ConcatV2", T=HELD, out=True, host_inputs=("axis",))
def concat_v2(sig: NodeSig) -> Callable[..., Array]:
    """The inputs one after the other."""
    device = sig.device

    def run(*args: Any) -> Array:
        *values, axis, out = args
        return join(device, values, axes.joined(values, axis), out)

    return run


@table.binder("Concat", T=HELD, out=True, host_inputs=("concat_dim",))
def concat(sig: NodeSig) -> Callable[..., Array]:
    """The inputs one after the other."""
    device = sig.device

    def run(axis: Any, *args: Any) -> Array:
        *values, out = args
        return join(device, values, axes.joined(values, axis), out)

    return run


@table.binder("Pack", T=HELD, out=True)
def pack(sig: NodeSig) -> Callable[..., Array]:
    """The inputs along a new dimension."""
    device, axis = sig.device, sig.attrs["axis"]

    def run(*args: Any) -> Array:
        *values, out = args
        checks.check_alike(values)
        shape = values[0].shape
        at = axis % (len(shape) + 1)
        wide = [v.reshape(*shape[:at], 1, *shape[at:]) for v in values]
        return join(device, wide, at, out)

    return run


@table.binder("ParallelConcat", T=HELD, out=True)
def parallel_concat(sig: NodeSig) -> Callable[..., Array]:
    """The inputs one after the other, along the first dimension."""
    device = sig.device
    return lambda *args: join(device, args[:-1], 0, args[-1])
