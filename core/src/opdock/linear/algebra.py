"""Which operator is the adjoint, inverse, factor or product of others: rules by class.

A rule for a class serves its subclasses; of several the one for the nearest classes counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final, TypeVar

from opdock.graph.nodes.scopes import name_scope

_F = TypeVar("_F", bound=Callable[..., Any])


class Rules:
    """The rules for one thing that is asked of operators; called with operators, applies one.

    Attributes:
        table: the rule for each tuple of classes.
    """

    def __init__(self, kind: str, of: str) -> None:
        """Of a kind, the name of its scope; `of` says in errors what there is none of."""
        self._kind, self._of = kind, of
        self.table: dict[tuple[type, ...], Callable[..., Any]] = {}

    def register(self, *classes: type) -> Callable[[_F], _F]:
        """Decorator that registers a rule.

        Raises:
            TypeError: the rule is no function.
            ValueError: the classes have one.
        """

        def registered(function: _F) -> _F:
            if not callable(function):
                raise TypeError(f"{self._kind} must be callable, received: {function}")
            if classes in self.table:
                names = ", ".join(c.__name__ for c in classes)
                raise ValueError(f"{self._kind}({names}) has already been registered.")
            self.table[classes] = function
            return function

        return registered

    def find(self, *classes: type) -> Callable[..., Any] | None:
        """The rule for these classes or the nearest of those that they derive from."""
        lines = [list(enumerate(cls.__mro__)) for cls in classes]
        found = [
            (sum(distance for distance, _ in way), self.table[bases])
            for way in itertools.product(*lines)
            if (bases := tuple(base for _, base in way)) in self.table
        ]
        return min(found, key=lambda pair: pair[0])[1] if found else None

    def __call__(self, *operators: Any, name: str | None = None) -> Any:
        """What the rule for these operators makes of them; ValueError if there is none."""
        function = self.find(*map(type, operators))
        if function is None:
            names = ", ".join(str(type(operator)) for operator in operators)
            raise ValueError(f"No {self._of} registered for {names}")
        with name_scope(name, self._kind):
            return function(*operators)


adjoint: Final = Rules("Adjoint", "adjoint")
cholesky: Final = Rules("Cholesky", "cholesky decomposition")
inverse: Final = Rules("Inverse", "inverse")
matmul: Final = Rules("Matmul", "matmul")
solve: Final = Rules("Solve", "solve")

_KINDS: Final = {
    "Adjoint": adjoint, "Cholesky": cholesky, "Inverse": inverse, "Matmul": matmul, "Solve": solve,
}  # fmt: skip


def rule(kind: str, *classes: type) -> Callable[[_F], _F]:
    """Decorator that registers a rule of a kind; ValueError if the classes have one."""
    return _KINDS[kind].register(*classes)
