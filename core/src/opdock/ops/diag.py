"""Diagonals: of tensors, and of the matrices in a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import shapes
from opdock.graph.nodes import diagonals
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.array import shape
from opdock.ops.fill import zeros, zeros_like
from opdock.ops.registry import ShapeSig, define_op
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__ = ["diag", "diag_part", "matrix_diag", "matrix_diag_part", "matrix_set_diag"]

_NUMBERS = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}"

diag_op = define_op("Diag", "diagonal: T -> output: T", _NUMBERS)
diag_part_op = define_op("DiagPart", "input: T -> diagonal: T", _NUMBERS)
matrix_diag_op = define_op("MatrixDiag", "diagonal: T -> output: T", "T: type")
matrix_diag_v2_op = define_op(
    "MatrixDiagV2",
    "diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T -> output: T",
    "T: type",
)
matrix_diag_part_op = define_op("MatrixDiagPart", "input: T -> diagonal: T", "T: type")
matrix_diag_part_v2_op = define_op(
    "MatrixDiagPartV2", "input: T, k: int32, padding_value: T -> diagonal: T", "T: type"
)
matrix_set_diag_op = define_op("MatrixSetDiag", "input: T, diagonal: T -> output: T", "T: type")
matrix_set_diag_v2_op = define_op(
    "MatrixSetDiagV2", "input: T, diagonal: T, k: int32 -> output: T", "T: type"
)


# ---------------------------------------------------------------- shapes
@diag_op.shape
def _diag_shape(sig: ShapeSig) -> Shape:
    source = shapes.with_rank_at_least(sig.shapes[0], 1)
    return shapes.concat(source, source)


@diag_part_op.shape
def _diag_part_shape(sig: ShapeSig) -> Shape:
    source = sig.shapes[0]
    if source is None:
        return None
    n = len(source)
    if n == 0 or n % 2:
        raise ValueError(f"Input must have even and non-zero rank, input rank is {n}")
    half = n // 2
    return tuple(shapes.merge_dim(a, b) for a, b in zip(source[:half], source[half:], strict=True))


@matrix_diag_op.shape
def _matrix_diag_shape(sig: ShapeSig) -> Shape:
    source = shapes.with_rank_at_least(sig.shapes[0], 1)
    return None if source is None else (*source, source[-1])


@matrix_diag_part_op.shape
def _matrix_diag_part_shape(sig: ShapeSig) -> Shape:
    source = shapes.with_rank_at_least(sig.shapes[0], 2)
    return None if source is None else (*source[:-2], _least(source[-2], source[-1]))


def _least(a: int | None, b: int | None) -> int | None:
    if a == 0 or b == 0:
        return 0
    return None if a is None or b is None else min(a, b)


@matrix_set_diag_op.shape
def _matrix_set_diag_shape(sig: ShapeSig) -> Shape:
    source = shapes.with_rank_at_least(sig.shapes[0], 2)
    diagonal = shapes.with_rank_at_least(sig.shapes[1], 1)
    if source is not None:
        diagonal = shapes.with_rank(diagonal, len(source) - 1)
        shapes.merge_dim(_least(source[-2], source[-1]), diagonal[-1])
    if diagonal is None:
        return source
    return shapes.merge(source, (*diagonal[:-1], None, None))


def _band(sig: ShapeSig, index: int) -> tuple[int, int] | None:
    shapes.with_rank_at_most(sig.shapes[index], 1)
    k = array_util.const_ints(sig, index)
    return None if k is None else diagonals.band(k)


@matrix_diag_v2_op.shape
def matrix_diag_v2_shape(sig: ShapeSig) -> Shape:
    """The static shape of the op and of that which TensorFlow 2 has in its place."""
    for i in (2, 3, 4):
        shapes.with_rank(sig.shapes[i], 0)
    source, band = shapes.with_rank_at_least(sig.shapes[0], 1), _band(sig, 1)
    if source is None or band is None:
        return None
    lower, upper = band
    batch = source[:-1] if lower == upper else source[:-2]
    if lower != upper:
        shapes.with_rank_at_least(source, 2)
        array_util.with_dim(source[-2], upper - lower + 1)
    rows, cols = array_util.const_ints(sig, 2), array_util.const_ints(sig, 3)
    if source[-1] is None or rows is None or cols is None:
        return (*batch, None, None)
    return (*batch, *diagonals.matrix_size(lower, upper, source[-1], rows[0], cols[0]))


@matrix_diag_part_v2_op.shape
def matrix_diag_part_v2_shape(sig: ShapeSig) -> Shape:
    """The static shape of the op and of that which TensorFlow 2 has in its place."""
    shapes.with_rank(sig.shapes[2], 0)
    source, band = shapes.with_rank_at_least(sig.shapes[0], 2), _band(sig, 1)
    if source is None or band is None:
        return None
    lower, upper = band
    rows, cols = source[-2:]
    length = None
    if rows is not None and cols is not None:
        length = diagonals.longest(lower, upper, rows, cols)
    count = () if lower == upper else (upper - lower + 1,)
    return (*source[:-2], *count, length)


@matrix_set_diag_v2_op.shape
def matrix_set_diag_v2_shape(sig: ShapeSig) -> Shape:
    """The static shape of the op and of that which TensorFlow 2 has in its place."""
    source = shapes.with_rank_at_least(sig.shapes[0], 2)
    diagonal = shapes.with_rank_at_least(sig.shapes[1], 1)
    band = _band(sig, 2)
    if source is None or band is None or diagonal is None:
        return source
    lower, upper = band
    expected = _part_shape(source, lower, upper)
    if not shapes.is_compatible(expected, diagonal):
        raise ValueError(
            f"diagonal must have shape {shapes.text(expected)} for the diagonals {lower} to "
            f"{upper} of input.shape={shapes.text(source)}, but has shape {shapes.text(diagonal)}"
        )
    batch = diagonal[: len(source) - 2]
    return shapes.merge(source, (*batch, None, None))


def _part_shape(source: tuple[int | None, ...], lower: int, upper: int) -> Shape:
    rows, cols = source[-2:]
    length = None
    if rows is not None and cols is not None:
        length = diagonals.longest(lower, upper, rows, cols)
    return (*source[:-2], *(() if lower == upper else (upper - lower + 1,)), length)


# ---------------------------------------------------------------- gradients
@diag_op.gradient
def _diag_grad(op: Operation, grad: Any) -> Tensor:
    return diag_part(grad)


@diag_part_op.gradient
def _diag_part_grad(op: Operation, grad: Any) -> Tensor:
    return diag(grad)


@matrix_diag_op.gradient
def _matrix_diag_grad(op: Operation, grad: Any) -> Tensor:
    return matrix_diag_part(grad)


@matrix_diag_v2_op.gradient
def _matrix_diag_v2_grad(op: Operation, grad: Any) -> list[Any]:
    return [matrix_diag_part(grad, k=op.inputs[1]), None, None, None, None]


@matrix_diag_part_op.gradient
def _matrix_diag_part_grad(op: Operation, grad: Any) -> Tensor:
    source = op.inputs[0].raw_shape
    if source is not None and source[-1] is not None and source[-2] == source[-1]:
        return matrix_diag(grad)
    return matrix_set_diag(zeros_like(op.inputs[0]), grad)


@matrix_diag_part_v2_op.gradient
def _matrix_diag_part_v2_grad(op: Operation, grad: Any) -> list[Any]:
    source, k = op.inputs[0], op.inputs[1]
    known = source.raw_shape
    if known is not None and known[-2] is not None and known[-1] is not None:
        out = matrix_diag(grad, k=k, num_rows=known[-2], num_cols=known[-1])
    else:
        out = matrix_set_diag(zeros_like(source), grad, k=k)
    return [out, None, None]


@matrix_set_diag_op.gradient
def _matrix_set_diag_grad(op: Operation, grad: Any) -> list[Any]:
    return [_without_diagonal(op, grad, 0), matrix_diag_part(grad)]


@matrix_set_diag_v2_op.gradient
def _matrix_set_diag_v2_grad(op: Operation, grad: Any) -> list[Any]:
    k = op.inputs[2]
    return [_without_diagonal(op, grad, k), matrix_diag_part(grad, k=k), None]


def _without_diagonal(op: Operation, grad: Any, k: Any) -> Tensor:
    diagonal = op.inputs[1]
    return matrix_set_diag(grad, zeros(shape(diagonal), dtype=grad.dtype), k=k)


# ---------------------------------------------------------------- public functions
@extensible
def diag(diagonal: Any, name: str | None = None) -> Tensor:
    """A tensor with the given diagonal and zeros elsewhere.

    Args:
        diagonal: a tensor of rank 1 or more, of shape [D1, ..., Dk].
        name: a name for the operation.

    Returns:
        A tensor of shape [D1, ..., Dk, D1, ..., Dk].
    """
    return diag_op(diagonal, name=name)  # type: ignore[no-any-return]


@extensible
def diag_part(input: Any, name: str | None = None) -> Tensor:
    """The diagonal of a tensor of shape [D1, ..., Dk, D1, ..., Dk].

    Args:
        input: a tensor of even rank.
        name: a name for the operation.

    Returns:
        A tensor of shape [D1, ..., Dk].

    Raises:
        ValueError: the rank is odd or zero, or the halves of the shape differ.
    """
    return diag_part_op(input, name=name)  # type: ignore[no-any-return]


@extensible
def matrix_diag(
    diagonal: Any,
    name: str = "diag",
    k: Any = 0,
    num_rows: Any = -1,
    num_cols: Any = -1,
    padding_value: Any = 0,
) -> Tensor:
    """Matrices with the given diagonals.

    Args:
        diagonal: a tensor; its last dimension runs along the diagonal, and for a band the one
            before over the diagonals, the highest first.
        name: a name for the operation.
        k: the diagonal (positive above the main one), or a pair (lowest, highest).
        num_rows: the number of rows; by default the fewest that are possible.
        num_cols: the number of columns; by default the fewest that are possible.
        padding_value: the value elsewhere.

    Returns:
        A tensor of matrices.

    Raises:
        ValueError: the diagonals do not fit the size.
    """
    if _is(k, 0) and _is(num_rows, -1) and _is(num_cols, -1) and _is(padding_value, 0):
        return matrix_diag_op(diagonal, name=name)  # type: ignore[no-any-return]
    return matrix_diag_v2_op(  # type: ignore[no-any-return]
        diagonal, k, num_rows, num_cols, _padding(diagonal, padding_value), name=name
    )


@extensible
def matrix_diag_part(
    input: Any, name: str = "diag_part", k: Any = 0, padding_value: Any = 0
) -> Tensor:
    """The diagonals of matrices.

    Args:
        input: a tensor of rank 2 or more.
        name: a name for the operation.
        k: the diagonal (positive above the main one), or a pair (lowest, highest).
        padding_value: fills the ends of the shorter diagonals of a band.

    Returns:
        A tensor; its last dimension runs along the diagonals.

    Raises:
        ValueError: a diagonal lies outside the matrices.
    """
    if _is(k, 0) and _is(padding_value, 0):
        return matrix_diag_part_op(input, name=name)  # type: ignore[no-any-return]
    return matrix_diag_part_v2_op(input, k, _padding(input, padding_value), name=name)  # type: ignore[no-any-return]


@extensible
def matrix_set_diag(input: Any, diagonal: Any, name: str = "set_diag", k: Any = 0) -> Tensor:
    """Copies of matrices with other diagonals.

    Args:
        input: a tensor of rank 2 or more.
        diagonal: the new diagonals, in the layout of `matrix_diag_part`.
        name: a name for the operation.
        k: the diagonal (positive above the main one), or a pair (lowest, highest).

    Returns:
        A tensor of the shape of `input`.

    Raises:
        ValueError: the diagonals do not fit the matrices.
    """
    if _is(k, 0):
        return matrix_set_diag_op(input, diagonal, name=name)  # type: ignore[no-any-return]
    return matrix_set_diag_v2_op(input, diagonal, k, name=name)  # type: ignore[no-any-return]


def _is(value: Any, wanted: int) -> bool:
    return isinstance(value, (int, float, np.number)) and value == wanted


def _padding(tensor: Any, value: Any) -> Any:
    """A bool tensor is padded with bools, though callers write numbers."""
    dtype = getattr(tensor, "dtype", None)
    return bool(value) if dtype is not None and dtype == "bool" else value
