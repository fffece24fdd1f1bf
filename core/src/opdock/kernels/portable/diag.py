"""Portable kernels of diagonals: strided runs in the flattened matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from opdock.graph.nodes import diagonals
from opdock.kernels.array_api import copy, dims, full, ints, invalid, put, zeros
from opdock.kernels.portable import portable
from opdock.kernels.portable.matrix import check_matrix
from opdock.kernels.select.signature import NodeSig


@portable("Diag")
def diag(xp: Any, sig: NodeSig) -> Any:
    """A tensor with the given diagonal."""
    dtype = sig.out_dtypes[0]

    def run(diagonal: Any) -> Any:
        n = math.prod(diagonal.shape)
        out = zeros(xp, (n * n,), diagonal, dtype)
        if n:
            out = put(xp, out, slice(None, None, n + 1), xp.reshape(diagonal, (n,)))
        return xp.reshape(out, (*diagonal.shape, *diagonal.shape))

    return run


@portable("DiagPart")
def diag_part(xp: Any, sig: NodeSig) -> Any:
    """The diagonal of a tensor."""

    def run(tensor: Any) -> Any:
        shape = half_of(tensor.shape)
        n = math.prod(shape)
        return copy(xp, xp.reshape(xp.reshape(tensor, (n * n,))[:: n + 1], shape))

    return run


def _flat(xp: Any, x: Any) -> Any:
    """Matrices with their elements in one row each."""
    return xp.reshape(x, (*x.shape[:-2], x.shape[-2] * x.shape[-1]))


def _write(xp: Any, out: Any, rows: int, cols: int, k: int, values: Any) -> Any:
    """`out`, flat, with one diagonal; `values` start at the diagonal's first element."""
    where = diagonals.diagonal(k, rows, cols)
    if not where.length:
        return out
    return put(xp, out, (..., where.flat), values[..., : where.length])


@portable("MatrixDiag")
def matrix_diag(xp: Any, sig: NodeSig) -> Any:
    """Square matrices with the given main diagonals."""
    dtype = sig.out_dtypes[0]

    def run(diagonal: Any) -> Any:
        check_diagonals(diagonal.shape)
        n = diagonal.shape[-1]
        out = zeros(xp, (*diagonal.shape[:-1], n * n), diagonal, dtype)
        out = _write(xp, out, n, n, 0, diagonal)
        return xp.reshape(out, (*diagonal.shape, n))

    return run


@portable("MatrixDiagV2", host_inputs=("k", "num_rows", "num_cols"))
def matrix_diag_v2(xp: Any, sig: NodeSig) -> Any:
    """Matrices with the given band of diagonals."""
    dtype = sig.out_dtypes[0]

    def run(diagonal: Any, k: Any, num_rows: Any, num_cols: Any, padding: Any) -> Any:
        lower, upper = _band(k)
        batch = batch_of_band(diagonal.shape, lower, upper)
        try:
            rows, cols = diagonals.matrix_size(
                lower, upper, diagonal.shape[-1], ints(num_rows)[0], ints(num_cols)[0]
            )
        except ValueError as e:
            raise invalid(str(e)) from None
        out = full(xp, (*batch, rows * cols), 0, dtype, diagonal)
        out = put(xp, out, ..., padding)
        for k_ in range(lower, upper + 1):
            values = diagonal if lower == upper else diagonal[..., upper - k_, :]
            out = _write(xp, out, rows, cols, k_, values)
        return xp.reshape(out, (*batch, rows, cols))

    return run


def _band(k: Any) -> tuple[int, int]:
    try:
        return diagonals.band(ints(k))
    except ValueError as e:
        raise invalid(str(e)) from None


def _longest(lower: int, upper: int, rows: int, cols: int) -> int:
    try:
        return diagonals.longest(lower, upper, rows, cols)
    except ValueError as e:
        raise invalid(str(e)) from None


@portable("MatrixDiagPart")
def matrix_diag_part(xp: Any, sig: NodeSig) -> Any:
    """The main diagonals of matrices."""

    def run(x: Any) -> Any:
        check_matrix(x.shape)
        where = diagonals.diagonal(0, *x.shape[-2:])
        return copy(xp, _flat(xp, x)[..., where.flat])

    return run


