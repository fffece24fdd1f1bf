"""Which operator is the adjoint, inverse, factor or product of others: rules by class.

A rule for a class serves its subclasses; of several the one for the nearest classes counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final, TypeVar

from opdock.graph.nodes.scopes import name_scope

_F = TypeVar("_F", bound=Callable[..., Any])
_rules: Final[dict[str, dict[tuple[type, ...], Callable[..., Any]]]] = {
    kind: {} for kind in ("Adjoint", "Cholesky", "Inverse", "Matmul", "Solve")
}


def rule(kind: str, *classes: type) -> Callable[[_F], _F]:
    """Decorator that registers a rule; ValueError if the classes have one."""

    def register(function: _F) -> _F:
        if classes in _rules[kind]:
            names = ", ".join(c.__name__ for c in classes)
            raise ValueError(f"{kind}({names}) has already been registered.")
        _rules[kind][classes] = function
        return function

    return register


def _apply(kind: str, *operators: Any) -> Any:
    lines = [list(enumerate(type(operator).__mro__)) for operator in operators]
    found = [
        (sum(distance for distance, _ in way), _rules[kind][classes])
        for way in itertools.product(*lines)
        if (classes := tuple(cls for _, cls in way)) in _rules[kind]
    ]
    if not found:
        names = ", ".join(str(type(operator)) for operator in operators)
        raise ValueError(f"No {kind.lower()} registered for {names}")
    with name_scope(None, kind):
        return min(found, key=lambda pair: pair[0])[1](*operators)


def adjoint(operator: Any) -> Any:
    """The operator of the conjugate transposes."""
    return _apply("Adjoint", operator)


def cholesky(operator: Any) -> Any:
    """The operator of the Cholesky factors."""
    return _apply("Cholesky", operator)


def inverse(operator: Any) -> Any:
    """The operator of the inverses."""
    return _apply("Inverse", operator)


def matmul(left: Any, right: Any) -> Any:
    """The operator of the products."""
    return _apply("Matmul", left, right)


def solve(left: Any, right: Any) -> Any:
    """The operator of the inverse of `left` times `right`."""
    return _apply("Solve", left, right)
