"""Ops that cut a tensor into several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opdock.plugin import KernelTable, NodeSig, axes, codegen
from opdock_ckernels.families.array import HELD
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import strides_of, take

__all__ = ["table"]

table = KernelTable()


def _cut(device: Any, x: Array, axis: int, lengths: Sequence[int], drop: bool = False) -> Any:
    steps, at, out = strides_of(x.shape), 0, []
    for n in lengths:
        shape = (*x.shape[:axis], n, *x.shape[axis + 1 :])
        piece = take(device, x, shape, steps, at * steps[axis])
        out.append(piece.reshape(*shape[:axis], *shape[axis + 1 :]) if drop else piece)
        at += n
    return out[0] if len(out) == 1 else tuple(out)


@table.binder("Split", T=HELD, host_inputs=("split_dim",))
def split(sig: NodeSig) -> Callable[[Any, Array], Any]:
    """Equal pieces."""
    device, count = sig.device, sig.attrs["num_split"]

    def run(split_dim: Any, x: Array) -> Any:
        axis = axes.split(split_dim, x.ndim)
        size = x.shape[axis]
        if size % count:
            raise codegen.invalid(
                "Number of ways to split should evenly divide the split dimension, but got "
                f"split_dim {axis} (size = {size}) and num_split {count}"
            )
        return _cut(device, x, axis, [size // count] * count)

    return run


@table.binder("SplitV", T=HELD, host_inputs=("size_splits", "split_dim"))
def split_v(sig: NodeSig) -> Callable[[Array, Any, Any], Any]:
    """Pieces of given lengths."""
    device = sig.device

    def run(x: Array, size_splits: Any, split_dim: Any) -> Any:
        axis, sizes = axes.split(split_dim, x.ndim), codegen.ints(size_splits)
        total, given = x.shape[axis], sum(s for s in sizes if s != -1)
        if sizes.count(-1) > 1:
            raise codegen.invalid("There can only be one -1 in the input.")
        if any(s < -1 for s in sizes):
            raise codegen.invalid(
                f"Split size at index {sizes.index(min(sizes))} must be >= 0, got {min(sizes)}"
            )
        if (given > total) if -1 in sizes else (given != total):
            raise codegen.invalid(
                "Determined shape must either match input shape along split_dim exactly if fully "
                "specified, or be less than the size of the input along split_dim if not fully "
                f"specified. Got: {given}, size {total} along dimension {axis} of "
                f"{codegen.dims(x.shape)}"
            )
        return _cut(device, x, axis, [total - given if s == -1 else s for s in sizes])

    return run


@table.binder("Unpack", T=HELD)
def unpack(sig: NodeSig) -> Callable[[Array], Any]:
    """The slices along a dimension."""
    device, count, given = sig.device, sig.attrs["num"], sig.attrs["axis"]

    def run(x: Array) -> Any:
        if not -x.ndim <= given < x.ndim:
            raise codegen.invalid(f"axis = {given} not in [{-x.ndim}, {x.ndim})")
        axis = given % x.ndim
        if x.shape[axis] != count:
            raise codegen.invalid(
                f"Input shape axis {axis} must equal {count}, got shape {codegen.dims(x.shape)}"
            )
        return _cut(device, x, axis, [1] * count, drop=True)

    return run
