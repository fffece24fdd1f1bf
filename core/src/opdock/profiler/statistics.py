"""What a node takes, by functions registered for its op type: TF's `RegisterStatistics`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

__all__ = ["OpStats", "RegisterStatistics", "get_stats_for_node_def", "is_counted"]

_F = TypeVar("_F", bound=Callable[..., Any])
_REGISTERED: Final[dict[tuple[str, str], Callable[..., Any]]] = {}


@dataclass
class OpStats:
    """A figure of one node, or the sum of those of several.

    Attributes:
        statistic_type: what is counted, such as "flops".
        value: how much of it; None if nothing is known.
    """

    statistic_type: str
    value: Any = None

    def __iadd__(self, other: OpStats) -> Self:
        """Adds what is known of another node."""
        if other.statistic_type != self.statistic_type:
            raise ValueError(
                f"Can't add an OpStats of type {other.statistic_type} to one of type"
                f" {self.statistic_type}."
            )
        if self.value is None:
            self.value = other.value
        elif other.value is not None:
            self.value += other.value
        return self


class RegisterStatistics:
    """Decorator that registers a function of a graph and a NodeDef, which gives an `OpStats`.

    Args:
        op_type: the type of the nodes that the function is for.
        statistic_type: what it counts.

    Raises:
        TypeError: one of them is no string, or has a comma.
        KeyError: there is a function for both already.
    """

    def __init__(self, op_type: str, statistic_type: str) -> None:
        for name, value in (("op_type", op_type), ("statistic_type", statistic_type)):
            if not isinstance(value, str):
                raise TypeError(f"{name} must be a string.")
            if "," in value:
                raise TypeError(f"{name} must not contain a comma.")
        self._key = (op_type, statistic_type)

    def __call__(self, f: _F) -> _F:
        """Registers `f` and returns it."""
        if self._key in _REGISTERED:
            raise KeyError(f"Registering two statistics with name '{','.join(self._key)}'!")
        _REGISTERED[self._key] = f
        return f


def is_counted(op_type: str, statistic_type: str) -> bool:
    """Whether a function is registered for an op type."""
    return (op_type, statistic_type) in _REGISTERED


def get_stats_for_node_def(graph: Any, node: Any, statistic_type: str) -> OpStats:
    """What a node takes; an `OpStats` without a value if nothing is registered for its op type.

    Args:
        graph: the graph that has the node, whose shapes count.
        node: its NodeDef.
        statistic_type: what to count.

    Raises:
        ValueError: a shape that decides about it is not known.
    """
    function = _REGISTERED.get((node.op, statistic_type))
    if function is None:
        return OpStats(statistic_type)
    found: OpStats = function(graph, node)
    return found
