"""Portable kernels that lay sparse tensors out anew.

Which cells come where is worked out on the host, because it decides how many there are; the values
stay on the device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.dtypes import NUMBERS
from opdock.kernels import cells
from opdock.kernels.array_api import (
    copy,
    device_ints,
    dims,
    index_type,
    invalid,
    taken,
)
from opdock.kernels.cells import Array
from opdock.kernels.portable import portable
from opdock.kernels.portable.segment import wide
from opdock.kernels.select.signature import NodeSig


# ---------------------------------------------------------------- dense form, order, shape
@portable("SparseToDense", host_inputs=("sparse_indices", "output_shape"))
def sparse_to_dense(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """One value everywhere but at given places."""
    validate = bool(sig.attrs["validate_indices"])

    def run(indices: Array, output_shape: Array, values: Any, default: Any) -> Any:
        wanted, place = dense_places(indices, output_shape, values, default, validate)
        count = len(place)
        source = np.full(math.prod(wanted), count)
        source[place] = np.arange(count)
        every = xp.concat([xp.broadcast_to(values, (count,)), xp.reshape(default, (1,))])
        return xp.reshape(taken(xp, every, source), wanted)

    return run


def dense_places(
    indices: Any, output_shape: Any, values: Any, default: Any, validate: bool
) -> tuple[tuple[int, ...], Array]:
    """The shape of a dense tensor, and where in it, when flat, the cells of a sparse one are.

    Raises:
        InvalidArgumentError: the arguments do not fit together.
    """
    places, shape = np.asarray(indices), np.asarray(output_shape)
    _check_dense(places, shape, values, default)
    places = places.reshape(-1, places.shape[1] if places.ndim == 2 else 1)
    wanted = cells.sizes(shape.reshape(-1))
    if validate:
        return wanted, cells.check_order(places, wanted)
    if cells.outside(places, wanted).any():
        raise invalid(f"Indices are not valid (out of bounds). Shape: {dims(wanted)}")
    return wanted, cells.flat(places, wanted)


def _check_dense(indices: Array, shape: Array, values: Any, default: Any) -> None:
    if indices.ndim > 2:
        raise invalid(
            f"sparse_indices should be a scalar, vector, or matrix, got shape {dims(indices.shape)}"
        )
    count = indices.shape[0] if indices.ndim else 1
    rank = indices.shape[1] if indices.ndim == 2 else 1
    if shape.ndim > 1:
        raise invalid(f"output_shape should be a vector, got shape {dims(shape.shape)}")
    if shape.size != rank:
        raise invalid(
            f"output_shape has incorrect number of elements: {shape.size} should be: {rank}"
        )
    if tuple(values.shape) not in ((), (count,)):
        raise invalid(
            f"sparse_values has incorrect shape {dims(values.shape)}, should be [] or [{count}]"
        )
    if default.shape:
        raise invalid("default_value should be a scalar.")


@portable(
    "SparseReorder",
    host_inputs=("input_indices", "input_shape"), host_outputs=("output_indices",),
)  # fmt: skip
def sparse_reorder(xp: Any, sig: NodeSig) -> Callable[..., tuple[Array, Any]]:
    """Cells in row-major order."""

    def run(indices: Array, values: Any, shape: Array) -> tuple[Array, Any]:
        cells.check_parts(indices, values, shape)
        key = cells.keys(indices)
        if (key[1:] >= key[:-1]).all():
            return indices.copy(), copy(xp, values)
        order = np.argsort(key, kind="stable")
        return indices[order], taken(xp, values, order)

    return run


@portable("SparseReshape", host_inputs=("input_shape", "new_shape"), host_outputs=("output_shape",))
def sparse_reshape(xp: Any, sig: NodeSig) -> Callable[..., tuple[Any, Array]]:
    """The same cells of another shape, of which one dimension may be -1.

    A cell outside of the shape is at the place that its coordinates come to, as in TF: what is too
    much for the other dimensions is in the first.
    """

    def run(indices: Any, input_shape: Array, new_shape: Array) -> tuple[Any, Array]:
        cells.check_ranks(
            ("Input indices", 2, indices),
            ("Input shape", 1, input_shape),
            ("Target shape", 1, new_shape),
        )
        old = cells.sizes(input_shape)
        if indices.shape[1] != len(old):
            raise invalid("Shape rank must be SparseTensor rank.")
        wanted = _completed([int(n) for n in new_shape], old)
        if wanted == old:
            return copy(xp, indices), np.array(wanted, np.int64)
        strides = device_ints(xp, [math.prod(old[i + 1 :]) for i in range(len(old))], indices)
        place, columns = xp.sum(indices * strides, axis=1, dtype=index_type(xp)), []
        rest = xp.abs(place)
        for size in reversed(wanted[1:]):
            columns.append(rest % max(size, 1))
            rest = rest // max(size, 1)
        columns.append(rest)
        moved = xp.stack(columns[::-1], axis=1) if wanted else indices[:, :0]
        before = xp.expand_dims(place < 0, axis=1)
        return xp.where(before, -moved, moved), np.array(wanted, np.int64)

    return run


def _completed(wanted: list[int], old: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with the one dimension that is -1 filled in."""
    open_at = [i for i, n in enumerate(wanted) if n == -1]
    if len(open_at) > 1:
        raise invalid(
            f"only one output dimension may be -1, not both {open_at[0]} and {open_at[1]}"
        )
    for i, n in enumerate(wanted):
        if n < -1:
            raise invalid(f"size {i} must be non-negative, not {n}")
    total, given = math.prod(old), math.prod(n for n in wanted if n != -1)
    where = f"input_shape={dims(old)} output_shape={dims(wanted)}"
    if open_at:
        if given == 0:
            raise invalid(
                "reshape cannot infer the missing input size for an empty tensor unless all "
                "specified input sizes are non-zero"
            )
        if total % given:
            raise invalid(
                f"Input to reshape is a SparseTensor with {total} dense values, but the requested "
                f"shape requires a multiple of {given}. {where}"
            )
        wanted[open_at[0]] = total // given
    elif given != total:
        raise invalid(
            f"Input to reshape is a tensor with {total} dense values, but the requested shape has "
            f"{given}. {where}"
        )
    return tuple(wanted)


