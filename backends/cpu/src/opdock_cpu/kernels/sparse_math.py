"""Sparse tensors combined by merging their sorted cells, and products, of which SciPy has some."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import (
    COMPLEX,
    FLOATS,
    NUMBERS,
    REALS,
    KernelTable,
    NodeSig,
    cells,
    checks,
    dtypes,
)
from opdock_cpu import merging, picking
from opdock_cpu.halves import astype
from opdock_cpu.jit.looped import Looped
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

Array = cells.Array
dims = checks.dims

table = KernelTable()

_HALVES = (dtypes.float16, dtypes.bfloat16)
_WIDE = NUMBERS - frozenset(_HALVES)
_COMBINE: Final = {"Add": np.add, "Mul": np.multiply, "Div": np.divide}


# ---------------------------------------------------------------- a sparse and a dense one
@table.binder("SparseDenseCwiseAdd", "SparseDenseCwiseMul", T=_WIDE, host_inputs=("sp_shape",))
@table.binder("SparseDenseCwiseDiv", T=_WIDE & (FLOATS | COMPLEX), host_inputs=("sp_shape",))
def sparse_dense(sig: NodeSig) -> Callable[..., Array]:
    """The values combined with what the dense tensor has, broadcast, at their cells."""
    combine = _COMBINE[sig.op.removeprefix("SparseDenseCwise")]
    plain: Callable[..., Array] = portable_kernel(sig)

    def run(indices: Array, values: Array, shape: Array, dense: Array) -> Array:
        found = _at_cells(indices, tuple(checks.ints(shape)), dense)
        if found is None or values.shape != found.shape:
            return plain(indices, values, shape, dense)
        return np.asarray(combine(values, found, out=found))

    return run


def _at_cells(indices: Array, wanted: tuple[int, ...], dense: Array) -> Array | None:
    """What a dense tensor, broadcast, has at cells; None without code, or where they do not fit."""
    if indices.ndim != 2 or indices.shape[1] != len(wanted) or not dense.size:
        return None
    lead = checks.leading_of_sparse(wanted, dense.shape)
    steps = [math.prod(dense.shape[i + 1 :]) if n > 1 else 0 for i, n in enumerate(dense.shape)]
    return picking.picked(dense, indices, wanted, [0] * lead + steps, 1)


@table.binder("SparseTensorDenseAdd", T=NUMBERS, host_inputs=("a_shape",))
def sparse_tensor_dense_add(sig: NodeSig) -> Callable[..., Array]:
    """The dense tensor with values added at cells, which may be repeated."""

    def run(indices: Array, values: Array, shape: Array, b: Array) -> Array:
        if indices.ndim != 2:
            raise checks.invalid(
                f"Input a_indices should be a matrix but received shape: {dims(indices.shape)}"
            )
        if values.ndim != 1 or shape.ndim != 1:
            raise checks.invalid(
                "Inputs a_values and a_shape should be vectors but received shapes: "
                f"{dims(values.shape)} and {dims(shape.shape)}"
            )
        if len(shape) != b.ndim:
            raise checks.invalid(
                f"Two operands have different ranks; received: {len(shape)} and {b.ndim}"
            )
        for i, (m, n) in enumerate(zip(shape, b.shape, strict=True)):
            if m != n:
                raise checks.invalid(
                    f"Dimension {i} does not equal (no broadcasting is supported): sparse side {m} "
                    f"vs dense side {n}"
                )
        cells.check_parts(indices, values, shape)
        for axis, n in enumerate(b.shape):
            if ((indices[:, axis] < 0) | (indices[:, axis] >= n)).any():
                raise checks.invalid(
                    f"Sparse tensor has some invalid index on dimension {axis}; dense side b "
                    f"shape: {dims(b.shape)}"
                )
        out = np.array(b, order="C")
        np.add.at(out.reshape(-1), cells.flat(indices.astype(np.int64), b.shape), values)
        return out

    return run


def _product(
    begin: int, end: int, out: Array, values: Array, indices: Array, b: Array,
    count: int, width: int, flipped: int,
) -> None:  # fmt: skip
    """A turn is a row of the product. Each share goes through all cells in order."""
    for i in range(count):
        row = indices[2 * i + flipped]
        if row >= begin and row < end:
            o = row * width
            r = indices[2 * i + 1 - flipped] * width
            value = values[i]
            for c in range(width):
                out[o + c] = out[o + c] + value * b[r + c]


_PRODUCT: Final = Looped(_product)
_SHARED: Final = 1 << 16
"""Products of numbers from which a second thread, which reads all cells as well, pays."""


def _by_code(indices: Array, values: Array, b: Array, rows: int, flipped: bool) -> Array | None:
    """The product in one pass over the cells; None where there is no code for it."""
    count, width = len(values), b.shape[1]
    out = np.zeros((rows, width), b.dtype)
    # Each share looks at all cells: they should be little beside the rows of `b`.
    shares = max(1, min(width // 4, count * width // _SHARED, rows))
    whole = (count, width, int(flipped))
    ran = _PRODUCT(rows, count * width, out, values, indices, b, *whole, most=shares)
    return out if ran else None


def _by_scipy(indices: Array, values: Array, b: Array, size: tuple[int, int]) -> Array:
    """The product of a matrix of this size; the first column of `indices` has its rows."""
    from scipy import sparse

    rows, columns = np.ascontiguousarray(indices.T)
    if (rows[1:] >= rows[:-1]).all():
        # Cells in the order of rows are a compressed matrix, but for where each row begins.
        begins = np.searchsorted(rows, np.arange(size[0] + 1))
        matrix = sparse.csr_matrix((values, columns, begins), size)
    else:
        matrix = sparse.csr_matrix((values, (rows, columns)), size)
    return np.asarray(matrix @ b, order="C")


@table.binder("SparseTensorDenseMatMul", T=NUMBERS, host_inputs=("a_shape",))
def sparse_tensor_dense_matmul(sig: NodeSig) -> Callable[..., Array]:
    """A sparse matrix times a dense one; repeated cells add up."""
    adjoint_a, adjoint_b = bool(sig.attrs["adjoint_a"]), bool(sig.attrs["adjoint_b"])
    dtype = sig.in_dtypes[1].base_dtype
    wide = np.float32 if dtype in _HALVES else dtype.np

    def run(indices: Array, values: Array, shape: Array, b: Array) -> Array:
        _check_product(indices, values, shape, b, adjoint_a, adjoint_b)
        size = (int(shape[0]), int(shape[1]))
        _check_cells(indices[:, 0], indices[:, 1], size, adjoint_a)
        values = astype(values, wide, copy=False)
        if adjoint_a:
            values = np.conj(values)
            size = size[::-1]
        if adjoint_b:
            b = np.conj(b.T)
        b = np.ascontiguousarray(astype(b, wide, copy=False))
        found = _by_code(indices, values, b, size[0], adjoint_a)
        if found is None:
            cells_of = indices[:, ::-1] if adjoint_a else indices
            found = _by_scipy(cells_of, values, b, size)
        return astype(found, dtype.np, copy=False)

    return run


def _check_product(
    indices: Array, values: Array, shape: Array, b: Array, adjoint_a: bool, adjoint_b: bool
) -> None:
    for name, rank, kind, array in (
        ("b", 2, "matrix", b), ("a_shape", 1, "vector", shape), ("a_values", 1, "vector", values),
        ("a_indices", 2, "matrix", indices),
    ):  # fmt: skip
        if array.ndim != rank:
            raise checks.invalid(f"Tensor '{name}' is not a {kind}")
    if len(shape) != 2:
        raise checks.invalid("Tensor 'a_shape' must have 2 elements")
    if len(indices) != len(values):
        raise checks.invalid(
            "Number of rows of a_indices does not match number of entries in a_values"
        )
    if indices.shape[1] != 2:
        raise checks.invalid(
            "Number of columns of a_indices does not match number of entries in a_shape"
        )
    left, right = int(shape[0 if adjoint_a else 1]), b.shape[1 if adjoint_b else 0]
    if left != right:
        raise checks.invalid(
            f"Cannot multiply A and B because inner dimension does not match: {left} vs. {right}. "
            f"Did you forget a transpose? Dimensions of A: [{shape[0]}, {shape[1]}). Dimensions of "
            f"B: {dims(b.shape)}"
        )


def _check_cells(rows: Array, columns: Array, size: tuple[int, int], flipped: bool) -> None:
    # TF looks at the inner dimension first, which of a transposed matrix is that of the rows.
    axes = [(0, rows, size[0]), (1, columns, size[1])]
    for name, (at, index, limit) in zip("km", axes if flipped else axes[::-1], strict=True):
        if len(index) and (index.min() < 0 or index.max() >= limit):
            i = int(np.argmax((index < 0) | (index >= limit)))
            raise checks.invalid(
                f"{name} ({index[i]}) from index[{i},{at}] out of bounds (>={limit})"
            )


# ---------------------------------------------------------------- two sparse tensors
_PLACES = ("a_indices", "a_shape", "b_indices", "b_shape")


def _merged(inputs: tuple[Array, ...]) -> merging.Merged | None:
    """The cells of both; None of what does not fit together, and without code for it."""
    parts = inputs[:3], inputs[3:6]
    fits = all(
        indices.ndim == 2 and indices.shape == (values.size, shape.size)
        and values.ndim == shape.ndim == 1
        for indices, values, shape in parts
    )  # fmt: skip
    if not fits or not np.array_equal(parts[0][2], parts[1][2]):
        return None
    return merging.merged(parts[0][0], parts[1][0])


def _or_zero(values: Array, places: Array) -> Array:
    """The values at some places, zero for -1."""
    return np.append(values, values.dtype.type(0)).take(places)


@table.binder("SparseAdd", T=NUMBERS, host_inputs=_PLACES)
def sparse_add(sig: NodeSig) -> Callable[..., tuple[Array, Array, Array]]:
    """The cells of both; sums below the threshold are left out."""
    plain = portable_kernel(sig)

    def run(*inputs: Array) -> Any:
        found = None if np.ndim(inputs[6]) else _merged(inputs)
        if found is None:
            return plain(*inputs)
        both = np.flatnonzero((found.a >= 0) & (found.b >= 0))
        values = _or_zero(inputs[1], found.a) + _or_zero(inputs[4], found.b)
        # Only where cells meet may they cancel out.
        gone = both[~(np.abs(values[both]) >= inputs[6])]
        if not gone.size:
            return found.cells, values, inputs[2].copy()
        return np.delete(found.cells, gone, axis=0), np.delete(values, gone), inputs[2].copy()

    return run


@table.binder("SparseAddGrad", T=NUMBERS, host_inputs=("a_indices", "b_indices", "sum_indices"))
def sparse_add_grad(sig: NodeSig) -> Callable[..., tuple[Array, Array]]:
    """What the cells of either side contributed to the sum; zero for those left out."""
    plain = portable_kernel(sig)

    def run(grad: Array, *indices: Array) -> Any:
        total = indices[2]
        if grad.shape == total.shape[:1] and all(
            i.ndim == 2 and i.shape[1] == total.shape[1] for i in indices
        ):
            found = merging.found(indices[:2], total)
            if found is not None:
                return tuple(_or_zero(grad, places) for places in found)
        return plain(grad, *indices)

    return run


@table.binder("SparseSparseMaximum", T=REALS, host_inputs=_PLACES)
@table.binder("SparseSparseMinimum", T=NUMBERS - COMPLEX, host_inputs=_PLACES)
def sparse_extreme(sig: NodeSig) -> Callable[..., tuple[Array, Array]]:
    """The larger or smaller of both at each cell; an absent one counts as zero."""
    choose = np.maximum if sig.op == "SparseSparseMaximum" else np.minimum
    plain = portable_kernel(sig)

    def run(*inputs: Array) -> Any:
        found = _merged(inputs)
        if found is None:
            return plain(*inputs)
        values = choose(_or_zero(inputs[1], found.a), _or_zero(inputs[4], found.b))
        return found.cells, values

    return run
