"""Operators that are given by their entries: full, triangular, diagonal, and a reflection."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, errors
from opdock.graph.nodes.scopes import name_scope
from opdock.linear.base import LinearOperator
from opdock.linear.helpers import (
    assert_no_entries_with_modulus_zero,
    assert_zero_imag_part,
    at_least,
    matrix_triangular_solve_with_broadcast,
    parameter,
)
from opdock.ops.array import expand_dims, shape
from opdock.ops.cast import cast
from opdock.ops.check import assert_positive
from opdock.ops.complex import conj, real
from opdock.ops.composed.matrix_norm import norm
from opdock.ops.control import no_op
from opdock.ops.diag import matrix_diag, matrix_diag_part, matrix_set_diag
from opdock.ops.elementary import abs as absolute
from opdock.ops.elementary import log
from opdock.ops.fill import ones, zeros
from opdock.ops.joining import concat
from opdock.ops.linalg import adjoint as adjoint_of
from opdock.ops.linalg import matmul
from opdock.ops.matrix import matrix_band_part
from opdock.ops.reduce import reduce_prod, reduce_sum
from opdock.shapes import TensorShape

_MATRIX_TYPES = (
    dtypes.float16, dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128,
)  # fmt: skip


class LinearOperatorFullMatrix(LinearOperator):
    """A matrix with all its entries.

    Args:
        matrix: a floating-point or complex tensor [..., M, N].
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: the hints.
        name: a name for the operator.

    Raises:
        TypeError: the matrix has another type.
        ValueError: it has less than two dimensions.
    """

    def __init__(
        self, matrix: Any, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = None, name: str = "LinearOperatorFullMatrix",
    ) -> None:  # fmt: skip
        with name_scope(name, values=[matrix]):
            self._matrix = parameter(matrix, "matrix")
            if self._matrix.dtype.base_dtype not in _MATRIX_TYPES:
                raise TypeError(
                    f"Argument matrix must have dtype in {list(_MATRIX_TYPES)}.  Found: "
                    f"{self._matrix.dtype}"
                )
            at_least(self._matrix, "matrix", 2)
            super().__init__(
                self._matrix.dtype, [self._matrix], is_non_singular, is_self_adjoint,
                is_positive_definite, is_square, name,
            )  # fmt: skip

    def _shape(self) -> TensorShape:
        return self._matrix.shape  # type: ignore[no-any-return]

    def _shape_tensor(self) -> Any:
        return shape(self._matrix)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return matmul(self._matrix, x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _to_dense(self) -> Any:
        return self._matrix


class LinearOperatorLowerTriangular(LinearOperator):
    """A lower triangular matrix.

    Args:
        tril: a tensor [..., N, N]; what is above its diagonal is not looked at.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: the hints.
        name: a name for the operator.

    Raises:
        ValueError: `is_square` is False, or there are less than two dimensions.
    """

    def __init__(
        self, tril: Any, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = None, name: str = "LinearOperatorLowerTriangular",
    ) -> None:  # fmt: skip
        if is_square is False:
            raise ValueError("Only square lower triangular operators supported at this time.")
        with name_scope(name, values=[tril]):
            self._tril = parameter(tril, "tril")
            at_least(self._tril, "tril", 2)
            super().__init__(
                self._tril.dtype, [self._tril], is_non_singular, is_self_adjoint,
                is_positive_definite, True, name,
            )  # fmt: skip

    def _lower(self) -> Any:
        return matrix_band_part(self._tril, -1, 0)

    def _diagonal(self) -> Any:
        return matrix_diag_part(self._tril)

    def _shape(self) -> TensorShape:
        return self._tril.shape  # type: ignore[no-any-return]

    def _shape_tensor(self) -> Any:
        return shape(self._tril)

    def _assert_non_singular(self) -> Any:
        return assert_no_entries_with_modulus_zero(
            self._diagonal(), "Singular operator:  Diagonal contained zero values."
        )

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return matmul(self._lower(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        rhs = adjoint_of(rhs) if adjoint_arg else rhs
        return matrix_triangular_solve_with_broadcast(self._lower(), rhs, adjoint=adjoint)

    def _determinant(self) -> Any:
        return reduce_prod(self._diagonal(), axis=[-1])

    def _log_abs_determinant(self) -> Any:
        return reduce_sum(log(absolute(self._diagonal())), axis=[-1])

    def _diag_part(self) -> Any:
        return self._diagonal()

    def _to_dense(self) -> Any:
        return self._lower()


class LinearOperatorDiag(LinearOperator):
    """A diagonal matrix.

    Args:
        diag: the diagonal, a tensor [..., N].
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: the hints.
        name: a name for the operator.

    Raises:
        ValueError: a hint contradicts what it is, or `diag` is a scalar.
    """

    def __init__(
        self, diag: Any, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = None, name: str = "LinearOperatorDiag",
    ) -> None:  # fmt: skip
        with name_scope(name, values=[diag]):
            self._diag = parameter(diag, "diag")
            at_least(self._diag, "diag", 1)
            if not self._diag.dtype.is_complex:
                if is_self_adjoint is False:
                    raise ValueError("A real diagonal operator is always self adjoint.")
                is_self_adjoint = True
            if is_square is False:
                raise ValueError("Only square diagonal operators currently supported.")
            super().__init__(
                self._diag.dtype, [self._diag], is_non_singular, is_self_adjoint,
                is_positive_definite, True, name,
            )  # fmt: skip

    @property
    def diag(self) -> Any:
        """The diagonal."""
        return self._diag

    def _shape(self) -> TensorShape:
        known = self._diag.shape
        return known.concatenate(known[-1:])  # type: ignore[no-any-return]

    def _shape_tensor(self) -> Any:
        found = shape(self._diag)
        return concat([found, found[-1:]], 0)

    def _assert_non_singular(self) -> Any:
        return assert_no_entries_with_modulus_zero(
            self._diag, "Singular operator:  Diagonal contained zero values."
        )

    def _assert_positive_definite(self) -> Any:
        message = (
            "Diagonal operator had diagonal entries with non-positive real part, thus was not "
            "positive definite."
            if self.dtype.is_complex
            else "Real diagonal operator had non-positive diagonal entries, thus was not positive "
            "definite."
        )
        return assert_positive(real(self._diag), message=message)

    def _assert_self_adjoint(self) -> Any:
        return assert_zero_imag_part(
            self._diag,
            "This diagonal operator contained non-zero imaginary values.   Thus it was not "
            "self-adjoint.",
        )

    def _turned(self, adjoint: bool) -> Any:
        return conj(self._diag) if adjoint else self._diag

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return expand_dims(self._turned(adjoint), -1) * (adjoint_of(x) if adjoint_arg else x)

    def _matvec(self, x: Any, adjoint: bool = False) -> Any:
        return self._turned(adjoint) * x

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        inverse = 1.0 / self._turned(adjoint)
        return (adjoint_of(rhs) if adjoint_arg else rhs) * expand_dims(inverse, -1)

    def _determinant(self) -> Any:
        return reduce_prod(self._diag, axis=[-1])

    def _log_abs_determinant(self) -> Any:
        return cast(reduce_sum(log(absolute(self._diag)), axis=[-1]), self.dtype)

    def _to_dense(self) -> Any:
        return matrix_diag(self._diag)

    def _diag_part(self) -> Any:
        return self._diag

    def _add_to_tensor(self, x: Any) -> Any:
        return matrix_set_diag(x, self._diag + matrix_diag_part(x))


class LinearOperatorHouseholder(LinearOperator):
    """The reflection at the plane through 0 that an axis stands upright on: I - 2 v v^H.

    Args:
        reflection_axis: the axis, a tensor [..., N] of any length but 0.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: the hints.
        name: a name for the operator.

    Raises:
        ValueError: a hint contradicts what it is, or the axis is a scalar.
    """

    def __init__(
        self, reflection_axis: Any, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = None, name: str = "LinearOperatorHouseholder",
    ) -> None:  # fmt: skip
        with name_scope(name, values=[reflection_axis]):
            self._axis = parameter(reflection_axis, "reflection_axis")
            at_least(self._axis, "reflection_axis", 1)
            if is_self_adjoint is False:
                raise ValueError("A Householder operator is always self adjoint.")
            if is_positive_definite is True:
                raise ValueError("A Householder operator is always non-positive definite.")
            if is_square is False:
                raise ValueError("A Householder operator is always square.")
            super().__init__(
                self._axis.dtype, [self._axis], is_non_singular, True, False, True, name
            )

    @property
    def reflection_axis(self) -> Any:
        """The axis."""
        return self._axis

    def _shape(self) -> TensorShape:
        known = self._axis.shape
        return known.concatenate(known[-1:])  # type: ignore[no-any-return]

    def _shape_tensor(self) -> Any:
        found = shape(self._axis)
        return concat([found, found[-1:]], 0)

    def _assert_non_singular(self) -> Any:
        return no_op("assert_non_singular")

    def _assert_positive_definite(self) -> Any:
        raise errors.InvalidArgumentError(
            None, None, "Householder operators are always non-positive definite."
        )

    def _assert_self_adjoint(self) -> Any:
        return no_op("assert_self_adjoint")

    def _unit(self) -> Any:
        return self._axis / norm(self._axis, axis=-1, keepdims=True)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        x = adjoint_of(x) if adjoint_arg else x
        column = expand_dims(self._unit(), -1)
        return x - 2 * column * matmul(column, x, adjoint_a=True)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._matmul(rhs, adjoint, adjoint_arg)

    def _trace(self) -> Any:
        value = cast(self.domain_dimension_tensor() - 2, self.dtype)
        return value * ones(self.batch_shape_tensor(), dtype=self.dtype)

    def _determinant(self) -> Any:
        return -ones(self.batch_shape_tensor(), dtype=self.dtype)

    def _log_abs_determinant(self) -> Any:
        return zeros(self.batch_shape_tensor(), dtype=self.dtype)

    def _to_dense(self) -> Any:
        column = expand_dims(self._unit(), -1)
        matrix = -2 * matmul(column, column, adjoint_b=True)
        return matrix_set_diag(matrix, 1.0 + matrix_diag_part(matrix))

    def _diag_part(self) -> Any:
        unit = self._unit()
        return 1.0 - 2 * unit * conj(unit)
