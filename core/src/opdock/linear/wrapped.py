"""The adjoint and the inverse of any operator, by asking it the other way round."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.scopes import name_scope
from opdock.linear.base import LinearOperator
from opdock.linear.helpers import use_operator_or_provided_hint_unless_contradicting
from opdock.ops.complex import conj
from opdock.ops.joining import concat
from opdock.ops.linalg import adjoint as adjoint_of
from opdock.shapes import TensorShape


class _Wrapper(LinearOperator):
    """An operator whose properties are those of another."""

    _kind = ""

    def __init__(
        self, operator: Any, is_non_singular: bool | None, is_self_adjoint: bool | None,
        is_positive_definite: bool | None, is_square: bool | None, name: str | None,
    ) -> None:  # fmt: skip
        self._operator = operator
        hints = {
            hint: use_operator_or_provided_hint_unless_contradicting(
                operator, hint, given,
                f"An operator is {text} if and only if its {self._kind} is {text}.",
            )
            for hint, given, text in (
                ("is_non_singular", is_non_singular, "non-singular"),
                ("is_self_adjoint", is_self_adjoint, "self-adjoint"),
                ("is_positive_definite", is_positive_definite, "positive-definite"),
                ("is_square", is_square, "square"),
            )
        }  # fmt: skip
        with name_scope(name, values=operator.graph_parents):
            super().__init__(operator.dtype, operator.graph_parents, name=name, **hints)

    @property
    def operator(self) -> Any:
        """The operator inside."""
        return self._operator

    def _assert_non_singular(self) -> Any:
        return self._operator.assert_non_singular()

    def _assert_positive_definite(self) -> Any:
        return self._operator.assert_positive_definite()

    def _assert_self_adjoint(self) -> Any:
        return self._operator.assert_self_adjoint()


class LinearOperatorAdjoint(_Wrapper):
    """The conjugate transpose of an operator.

    Args:
        operator: the operator.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: the hints, the
            operator's own by default.
        name: a name; that of the operator with "_adjoint" by default.

    Raises:
        ValueError: a hint contradicts the operator's.
    """

    _kind = "adjoint"

    def __init__(
        self, operator: Any, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            operator, is_non_singular, is_self_adjoint, is_positive_definite, is_square,
            name or f"{operator.name}_adjoint",
        )  # fmt: skip

    def _shape(self) -> TensorShape:
        known = self._operator.shape
        if known.dims is None:
            return TensorShape(None)
        return known[:-2].concatenate([known.dims[-1], known.dims[-2]])  # type: ignore[no-any-return]

    def _shape_tensor(self) -> Any:
        found = self._operator.shape_tensor()
        return concat([found[:-2], found[-1:], found[-2:-1]], 0)

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator.matmul(x, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _matvec(self, x: Any, adjoint: bool = False) -> Any:
        return self._operator.matvec(x, adjoint=not adjoint)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator.solve(rhs, adjoint=not adjoint, adjoint_arg=adjoint_arg)

    def _solvevec(self, rhs: Any, adjoint: bool = False) -> Any:
        return self._operator.solvevec(rhs, adjoint=not adjoint)

    def _determinant(self) -> Any:
        found = self._operator.determinant()
        return found if self.is_self_adjoint else conj(found)

    def _log_abs_determinant(self) -> Any:
        return self._operator.log_abs_determinant()

    def _trace(self) -> Any:
        found = self._operator.trace()
        return found if self.is_self_adjoint else conj(found)

    def _to_dense(self) -> Any:
        found = self._operator.to_dense()
        return found if self.is_self_adjoint else adjoint_of(found)


class LinearOperatorInversion(_Wrapper):
    """The inverse of an operator.

    Args:
        operator: the operator.
        is_non_singular, is_self_adjoint, is_positive_definite, is_square: the hints, the
            operator's own by default.
        name: a name; that of the operator with "_inv" by default.

    Raises:
        ValueError: a hint contradicts the operator's, or there is no inverse.
    """

    _kind = "inverse"

    def __init__(
        self, operator: Any, is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None, is_positive_definite: bool | None = None,
        is_square: bool | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        for hint, given in (("is_non_singular", is_non_singular), ("is_square", is_square)):
            own = getattr(operator, hint)
            if own is False or given is False:
                raise ValueError(
                    f"operator and supplied hints must have `{hint}` equal to `True` or `None`.  "
                    f"Found {own}, {given}"
                )
        super().__init__(
            operator, is_non_singular, is_self_adjoint, is_positive_definite, is_square,
            name or f"{operator.name}_inv",
        )  # fmt: skip

    def _shape(self) -> TensorShape:
        return self._operator.shape  # type: ignore[no-any-return]

    def _shape_tensor(self) -> Any:
        return self._operator.shape_tensor()

    def _matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator.solve(x, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Any:
        return self._operator.matmul(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)

    def _determinant(self) -> Any:
        return 1.0 / self._operator.determinant()

    def _log_abs_determinant(self) -> Any:
        return -1.0 * self._operator.log_abs_determinant()
