"""Sparse tensors laid out anew, by sorting and arithmetic on the places of their cells."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import NUMBERS, KernelTable, NodeSig, checks
from opdock_cpu import cells
from opdock_cpu.cells import Array, dims

__all__ = ["table"]

table = KernelTable()


# ---------------------------------------------------------------- dense form, order, shape
@table.binder("SparseToDense", host_inputs=("output_shape",))
def sparse_to_dense(sig: NodeSig) -> Callable[..., Array]:
    """One value everywhere but at given places."""
    validate = bool(sig.attrs["validate_indices"])

    def run(indices: Any, output_shape: Any, values: Any, default: Any) -> Array:
        places, values = np.asarray(indices), np.asarray(values)
        shape = np.asarray(output_shape)
        _check_dense(places, shape, values, np.asarray(default))
        places = places.reshape(-1, places.shape[1] if places.ndim == 2 else 1)
        wanted = cells.sizes(shape.reshape(-1))
        if validate:
            cells.check_order(places, wanted)
        elif ((places < 0) | (places >= np.array(wanted))).any():
            raise checks.invalid(f"Indices are not valid (out of bounds). Shape: {dims(wanted)}")
        out = np.full(wanted, np.asarray(default)[()], values.dtype)
        out.reshape(-1)[cells.flat(places, wanted)] = values
        return out

    return run


def _check_dense(indices: Array, shape: Array, values: Array, default: Array) -> None:
    if indices.ndim > 2:
        raise checks.invalid(
            f"sparse_indices should be a scalar, vector, or matrix, got shape {dims(indices.shape)}"
        )
    count = indices.shape[0] if indices.ndim else 1
    rank = indices.shape[1] if indices.ndim == 2 else 1
    if shape.ndim > 1:
        raise checks.invalid(f"output_shape should be a vector, got shape {dims(shape.shape)}")
    if shape.size != rank:
        raise checks.invalid(
            f"output_shape has incorrect number of elements: {shape.size} should be: {rank}"
        )
    if values.ndim and values.shape != (count,):
        raise checks.invalid(
            f"sparse_values has incorrect shape {dims(values.shape)}, should be [] or [{count}]"
        )
    if default.ndim:
        raise checks.invalid("default_value should be a scalar.")


@table.binder("SparseReorder")
def sparse_reorder(sig: NodeSig) -> Callable[..., tuple[Array, Array]]:
    """Cells in row-major order."""

    def run(indices: Array, values: Array, shape: Array) -> tuple[Array, Array]:
        cells.check_parts(indices, values, shape)
        key = cells.keys(indices)
        if (key[1:] >= key[:-1]).all():
            return indices.copy(), values.copy()
        order = np.argsort(key, kind="stable")
        return indices[order], values[order]

    return run


@table.binder("SparseReshape", host_inputs=("input_shape", "new_shape"))
def sparse_reshape(sig: NodeSig) -> Callable[..., tuple[Array, Array]]:
    """The same cells of another shape, of which one dimension may be -1."""

    def run(indices: Array, input_shape: Array, new_shape: Array) -> tuple[Array, Array]:
        cells.check_ranks(
            ("Input indices", 2, indices),
            ("Input shape", 1, input_shape),
            ("Target shape", 1, new_shape),
        )
        old = cells.sizes(input_shape)
        if indices.shape[1] != len(old):
            raise checks.invalid("Shape rank must be SparseTensor rank.")
        wanted = _completed([int(n) for n in new_shape], old)
        cells.check_inside(indices, old)
        moved = indices.copy() if wanted == old else cells.unflat(cells.flat(indices, old), wanted)
        return moved, np.array(wanted, np.int64)

    return run


def _completed(wanted: list[int], old: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with the one dimension that is -1 filled in."""
    open_at = [i for i, n in enumerate(wanted) if n == -1]
    if len(open_at) > 1:
        raise checks.invalid(
            f"only one output dimension may be -1, not both {open_at[0]} and {open_at[1]}"
        )
    for i, n in enumerate(wanted):
        if n < -1:
            raise checks.invalid(f"size {i} must be non-negative, not {n}")
    total, given = math.prod(old), math.prod(n for n in wanted if n != -1)
    where = f"input_shape={dims(old)} output_shape={dims(wanted)}"
    if open_at:
        if given == 0:
            raise checks.invalid(
                "reshape cannot infer the missing input size for an empty tensor unless all "
                "specified input sizes are non-zero"
            )
        if total % given:
            raise checks.invalid(
                f"Input to reshape is a SparseTensor with {total} dense values, but the requested "
                f"shape requires a multiple of {given}. {where}"
            )
        wanted[open_at[0]] = total // given
    elif given != total:
        raise checks.invalid(
            f"Input to reshape is a tensor with {total} dense values, but the requested shape has "
            f"{given}. {where}"
        )
    return tuple(wanted)


