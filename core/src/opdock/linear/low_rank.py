"""An operator plus an update of low rank."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.scopes import name_scope
from opdock.linear.base import LinearOperator
from opdock.linear.dense import LinearOperatorDiag
from opdock.linear.helpers import (
    cholesky_solve_with_broadcast,
    dimension,
    matrix_solve_with_broadcast,
    parameter,
)
from opdock.linear.identity import LinearOperatorIdentity
from opdock.ops.array import broadcast_dynamic_shape, broadcast_static_shape, shape
from opdock.ops.cast import cast
from opdock.ops.decompositions import cholesky
from opdock.ops.diag import matrix_diag_part
from opdock.ops.elementary import abs as absolute
from opdock.ops.elementary import exp, log
from opdock.ops.joining import concat
from opdock.ops.linalg import matmul
from opdock.ops.reduce import reduce_sum
from opdock.ops.solve import matrix_determinant
from opdock.shapes import TensorShape


class LinearOperatorLowRankUpdate(LinearOperator):
    """`L + U D V^H`, solved by the identity of Woodbury and the lemma of the determinant.

    Args:
        base_operator: L, of shape [..., M, N].
        u: [..., M, K].
        diag_update: the diagonal of D, [..., K]; ones by default.
        v: [..., N, K]; `u` by default.
        is_diag_update_positive: whether the diagonal is real and positive.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: the hints.
        name: a name for the operator.

    Raises:
        ValueError: a hint contradicts what it is, or shapes do not fit.
    """

    def __init__(
        self, base_operator: Any, u: Any, diag_update: Any = None, v: Any = None,
        is_diag_update_positive: bool | None = None, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = None, name: str = "LinearOperatorLowRankUpdate",
    ) -> None:  # fmt: skip
        if diag_update is None:
            if is_diag_update_positive is False:
                raise ValueError(
                    "Default diagonal is the identity, which is positive.  However, user set "
                    "'is_diag_update_positive' to False."
                )
            is_diag_update_positive = True
        symmetric = base_operator.is_self_adjoint and v is None
        self._use_cholesky = bool(
            base_operator.is_positive_definite and symmetric and is_diag_update_positive
        )
        if symmetric and not base_operator.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError(
                    "A = L + UDU^H, with L self-adjoint and D real diagonal.  Since UDU^H is "
                    "self-adjoint, this must be a self-adjoint operator."
                )
            is_self_adjoint = True
        if self._use_cholesky:
            if False in (is_positive_definite, is_self_adjoint, is_non_singular):
                raise ValueError("Arguments imply this is self-adjoint positive-definite operator.")
            is_positive_definite = is_self_adjoint = True
        given = [t for t in (u, diag_update, v) if t is not None]
        with name_scope(name, values=[*base_operator.graph_parents, *given]):
            self._u = parameter(u, "u")
            self._v = self._u if v is None else parameter(v, "v")
            self._diag_update = (
                None if diag_update is None else parameter(diag_update, "diag_update")
            )
            self._base_operator = base_operator
            parents = [self._u, self._diag_update, self._v]
            super().__init__(
                base_operator.dtype,
                [*base_operator.graph_parents, *(p for p in parents if p is not None)],
                is_non_singular, is_self_adjoint, is_positive_definite, is_square, name,
            )  # fmt: skip
            self._is_diag_update_positive = is_diag_update_positive
            self._diag_operator = self._middle()
            self._check()

    def _middle(self) -> Any:
        if self._diag_update is not None:
            return LinearOperatorDiag(
                self._diag_update, is_positive_definite=self._is_diag_update_positive
            )
        count = dimension(self._u.shape, -1).value
        return LinearOperatorIdentity(
            shape(self._u)[-1] if count is None else count, dtype=self.dtype
        )

    def _check(self) -> None:
        both = broadcast_static_shape(self._u.shape, self._v.shape)
        batch = broadcast_static_shape(self._base_operator.batch_shape, both[:-2])
        self._base_operator.domain_dimension.assert_is_compatible_with(dimension(both, -2))
        if self._diag_update is not None:
            own = self._diag_update.shape
            dimension(both, -1).assert_is_compatible_with(dimension(own, -1))
            broadcast_static_shape(batch, own[:-1])

    @property
    def u(self) -> Any:
        """The left factor of the update."""
        return self._u

    @property
    def v(self) -> Any:
        """The right factor of the update."""
        return self._v

    @property
    def diag_update(self) -> Any:
        """The diagonal between them, or None."""
        return self._diag_update

    @property
    def is_diag_update_positive(self) -> bool | None:
        """Whether the diagonal is positive, if known."""
        return self._is_diag_update_positive

    @property
    def diag_operator(self) -> Any:
        """The diagonal as an operator."""
        return self._diag_operator

    @property
    def base_operator(self) -> Any:
        """What is updated."""
        return self._base_operator

    def _shape(self) -> TensorShape:
        batch = broadcast_static_shape(self._base_operator.batch_shape, self._u.shape[:-2])
        return batch.concatenate(self._base_operator.shape[-2:])

    def _shape_tensor(self) -> Any:
        batch = broadcast_dynamic_shape(
            self._base_operator.batch_shape_tensor(), shape(self._u)[:-2]
        )
        return concat([batch, self._base_operator.shape_tensor()[-2:]], 0)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        left, right = (self._v, self._u) if adjoint else (self._u, self._v)
        leading = self._base_operator.matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)
        inner = matmul(right, x, adjoint_a=True, adjoint_b=adjoint_arg)
        return leading + matmul(left, self._diag_operator.matmul(inner, adjoint=adjoint))

    def _capacitance(self) -> Any:
        """`D^-1 + V^H L^-1 U`."""
        inner = matmul(self._v, self._base_operator.solve(self._u), adjoint_a=True)
        return self._diag_operator.inverse().add_to_tensor(inner)

    def _determinant(self) -> Any:
        if self.is_positive_definite:
            return exp(self.log_abs_determinant())
        parts = matrix_determinant(self._capacitance()) * self._diag_operator.determinant()
        return parts * self._base_operator.determinant()

    def _log_abs_determinant(self) -> Any:
        if self._use_cholesky:
            diagonal = matrix_diag_part(cholesky(self._capacitance()))
            inner = 2 * reduce_sum(log(diagonal), axis=[-1])
        else:
            inner = cast(log(absolute(matrix_determinant(self._capacitance()))), self.dtype)
        outer = self._diag_operator.log_abs_determinant()
        return inner + outer + self._base_operator.log_abs_determinant()

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        base = self._base_operator
        if base.is_non_singular is False:
            raise ValueError(
                "Solve not implemented unless this is a perturbation of a non-singular "
                "LinearOperator."
            )
        left, right = (self._v, self._u) if adjoint else (self._u, self._v)
        first = base.solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)
        inner = matmul(right, first, adjoint_a=True)
        if self._use_cholesky:
            inner = cholesky_solve_with_broadcast(cholesky(self._capacitance()), inner)
        else:
            inner = matrix_solve_with_broadcast(self._capacitance(), inner, adjoint=adjoint)
        return first - base.solve(matmul(left, inner), adjoint=adjoint)
