"""The compiler's IR: a list of nodes in executable order. It is never the user's graph."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from opdock import shapes
from opdock.dtypes import DType
from opdock.graph.nodes.constant import const_op
from opdock.graph.nodes.registry import OpSpec, PartialShape, ShapeSig
from opdock.graph.nodes.traits import PLAIN, Traits
from opdock.kernels.expr.updates import UPDATES
from opdock.late import record
from opdock.shapes import Shape

if TYPE_CHECKING:
    from opdock.compiler.ir.source import Source
    from opdock.compiler.place.target import Target
    from opdock.graph.nodes.operation import Operation
    from opdock.kernels.select.table import Kernel

Array = np.ndarray[Any, Any]
_NOWHERE: Final[frozenset[int]] = frozenset()
FEED: Final = "_Feed"
COPY: Final = "_Copy"
SEGMENT: Final = "_Segment"
HOST: Final = "host"
_MAX_DEPTH: Final = 8  # how far back a shape vector is followed


class Value(NamedTuple):
    """Output `index` of `node`."""

    node: Node
    index: int  # type: ignore[assignment]  # tuple.index is of no use here

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.node.out_dtypes[self.index]

    @property
    def shape(self) -> Shape:
        """The static shape."""
        return self.node.out_shapes[self.index]


value_of = functools.partial(tuple.__new__, Value)
"""What `Value(*pair)` makes, without a call of Python's."""


