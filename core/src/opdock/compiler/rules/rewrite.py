"""Rewrite: one walk over the block in which the rules of several passes meet each node.

A rule looks at a node and at what made its inputs, never at who uses its result. So one walk in
executable order finds all there is to find, and a second one changes nothing more.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any, Final

import numpy as np

from opdock.compiler.ir.block import FEED, Array, Block, Node, Value
from opdock.compiler.ir.state import follow_effects, has_effect, resizes
from opdock.dtypes import DType, as_dtype
from opdock.graph.nodes import registry
from opdock.graph.nodes.constant import const_op
from opdock.late import record
from opdock.shapes import Shape

FORWARDS: Final = "forwards"
"""The key of rules for every op that hands its input on, in the place of an op type."""
MAX_DEPTH: Final = 8
_DEPTH: Final = 4  # how many nodes back is looked for effects

Rule = Callable[[Node, "Site"], "Value | None"]
Rules = Mapping[str, tuple[Rule, ...]]
Serves = Callable[[Node, Node], bool]


@record(slots=True)
class Site:
    """Where a rule works: it makes nodes here, and asks here what it may see.

    Attributes:
        node: the node under the rule.
        made: the nodes that the rule made, in order.
    """

    node: Node
    made: list[Node] = field(default_factory=list)

    def make(
        self, op: str, inputs: list[Value], attrs: dict[str, Any], *,
        dtype: DType | None = None, shape: Shape = None, suffix: str = "",
    ) -> Value:  # fmt: skip
        """A new node, in the place and under the name of the one that it replaces.

        Args:
            op: its type, with one output.
            inputs: its inputs.
            attrs: all its attributes.
            dtype: of its output; that of the replaced node by default.
            shape: what is known of its output; the shape function adds what it finds.
            suffix: put after the name, for nodes beside the one that replaces.
        """
        like = self.node
        kept = {k: v for k, v in like.attrs.items() if k == "_class"}
        node = Node(
            op, like.name + suffix, spec=registry.get(op), attrs={**kept, **attrs}, inputs=inputs,
            out_dtypes=[dtype or like.out_dtypes[0].base_dtype], out_shapes=[shape],
            origin=like.origin, requested=like.requested, order=like.id,
        )  # fmt: skip
        node.control = list(like.control)
        node.infer()
        self.made.append(node)
        return Value(node, 0)

    def const(self, value: Any, dtype: DType, suffix: str) -> Value:
        """A constant beside the node."""
        array = np.asarray(value, dtype.np)
        node = Node(
            const_op.name, self.node.name + suffix, spec=const_op,
            attrs={"value": array, "dtype": dtype}, inputs=[], out_dtypes=[dtype],
            out_shapes=[array.shape], origin=self.node.origin, requested=self.node.requested,
            order=self.node.id,
        )  # fmt: skip
        self.made.append(node)
        return Value(node, 0)

    def ints(self, values: Iterable[int], suffix: str) -> Value:
        """An int32 vector beside the node."""
        return self.const(list(values), as_dtype("int32"), suffix)

    @staticmethod
    def source(value: Value, *ops: str) -> Node | None:
        """The node behind a value, if it is one of `ops` and a rule may look through it."""
        node = value.node
        if node.op not in ops or node.control or value.index != 0 or "_kernel" in node.attrs:
            return None
        if any(v.dtype._is_ref_dtype for v in node.inputs):
            # It reads the variable now; whoever takes its place would read it later.
            return None
        return node


def rewrite(
    block: Block, passes: Mapping[str, Rules], serves: Serves = lambda new, old: True
) -> bool:
    """Applies the rules of `passes` until none applies.

    Args:
        block: changed in place.
        passes: by the name that explanations show, for each op type the rules to try, in order.
        serves: whether a node of another op type runs where the one does that it stands for; a rule
            does not apply where its ops have no kernel.

    Returns:
        Whether a node became a constant, so that there may be more to fold.
    """
    table: dict[str, list[tuple[str, Rule]]] = {}
    for name, rules in passes.items():
        for op, several in rules.items():
            table.setdefault(op, []).extend((name, rule) for rule in several)
    return bool(table) and _Walk(block, table, serves).run()


class _Walk:
    def __init__(
        self, block: Block, table: Mapping[str, list[tuple[str, Rule]]], serves: Serves
    ) -> None:
        self.block = block
        self.table = table
        self.serves = serves
        self.served: dict[Any, bool] = {}
        self.visits = 0
        self.mapping: dict[Value, Value] = {}
        self.controls: dict[Node, list[Node]] = {}
        self.fresh: list[Node] = []
        self.effects: set[Node] = set()  # nodes that have an effect or wait for one
        uses = itertools.chain(block.fetches, *[node.inputs for node in block.nodes])
        self.used = {node for node, index in uses if index}  # for more than their first output
        self.resizing = any(resizes(n) for n in block.nodes if n.traits.validates)

    def run(self) -> bool:
        mapping = self.mapping
        replaced = mapping.keys()
        for node in self.block.nodes:
            if not replaced.isdisjoint(node.inputs):
                node.inputs = [mapping.get(v, v) for v in node.inputs]
            self.visit(node, 0)
        self.block.looked_at("rewrite", self.visits)
        self.block.nodes = self.fresh
        if self.mapping:
            self.block.conclude(self.mapping, self.controls)
            self.block.sweep()
        return any(v.node.is_const for v in self.mapping.values())

    def visit(self, node: Node, depth: int) -> None:
        """Keeps the node, or what the first rule that applies puts in its place."""
        self.visits += 1
        if self.effects or node.touches:
            follow_effects(node, self.effects)
        rules = self.table.get(FORWARDS if node.is_alias else node.op, ())
        if rules and depth < MAX_DEPTH and self.open(node):
            for name, rule in rules:
                site = Site(node)
                found = rule(node, site)
                if (
                    found is not None
                    and self.allowed(node, found, site.made)
                    and all(self.offered(other, node) for other in site.made)
                ):
                    self.take(node, found, site.made, name, depth)
                    return
        self.fresh.append(node)

    def open(self, node: Node) -> bool:
        """Whether one value can take the node's place, and nobody asked for its kernel."""
        return (
            bool(node.out_dtypes)
            and node not in self.used
            and node.spec is not None
            and "_kernel" not in node.attrs
        )

    def allowed(self, node: Node, found: Value, made: list[Node]) -> bool:
        """Whether nothing is lost that has to run, and no read of a variable moves."""
        if found.node not in made:
            # The alias of a variable stays an alias: each consumer reads when it runs, as in TF,
            # where a value of another size lies elsewhere, and what was read stays what it was.
            reads = found.dtype._is_ref_dtype
            if node.control or (reads and (self.resizing or not node.is_alias)):
                return False
            if found.dtype.base_dtype is not node.out_dtypes[0].base_dtype:
                return False
        kept = {found, *(v for n in made for v in n.inputs)}
        if all(self.stays(v, kept, 0) for v in node.inputs):
            return True
        kept = _reach(kept)
        return all(self.stays(v, kept, 0) for v in node.inputs)

    def offered(self, new: Node, old: Node) -> bool:
        """Whether there is a kernel for what a rule made, asked once for all alike."""
        if new.op == old.op or new.is_const:
            return True
        alike = [(n.op, *((v.dtype, v.shape) for v in n.inputs)) for n in (new, old)]
        key = (*alike, old.requested)
        if key not in self.served:
            self.served[key] = self.serves(new, old)
        return self.served[key]

    def stays(self, value: Value, kept: set[Value], depth: int) -> bool:
        node = value.node
        if value in kept or node not in self.effects:
            return True
        if depth == _DEPTH or has_effect(node) or node.control:
            return False
        return all(self.stays(v, kept, depth + 1) for v in node.inputs)

    def take(self, node: Node, found: Value, made: list[Node], name: str, depth: int) -> None:
        for other in made:
            other.inputs = [self.mapping.get(v, v) for v in other.inputs]
            self.visit(other, depth + 1)
        found = self.mapping.get(found, found)
        self.mapping[Value(node, 0)] = found
        self.controls[node] = [found.node]
        if node.is_alias or depth:
            return
        why = (
            f"became {found.node.op}" if made and found.node.name == node.name
            else f"equal to its input '{found.node.name}'" if found in node.inputs
            else f"equal to '{found.node.name}'"
        )  # fmt: skip
        self.block.folded.append((node.name, node.op, f"{name}: {why}"))