@portable("MatrixDiagPartV2", host_inputs=("k",))
def matrix_diag_part_v2(xp: Any, sig: NodeSig) -> Any:
    """A band of diagonals of matrices, the shorter ones padded at the end."""
    dtype = sig.out_dtypes[0]

    def run(x: Any, k: Any, padding: Any) -> Any:
        check_matrix(x.shape)
        lower, upper = _band(k)
        rows, cols = x.shape[-2:]
        length = _longest(lower, upper, rows, cols)
        flat = _flat(xp, x)
        batch = tuple(x.shape[:-2])
        out = full(xp, (*batch, upper - lower + 1, length), 0, dtype, x)
        out = put(xp, out, ..., padding)
        for k_ in range(lower, upper + 1):
            where = diagonals.diagonal(k_, rows, cols)
            if where.length:
                place = (..., upper - k_, slice(where.length))
                out = put(xp, out, place, flat[..., where.flat])
        return xp.reshape(out, (*batch, length)) if lower == upper else out

    return run


@portable("MatrixSetDiag")
def matrix_set_diag(xp: Any, sig: NodeSig) -> Any:
    """Matrices with other main diagonals."""

    def run(x: Any, diagonal: Any) -> Any:
        check_matrix(x.shape)
        rows, cols = x.shape[-2:]
        wanted = (*x.shape[:-2], min(rows, cols))
        check_set_diag(x.shape, diagonal.shape, wanted)
        out = _flat(xp, copy(xp, x))
        out = _write(xp, out, rows, cols, 0, diagonal)
        return xp.reshape(out, x.shape)

    return run


@portable("MatrixSetDiagV2", host_inputs=("k",))
def matrix_set_diag_v2(xp: Any, sig: NodeSig) -> Any:
    """Matrices with another band of diagonals."""

    def run(x: Any, diagonal: Any, k: Any) -> Any:
        check_matrix(x.shape)
        lower, upper = _band(k)
        rows, cols = x.shape[-2:]
        length = _longest(lower, upper, rows, cols)
        count = () if lower == upper else (upper - lower + 1,)
        wanted = (*x.shape[:-2], *count, length)
        check_set_diag(x.shape, diagonal.shape, wanted)
        out = _flat(xp, copy(xp, x))
        for k_ in range(lower, upper + 1):
            values = diagonal if lower == upper else diagonal[..., upper - k_, :]
            out = _write(xp, out, rows, cols, k_, values)
        return xp.reshape(out, x.shape)

    return run


def check_diagonals(shape: Sequence[int]) -> None:
    """Raises InvalidArgumentError unless a shape is that of diagonals."""
    if not shape:
        raise invalid("diagonal must be at least 1-dim, received shape: []")


def half_of(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of the diagonal of a tensor, which has every dimension twice.

    Raises:
        InvalidArgumentError: its halves differ.
    """
    half = len(shape) // 2
    if tuple(shape[:half]) != tuple(shape[half:]):
        raise invalid(f"Invalid shape {dims(shape)}: dimensions {half} apart must be equal.")
    return tuple(shape[:half])


def batch_of_band(shape: Sequence[int], lower: int, upper: int) -> tuple[int, ...]:
    """What stands before the diagonals of a band in their shape.

    Raises:
        InvalidArgumentError: there are more or fewer diagonals than the band has.
    """
    if lower == upper:
        return tuple(shape[:-1])
    if shape[-2] != upper - lower + 1:
        raise invalid(
            "The number of diagonals provided in the input does not match the lower_diag_index "
            f"and upper_diag_index range: {shape[-2]} vs. {upper - lower + 1}"
        )
    return tuple(shape[:-2])


def check_set_diag(matrices: Sequence[int], given: Sequence[int], wanted: Sequence[int]) -> None:
    """Raises InvalidArgumentError unless diagonals that are put into matrices fit in."""
    check_diagonals(given)
    if tuple(given) != tuple(wanted):
        raise invalid(
            "Either first dimensions of diagonal don't match input.shape[:-2], or its last ones "
            f"are not those of the diagonals in the range.\nInput shape: {dims(matrices)}\n"
            f"Diagonal shape: {dims(given)}\nExpected diagonal shape: {dims(wanted)}"
        )