class Node:
    """One step of the program under construction.

    Attributes:
        op: the op type; `FEED`, `COPY` and `SEGMENT` are the compiler's own.
        inputs: data inputs in op order.
        control: nodes that must run before.
        out_dtypes, out_shapes: of the outputs; nodes that are alike share them.
        origin: the user's operation, or the one this node was derived from.
        target: the device it was placed on.
        kernel: the chosen kernel; None for structural nodes.
        how: "native", "portable", "decomposed", "builtin", "copy", "feed" or "control".
        fused: what the node stands for, if fusion made it.
        made_by: the plugin's pass that made it, in words; empty for all others.
        asked_by: the plugin's pass that requested the device, in words; empty if the user did.
        traits: what the op type declares.
        builtin: whether the runtime carries the node out on any device.
        claimed: the outputs whose whole shape set_shape alone knows; what runs is held to it.
        takes_handles: whether an input is a handle; what is put in its place is one too.
        touches: whether it may take state or have an effect; what only computes does not.
        is_alias: whether the one output is the input, for whoever may look through the node.
        is_const: whether the node is a constant; `const` gives its value.
        mark: what the last walk left here that marks nodes: each looks for its own.
    """

    # What every pass asks of every node, and no pass changes, is an attribute.
    __slots__ = (
        "asked_by", "attrs", "builtin", "claimed", "control", "fused", "host_inputs",
        "host_outputs", "how", "id", "inputs", "is_alias", "is_const", "kernel", "made_by", "mark",
        "name", "op", "origin", "out_dtypes", "out_shapes", "rejections", "requested", "spec",
        "takes_handles", "target", "touches", "traits", "why",
    )  # fmt: skip

    def __init__(
        self,
        op: str,
        name: str,
        *,
        spec: OpSpec | None,
        attrs: dict[str, Any],
        inputs: Sequence[Value],
        out_dtypes: Sequence[DType],
        out_shapes: Sequence[Shape],
        origin: Operation | None = None,
        requested: str = "",
        order: int = 0,
    ) -> None:
        self.op = op
        self.name = name
        self.spec = spec
        self.traits: Traits = PLAIN if spec is None else spec.traits
        self.builtin: bool = self.traits.builtin or (spec is None and op in (FEED, COPY))
        self.is_const = spec is const_op
        self.is_alias = self.traits.forwards and len(out_dtypes) == 1
        self.attrs = attrs
        self.inputs = inputs
        self.control: Sequence[Node] = ()
        self.out_dtypes = out_dtypes
        self.takes_handles = False
        for before, index in inputs:
            if before.out_dtypes[index]._is_handle:
                self.takes_handles = True
        self.touches: bool = spec is None or self.takes_handles or spec.touches
        self.out_shapes = out_shapes
        self.origin = origin
        self.requested = requested
        self.id = order
        self.target: Target | None = None
        self.kernel: Kernel | None = None
        self.how = ""
        self.why = ""
        self.made_by = ""
        self.asked_by = ""
        self.rejections: Sequence[Any] = ()
        self.host_inputs = _NOWHERE
        self.host_outputs = _NOWHERE
        self.fused: Fused | None = None
        self.claimed: tuple[int, ...] = ()
        self.mark: object = None

    @property
    def stateful(self) -> bool:
        """Whether the node reads or changes state, so that it is neither folded nor merged."""
        spec = self.spec
        if spec is None:
            return self.op in (FEED, UPDATES)
        if spec.is_stateful:
            return True
        # Every pass asks, so this is quick.
        for node, index in self.inputs:
            if node.out_dtypes[index]._is_ref_dtype:
                return True
        return True in [d._is_ref_dtype for d in self.out_dtypes]

    def const(self) -> Array | None:
        """The value of a Const node."""
        if self.spec is not const_op:
            return None
        value: Array = self.attrs["value"]
        return value

    def values(self) -> list[Value]:
        """All outputs."""
        if len(self.out_dtypes) == 1:
            return [value_of((self, 0))]
        return [value_of((self, i)) for i in range(len(self.out_dtypes))]

    def needs(self) -> list[Node]:
        """What must run before the node; some may come twice."""
        return [*[before for before, _ in self.inputs], *self.control]

    def infer(self) -> None:
        """Refines the output shapes by running the shape function on the current input shapes.

        Raises:
            ValueError: the input shapes do not fit the op.
        """
        if self.spec is None or self.spec.shape_fn is None:
            return
        inferred = self.spec.infer(self.shape_sig(self.spec))
        self.claimed = ()
        if self.traits.promised:
            promised = zip(inferred, self.out_dtypes, strict=True)
            self.claimed = tuple(
                i for i, (s, d) in enumerate(promised)
                if shapes.is_fully_defined(s) and not d._is_handle
            )  # fmt: skip
        for i, shape in enumerate(inferred):
            known = self.out_shapes[i]
            if shape == known:
                continue
            # set_shape may know more than inference; where they contradict, what runs decides.
            if shapes.is_compatible(shape, known):
                merged = shapes.merge(shape, known)
                if shapes.is_fully_defined(merged) and not shapes.is_fully_defined(shape):
                    self.claimed += () if self.out_dtypes[i]._is_handle else (i,)
                shape = merged
            self.has_shape(i, shape)

    def takes(self, index: int, value: Value) -> None:
        """Has an input be another value."""
        made = list(self.inputs)
        made[index] = value
        self.inputs = made

    def has_shape(self, index: int, shape: Shape) -> None:
        """Notes what is known of an output's shape."""
        made = list(self.out_shapes)
        made[index] = shape
        self.out_shapes = made

    def shape_sig(self, spec: OpSpec, depth: int = 0) -> ShapeSig:
        """What a shape function sees of the node."""
        known = functools.partial(self.known_input, depth=depth) if depth else self.known_input
        input_shapes: list[Shape] = []
        dtypes: list[DType] = []
        for before, index in self.inputs:
            input_shapes.append(before.out_shapes[index])
            dtypes.append(before.out_dtypes[index])
        return ShapeSig(
            spec, self.name, input_shapes, dtypes, self.attrs, len(self.out_dtypes), known
        )  # fmt: skip

    def known_input(self, index: int, depth: int = 0) -> Array | PartialShape | None:
        """What is known of an input's value without running anything."""
        node, output = self.inputs[index]
        if node.is_const:
            return node.const()
        found = node.known_outputs(depth)
        return None if found is None else found[output]

    def known_outputs(self, depth: int = 0) -> Sequence[Array | PartialShape | None] | None:
        """What static shapes, and what is known of the inputs, say of the outputs."""
        spec = self.spec
        if spec is None or spec.known_fn is None or depth > _MAX_DEPTH:
            return None
        return spec.known_fn(self.shape_sig(spec, depth + 1))

    def __repr__(self) -> str:
        return f"<{self.op} {self.name}>"


