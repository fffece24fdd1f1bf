"""What the ops compute that lay sparse tensors out anew, cell by cell."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _cells(indices: Array) -> list[tuple[int, ...]]:
    return [tuple(int(i) for i in np.atleast_1d(cell)) for cell in indices]


def _matrix(cells: Any, rank: int) -> Array:
    return np.array(cells, np.int64).reshape(len(cells), rank)


@reference("SparseToDense")
def sparse_to_dense(
    attrs: Attrs, indices: Array, shape: Array, values: Array, default: Array
) -> Array:
    """Writes each value at its place."""
    out = np.full(tuple(int(n) for n in shape), default[()], values.dtype)
    places = _cells(np.atleast_1d(indices))
    for i, cell in enumerate(places):
        out[cell] = values[i] if values.ndim else values[()]
    return out


@reference("SparseReorder")
def sparse_reorder(attrs: Attrs, indices: Array, values: Array, shape: Array) -> tuple[Array, ...]:
    """Sorts the cells as Python sorts tuples."""
    order = sorted(range(len(values)), key=lambda i: _cells(indices)[i])
    return indices[order], values[order]


@reference("SparseReshape")
def sparse_reshape(attrs: Attrs, indices: Array, old: Array, new: Array) -> tuple[Array, ...]:
    """Marks the cells in a dense tensor and reshapes that."""
    size = int(np.prod(old))
    wanted = [int(n) for n in new]
    if -1 in wanted:
        at = wanted.index(-1)
        wanted[at] = size // int(np.prod([n for n in wanted if n != -1]))
    numbers = np.arange(size).reshape(tuple(int(n) for n in old))
    moved = numbers.reshape(wanted)
    cells = [np.argwhere(moved == numbers[cell])[0] for cell in _cells(indices)]
    return _matrix(cells, len(wanted)), np.array(wanted, np.int64)


@reference("SparseSlice")
def sparse_slice(
    attrs: Attrs, indices: Array, values: Array, shape: Array, start: Array, size: Array
) -> tuple[Array, ...]:
    """Keeps the cells that are in the box."""
    rank = len(shape)
    cells, kept = [], []
    for i, cell in enumerate(_cells(indices)):
        if all(start[d] <= cell[d] < start[d] + size[d] for d in range(rank)):
            cells.append([cell[d] - start[d] for d in range(rank)])
            kept.append(i)
    left = [max(min(int(size[d]), int(shape[d] - start[d])), 0) for d in range(rank)]
    return _matrix(cells, rank), values[kept], np.array(left, np.int64)


@reference("SparseSliceGrad")
def sparse_slice_grad(
    attrs: Attrs, grad: Array, indices: Array, start: Array, sliced: Array
) -> Array:
    """Looks each cell up among those of the slice."""
    found = {tuple(int(i) for i in cell + start): i for i, cell in enumerate(sliced)}
    out = np.zeros(len(indices), grad.dtype)
    for i, cell in enumerate(_cells(indices)):
        if cell in found:
            out[i] = grad[found[cell]]
    return out


@reference("SparseConcat")
def sparse_concat(
    attrs: Attrs, indices: list[Array], values: list[Array], shapes: list[Array]
) -> tuple[Array, ...]:
    """Moves the cells of each part, then sorts all of them."""
    rank = len(shapes[0])
    axis = attrs["concat_dim"] % rank
    found, offset = [], 0
    for cells, part, shape in zip(indices, values, shapes, strict=True):
        for cell, value in zip(_cells(cells), part, strict=True):
            found.append((*cell[:axis], cell[axis] + offset, *cell[axis + 1 :], value))
        offset += int(shape[axis])
    found.sort(key=lambda entry: entry[:rank])
    whole = np.array(shapes[0])
    whole[axis] = offset
    every = np.empty(len(found), values[0].dtype)
    every[:] = [entry[rank] for entry in found]
    return _matrix([entry[:rank] for entry in found], rank), every, whole


@reference("SparseSplit")
def sparse_split(
    attrs: Attrs, axis: Array, indices: Array, values: Array, shape: Array
) -> tuple[Array, ...]:
    """Cuts the axis as `np.array_split` does."""
    at, rank = int(axis), len(shape)
    ranges = np.array_split(np.arange(int(shape[at])), attrs["num_split"])
    found: list[list[Array]] = [[], [], []]
    for numbers in ranges:
        here = [i for i, cell in enumerate(_cells(indices)) if cell[at] in numbers]
        cells = indices[here].reshape(len(here), rank).copy()
        cells[:, at] -= numbers[0]
        size = np.array(shape)
        size[at] = len(numbers)
        found[0].append(cells)
        found[1].append(values[here])
        found[2].append(size)
    return (*found[0], *found[1], *found[2])


@reference("SparseFillEmptyRows")
def sparse_fill_empty_rows(
    attrs: Attrs, indices: Array, values: Array, shape: Array, default: Array
) -> tuple[Array, ...]:
    """Goes through the rows, and through all cells for each."""
    rank = len(shape)
    cells: list[Any] = []
    kept: list[Any] = []
    missing: list[bool] = []
    place = np.zeros(len(values), np.int64)
    for row in range(int(shape[0])):
        own = [i for i in range(len(values)) if indices[i, 0] == row]
        missing.append(not own)
        for i in own:
            place[i] = len(cells)
            cells.append(indices[i])
            kept.append(values[i])
        if not own:
            cells.append(np.array([row] + [0] * (rank - 1)))
            kept.append(default[()])
    every = np.empty(len(kept), values.dtype)
    every[:] = kept
    return _matrix(cells, rank), every, np.array(missing, np.bool_), place


@reference("SparseFillEmptyRowsGrad")
def sparse_fill_empty_rows_grad(attrs: Attrs, place: Array, grad: Array) -> tuple[Array, Array]:
    """What is not at a place of a value belongs to the default."""
    rest = [grad[i] for i in range(len(grad)) if i not in place]
    return grad[place], np.array(sum(rest, grad.dtype.type(0)))
