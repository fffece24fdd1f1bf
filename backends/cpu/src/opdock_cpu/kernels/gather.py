"""Gathers by one `take`, slice or loop; batched gathers are portable."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, axes, checks
from opdock_cpu import picking
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()
_UNSIGNED = {4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}


def are_below(indices: Any, limit: int) -> bool:
    """Whether all indices are in [0, limit)."""
    # Seen as unsigned, a negative index is a large one.
    unsigned = indices.view(_UNSIGNED[indices.dtype.itemsize])
    return not unsigned.size or bool(unsigned.max() < limit)


def check_indices(indices: Any, limit: int) -> None:
    """InvalidArgumentError unless all indices are in [0, limit)."""
    if not are_below(indices, limit):
        raise checks.not_in(indices, limit)


def _take(params: Any, indices: Any, axis: int, out: Array | None) -> Array:
    if indices.ndim == 0:
        return _slice(params, indices, axis, out)
    picked = picking.taken(params, indices, axis, out)
    if picked is not None:
        return picked
    check_indices(indices, params.shape[axis])
    found = np.take(params, indices, axis, out, "clip")
    return np.asarray(found, params.dtype)


def _slice(params: Any, index: Any, axis: int, out: Array | None) -> Array:
    """One slice, as a loop over the rows of a tensor takes."""
    at = int(index)
    if not 0 <= at < params.shape[axis]:
        check_indices(index, params.shape[axis])
    if out is None:
        out = np.empty((*params.shape[:axis], *params.shape[axis + 1 :]), params.dtype)
    # The dots: an item of an object array would be the object.
    out[...] = params[(*(slice(None),) * axis, at, ...)]
    return out


@table.binder("Gather", out=True)
def gather(sig: NodeSig) -> Callable[..., Array]:
    """Rows by index."""
    return lambda params, indices, out: _take(params, indices, 0, out)


def _unbatched(sig: NodeSig) -> bool | str:
    return sig.attrs["batch_dims"] == 0 or "it gathers without batch dimensions"


@table.binder("GatherV2", out=True, host_inputs=("axis",), when=_unbatched)
def gather_v2(sig: NodeSig) -> Callable[..., Array]:
    """Slices by index along a dimension."""
    axis = sig.const(2)
    if axis is not None and sig.in_shapes[0] is not None:
        at = axes.gathered(axis, len(sig.in_shapes[0]))
        return lambda params, indices, axis, out: _take(params, indices, at, out)

    def run(params: Any, indices: Any, axis: Any, out: Array | None) -> Array:
        return _take(params, indices, axes.gathered(axis, params.ndim), out)

    return run


@table.binder("GatherNd", out=True)
def gather_nd(sig: NodeSig) -> Callable[..., Array]:
    """Slices by coordinates."""
    plain: Callable[..., Array] = portable_kernel(sig, out=True)

    def run(params: Any, indices: Array, out: Array | None) -> Array:
        found = _at_coordinates(params, indices, out)
        return plain(params, indices, out) if found is None else found

    return run


def _at_coordinates(params: Any, indices: Array, out: Array | None) -> Array | None:
    """By a loop; None without one, for few coordinates, or where something is wrong with them."""
    depth = indices.shape[-1] if indices.ndim else 0
    if not 0 < depth <= params.ndim or not params.size:
        return None
    rest, count = params.shape[depth:], indices.size // depth
    width = math.prod(rest)
    if count * width < picking.MANY:
        return None
    steps = [math.prod(params.shape[i + 1 :]) for i in range(depth)]
    rows = indices.reshape(count, depth)
    found = picking.picked(params, rows, params.shape[:depth], steps, width, out)
    return None if found is None else found.reshape(*indices.shape[:-1], *rest)