def _reach(values: set[Value]) -> set[Value]:
    """Values, and those that run because they do, as far as rules look."""
    reached, last = set(values), values
    for _ in range(_DEPTH):
        last = {v for value in last for v in value.node.inputs} - reached
        reached |= last
    return reached


# ---------------------------------------------------------------- what rules ask
def constant(value: Value) -> Array | None:
    """The value of a constant."""
    return value.node.const() if value.node.op != FEED else None


def known(shape: Shape) -> tuple[int, ...] | None:
    """A shape all of whose dimensions are known, or None."""
    if shape is None or None in shape:
        return None
    return tuple(d for d in shape if d is not None)


def uniform(value: Value) -> Any:
    """The one number of which a constant consists; None where it is no such constant."""
    array = constant(value)
    if array is None or array.size == 0 or array.dtype.kind not in "iufb":
        return None
    flat = array.reshape(-1)
    # By their bits: zeros of both signs differ, and NaN is itself.
    bits = flat.view(f"V{array.itemsize}")
    if array.size > 1 and not (bits == bits[:1]).all():
        return None
    return flat[0]


def keeps(node: Node, value: Value) -> bool:
    """Whether the output has the shape of an input, for sure."""
    shape = known(node.out_shapes[0])
    return shape is not None and shape == value.shape
