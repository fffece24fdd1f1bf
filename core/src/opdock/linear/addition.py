"""Sums of linear operators: as few operators as the kinds of those that are added allow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from opdock.graph.nodes.scopes import name_scope
from opdock.linear.base import LinearOperator
from opdock.linear.dense import (
    LinearOperatorDiag,
    LinearOperatorFullMatrix,
    LinearOperatorLowerTriangular,
)
from opdock.linear.identity import LinearOperatorIdentity, LinearOperatorScaledIdentity
from opdock.ops.array import broadcast_static_shape
from opdock.ops.fill import ones

__all__: list[str] = []

_IDENTITIES: Final = (LinearOperatorIdentity, LinearOperatorScaledIdentity)
_DIAGONALS: Final = (LinearOperatorDiag, *_IDENTITIES)


class Hints(NamedTuple):
    """What is known of a sum; what is None follows from what is added, where it does."""

    is_non_singular: bool | None = None
    is_positive_definite: bool | None = None
    is_self_adjoint: bool | None = None


class Adder:
    """Adds two operators of the `kinds` that it is for."""

    kinds: ClassVar[tuple[type, ...]] = (LinearOperator,)

    @property
    def name(self) -> str:
        """The name of the adder's class."""
        return type(self).__name__

    def can_add(self, op1: Any, op2: Any) -> bool:
        """Whether it adds these two."""
        return isinstance(op1, self.kinds) and isinstance(op2, self.kinds)

    def add(self, op1: Any, op2: Any, operator_name: str | None, hints: Hints | None = None) -> Any:
        """The operator that is the sum of two, with these hints.

        Args:
            op1: an operator.
            op2: another of the same type whose shape can be broadcast with that of the first.
            operator_name: its name; by default one that says what was added.
            hints: what is known of it.
        """
        if operator_name is None:
            operator_name = f"Add/{op1.name}__{op2.name}/"
        with name_scope(self.name.removeprefix("_"), values=op1.graph_parents + op2.graph_parents):
            return self._add(op1, op2, operator_name, _inferred(op1, op2, hints or Hints()))

    def _add(self, op1: Any, op2: Any, operator_name: str, hints: Hints) -> Any:
        raise NotImplementedError


class AddAndReturnScaledIdentity(Adder):
    """Adds multiples of the identity."""

    kinds = _IDENTITIES

    def _add(self, op1: Any, op2: Any, operator_name: str, hints: Hints) -> Any:
        return LinearOperatorScaledIdentity(
            op1.range_dimension_tensor(), _multiplier(op1) + _multiplier(op2),
            name=operator_name, **hints._asdict(),
        )  # fmt: skip


class AddAndReturnDiag(Adder):
    """Adds diagonal operators."""

    kinds = _DIAGONALS

    def _add(self, op1: Any, op2: Any, operator_name: str, hints: Hints) -> Any:
        diagonal = op1.diag_part() + op2.diag_part()
        return LinearOperatorDiag(diagonal, name=operator_name, **hints._asdict())


class AddAndReturnTriL(Adder):
    """Adds lower triangular operators."""

    kinds = (*_DIAGONALS, LinearOperatorLowerTriangular)

    def _add(self, op1: Any, op2: Any, operator_name: str, hints: Hints) -> Any:
        dense = _dense_sum(op1, op2)
        return LinearOperatorLowerTriangular(dense, name=operator_name, **hints._asdict())


class AddAndReturnMatrix(Adder):
    """Adds operators of all kinds, as dense matrices."""

    def _add(self, op1: Any, op2: Any, operator_name: str, hints: Hints) -> Any:
        dense = _dense_sum(op1, op2)
        return LinearOperatorFullMatrix(dense, name=operator_name, **hints._asdict())


_TIERS: Final[tuple[tuple[Adder, ...], ...]] = (
    (AddAndReturnScaledIdentity(),),
    (AddAndReturnDiag(),),
    (AddAndReturnTriL(),),
    (AddAndReturnMatrix(),),
)


def add_operators(
    operators: Iterable[Any],
    operator_name: str | None = None,
    addition_tiers: Sequence[Sequence[Adder]] | None = None,
    name: str | None = None,
) -> list[Any]:
    """Adds operators, the sums that cost least first.

    Args:
        operators: linear operators of one dtype, domain and range, whose batches can be broadcast.
        operator_name: a name for sums; by default one that says what was added.
        addition_tiers: lists of adders; all that those of one list can add is added before the next
            one's turn. By default multiples of the identity, diagonals, triangles and matrices.
        name: a prefix for the names of the operations.

    Returns:
        Operators whose sum is that of the given ones; one where the tiers can add all of them.

    Raises:
        TypeError: something is no linear operator.
        ValueError: there is none, or their shapes cannot be added.
    """
    left = list(reversed(list(operators)))
    if not left:
        raise ValueError(f"Argument 'operators' must contain at least one operator.  Found: {left}")
    if not all(isinstance(operator, LinearOperator) for operator in left):
        raise TypeError(
            f"Argument 'operators' must contain only LinearOperator instances.  Found: {left}"
        )
    _check_shapes(left)
    parents = [parent for operator in left for parent in operator.graph_parents]
    with name_scope(name or "add_operators", values=parents):
        for tier in _TIERS if addition_tiers is None else addition_tiers:
            left = _added(left, tier, operator_name)
    return left


def _added(operators: list[Any], tier: Sequence[Adder], operator_name: str | None) -> list[Any]:
    """What is left when one tier's adders have added all they can, from the back on."""
    left = []
    while operators:
        operator = operators.pop()
        pairs = (
            (at, adder)
            for at in reversed(range(len(operators)))
            for adder in tier
            if adder.can_add(operator, operators[at])
        )
        found = next(pairs, None)
        if found is None:
            left.append(operator)
        else:
            at, adder = found
            operators.append(adder.add(operator, operators.pop(at), operator_name))
    return left


def _check_shapes(operators: Sequence[Any]) -> None:
    for side in ("domain", "range"):
        sizes = [(op.name, getattr(op, f"{side}_dimension").value) for op in operators]
        known = [(name, size) for name, size in sizes if size is not None]
        if len({size for _, size in known}) > 1:
            raise ValueError(f"Operators must have the same {side} dimension. Found: {known}")
    batch = operators[0].batch_shape
    for operator in operators[1:]:
        batch = broadcast_static_shape(batch, operator.batch_shape)


def _inferred(op1: Any, op2: Any, hints: Hints) -> Hints:
    """The hints, those that are None as they follow from those of the two."""
    positive, adjoint = hints.is_positive_definite, hints.is_self_adjoint
    regular = hints.is_non_singular
    if adjoint is None:
        adjoint = op1.is_self_adjoint and op2.is_self_adjoint
    if positive is None:
        positive = op1.is_positive_definite and op2.is_positive_definite
        regular = True if positive else regular
    return Hints(regular, positive, adjoint)


def _multiplier(operator: Any) -> Any:
    if isinstance(operator, LinearOperatorScaledIdentity):
        return operator.multiplier
    return ones(operator.batch_shape_tensor(), operator.dtype)


def _dense_sum(op1: Any, op2: Any) -> Any:
    """The matrix of the sum: a diagonal is added to the other's matrix."""
    if not isinstance(op1, _DIAGONALS):
        op1, op2 = op2, op1
    return op1.add_to_tensor(op2.to_dense())