# ---------------------------------------------------------------- slices, parts and joins
@portable(
    "SparseSlice",
    host_inputs=("indices", "shape", "start", "size"),
    host_outputs=("output_indices", "output_shape"),
)
def sparse_slice(xp: Any, sig: NodeSig) -> Callable[..., tuple[Array, Any, Array]]:
    """The cells in a box, counted from its corner."""

    def run(indices: Array, values: Any, shape: Array, start: Array, size: Array) -> Any:
        cells.check_parts(indices, values, shape)
        for name, vector in (("start", start), ("size", size)):
            if vector.ndim != 1:
                raise invalid(
                    f"Input {name} should be a vector but received shape {dims(vector.shape)}"
                )
            if len(vector) != len(shape):
                raise invalid(
                    f"Expected {name} to be a vector of length {len(shape)} but got length "
                    f"{len(vector)}"
                )
        here = ((indices >= start) & (indices - start < size)).all(axis=1)
        left = np.maximum(np.minimum(size, shape - start), 0)
        return indices[here] - start, taken(xp, values, np.flatnonzero(here)), left

    return run


@portable(
    "SparseSliceGrad",
    T=NUMBERS, host_inputs=("input_indices", "input_start", "output_indices"),
)  # fmt: skip
def sparse_slice_grad(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Gradients of the cells in a box, zero for those outside."""

    def run(grad: Any, indices: Array, start: Array, sliced: Array) -> Any:
        _check_slice_grad(grad, indices, start, sliced)
        place = cells.keys(np.concatenate([indices, sliced + start]))
        own, wanted = place[: len(indices)], place[len(indices) :]
        order = np.argsort(own, kind="stable")
        at = np.searchsorted(own, wanted, sorter=order)
        inside = np.minimum(at, max(len(own) - 1, 0))
        if len(wanted) and (own[order[inside]] != wanted).any():
            used = int((own[order[inside]] == wanted).sum())
            raise invalid(
                "Elements of backprop_val_grad aren't all propagated. Num elements:"
                f"{len(wanted)}, used: {used}"
            )
        source = np.full(len(indices), len(wanted))
        source[order[at]] = np.arange(len(wanted))
        zero = xp.zeros((1,), dtype=grad.dtype, device=getattr(grad, "device", None))
        return taken(xp, xp.concat([grad, zero]), source)

    return run


def _check_slice_grad(grad: Any, indices: Array, start: Array, sliced: Array) -> None:
    if indices.ndim != 2 or sliced.ndim != 2:
        raise invalid(
            "Input and output indices should be matrices but received shapes: "
            f"{dims(indices.shape)} and {dims(sliced.shape)}"
        )
    if len(grad.shape) != 1:
        raise invalid(
            f"Input backprop_val_grad should be a vector but received shape: {dims(grad.shape)}"
        )
    if indices.shape[1] != sliced.shape[1]:
        raise invalid(
            f"The input and output should have the same ndims: got: {indices.shape[1]} and "
            f"{sliced.shape[1]}"
        )
    if len(sliced) > len(indices):
        raise invalid(
            "# rows of output_indices should be not greater than of input_indices, got "
            f"{len(sliced)} and {len(indices)}"
        )
    if grad.shape[0] != len(sliced):
        raise invalid(
            "# elements of backprop_val_grad and # rows of output_indices should match (#nnz of "
            f"sum): got {grad.shape[0]} and {len(sliced)}"
        )
    if start.ndim != 1:
        raise invalid(f"The input_start should be a vector but received shape {dims(start.shape)}")
    if len(start) != indices.shape[1]:
        raise invalid(
            f"Expected input_start to be a vector of length {indices.shape[1]} but got length "
            f"{len(start)}"
        )


@portable(
    "SparseConcat",
    host_inputs=("indices", "shapes"), host_outputs=("output_indices", "output_shape"),
)  # fmt: skip
def sparse_concat(xp: Any, sig: NodeSig) -> Callable[..., tuple[Array, Any, Array]]:
    """Sparse tensors joined along a dimension, their cells in order."""
    axis = int(sig.attrs["concat_dim"])

    def run(*parts: Any) -> tuple[Array, Any, Array]:
        n = len(parts) // 3
        indices, values, shapes = parts[:n], parts[n : 2 * n], parts[2 * n :]
        at = _check_joined(indices, values, shapes, axis)
        moved, offset = [], 0
        for cell, shape in zip(indices, shapes, strict=True):
            shifted = cell.copy()
            shifted[:, at] += offset
            moved.append(shifted)
            offset += int(shape[at])
        whole = shapes[0].copy()
        whole[at] = offset
        joined, every = np.concatenate(moved), xp.concat(list(values))
        order = np.argsort(cells.keys(joined), kind="stable")
        return joined[order], taken(xp, every, order), whole

    return run


def _check_joined(indices: Any, values: Any, shapes: Any, axis: int) -> int:
    """The axis; raises InvalidArgumentError unless the parts fit along it."""
    for i, (cell, value, shape) in enumerate(zip(indices, values, shapes, strict=True)):
        for name, rank, kind, array in (
            ("indices", 2, "matrix", cell), ("values", 1, "vector", value),
            ("shapes", 1, "vector", shape),
        ):  # fmt: skip
            if len(array.shape) != rank:
                raise invalid(
                    f"Input {name} should be a {kind} but received shape {dims(array.shape)} at "
                    f"position {i}"
                )
    rank = len(shapes[0])
    at = axis + rank if axis < 0 else axis
    if not 0 <= at < rank:
        raise invalid(f"Concat dimension must be in range [{-rank}, {rank}), got {axis}")
    for i, shape in enumerate(shapes):
        if len(shape) != rank:
            raise invalid(
                f"Ranks of all input tensors must match: expected {rank} but got {len(shape)} at "
                f"position {i}"
            )
        for j in range(rank):
            if j != at and shape[j] != shapes[0][j]:
                raise invalid(
                    f"Input shapes must match: expected {shapes[0][j]} for dimension {j} but got "
                    f"{shape[j]} at position {i}"
                )
        cells.check_parts(indices[i], values[i], shape)
    return at


@portable(
    "SparseSplit",
    host_inputs=("split_dim", "indices", "shape"), host_outputs=("output_indices", "output_shape"),
)  # fmt: skip
def sparse_split(xp: Any, sig: NodeSig) -> Callable[..., tuple[Any, ...]]:
    """Parts along a dimension; the first ones are longer by one where it does not divide."""
    count = int(sig.attrs["num_split"])

    def run(split_dim: Any, indices: Array, values: Any, shape: Array) -> tuple[Any, ...]:
        cells.check_parts(indices, values, shape)
        axis, rank = int(split_dim), len(shape)
        if not 0 <= axis < rank:
            raise invalid(f"Input split_dim should be between 0 and rank ({rank}), got {axis}")
        if not 1 <= count <= shape[axis]:
            raise invalid(
                "Input num_split should be between 1 and the splitting dimension size "
                f"({shape[axis]}), got {count}"
            )
        each, longer = divmod(int(shape[axis]), count)
        lengths = np.full(count, each, np.int64)
        lengths[:longer] += 1
        ends = np.cumsum(lengths)
        cells.check_inside(indices, cells.sizes(shape))
        part = np.searchsorted(ends, indices[:, axis], side="right")
        found: list[list[Any]] = [[], [], []]
        for i in range(count):
            here = part == i
            moved, size = indices[here], shape.copy()
            moved[:, axis] -= ends[i] - lengths[i]
            size[axis] = lengths[i]
            own = taken(xp, values, np.flatnonzero(here))
            for column, piece in zip(found, (moved, own, size), strict=True):
                column.append(piece)
        return (*found[0], *found[1], *found[2])

    return run


# ---------------------------------------------------------------- rows
@portable(
    "SparseFillEmptyRows",
    host_inputs=("indices", "dense_shape"),
    host_outputs=("output_indices", "empty_row_indicator", "reverse_index_map"),
)
def sparse_fill_empty_rows(xp: Any, sig: NodeSig) -> Callable[..., tuple[Array, Any, Array, Array]]:
    """A cell in the first column of each row that has none."""

    def run(indices: Array, values: Any, shape: Array, default: Any) -> Any:
        _check_rows(indices, values, shape, default)
        rows, count = int(shape[0]), len(indices)
        if rows == 0:
            if count:
                raise invalid(
                    f"Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = {count}"
                )
            empty = np.zeros(0, np.bool_), np.zeros(0, np.int64)
            return indices.copy(), copy(xp, values), *empty
        row = indices[:, 0]
        bad = (row < 0) | (row >= rows)
        if bad.any():
            i = int(np.argmax(bad))
            raise invalid(f"indices({i}, 0) is invalid: {row[i]} >= {rows}")
        missing = np.bincount(row, minlength=rows) == 0
        gaps = np.flatnonzero(missing)
        order = np.argsort(np.concatenate([row, gaps]), kind="stable")
        added = np.zeros((len(gaps), indices.shape[1]), np.int64)
        added[:, 0] = gaps
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        every = xp.concat([values, xp.broadcast_to(default, (len(gaps),))])
        filled = np.concatenate([indices, added])[order]
        return filled, taken(xp, every, order), missing, place[:count]

    return run


def _check_rows(indices: Array, values: Any, shape: Array, default: Any) -> None:
    for name, rank, kind, array in (
        ("dense_shape", 1, "vector", shape), ("indices", 2, "matrix", indices),
        ("values", 1, "vector", values), ("default_value", 0, "scalar", default),
    ):  # fmt: skip
        if len(array.shape) != rank:
            raise invalid(f"{name} must be a {kind}, saw: {dims(array.shape)}")
    cells.check_parts(indices, values, shape)
    if not len(shape):
        raise invalid("Dense shape cannot be empty.")


@portable("SparseFillEmptyRowsGrad", T=NUMBERS, host_inputs=("reverse_index_map",))
def sparse_fill_empty_rows_grad(xp: Any, sig: NodeSig) -> Callable[..., tuple[Any, Any]]:
    """Gradients of the values, and the sum of those of the cells that were added."""
    dtype = sig.in_dtypes[1].base_dtype

    def run(place: Array, grad: Any) -> tuple[Any, Any]:
        for name, array in (("reverse_index_map", place), ("grad_values", grad)):
            if len(array.shape) != 1:
                raise invalid(f"{name} must be a vector, saw: {dims(array.shape)}")
        count = grad.shape[0]
        bad = (place < 0) | (place >= count)
        if bad.any():
            raise invalid(
                f"Elements in reverse index must be in [0, {count}) but got "
                f"{place[int(np.argmax(bad))]}"
            )
        added = np.ones(count, np.bool_)
        added[place] = False
        rest = wide(xp, taken(xp, grad, np.flatnonzero(added)), dtype)
        total = xp.astype(xp.sum(rest, dtype=rest.dtype), grad.dtype, copy=False)
        return taken(xp, grad, place), total

    return run
