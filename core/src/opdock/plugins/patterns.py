"""Fusion patterns: data that says which nodes a backend computes at once, and those of a device."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any

from opdock.fields import check_fields
from opdock.late import record
from opdock.util.collector import collector_waits
from opdock.util.shelter import shelter


class P:
    """A node in a pattern: an op type, its inputs, and attribute values that must match.

    Args:
        op: the op type, or several of them separated by "|".
        *inputs: a `P` for each input that must come from such a node, or a string that captures
            whatever is there. The same string twice means the same tensor.
        name: captures the node itself, so that `when` and the kernel can see its attributes.
        output: which of the node's outputs a nested `P` means.
        **attrs: attribute values that must be equal.

    Example:
        P("Relu", P("BiasAdd", P("Conv2D", "x", "w", name="conv"), "b"))
    """

    __slots__ = ("attrs", "inputs", "name", "ops", "output")

    def __init__(
        self, op: str, *inputs: P | str, name: str = "", output: int = 0, **attrs: Any
    ) -> None:
        if not isinstance(op, str) or not op:
            raise TypeError(f"P takes an op type first, got {op!r}")
        for value in inputs:
            if not isinstance(value, (P, str)) or value == "":
                raise TypeError(f"P({op!r}): an input is a P or a capture name, got {value!r}")
        self.ops: tuple[str, ...] = tuple(op.split("|"))
        self.inputs: tuple[P | str, ...] = inputs
        self.name = name
        self.output = output
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
        parts += [f"output={self.output}"] if self.output else []
        parts += [f"{k}={v!r}" for k, v in self.attrs.items()]
        return f"P({', '.join(parts)})"


@record(frozen=True, kw_only=True)
class FusionPattern:
    """Nodes on one device that the backend replaces by one op of its own.

    The compiler looks for the pattern when a program is prepared, on nodes placed on the device;
    it tries both orders of a commutative op's inputs. A nested `P` means the first output of its
    node unless it names another. Stateful ops are never matched, and a result that is used outside
    the match must be among `outputs`.

    The kernel's inputs are the captures in order. Its `sig.attrs` holds the outermost node's
    attributes, and under the name of each named node, and "" for the outermost, a mapping of that
    node's attributes.

    Attributes:
        name: unique in the backend; users switch the fusion off by it.
        pattern: what to look for.
        op: the private op type that replaces it, "vendor>Name"; the backend's tables hold its
            kernel.
        when: `when(nodes)` gets the matched nodes' `NodeSig` by node name ("" is the outermost);
            True, or the reason why it declines.
        benefit: the higher is tried first; names decide between equals.
        outputs: the fused op's results in order, each as (name of a node, index of its output).
        also: further outermost nodes of the match. Each takes at least one capture of what
            stands before it directly as an input; its results are listed in `outputs` by name.

    Raises:
        TypeError: a field has the wrong type.
        ValueError: `op` is not private, or `outputs` or `also` name what is not there.
    """

    name: str
    pattern: P
    op: str
    when: Callable[[Mapping[str, Any]], bool | str] | None = None
    benefit: int = 1
    outputs: tuple[tuple[str, int], ...] = (("", 0),)
    also: tuple[P, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"FusionPattern.name must be a word, got {self.name!r}")
        check_fields(self, f"fusion {self.name!r}: ")
        if not isinstance(self.op, str) or ">" not in self.op:
            raise ValueError(
                f"fusion {self.name!r}: op must be private, 'vendor>Name', got {self.op!r}"
            )
        self._check_outputs()
        self._check_also()

    def captures(self) -> tuple[str, ...]:
        """The capture names, which are the fused op's inputs in order."""
        every = [c for root in (self.pattern, *self.also) for c in root.captures()]
        return tuple(dict.fromkeys(every))

    def named(self) -> dict[str, P]:
        """The nodes that have a name; "" is the outermost."""
        found = {"": self.pattern}
        for root in (self.pattern, *self.also):
            found.update((p.name, p) for p in root.nodes() if p.name)
        return found

    def _check_outputs(self) -> None:
        known = self.named()
        if not self.outputs:
            raise ValueError(f"fusion {self.name!r}: outputs must name at least one result")
        for name, index in self.outputs:
            if name not in known or index < 0:
                raise ValueError(
                    f"fusion {self.name!r}: outputs has ({name!r}, {index}); the pattern's named "
                    f"nodes are {sorted(known)}"
                )

    def _check_also(self) -> None:
        bound = set(self.pattern.captures())
        for root in self.also:
            if not any(isinstance(i, str) and i in bound for i in root.inputs):
                raise ValueError(
                    f"fusion {self.name!r}: {root!r} must take one of {sorted(bound)} as an input"
                )
            bound.update(root.captures())


@record(frozen=True)
class LaterFusions:
    """Patterns that are loaded when a program has one of the ops that they are about.

    Attributes:
        name: what they are called, for the error.
        ops: op types of which a node of every pattern is one.
        load: gives the patterns.
    """

    name: str
    ops: frozenset[str]
    load: Callable[[], Sequence[FusionPattern]]


class Fusions:
    """A device's fusion patterns, greatest benefit first.

    Args:
        patterns: those that are known.
        later: those that are loaded when a program may have them.
    """

    def __init__(
        self, patterns: Iterable[FusionPattern] = (), later: Iterable[LaterFusions] = ()
    ) -> None:
        self._patterns = _in_order(patterns)
        self._later = list(later)
        self._lock = threading.Lock()

    def among(self, ops: AbstractSet[str]) -> Sequence[FusionPattern]:
        """The patterns that nodes of some op types may match, and perhaps others.

        Raises:
            ValueError: loaded patterns are about other ops than they are declared to be.
        """
        if not any(ops & later.ops for later in self._later):
            return self._patterns
        with collector_waits(lasting=True):
            return shelter(self._load, ops)

    def _load(self, ops: AbstractSet[str]) -> Sequence[FusionPattern]:
        with self._lock:
            for later in [one for one in self._later if ops & one.ops]:
                self._patterns = _in_order([*self._patterns, *_checked(later)])
                self._later.remove(later)
            return self._patterns

    def __iter__(self) -> Iterator[FusionPattern]:
        return iter(self.among({op for later in self._later for op in later.ops}))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _in_order(patterns: Iterable[FusionPattern]) -> tuple[FusionPattern, ...]:
    # Names decide ties, so that the order is the same in every process.
    return tuple(sorted(patterns, key=lambda p: (-p.benefit, p.name)))


def _checked(later: LaterFusions) -> Sequence[FusionPattern]:
    patterns = later.load()
    for pattern in patterns:
        if not any(later.ops.issuperset(node.ops) for node in pattern.pattern.nodes()):
            raise ValueError(
                f"{later.name!r} has the fusion {pattern.name!r}, which is about none of the ops "
                f"that it is declared for: {', '.join(sorted(later.ops))}"
            )
    return patterns
