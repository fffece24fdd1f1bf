"""What one does with LU factors: solve, invert, multiply them back (`tf.linalg.lu_*`)."""

from __future__ import annotations

from typing import Any

from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import shape
from opdock.ops.composed.eye import eye
from opdock.ops.diag import matrix_diag_part, matrix_set_diag
from opdock.ops.fill import ones_like
from opdock.ops.linalg import matmul
from opdock.ops.matrix import matrix_band_part
from opdock.ops.select import one_hot
from opdock.ops.solve import matrix_triangular_solve

__all__: list[str] = []


_WORDS = {
    "lower_upper": "the packed factors, as `tf.linalg.lu` gives them, of shape [..., M, M].",
    "perm": "the row order, of shape [..., M].",
    "validate_args": "accepted for TF's signature; shapes are checked in any case.",
    "name": "a name for the operation.",
    "returns": "A tensor of shape [..., M, M].",
}
"""What the functions here take."""


@extensible
@explained(_WORDS)
def lu_reconstruct(
    lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The matrices whose LU factors these are."""
    with name_scope(name or "lu_reconstruct"):
        packed = convert_to_tensor(lower_upper, name="lower_upper")
        perm = convert_to_tensor(perm, name="perm")
        product = matmul(_unit_lower(packed), matrix_band_part(packed, 0, -1))
        return matmul(_exchange(perm, packed), product, transpose_a=True)


@extensible
@explained(_WORDS, rhs="a tensor of shape [..., M, K].", returns="A tensor of shape [..., M, K].")
def lu_solve(
    lower_upper: Any, perm: Any, rhs: Any, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Solves A x = rhs given the LU factors of A."""
    with name_scope(name or "lu_solve"):
        packed = convert_to_tensor(lower_upper, name="lower_upper")
        perm, rhs = convert_to_tensor(perm, name="perm"), convert_to_tensor(rhs, name="rhs")
        permuted = matmul(_exchange(perm, packed), rhs)
        half = matrix_triangular_solve(_unit_lower(packed), permuted)
        return matrix_triangular_solve(packed, half, lower=False)


@extensible
@explained(_WORDS)
def lu_matrix_inverse(
    lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The inverses of the matrices whose LU factors these are."""
    with name_scope(name or "lu_matrix_inverse"):
        packed = convert_to_tensor(lower_upper, name="lower_upper")
        dims = shape(packed)
        identity = eye(dims[-1], batch_shape=dims[:-2], dtype=packed.dtype)
        return lu_solve(packed, perm, identity)


def _unit_lower(packed: Tensor) -> Tensor:
    """L: the lower triangle with ones on the diagonal."""
    return matrix_set_diag(matrix_band_part(packed, -1, 0), ones_like(matrix_diag_part(packed)))


def _exchange(perm: Tensor, like: Tensor) -> Tensor:
    """The permutation as matrices: times a matrix it puts row perm[i] at i."""
    return one_hot(perm, shape(like)[-1], dtype=like.dtype)