@record(frozen=True, slots=True)
class Fused:
    """The nodes that a fused node stands for: what runs if its kernel declines after all.

    Attributes:
        fusion: the pattern's name, or "cluster".
        members: the nodes in executable order, placed and with their own kernels.
        names: a name for each input, by which a kernel may ask for it in host memory.
        inputs: the values, as members know them, that are the fused node's inputs in order.
        results: the members' values that are its outputs in order.
    """

    fusion: str
    members: tuple[Node, ...]
    names: tuple[str, ...]
    inputs: tuple[Value, ...]
    results: tuple[Value, ...]


@record(slots=True)
class Block:
    """A program under construction.

    Attributes:
        nodes: in executable order (each after its inputs and controls).
        feeds: the values that the caller passes, in order.
        fetches: the values that the caller gets, in order.
        targets: nodes that run for their effect.
        cells: indices of fetches that are a variable itself, not its value: a loop's turn hands
            it to the next.
        folded: (node name, op, why) of nodes that a pass removed, for `explain`.
        missed: (node name, fusion, why) of fusions that were found and not applied.
        visits: how many nodes each pass looked at, so that tests can see that cost stays linear.
        within: the name of the loop or condition whose body this is; empty for a step.
        source: what the user's graph says of it; None where no part of it can be made again.
        turned: values that lie in another data format than the user's.
    """

    nodes: list[Node] = field(default_factory=list)
    feeds: list[Value] = field(default_factory=list)
    fetches: list[Value] = field(default_factory=list)
    targets: list[Node] = field(default_factory=list)
    cells: frozenset[int] = frozenset()
    folded: list[tuple[str, str, str]] = field(default_factory=list)
    missed: list[tuple[str, str, str]] = field(default_factory=list)
    visits: dict[str, int] = field(default_factory=dict)
    copies: int = 0
    within: str = ""
    source: Source | None = None
    turned: set[Value] = field(default_factory=set)

    def kinds(self) -> Collection[Traits]:
        """What its ops declare, each once: a pass asks these whether there is anything for it."""
        traits = [node.traits for node in self.nodes]
        return dict(zip(map(id, traits), traits, strict=True)).values()

    def looked_at(self, name: str, count: int) -> None:
        """Adds to the visits of a pass."""
        self.visits[name] = self.visits.get(name, 0) + count

    def replace(self, mapping: dict[Value, Value], controls: dict[Node, list[Node]]) -> None:
        """Rewires uses of values, and of removed nodes as controls, all at once."""
        values = mapping.keys()
        for node in self.nodes if mapping else ():
            if not values.isdisjoint(node.inputs):
                node.inputs = [_final(v, mapping) for v in node.inputs]
        self.conclude(mapping, controls)

    def conclude(self, mapping: dict[Value, Value], controls: dict[Node, list[Node]]) -> None:
        """`replace` for a pass that has rewired the inputs of all nodes as it came to them."""
        gone = controls.keys()
        for node in self.nodes:
            if node.control and not gone.isdisjoint(node.control):
                node.control = _unique(
                    r for c in node.control for r in _final_controls(c, controls) if r is not node
                )
        self.fetches = [_final(v, mapping) for v in self.fetches]
        self.targets = _unique(r for t in self.targets for r in _final_controls(t, controls))

    def sweep(self) -> None:
        """Drops nodes that nothing needs."""
        live = object()
        for node in (*self.targets, *[v.node for v in (*self.fetches, *self.feeds)]):
            node.mark = live
        kept: list[Node] = []
        for node in reversed(self.nodes):  # whoever needs a node comes after it
            if node.mark is live:
                kept.append(node)
                for before, _ in node.inputs:
                    before.mark = live
                for before in node.control:
                    before.mark = live
        kept.reverse()
        self.nodes = kept


def _final(value: Value, mapping: dict[Value, Value]) -> Value:
    while value in mapping:
        value = mapping[value]
    return value


def _final_controls(node: Node, controls: dict[Node, list[Node]]) -> list[Node]:
    if node not in controls:
        return [node]
    return [r for c in controls[node] for r in _final_controls(c, controls)]


def _unique(items: Iterable[Node]) -> list[Node]:
    return list(dict.fromkeys(items))