# ---------------------------------------------------------------- slices, parts and joins
@table.binder("SparseSlice", host_inputs=("shape", "start", "size"))
def sparse_slice(sig: NodeSig) -> Callable[..., tuple[Array, Array, Array]]:
    """The cells in a box, counted from its corner."""

    def run(indices: Array, values: Array, shape: Array, start: Array, size: Array) -> Any:
        cells.check_parts(indices, values, shape)
        for name, vector in (("start", start), ("size", size)):
            if vector.ndim != 1:
                raise checks.invalid(
                    f"Input {name} should be a vector but received shape {dims(vector.shape)}"
                )
            if len(vector) != len(shape):
                raise checks.invalid(
                    f"Expected {name} to be a vector of length {len(shape)} but got length "
                    f"{len(vector)}"
                )
        here = ((indices >= start) & (indices - start < size)).all(axis=1)
        left = np.maximum(np.minimum(size, shape - start), 0)
        return indices[here] - start, values[here], left

    return run


@table.binder("SparseSliceGrad")
def sparse_slice_grad(sig: NodeSig) -> Callable[..., Array]:
    """Gradients of the cells in a box, zero for those outside."""

    def run(grad: Array, indices: Array, start: Array, sliced: Array) -> Array:
        _check_slice_grad(grad, indices, start, sliced)
        place = cells.keys(np.concatenate([indices, sliced + start]))
        own, wanted = place[: len(indices)], place[len(indices) :]
        order = np.argsort(own, kind="stable")
        at = np.searchsorted(own, wanted, sorter=order)
        inside = np.minimum(at, max(len(own) - 1, 0))
        if len(wanted) and (own[order[inside]] != wanted).any():
            used = int((own[order[inside]] == wanted).sum())
            raise checks.invalid(
                "Elements of backprop_val_grad aren't all propagated. Num elements:"
                f"{len(grad)}, used: {used}"
            )
        out = np.zeros(len(indices), grad.dtype)
        out[order[at]] = grad
        return out

    return run


def _check_slice_grad(grad: Array, indices: Array, start: Array, sliced: Array) -> None:
    if indices.ndim != 2 or sliced.ndim != 2:
        raise checks.invalid(
            "Input and output indices should be matrices but received shapes: "
            f"{dims(indices.shape)} and {dims(sliced.shape)}"
        )
    if grad.ndim != 1:
        raise checks.invalid(
            f"Input backprop_val_grad should be a vector but received shape: {dims(grad.shape)}"
        )
    if indices.shape[1] != sliced.shape[1]:
        raise checks.invalid(
            f"The input and output should have the same ndims: got: {indices.shape[1]} and "
            f"{sliced.shape[1]}"
        )
    if len(sliced) > len(indices):
        raise checks.invalid(
            "# rows of output_indices should be not greater than of input_indices, got "
            f"{len(sliced)} and {len(indices)}"
        )
    if len(grad) != len(sliced):
        raise checks.invalid(
            "# elements of backprop_val_grad and # rows of output_indices should match (#nnz of "
            f"sum): got {len(grad)} and {len(sliced)}"
        )
    if start.ndim != 1:
        raise checks.invalid(
            f"The input_start should be a vector but received shape {dims(start.shape)}"
        )
    if len(start) != indices.shape[1]:
        raise checks.invalid(
            f"Expected input_start to be a vector of length {indices.shape[1]} but got length "
            f"{len(start)}"
        )


@table.binder("SparseConcat")
def sparse_concat(sig: NodeSig) -> Callable[..., tuple[Array, Array, Array]]:
    """Sparse tensors joined along a dimension, their cells in order."""
    axis = int(sig.attrs["concat_dim"])

    def run(*parts: Array) -> tuple[Array, Array, Array]:
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
        joined, every = np.concatenate(moved), np.concatenate(values)
        order = np.argsort(cells.keys(joined), kind="stable")
        return joined[order], every[order], whole

    return run


def _check_joined(indices: Any, values: Any, shapes: Any, axis: int) -> int:
    """The axis; raises InvalidArgumentError unless the parts fit along it."""
    for i, (cell, value, shape) in enumerate(zip(indices, values, shapes, strict=True)):
        for name, rank, kind, array in (
            ("indices", 2, "matrix", cell), ("values", 1, "vector", value),
            ("shapes", 1, "vector", shape),
        ):  # fmt: skip
            if array.ndim != rank:
                raise checks.invalid(
                    f"Input {name} should be a {kind} but received shape {dims(array.shape)} at "
                    f"position {i}"
                )
    rank = len(shapes[0])
    at = axis + rank if axis < 0 else axis
    if not 0 <= at < rank:
        raise checks.invalid(f"Concat dimension must be in range [{-rank}, {rank}), got {axis}")
    for i, shape in enumerate(shapes):
        if len(shape) != rank:
            raise checks.invalid(
                f"Ranks of all input tensors must match: expected {rank} but got {len(shape)} at "
                f"position {i}"
            )
        for j in range(rank):
            if j != at and shape[j] != shapes[0][j]:
                raise checks.invalid(
                    f"Input shapes must match: expected {shapes[0][j]} for dimension {j} but got "
                    f"{shape[j]} at position {i}"
                )
        cells.check_parts(indices[i], values[i], shape)
    return at


