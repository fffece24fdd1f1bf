"""A sparse tensor combined with a dense one, cell by cell."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.testing.reference._registry import reference


def _cellwise(fn: Any, indices: Any, values: Any, shape: Any, dense: Any) -> Any:
    spread = np.broadcast_to(dense, tuple(int(d) for d in shape))
    out = np.array(values)
    for i, cell in enumerate(indices):
        out[i] = fn(values[i], spread[tuple(int(c) for c in cell)])
    return out


@reference("SparseDenseCwiseMul")
def multiply(attrs: Any, indices: Any, values: Any, shape: Any, dense: Any) -> Any:
    """Products."""
    return _cellwise(lambda a, b: a * b, indices, values, shape, dense)


@reference("SparseDenseCwiseAdd")
def add(attrs: Any, indices: Any, values: Any, shape: Any, dense: Any) -> Any:
    """Sums."""
    return _cellwise(lambda a, b: a + b, indices, values, shape, dense)


@reference("SparseDenseCwiseDiv")
def divide(attrs: Any, indices: Any, values: Any, shape: Any, dense: Any) -> Any:
    """Quotients, truncated for integers."""
    if np.asarray(values).dtype.kind in "iu":
        return _cellwise(lambda a, b: int(a / b), indices, values, shape, dense)
    return _cellwise(lambda a, b: a / b, indices, values, shape, dense)


def _entries(indices: Any, values: Any) -> dict[tuple[int, ...], Any]:
    return {tuple(int(c) for c in cell): value for cell, value in zip(indices, values, strict=True)}


def _sparse(found: dict[tuple[int, ...], Any], rank: int, dtype: Any) -> tuple[Any, Any]:
    cells = sorted(found)
    indices = np.array(cells, np.int64).reshape(len(cells), rank)
    return indices, np.array([found[cell] for cell in cells], dtype)


@reference("SparseAdd")
def sparse_add(
    attrs: Any, ai: Any, av: Any, shape: Any, bi: Any, bv: Any, b_shape: Any, threshold: Any
) -> Any:
    """Sums by cell; those of both are left out if they are small."""
    a, b = _entries(ai, av), _entries(bi, bv)
    total = {cell: a.get(cell, 0) + b.get(cell, 0) for cell in a.keys() | b.keys()}
    kept = {
        cell: value for cell, value in total.items()
        if cell not in a or cell not in b or abs(value) >= threshold
    }  # fmt: skip
    return (*_sparse(kept, len(shape), av.dtype), shape)


@reference("SparseAddGrad")
def sparse_add_grad(attrs: Any, grad: Any, a: Any, b: Any, total: Any) -> Any:
    """Looks each cell up in the sum."""
    found = _entries(total, grad)
    return tuple(
        np.array([found.get(cell, 0) for cell in (tuple(map(int, c)) for c in side)], grad.dtype)
        for side in (a, b)
    )


def _extreme(choose: Any, ai: Any, av: Any, shape: Any, bi: Any, bv: Any) -> Any:
    a, b = _entries(ai, av), _entries(bi, bv)
    both = {cell: choose(a.get(cell, 0), b.get(cell, 0)) for cell in a.keys() | b.keys()}
    return _sparse(both, len(shape), av.dtype)


@reference("SparseSparseMaximum")
def maximum(attrs: Any, ai: Any, av: Any, shape: Any, bi: Any, bv: Any, b_shape: Any) -> Any:
    """The larger one; an absent cell is zero."""
    return _extreme(max, ai, av, shape, bi, bv)


@reference("SparseSparseMinimum")
def minimum(attrs: Any, ai: Any, av: Any, shape: Any, bi: Any, bv: Any, b_shape: Any) -> Any:
    """The smaller one; an absent cell is zero."""
    return _extreme(min, ai, av, shape, bi, bv)


def _dense(indices: Any, values: Any, shape: Any) -> Any:
    out = np.zeros(tuple(int(n) for n in shape), values.dtype)
    for cell, value in zip(indices, values, strict=True):
        out[tuple(int(c) for c in cell)] += value
    return out


@reference("SparseTensorDenseAdd")
def dense_add(attrs: Any, indices: Any, values: Any, shape: Any, b: Any) -> Any:
    """Makes both dense."""
    return _dense(indices, values, shape) + b


@reference("SparseTensorDenseMatMul")
def matmul(attrs: Any, indices: Any, values: Any, shape: Any, b: Any) -> Any:
    """Makes both dense."""
    a = _dense(indices, values, shape)
    a = np.conj(a.T) if attrs["adjoint_a"] else a
    return a @ (np.conj(b.T) if attrs["adjoint_b"] else b)


@reference("SparseSoftmax")
def softmax(attrs: Any, indices: Any, values: Any, shape: Any) -> Any:
    """Goes through the rows of each cell."""
    out = np.array(values)
    for i, cell in enumerate(indices):
        row = [values[j] for j, other in enumerate(indices) if (other[:-1] == cell[:-1]).all()]
        largest = max(row)
        out[i] = np.exp(values[i] - largest) / sum(np.exp(v - largest) for v in row)
    return out
