"""Ops that make one tensor of several: each input is moved to its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opdock.plugin import KernelTable, NodeSig, codegen
from opdock_ckernels.families.array import HELD
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import place, strides_of

__all__ = ["table"]

table = KernelTable()


def _join(device: Any, values: Sequence[Array], axis: int) -> Array:
    first = values[0]
    shape = list(first.shape)
    shape[axis] = sum(v.shape[axis] for v in values)
    out: Array = device.allocate(tuple(shape), first.dtype)
    steps, at = strides_of(shape), 0
    for value in values:
        place(device, value, out, steps, at * steps[axis])
        at += value.shape[axis]
    return out


@table.binder("ConcatV2", T=HELD, host_inputs=("axis",))
def concat_v2(sig: NodeSig) -> Callable[..., Array]:
    """The inputs one after the other."""
    device = sig.device
    return lambda *args: _join(device, args[:-1], codegen.checked_axis(args[:-1], args[-1]))


@table.binder("Concat", T=HELD, host_inputs=("concat_dim",))
def concat(sig: NodeSig) -> Callable[..., Array]:
    """The inputs one after the other."""
    device = sig.device
    return lambda axis, *values: _join(device, values, codegen.checked_axis(values, axis))


@table.binder("Pack", T=HELD)
def pack(sig: NodeSig) -> Callable[..., Array]:
    """The inputs along a new dimension."""
    device, axis = sig.device, sig.attrs["axis"]

    def run(*values: Array) -> Array:
        codegen.check_alike(values)
        shape = values[0].shape
        at = axis % (len(shape) + 1)
        wide = [v.reshape(*shape[:at], 1, *shape[at:]) for v in values]
        return _join(device, wide, at)

    return run
