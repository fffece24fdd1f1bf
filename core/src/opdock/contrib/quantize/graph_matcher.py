"""Patterns of ops that are looked for in a graph, from the last op back to what it takes."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor

__all__ = ["GraphMatcher", "MatchResult", "OneofPattern", "OpTypePattern", "Pattern"]

_MOST_UNORDERED: Final = 8


class Pattern(ABC):
    """What an op, and what it takes, may look like.

    Attributes:
        name: by which `MatchResult` knows it; None without one.
    """

    name: str | None = None

    @abstractmethod
    def match(self, op: Operation, tensor: Tensor | None) -> MatchResult | None:
        """What matches here, None if nothing does.

        Args:
            op: the last op.
            tensor: its result that led to it; None where the search begins.
        """


class OpTypePattern(Pattern):
    """An op of a type that takes what matches other patterns.

    Args:
        op_type: a type, several with "|" between them, or "*" for any.
        name: by which the result knows the op.
        inputs: patterns, or types, of all that the op takes; anything if there are none.
        ordered_inputs: whether inputs match in this order only.

    Raises:
        ValueError: there are more than 8 inputs without an order.
    """

    def __init__(
        self, op_type: str, name: str | None = None,
        inputs: Sequence[Pattern | str] | None = None, ordered_inputs: bool = True,
    ) -> None:  # fmt: skip
        self.name = name
        self._types = None if op_type == "*" else frozenset(op_type.split("|"))
        self._inputs = [
            pattern if isinstance(pattern, Pattern) else OpTypePattern(pattern)
            for pattern in inputs or ()
        ]
        if not ordered_inputs and len(self._inputs) > _MOST_UNORDERED:
            raise ValueError(
                f"{len(self._inputs)} inputs: only {_MOST_UNORDERED} may come in any order"
            )
        self._ordered = ordered_inputs

    def match(self, op: Operation, tensor: Tensor | None) -> MatchResult | None:
        """What matches here, None if nothing does."""
        if self._types is not None and op.type not in self._types:
            return None
        if self._inputs and len(self._inputs) != len(op.inputs):
            return None
        orders: Iterable[Sequence[Pattern]] = (
            [self._inputs] if self._ordered else itertools.permutations(self._inputs)
        )
        for patterns in orders:
            found = MatchResult()
            found.add(self, op, tensor)
            # Without patterns whatever the op takes is right.
            for pattern, taken in zip(patterns, op.inputs, strict=False):
                part = pattern.match(taken.op, taken)
                if part is None:
                    break
                found.merge_from(part)
            else:
                return found
        return None


class OneofPattern(Pattern):
    """What matches one of some patterns; the first that does is taken."""

    def __init__(self, sub_patterns: Iterable[Pattern]) -> None:
        self._patterns = list(sub_patterns)

    def match(self, op: Operation, tensor: Tensor | None) -> MatchResult | None:
        """What matches here, None if nothing does."""
        found = (pattern.match(op, tensor) for pattern in self._patterns)
        return next((result for result in found if result is not None), None)


class MatchResult:
    """Which op matched each pattern, and which of its results the op behind it takes."""

    def __init__(self) -> None:
        self._found: dict[Pattern, tuple[Operation, Tensor | None]] = {}
        self._names: dict[str, Pattern] = {}

    def add(self, pattern: Pattern, op: Operation, tensor: Tensor | None) -> None:
        """Adds what matched.

        Raises:
            ValueError: another pattern has the name.
        """
        self._found[pattern] = op, tensor
        if pattern.name is not None:
            if pattern.name in self._names:
                raise ValueError(f"Name {pattern.name} is already bound to another pattern")
            self._names[pattern.name] = pattern

    def merge_from(self, other_match_result: MatchResult) -> None:
        """Adds all that matched elsewhere, which replaces what it has itself."""
        self._found.update(other_match_result._found)
        self._names.update(other_match_result._names)

    def get_op(self, pattern_or_name: Pattern | str) -> Operation | None:
        """The op that matched; None if the pattern has none.

        Raises:
            ValueError: it is neither a pattern nor a name.
        """
        return self._of(pattern_or_name)[0]

    def get_tensor(self, pattern_or_name: Pattern | str) -> Tensor | None:
        """The result of that op that led to it; None at the end of a match, and without any.

        Raises:
            ValueError: it is neither a pattern nor a name.
        """
        return self._of(pattern_or_name)[1]

    def _of(self, key: Pattern | str) -> tuple[Operation | None, Tensor | None]:
        if not isinstance(key, Pattern | str):
            raise ValueError(f"pattern_or_name is a {type(key).__name__}, not a Pattern or a str")
        pattern = self._names.get(key) if isinstance(key, str) else key
        return (None, None) if pattern is None else self._found.get(pattern, (None, None))


class GraphMatcher:
    """Looks for a pattern.

    Args:
        pattern: what to look for.
    """

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern

    def match_op(self, op: Operation) -> MatchResult | None:
        """What matches where an op is the last one."""
        return self._pattern.match(op, None)

    def match_ops(self, ops: Iterable[Operation]) -> Iterator[MatchResult]:
        """What matches at each of some ops."""
        return (found for op in ops if (found := self.match_op(op)) is not None)

    def match_graph(self, graph: Graph) -> Iterator[MatchResult]:
        """What matches anywhere in a graph."""
        return self.match_ops(graph.get_operations())
