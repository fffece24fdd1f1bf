"""Ops that cut a tensor into several."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from opdock.plugin import KernelTable, NodeSig, checks
from opdock_ckernels.families.array import HELD
from opdock_ckernels.pieces import move_pieces
from opdock_ckernels.protocols import Array

__all__ = ["table"]

table = KernelTable()


def _cut(device: Any, x: Array, axis: int, lengths: Sequence[int], drop: bool = False) -> Any:
    inner, rows = math.prod(x.shape[axis + 1 :]), math.prod(x.shape[:axis])
    shapes = [(*x.shape[:axis], *([] if drop else [n]), *x.shape[axis + 1 :]) for n in lengths]
    out: list[Array] = [device.allocate(shape, x.dtype) for shape in shapes]
    move_pieces(device, x, out, [n * inner for n in lengths], rows, cuts=True)
    return out[0] if len(out) == 1 else tuple(out)


@table.binder("Split", T=HELD, host_inputs=("split_dim",))
def split(sig: NodeSig) -> Callable[[Any, Array], Any]:
    """Equal pieces."""
    device, count = sig.device, sig.attrs["num_split"]

    def run(split_dim: Any, x: Array) -> Any:
        return _cut(device, x, *checks.equal_lengths(x.shape, split_dim, count))

    return run


@table.binder("SplitV", T=HELD, host_inputs=("size_splits", "split_dim"))
def split_v(sig: NodeSig) -> Callable[[Array, Any, Any], Any]:
    """Pieces of given lengths."""
    device, count = sig.device, sig.attrs["num_split"]

    def run(x: Array, size_splits: Any, split_dim: Any) -> Any:
        return _cut(device, x, *checks.given_lengths(x.shape, size_splits, split_dim, count))

    return run


@table.binder("Unpack", T=HELD)
def unpack(sig: NodeSig) -> Callable[[Array], Any]:
    """The slices along a dimension."""
    device, count, given = sig.device, sig.attrs["num"], sig.attrs["axis"]

    def run(x: Array) -> Any:
        axis = checks.unpacked_axis(x.shape, given, count)
        return _cut(device, x, axis, [1] * count, drop=True)

    return run
