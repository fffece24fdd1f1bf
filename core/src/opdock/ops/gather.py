"""Gathering: rows and elements picked by index."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import colocate_with, name_scope
from opdock.ops.array import broadcast_to, expand_dims, rank, reshape, shape, size, squeeze
from opdock.ops.cast import cast
from opdock.ops.fill import ones_like, range, reduction_dims
from opdock.ops.joining import concat, stack
from opdock.ops.matrix import transpose
from opdock.ops.registry import ShapeSig, define_op, get
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__ = ["batch_gather", "gather", "gather_nd"]

gather_op = define_op(
    "Gather", "params: Tparams, indices: Tindices -> output: Tparams",
    "validate_indices: bool = true, Tparams: type, Tindices: {int32, int64}",
)  # fmt: skip
gather_v2_op = define_op(
    "GatherV2", "params: Tparams, indices: Tindices, axis: Taxis -> output: Tparams",
    "batch_dims: int = 0, Tparams: type, Tindices: {int32, int64}, Taxis: {int32, int64}",
)  # fmt: skip
gather_nd_op = define_op(
    "GatherNd", "params: Tparams, indices: Tindices -> output: Tparams",
    "Tparams: type, Tindices: {int32, int64}",
)  # fmt: skip


# ---------------------------------------------------------------- shapes
@gather_op.shape
def _gather_shape(sig: ShapeSig) -> Shape:
    params = shapes.with_rank_at_least(sig.shapes[0], 1)
    return shapes.concat(sig.shapes[1], array_util.subshape(params, 1))


@gather_v2_op.shape
def _gather_v2_shape(sig: ShapeSig) -> Shape:
    params, indices = shapes.with_rank_at_least(sig.shapes[0], 1), sig.shapes[1]
    axis = array_util.const_int(sig, 2)
    batch_dims: int = sig.attrs["batch_dims"]
    if axis is not None:
        shapes.with_rank_at_least(params, -axis if axis < 0 else axis + 1)
    shapes.with_rank_at_least(indices, abs(batch_dims))
    if batch_dims < 0:
        if indices is None:
            return None
        batch_dims += len(indices)
    shapes.with_rank_at_least(params, batch_dims + 1)
    if params is None or indices is None:
        return None
    if axis is None:
        return (None,) * (len(params) + len(indices) - 1 - batch_dims)
    axis %= len(params)
    if axis < batch_dims:
        raise ValueError(f"batch_dims ({batch_dims}) must be less than or equal to axis ({axis})")
    # The batch dimensions are the same in both: one may know what the other does not.
    batch = shapes.merge(params[:batch_dims], indices[:batch_dims])
    return shapes.concat(batch, params[batch_dims:axis] + indices[batch_dims:] + params[axis + 1 :])


@gather_nd_op.shape
def _gather_nd_shape(sig: ShapeSig) -> Shape:
    params, indices = sig.shapes[0], shapes.with_rank_at_least(sig.shapes[1], 1)
    if params is None or indices is None or indices[-1] is None:
        return None
    depth = indices[-1]
    if depth > len(params):
        raise ValueError(
            "indices.shape[-1] must be <= params.rank, but saw indices shape: "
            f"{shapes.text(indices)} and params shape: {shapes.text(params)}"
        )
    return indices[:-1] + params[depth:]


# ---------------------------------------------------------------- gradients
def _rows_gradient(params: Tensor, indices: Tensor, grad: Any) -> IndexedSlices:
    """The gradient of gathering rows: the rows of `grad`, at their indices."""
    with colocate_with(params):
        params_shape = _shape32(params)
    count = expand_dims(size(indices), 0)
    known = params.raw_shape
    rows_shape: Any
    if known is not None and shapes.is_fully_defined(known[1:]):
        rows_shape = [-1, *known[1:]] if 0 not in known[1:] else None
    else:
        rows_shape = None
    if rows_shape is None:
        rows_shape = concat([count, params_shape[1:]], 0)
    values = reshape(convert_to_tensor(grad), rows_shape)
    return IndexedSlices(values, reshape(indices, count), params_shape)


def _shape32(params: Tensor) -> Tensor:
    if shapes.is_fully_defined(params.raw_shape):
        return shape(params)
    return cast(shape(params, out_type=dtypes.int64), dtypes.int32)  # type: ignore[no-any-return]


@gather_op.gradient
def _gather_grad(op: Operation, grad: Any) -> list[Any]:
    return [_rows_gradient(op.inputs[0], op.inputs[1], grad), None]


@gather_v2_op.rows
def _gather_v2_rows(op: Operation, inputs: Sequence[Any], rowed: Sequence[bool]) -> Any:
    """Of what has no rows as many times along its first dimension: what is found lies by rows."""
    axis = constant_value(op.inputs[2])
    if rowed != [False, True, False] or axis is None or axis != 0 or op.attrs["batch_dims"]:
        return None
    params, indices, _ = inputs
    numbers, rows = constant_value(indices), (params._shape or (None,))[0]
    if numbers is not None and np.array_equal(numbers, np.arange(rows or 0)):
        return [params]  # all of it
    return [gather_v2_op(*inputs)]


@gather_v2_op.gradient
def _gather_v2_grad(op: Operation, grad: Any) -> list[Any]:
    params, indices, axis = op.inputs
    known, batch_dims = constant_value(axis), op.attrs["batch_dims"]
    if batch_dims < 0:
        if indices.raw_shape is None:
            raise ValueError("The gradient of a gather with negative batch_dims needs the rank")
        batch_dims += len(indices.raw_shape)
    if known is not None and int(known) == 0:
        return [_rows_gradient(params, indices, grad), None, None]
    at: Any = axis if known is None else int(known)
    return [_axis_gradient(params, indices, at, batch_dims, convert_to_tensor(grad)), None, None]


def _axis_gradient(
    params: Tensor, indices: Tensor, axis: Any, batch_dims: int, grad: Tensor
) -> Tensor:
    """Moves the gathered dimensions behind the batch ones, sums by index, and moves back."""
    n: Any = None if params.raw_shape is None else len(params.raw_shape)
    k: Any = None if indices.raw_shape is None else len(indices.raw_shape) - batch_dims
    if n is None or k is None or isinstance(axis, Tensor):
        n, k = rank(params), rank(indices) - batch_dims
        axis = cast(axis, dtypes.int32) if isinstance(axis, Tensor) else axis
    if isinstance(axis, Tensor):
        axis = (axis + n) % n
    elif axis < 0:
        axis = axis + n
    batch = _span(0, batch_dims)
    to_front = _joined(
        batch, _span(axis, axis + k), _span(batch_dims, axis), _span(axis + k, n - 1 + k)
    )
    values = transpose(grad, to_front)
    params_shape = _shape32(params)
    outer = concat([params_shape[batch_dims:axis], params_shape[axis + 1 :]], 0)
    rows = params_shape[axis]
    if batch_dims == 0:
        values = reshape(values, concat([[size(indices)], outer], 0))
        summed = get("UnsortedSegmentSum")(values, reshape(indices, [-1]), rows)
    else:
        summed = _batched_sum(values, indices, batch_dims, params_shape, rows, outer)
    back = _joined(
        batch,
        _span(batch_dims + 1, axis + 1),
        _span(batch_dims, batch_dims + 1),
        _span(axis + 1, n),
    )
    out = transpose(summed, back)
    out.set_shape(params.raw_shape)
    return out


def _batched_sum(
    values: Tensor,
    indices: Tensor,
    batch_dims: int,
    params_shape: Tensor,
    rows: Tensor,
    outer: Tensor,
) -> Tensor:
    """Segment sums of each batch entry, as one sum over shifted indices."""
    batch = params_shape[:batch_dims]
    count = _product(batch)
    each = _product(shape(indices)[batch_dims:])
    flat = cast(reshape(indices, stack([count, each])), dtypes.int32)
    shifted = flat + expand_dims(range(count) * rows, 1)
    values = reshape(values, concat([[size(indices)], outer], 0))
    summed = get("UnsortedSegmentSum")(values, reshape(shifted, [-1]), count * rows)
    return reshape(summed, concat([batch, [rows], outer], 0))


def _product(dims: Tensor) -> Tensor:
    return get("Prod")(dims, reduction_dims(dims, None))  # type: ignore[no-any-return]


def _span(start: Any, end: Any) -> Any:
    if isinstance(start, Tensor) or isinstance(end, Tensor):
        return range(start, end)
    return list(builtins.range(start, end))


def _joined(*spans: Any) -> Any:
    if any(isinstance(s, Tensor) for s in spans):
        return concat([np.array(s, np.int32) if isinstance(s, list) else s for s in spans], 0)
    return [i for span in spans for i in span]


@gather_nd_op.gradient
def _gather_nd_grad(op: Operation, grad: Any) -> list[Any]:
    params, indices = op.inputs
    params_shape = shape(params, out_type=indices.dtype)
    known = indices.raw_shape
    if known is not None and len(known) == 2 and known[1] == 1:
        return [IndexedSlices(convert_to_tensor(grad), squeeze(indices, -1), params_shape), None]
    if known is not None and len(known) == 1:
        indices, grad = expand_dims(indices, 0), expand_dims(grad, 0)
    return [get("ScatterNd")(indices, grad, params_shape), None]


# ---------------------------------------------------------------- public functions
@extensible
def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    name: str | None = None,
    axis: Any = None,
    batch_dims: int = 0,
) -> Tensor:
    """The slices of a tensor at some indices along a dimension.

    Args:
        params: a tensor of rank 1 or more.
        indices: an int32 or int64 tensor of indices in [0, params.shape[axis]).
        validate_indices: ignored; indices are always checked.
        name: a name for the operation.
        axis: the dimension, `batch_dims` by default.
        batch_dims: the number of leading dimensions that `params` and `indices` share.

    Returns:
        A tensor of shape `params.shape[:axis] + indices.shape[batch_dims:] +
        params.shape[axis + 1:]`.

    Raises:
        tf.errors.InvalidArgumentError: at run time, for an index out of range.
    """
    if axis is None:
        axis = batch_dims
    known = constant_value(axis) if isinstance(axis, Tensor) else axis
    if known is None or int(known) != 0 or batch_dims:
        return gather_v2_op(params, indices, axis, batch_dims=batch_dims, name=name)  # type: ignore[no-any-return]
    # A resource variable reads only the rows.
    if (
        not isinstance(params, Tensor)
        and hasattr(params, "sparse_read")
        and hasattr(params, "handle")
    ):
        return params.sparse_read(indices, name=name)  # type: ignore[no-any-return]
    return gather_v2_op(params, indices, axis, name=name)  # type: ignore[no-any-return]


@extensible
def batch_gather(params: Any, indices: Any, name: str | None = None) -> Tensor:
    """Gathers along the last dimension of `indices`; deprecated, use `batch_dims` of `tf.gather`.

    Args:
        params: a tensor.
        indices: an integer tensor whose leading dimensions are those of `params`.
        name: a name for the operation.

    Returns:
        A tensor.

    Raises:
        ValueError: the rank of `indices` is not known.
    """
    with name_scope(name, "BatchGather", [params, indices]):
        indices = convert_to_tensor(indices, name="indices")
        params = convert_to_tensor(params, name="params")
        if indices.raw_shape is None:
            raise ValueError("batch_gather does not allow indices with unknown shape.")
        depth = len(indices.raw_shape) - 1
        return gather(params, indices, axis=depth, batch_dims=depth)


@extensible
def gather_nd(params: Any, indices: Any, name: str | None = None, batch_dims: int = 0) -> Tensor:
    """The slices of a tensor at some coordinates.

    Args:
        params: a tensor.
        indices: an int32 or int64 tensor; its last dimension holds the coordinates.
        name: a name for the operation.
        batch_dims: the number of leading dimensions that `params` and `indices` share.

    Returns:
        A tensor of shape `indices.shape[:-1] + params.shape[batch_dims + indices.shape[-1]:]`.

    Raises:
        tf.errors.InvalidArgumentError: at run time, for coordinates out of range.
    """
    batch = constant_value(batch_dims) if isinstance(batch_dims, Tensor) else batch_dims
    if batch is None:
        raise ValueError("gather_nd needs a constant batch_dims")
    batch = int(
        np.asarray(batch).item()
    )  # of a vector with one element too, as TensorFlow takes it
    if batch == 0:
        if (
            not isinstance(params, Tensor)
            and hasattr(params, "gather_nd")
            and hasattr(params, "handle")
        ):
            return params.gather_nd(indices, name=name)  # type: ignore[no-any-return]
        return gather_nd_op(params, indices, name=name)  # type: ignore[no-any-return]
    return batch_gather_nd(params, indices, batch, name)


def batch_gather_nd(params: Any, indices: Any, batch_dims: int, name: str | None = None) -> Tensor:
    """`gather_nd` within each batch: the coordinates of the batch go before those of each index.

    Raises:
        TypeError: `batch_dims` is no Python number.
        ValueError: `batch_dims` is negative, or the rank of an input is no greater.
    """
    with name_scope(name, "BatchGatherND", [params, indices]):
        indices = convert_to_tensor(indices, name="indices")
        params = convert_to_tensor(params, name="params")
        if not isinstance(batch_dims, int):
            raise TypeError(f"batch_dims must be an int; got {batch_dims!r}")
        if batch_dims < 0:
            raise ValueError("tf.gather_nd does not allow negative batch_dims.")
        for what, tensor in (("indices", indices), ("params", params)):
            known = tensor.raw_shape
            if known is not None and batch_dims >= len(known):
                raise ValueError(
                    f"batch_dims = {batch_dims} must be less than rank({what}) = {len(known)}"
                )
        if batch_dims == 0:
            return gather_nd_op(params, indices)  # type: ignore[no-any-return]
        full = shape(indices)
        grid = concat([full[:-1], [1]], 0)
        # As many ones as there are dimensions behind the batch.
        inner = ones_like(full[batch_dims:])
        coordinates = []
        for i in builtins.range(batch_dims):
            before = [-1 if j == i else 1 for j in builtins.range(batch_dims)]
            column = reshape(range(full[i]), concat([before, inner], 0))
            coordinates.append(_like(broadcast_to(column, grid), indices))
        return gather_nd_op(params, concat([*coordinates, indices], -1))  # type: ignore[no-any-return]


def _like(tensor: Tensor, other: Tensor) -> Tensor:
    return cast(tensor, other.dtype)  # type: ignore[no-any-return]
