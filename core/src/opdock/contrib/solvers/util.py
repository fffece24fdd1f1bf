"""Linear operators of matrices, and norms of vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from opdock.graph.nodes.operation import Tensor
from opdock.ops.array import shape
from opdock.ops.complex import conj
from opdock.ops.elementary import sqrt
from opdock.ops.linalg import matmul
from opdock.ops.loss import l2_loss
from opdock.ops.reduce import reduce_sum

__all__ = [
    "LinearOperator", "create_operator", "dot", "identity_operator", "l2norm", "l2norm_squared",
    "l2normalize", "shaped_as",
]  # fmt: skip


class LinearOperator(NamedTuple):
    """A matrix, as far as solvers ask for it.

    Attributes:
        shape: its numbers of rows and columns: a list, or an int32 vector.
        dtype: the type of what it takes and gives.
        apply: the product with a column [columns, 1].
        apply_adjoint: the product of its adjoint with a column [rows, 1].
    """

    shape: Any
    dtype: Any
    apply: Callable[[Any], Any]
    apply_adjoint: Callable[[Any], Any]


def create_operator(matrix: Tensor) -> LinearOperator:
    """The operator of a matrix."""
    return LinearOperator(
        _shape(matrix),
        matrix.dtype,
        lambda v: matmul(matrix, v),
        lambda v: matmul(matrix, v, adjoint_a=True),
    )


def identity_operator(matrix: Tensor) -> LinearOperator:
    """The operator that leaves vectors as they are, with the shape and type of a matrix."""
    return LinearOperator(_shape(matrix), matrix.dtype, lambda v: v, lambda v: v)


def _shape(matrix: Tensor) -> Any:
    static = matrix.get_shape()
    return static.as_list() if static.is_fully_defined() else shape(matrix)


def dot(x: Any, y: Any) -> Tensor:
    """The inner product of two vectors, conjugate in the first."""
    return reduce_sum(conj(x) * y)


def l2norm_squared(v: Any) -> Tensor:
    """The square of a vector's length."""
    squared: Tensor = 2 * l2_loss(v)
    return squared


def l2norm(v: Any) -> Tensor:
    """A vector's length."""
    length: Tensor = sqrt(l2norm_squared(v))
    return length


def l2normalize(v: Any) -> tuple[Tensor, Tensor]:
    """A vector of length 1 in the direction of another, and the length of that."""
    norm = l2norm(v)
    return v / norm, norm


def shaped_as(old: Any, new: Any) -> Any:
    """A step's result with the static shape that it had before: operators may not know it."""
    new.set_shape(old.get_shape())
    return new