@table.binder("SparseSplit", host_inputs=("split_dim", "shape"))
def sparse_split(sig: NodeSig) -> Callable[..., tuple[Array, ...]]:
    """Parts along a dimension; the first ones are longer by one where it does not divide."""
    count = int(sig.attrs["num_split"])

    def run(split_dim: Any, indices: Array, values: Array, shape: Array) -> tuple[Array, ...]:
        cells.check_parts(indices, values, shape)
        axis, rank = int(split_dim), len(shape)
        if not 0 <= axis < rank:
            raise checks.invalid(
                f"Input split_dim should be between 0 and rank ({rank}), got {axis}"
            )
        if not 1 <= count <= shape[axis]:
            raise checks.invalid(
                "Input num_split should be between 1 and the splitting dimension size "
                f"({shape[axis]}), got {count}"
            )
        each, longer = divmod(int(shape[axis]), count)
        lengths = np.full(count, each, np.int64)
        lengths[:longer] += 1
        ends = np.cumsum(lengths)
        cells.check_inside(indices, cells.sizes(shape))
        part = np.searchsorted(ends, indices[:, axis], side="right")
        found: list[list[Array]] = [[], [], []]
        for i in range(count):
            here = part == i
            moved, size = indices[here], shape.copy()
            moved[:, axis] -= ends[i] - lengths[i]
            size[axis] = lengths[i]
            for column, piece in zip(found, (moved, values[here], size), strict=True):
                column.append(piece)
        return (*found[0], *found[1], *found[2])

    return run


# ---------------------------------------------------------------- rows
@table.binder("SparseFillEmptyRows")
def sparse_fill_empty_rows(sig: NodeSig) -> Callable[..., tuple[Array, Array, Array, Array]]:
    """A cell in the first column of each row that has none."""

    def run(indices: Array, values: Array, shape: Array, default: Any) -> Any:
        _check_rows(indices, values, shape, np.asarray(default))
        rows, count = int(shape[0]), len(indices)
        if rows == 0:
            if count:
                raise checks.invalid(
                    f"Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = {count}"
                )
            empty = np.zeros(0, np.bool_), np.zeros(0, np.int64)
            return indices.copy(), values.copy(), *empty
        row = indices[:, 0]
        bad = (row < 0) | (row >= rows)
        if bad.any():
            i = int(np.argmax(bad))
            raise checks.invalid(f"indices({i}, 0) is invalid: {row[i]} >= {rows}")
        missing = np.bincount(row, minlength=rows) == 0
        gaps = np.flatnonzero(missing)
        order = np.argsort(np.concatenate([row, gaps]), kind="stable")
        added = np.zeros((len(gaps), indices.shape[1]), np.int64)
        added[:, 0] = gaps
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        fill = np.full(len(gaps), np.asarray(default)[()], values.dtype)
        every = np.concatenate([values, fill])[order]
        return np.concatenate([indices, added])[order], every, missing, place[:count]

    return run


def _check_rows(indices: Array, values: Array, shape: Array, default: Array) -> None:
    for name, rank, kind, array in (
        ("dense_shape", 1, "vector", shape), ("indices", 2, "matrix", indices),
        ("values", 1, "vector", values), ("default_value", 0, "scalar", default),
    ):  # fmt: skip
        if array.ndim != rank:
            raise checks.invalid(f"{name} must be a {kind}, saw: {dims(array.shape)}")
    cells.check_parts(indices, values, shape)
    if not len(shape):
        raise checks.invalid("Dense shape cannot be empty.")


@table.binder("SparseFillEmptyRowsGrad", T=NUMBERS)
def sparse_fill_empty_rows_grad(sig: NodeSig) -> Callable[..., tuple[Array, Array]]:
    """Gradients of the values, and the sum of those of the cells that were added."""

    def run(place: Array, grad: Array) -> tuple[Array, Array]:
        for name, array in (("reverse_index_map", place), ("grad_values", grad)):
            if array.ndim != 1:
                raise checks.invalid(f"{name} must be a vector, saw: {dims(array.shape)}")
        bad = (place < 0) | (place >= len(grad))
        if bad.any():
            raise checks.invalid(
                f"Elements in reverse index must be in [0, {len(grad)}) but got "
                f"{place[int(np.argmax(bad))]}"
            )
        added = np.ones(len(grad), np.bool_)
        added[place] = False
        return grad[place], np.asarray(grad[added].sum(), grad.dtype)

    return run
