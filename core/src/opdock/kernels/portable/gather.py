"""Portable kernels that pick rows and elements by index."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opdock import axes
from opdock.kernels.array_api import (
    device_ints,
    dims,
    fails,
    fetched,
    index_type,
    invalid,
    zeros,
)
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig


def check_indices(xp: Any, indices: Any, limit: int) -> None:
    """Raises InvalidArgumentError unless all indices are in [0, limit)."""
    if math.prod(indices.shape) == 0:
        return
    if fails(xp, (xp.min(indices) < 0) | (xp.max(indices) >= limit)):
        raise not_in(fetched(xp, indices), limit)


def not_in(indices: Any, limit: int, name: str = "indices") -> Exception:
    """The error of indices, or what `name` says, on the host that are not all in [0, limit)."""
    where = tuple(int(i) for i in np.argwhere((indices < 0) | (indices >= limit))[0])
    at = name + (dims(where) if where else "")
    return invalid(f"{at} = {indices[where]} is not in [0, {limit})")


@portable("Gather")
def gather(xp: Any, sig: NodeSig) -> Any:
    """Rows by index."""

    def run(params: Any, indices: Any) -> Any:
        return take(xp, params, indices, 0)

    return run


@portable("GatherV2", host_inputs=("axis",))
def gather_v2(xp: Any, sig: NodeSig) -> Any:
    """Slices by index along a dimension, for each entry of a batch."""
    given = sig.attrs["batch_dims"]

    def run(params: Any, indices: Any, axis: Any) -> Any:
        at, batch = axes_of(params, indices, axis, given)
        if batch == 0:
            return take(xp, params, indices, at)
        return _take_batched(xp, params, indices, at, batch)

    return run


def axes_of(params: Any, indices: Any, axis: Any, batch_dims: int) -> tuple[int, int]:
    """The non-negative axis and number of batch dimensions of a gather.

    Raises:
        InvalidArgumentError: they do not fit the shapes.
    """
    at = axes.gathered(axis, len(params.shape))
    count = len(indices.shape)
    if not -count <= batch_dims <= count:
        raise invalid(f"Expected batch_dims in the range [{-count}, {count}], but got {batch_dims}")
    batch = batch_dims + count if batch_dims < 0 else batch_dims
    if batch > at:
        raise invalid(f"batch_dims ({batch}) must be less than or equal to axis ({at}).")
    if tuple(params.shape[:batch]) != tuple(indices.shape[:batch]):
        raise invalid(
            f"params.shape[:batch_dims]: {dims(params.shape[:batch])} should equal "
            f"indices.shape[:batch_dims]: {dims(indices.shape[:batch])}"
        )
    return at, batch


def take(xp: Any, params: Any, indices: Any, axis: int) -> Any:
    """`params` at checked `indices` of any rank along `axis`."""
    places = indices if len(indices.shape) == 1 else xp.reshape(indices, (-1,))
    if not takes_checked(xp, params):
        check_indices(xp, indices, params.shape[axis])
        found = xp.take(params, places, axis=axis)
    else:
        try:
            found = xp.take(params, places, axis=axis)
        except (IndexError, RuntimeError):
            check_indices(xp, indices, params.shape[axis])
            raise
    if places is indices:
        return found
    return xp.reshape(found, (*params.shape[:axis], *indices.shape, *params.shape[axis + 1 :]))


def takes_checked(xp: Any, params: Any) -> bool:
    """Whether places in an array need no look before they are taken, which a namespace may say.

    What `xp.take_checks` is true of raises IndexError or RuntimeError where `xp.take` is asked for
    what is not in it, where it is indexed by arrays of places beyond its end, and where
    `xp.fold_rows` is to add it up by ids that are too large.
    """
    checks = getattr(xp, "take_checks", None)
    return checks is not None and bool(checks(params))


def _cells(xp: Any, params: Any, indices: Any) -> Any | None:
    """`params` at coordinates, by one look at them; None where that is not enough.

    One place alone would be a view.
    """
    if len(indices.shape) < 2 or not indices.shape[-1] or not takes_checked(xp, params):
        return None
    if xp.min(indices) < 0:
        return None
    try:
        return params[xp.unstack(indices, axis=-1)]
    except (IndexError, RuntimeError):
        return None


def _take_batched(xp: Any, params: Any, indices: Any, axis: int, batch: int) -> Any:
    check_indices(xp, indices, params.shape[axis])
    lead, outer = tuple(params.shape[:batch]), tuple(params.shape[batch:axis])
    inner = tuple(params.shape[axis + 1 :])
    count, n = math.prod(lead), params.shape[axis]
    rest = tuple(indices.shape[batch:])
    # Rows of all batch entries under one another, so that one take serves them all.
    table = xp.reshape(params, (count, math.prod(outer), n, math.prod(inner)))
    table = xp.permute_dims(table, (0, 2, 1, 3))
    table = xp.reshape(table, (count * n, math.prod(outer), math.prod(inner)))
    starts = device_ints(xp, np.arange(count) * n, params)
    flat = xp.reshape(xp.astype(indices, index_type(xp)), (count, math.prod(rest)))
    rows = xp.take(table, xp.reshape(flat + xp.reshape(starts, (count, 1)), (-1,)), axis=0)
    rows = xp.reshape(rows, (count, math.prod(rest), math.prod(outer), math.prod(inner)))
    return xp.reshape(xp.permute_dims(rows, (0, 2, 1, 3)), (*lead, *outer, *rest, *inner))


def check_depth(indices: Any, shape: Any) -> None:
    """Raises InvalidArgumentError unless rows of indices are places in a shape."""
    depth = indices.shape[-1]
    if depth > len(shape):
        raise invalid(
            "index innermost dimension length must be <= params rank; saw: "
            f"{depth} vs. {len(shape)}"
        )


def flat_positions(xp: Any, indices: Any, shape: Any, what: str = "shape") -> tuple[Any, int]:
    """Coordinates as flat positions in an array of `shape`'s leading dimensions, and their number.

    Raises:
        InvalidArgumentError: a coordinate is out of range.
    """
    check_depth(indices, shape)
    depth = indices.shape[-1]
    count = math.prod(indices.shape[:-1])
    table = xp.reshape(xp.astype(indices, index_type(xp)), (count, depth))
    if not count or not depth:
        return device_ints(xp, np.zeros(count), indices), math.prod(shape[:depth])
    # Column by column: they are few, and libraries are slow at sums of a few numbers each.
    wrong, flat = False, 0
    for i, size in enumerate(shape[:depth]):
        column, step = table[:, i], math.prod(shape[i + 1 : depth])
        wrong = (column < 0) | (column >= size) | wrong
        flat = column * step + flat
    if fails(xp, xp.any(wrong)):
        raise outside(fetched(xp, indices), shape, what)
    return flat, math.prod(shape[:depth])


def outside(indices: Any, shape: Any, what: str = "shape") -> Exception:
    """The error of coordinates on the host that do not all lie in an array of `shape`."""
    depth = indices.shape[-1]
    rows = np.reshape(indices, (-1, depth))
    bad = int(np.argmax(((rows < 0) | (rows >= np.array(shape[:depth]))).any(axis=1)))
    where = ",".join(str(int(i)) for i in np.unravel_index(bad, indices.shape[:-1] or (1,)))
    return invalid(f"indices[{where}] = {dims(rows[bad])} does not index into {what} {dims(shape)}")


def check_params(params: Any, indices: Any) -> None:
    """Raises InvalidArgumentError where slices are asked of a tensor without elements."""
    if math.prod(indices.shape[:-1]) and 0 in params.shape:
        raise invalid(
            "Requested more than 0 entries, but params is empty.  Params shape: "
            f"{dims(params.shape)}"
        )


@portable("GatherNd")
def gather_nd(xp: Any, sig: NodeSig) -> Any:
    """Slices by coordinates."""
    dtype = sig.out_dtypes[0]

    def run(params: Any, indices: Any) -> Any:
        check_depth(indices, params.shape)
        depth = indices.shape[-1]
        rest = tuple(params.shape[depth:])
        shape = (*indices.shape[:-1], *rest)
        check_params(params, indices)
        if math.prod(shape) == 0:
            return zeros(xp, shape, params, dtype)
        if (found := _cells(xp, params, indices)) is not None:
            return found
        flat, count = flat_positions(xp, indices, params.shape, "param shape")
        return xp.reshape(xp.take(xp.reshape(params, (count, *rest)), flat, axis=0), shape)

    return run
