"""The rules of `algebra`: what kind of operator products, inverses and their like are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from opdock.linear.algebra import rule
from opdock.linear.base import LinearOperator
from opdock.linear.circulant import LinearOperatorCirculant
from opdock.linear.dense import (
    LinearOperatorDiag,
    LinearOperatorHouseholder,
    LinearOperatorLowerTriangular,
)
from opdock.linear.identity import (
    LinearOperatorIdentity,
    LinearOperatorScaledIdentity,
    LinearOperatorZeros,
)
from opdock.linear.joined import (
    LinearOperatorBlockDiag,
    LinearOperatorComposition,
    LinearOperatorKronecker,
)
from opdock.linear.wrapped import LinearOperatorAdjoint, LinearOperatorInversion
from opdock.ops.array import expand_dims
from opdock.ops.complex import conj
from opdock.ops.decompositions import cholesky
from opdock.ops.elementary import sqrt

Hints = dict[str, Any]


def _hints(operator: Any, **other: Any) -> Hints:
    return {
        "is_non_singular": operator.is_non_singular,
        "is_self_adjoint": operator.is_self_adjoint,
        "is_positive_definite": operator.is_positive_definite,
        "is_square": True,
        **other,
    }


_FACTOR: Hints = {
    "is_non_singular": True, "is_self_adjoint": True, "is_positive_definite": True,
    "is_square": True,
}  # fmt: skip
_LOWER: Hints = {"is_non_singular": True, "is_self_adjoint": False, "is_square": True}


# ---------------------------------------------------------------- of one operator
rule("Adjoint", LinearOperator)(
    lambda a: LinearOperatorAdjoint(a, **_hints(a, is_square=a.is_square))
)
rule("Adjoint", LinearOperatorAdjoint)(lambda a: a.operator)
rule("Inverse", LinearOperator)(
    lambda a: LinearOperatorInversion(a, **_hints(a, is_square=a.is_square))
)
rule("Inverse", LinearOperatorInversion)(lambda a: a.operator)
for _kind in ("Adjoint", "Inverse"):
    rule(_kind, LinearOperatorIdentity)(lambda a: a)
    rule(_kind, LinearOperatorHouseholder)(lambda a: a)


def _with_values(values: Callable[[Any], Any], hints: Callable[[Any], Hints], kind: str) -> None:
    """Rules for operators that are given by values, on which the operation works one by one."""
    rule(kind, LinearOperatorDiag)(lambda a: LinearOperatorDiag(values(a.diag), **hints(a)))
    rule(kind, LinearOperatorScaledIdentity)(
        lambda a: LinearOperatorScaledIdentity(a._num_rows, values(a.multiplier), **hints(a))
    )
    if kind != "Cholesky":
        rule(kind, LinearOperatorCirculant)(
            lambda a: LinearOperatorCirculant(values(a.spectrum), a.dtype, **hints(a))
        )


_with_values(conj, _hints, "Adjoint")
_with_values(lambda v: 1.0 / v, _hints, "Inverse")
_with_values(sqrt, lambda a: _FACTOR, "Cholesky")


def _by_part(kind: str, method: str, hints: Callable[[Any], Hints]) -> None:
    """Rules for operators made of parts, on each of which the operation works."""

    def apply(cls: type, operator: Any) -> Any:
        parts = [getattr(part, method)() for part in operator.operators]
        return cls(parts, **hints(operator))

    for cls in (LinearOperatorBlockDiag, LinearOperatorKronecker):
        rule(kind, cls)(functools.partial(apply, cls))


_by_part("Adjoint", "adjoint", _hints)
_by_part("Inverse", "inverse", _hints)
_by_part("Cholesky", "cholesky", lambda a: _LOWER)


@rule("Cholesky", LinearOperator)
def _cholesky(operator: Any) -> Any:
    return LinearOperatorLowerTriangular(cholesky(operator.to_dense()), **_LOWER)


@rule("Cholesky", LinearOperatorIdentity)
def _cholesky_identity(operator: Any) -> Any:
    return LinearOperatorIdentity(operator._num_rows, operator._batch_arg, operator.dtype)


# ---------------------------------------------------------------- of two operators
def _non_singular(a: Any, b: Any) -> bool | None:
    if a.is_non_singular is False or b.is_non_singular is False:
        return False
    both: bool | None = a.is_non_singular and b.is_non_singular
    return both


def _commuting(a: Any, b: Any, definite: bool = True) -> Hints:
    """The hints of the product of two operators that commute."""
    selfs = a.is_self_adjoint, b.is_self_adjoint
    adjoint = True if all(selfs) else False if True in selfs and False in selfs else None
    positive = all(x.is_positive_definite is True and x.is_self_adjoint is True for x in (a, b))
    return {
        "is_non_singular": _non_singular(a, b),
        "is_self_adjoint": adjoint,
        "is_positive_definite": True if positive and definite else None,
        "is_square": True,
    }


def _product(a: Any, b: Any) -> Hints:
    """The hints of the product of two operators."""
    squares = a.is_square, b.is_square
    if all(squares):
        return {"is_square": True, "is_non_singular": _non_singular(a, b)}
    if squares == (False, False):
        ends = a.range_dimension.value, b.domain_dimension.value
        if None in ends:
            return {}
        if ends[0] == ends[1]:
            return {"is_square": True, "is_non_singular": _non_singular(a, b)}
    elif None in squares:
        return {}
    return dict.fromkeys(
        ("is_square", "is_non_singular", "is_self_adjoint", "is_positive_definite"), False
    )


@rule("Matmul", LinearOperator, LinearOperator)
def _matmul(a: Any, b: Any) -> Any:
    return LinearOperatorComposition([a, b], **_product(a, b))


@rule("Solve", LinearOperator, LinearOperator)
def _solve(a: Any, b: Any) -> Any:
    return LinearOperatorComposition([LinearOperatorInversion(a), b], **_product(a, b))


rule("Matmul", LinearOperatorIdentity, LinearOperator)(lambda a, b: b)
rule("Matmul", LinearOperator, LinearOperatorIdentity)(lambda a, b: a)
rule("Matmul", LinearOperatorIdentity, LinearOperatorIdentity)(lambda a, b: b)
rule("Solve", LinearOperatorIdentity, LinearOperator)(lambda a, b: b)
rule("Solve", LinearOperatorInversion, LinearOperator)(lambda a, b: a.operator.matmul(b))


def _zeros(a: Any, b: Any) -> Any:
    found = a if isinstance(a, LinearOperatorZeros) else b
    if not a.is_square or not b.is_square:
        raise ValueError(
            "Matmul with non-square `LinearOperator`s or non-square `LinearOperatorZeros` not "
            "supported at this time."
        )
    return found


for _pair in (
    (LinearOperatorZeros, LinearOperator), (LinearOperator, LinearOperatorZeros),
    (LinearOperatorZeros, LinearOperatorIdentity), (LinearOperatorIdentity, LinearOperatorZeros),
    (LinearOperatorZeros, LinearOperatorZeros),
):  # fmt: skip
    rule("Matmul", *_pair)(_zeros)


def _values(operator: Any) -> Any:
    """The diagonal, or what it is a multiple of."""
    if isinstance(operator, LinearOperatorDiag):
        return operator.diag
    return expand_dims(operator.multiplier, -1)


def _diagonals(kind: str, combine: Callable[[Any, Any], Any]) -> None:
    def diagonal(a: Any, b: Any) -> Any:
        return LinearOperatorDiag(combine(_values(a), _values(b)), **_commuting(a, b))

    rule(kind, LinearOperatorDiag, LinearOperatorDiag)(diagonal)
    rule(kind, LinearOperatorDiag, LinearOperatorScaledIdentity)(diagonal)
    rule(kind, LinearOperatorScaledIdentity, LinearOperatorDiag)(diagonal)
    rule(kind, LinearOperatorCirculant, LinearOperatorCirculant)(
        lambda a, b: LinearOperatorCirculant(
            combine(a.spectrum, b.spectrum), a.dtype, **_commuting(a, b)
        )
    )
    rule(kind, LinearOperatorDiag, LinearOperatorLowerTriangular)(
        lambda a, b: LinearOperatorLowerTriangular(
            combine(expand_dims(a.diag, -1), b.to_dense()), **_commuting(a, b, definite=False)
        )
    )


_diagonals("Matmul", lambda a, b: a * b)
_diagonals("Solve", lambda a, b: b / a)


@rule("Matmul", LinearOperatorLowerTriangular, LinearOperatorDiag)
def _lower_times_diagonal(a: Any, b: Any) -> Any:
    scaled = a.to_dense() * expand_dims(b.diag, -2)
    return LinearOperatorLowerTriangular(scaled, **_commuting(a, b, definite=False))
