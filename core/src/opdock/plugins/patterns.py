"""Fusion patterns: data that says which nodes a backend computes at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


class P:
    """A node in a pattern: an op type, its inputs, and attribute values that must match.

    Args:
        op: the op type, or several of them separated by "|".
        *inputs: a `P` for each input that must come from such a node, or a string that captures
            whatever is there. The same string twice means the same tensor.
        name: captures the node itself, so that `when` and the kernel can see its attributes.
        **attrs: attribute values that must be equal.

    Example:
        P("Relu", P("BiasAdd", P("Conv2D", "x", "w", name="conv"), "b"))
    """

    __slots__ = ("attrs", "inputs", "name", "ops")

    def __init__(self, op: str, *inputs: P | str, name: str = "", **attrs: Any) -> None:
        if not isinstance(op, str) or not op:
            raise TypeError(f"P takes an op type first, got {op!r}")
        for value in inputs:
            if not isinstance(value, (P, str)) or value == "":
                raise TypeError(f"P({op!r}): an input is a P or a capture name, got {value!r}")
        self.ops: tuple[str, ...] = tuple(op.split("|"))
        self.inputs: tuple[P | str, ...] = inputs
        self.name = name
        self.attrs: Mapping[str, Any] = MappingProxyType(attrs)

    def captures(self) -> tuple[str, ...]:
        """The capture names of inputs, in order of appearance, each once."""
        return tuple(dict.fromkeys(self._captures()))

    def _captures(self) -> Iterator[str]:
        for value in self.inputs:
            if isinstance(value, str):
                yield value
            else:
                yield from value._captures()

    def nodes(self) -> Iterator[P]:
        """The pattern's nodes, outermost first."""
        yield self
        for value in self.inputs:
            if isinstance(value, P):
                yield from value.nodes()

    def __repr__(self) -> str:
        parts = [repr("|".join(self.ops)), *(repr(i) for i in self.inputs)]
        parts += [f"{k}={v!r}" for k, v in self.attrs.items()]
        return f"P({', '.join(parts)})"


@dataclass(frozen=True, kw_only=True)
class FusionPattern:
    """Nodes on one device that the backend replaces by one op of its own.

    The interior results must have no other consumer; the matcher sees to that, and tries both
    orders of a commutative op's inputs.

    Attributes:
        name: unique in the backend; users switch the fusion off by it.
        pattern: what to look for.
        op: the private op type that replaces it, "vendor>Name"; the backend's tables hold its
            kernel, whose inputs are the captures in order.
        when: `when(nodes)` gets the matched nodes' `NodeSig` by capture name ("" is the outermost);
            True, or the reason why it declines.
        benefit: the higher is tried first.
    """

    name: str
    pattern: P
    op: str
    when: Callable[[Mapping[str, Any]], bool | str] | None = None
    benefit: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"FusionPattern.name must be a word, got {self.name!r}")
        if not isinstance(self.pattern, P):
            raise TypeError(f"fusion {self.name!r}: pattern must be a P, got {self.pattern!r}")
        if not isinstance(self.op, str) or ">" not in self.op:
            raise ValueError(
                f"fusion {self.name!r}: op must be private, 'vendor>Name', got {self.op!r}"
            )
        if self.when is not None and not callable(self.when):
            raise TypeError(f"fusion {self.name!r}: when must be callable")
