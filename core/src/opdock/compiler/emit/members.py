"""Members of segments: which nodes may be, and how a backend's compiler sees them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from opdock import dtypes, errors
from opdock.compiler.emit.partition import location
from opdock.compiler.emit.schedule import Schedule, Step, schedule
from opdock.compiler.ir.block import COPY, FEED, Block, Node, Value
from opdock.compiler.ir.order import root_of
from opdock.compiler.ir.state import cell_inputs, chooses, flat_indices, is_state, written
from opdock.compiler.place.target import Target, memory_of
from opdock.devices.segment import (
    Segment,
    SegmentNode,
    SegmentStreams,
    SegmentValue,
    SegmentVariable,
)
from opdock.graph.nodes.traits import Control, Cost
from opdock.kernels.select.selection import LABEL_ATTR
from opdock.late import record

Bind = Callable[[Step, Any], Callable[..., Any]]
"""The callable of a step that has no variables elsewhere, with streams from the second argument."""
OnHost = Callable[[Node], Callable[..., Any] | None]
"""The callable of a node for host arrays, wherever it is placed; None where there is none."""
Bodies = Callable[[Node], Mapping[str, Block]]
"""The placed blocks of a control-flow node's functions, by attribute."""

_EMBEDDED: Final = 1 << 14
"""Bytes up to which a constant is part of a segment; a larger one is an input."""


def embedded(node: Node) -> bool:
    """Whether a node is a constant that stands in the segments that use it."""
    if not node.is_const:
        return False
    on_host = node.target is None or node.target.is_host
    return on_host or node.attrs["value"].nbytes <= _EMBEDDED


def is_local(value: Value) -> bool:
    """Whether a tracer alone knows a value: a list, the handle of a tensor array, or its size."""
    node = value.node
    return value.dtype is dtypes.variant or (node.traits.local and value.index in node.host_outputs)


@record(slots=True)
class Members:
    """Says which nodes may be part of a segment, and makes segments of them.

    Attributes:
        bind: the callable of a step.
        on_host: the callable of a node for host arrays.
        bodies: the blocks of control flow.
        refused: nodes that a compiler did not take.
        roots: what `root_of` has found.
        used: the values that some node or caller uses.
        outside: control flow that no segment can take in, to the reason.
    """

    bind: Bind
    on_host: OnHost
    bodies: Bodies
    refused: set[Node] = field(default_factory=set)
    roots: dict[Node, Any] = field(default_factory=dict)
    used: set[Value] = field(default_factory=set)
    outside: dict[Node, str] = field(default_factory=dict)
    _inner: dict[Node, dict[str, Block]] = field(default_factory=dict)
    _outer: dict[SegmentNode, Node] = field(default_factory=dict)

    def home(self, node: Node) -> Target | None:
        """The device in whose segments a node may be, or None."""
        target = node.target
        if target is None or target.compiler is None or node in self.refused:
            return None
        return target if self._admitted(node, target) else None

    def _admitted(self, node: Node, target: Target, inside: bool = False) -> bool:
        """Whether a node, `inside` a body or not, depends on nothing but buffers of its device."""
        traits = node.traits
        if node.op in (FEED, COPY) or node.is_const or traits.holds or traits.placeholder:
            return False
        if LABEL_ATTR in node.attrs:  # its kernel was asked for
            return False
        if chooses(node) or node.target is not target or traits.foreign or traits.cost is Cost.WAIT:
            return False
        if not all(self._known(node, i) for i in node.host_inputs):
            return False
        made = node.values()
        if any(made[i] in self.used and not is_local(made[i]) for i in node.host_outputs):
            return False
        if any(v.dtype is dtypes.string for v in (*node.inputs, *made)):
            return False
        if traits.control is not Control.NONE:
            return self._runs_inside(node, target)
        cells = [i for i in cell_inputs(node) if is_state(node.inputs[i])]
        if cells:
            return self._on_variables(node, target, cells)
        if traits.random:
            # A program draws as many blocks each time: their number is part of it.
            known = all(s is not None and None not in s for s in node.out_shapes)
            return known and not inside and node.kernel is not None
        return node.spec is None or not node.spec.is_stateful or traits.local

    def _known(self, node: Node, index: int) -> bool:
        """Whether a program can be made although the kernel wants an input on the host."""
        value = node.inputs[index]
        if is_local(value) or (node.traits.local and is_state(value)):
            return True
        if embedded(value.node):
            return True
        return index in _traced(node) and location(value) == memory_of(node.target)

    def arrays(self, node: Node) -> set[Node]:
        """The roots of the tensor arrays that a node makes or works on, in its bodies as well."""
        if node.traits.local:
            return {root_of(node, self.roots)}
        found = set()
        first = 1 if node.traits.control is Control.COND else 0
        for block in self._inner.get(node, {}).values():
            inside = {root for n in block.nodes for root in self.arrays(n)}
            for i, value in enumerate(block.feeds):
                if value.node in inside:
                    found.add(root_of(node.inputs[first + i].node, self.roots))
        return found

    def changed(self, node: Node) -> frozenset[int]:
        """The inputs of a node that are variables which it changes: as its bodies do, if any."""
        blocks = self._inner.get(node)
        if not blocks:
            return written(node)
        first = 1 if node.traits.control is Control.COND else 0
        found: set[int] = set()
        for block in blocks.values():
            roots = self._changed_in(block)
            found.update(first + i for i, v in enumerate(block.feeds) if v.node in roots)
        return frozenset(found)

    def _changed_in(self, block: Block) -> set[Node]:
        return {root_of(n.inputs[i].node, self.roots) for n in block.nodes for i in self.changed(n)}

    def meets(self, block: Block) -> None:
        """Notes which values of a block are used."""
        self.used.update(v for n in block.nodes for v in n.inputs)
        self.used.update(block.fetches)

    def decides(self, block: Block) -> dict[Node, dict[int, Value]]:
        """Lets nodes read where it is computed what a program need not copy to the host for them.

        Returns:
            The copies from which they read it, by the nodes and the indices of their inputs.
        """
        found: dict[Node, dict[int, Value]] = {}
        for node in block.nodes:
            if node.target is None or node.target.compiler is None:
                continue
            for i in _traced(node):
                copy = node.inputs[i]
                if copy.node.op == COPY and copy.node.attrs["from"] == memory_of(node.target):
                    found.setdefault(node, {})[i] = copy
                    node.takes(i, copy.node.inputs[0])
        block.sweep()
        return found

    def _on_variables(self, node: Node, target: Target, cells: Iterable[int]) -> bool:
        for i in cells:
            holder = root_of(node.inputs[i].node, self.roots)
            kept = holder.traits.local if node.traits.local else holder.traits.holds
            if holder.op != FEED and not (kept and holder.target is target):
                return False
        if node.kernel is not None:
            return True
        return node.is_alias or (node.traits.builtin and node.traits.keeps == ("value",))

    def _runs_inside(self, node: Node, target: Target) -> bool:
        """Whether all of a control-flow node's functions could be part of a segment."""
        if node not in self._inner:
            try:
                found = dict(self.bodies(node))
            except (errors.OpError, ValueError, TypeError):
                found = {}  # a branch that is never taken need not fit
            for block in found.values():
                self.decides(block)
                self.meets(block)
            odd = [n for b in found.values() for n in self._strangers(b, target)]
            if odd:
                self.outside[node] = f"{odd[0].name} ({odd[0].op}) is in no program"
            self._inner[node] = {} if odd else found
        return bool(self._inner[node])

    def _strangers(self, block: Block, target: Target) -> list[Node]:
        """The nodes of a body that cannot be part of a segment; copies only feed others."""
        return sorted(
            (
                n for n in block.nodes
                if not (n.op == FEED or embedded(n) or self._admitted(n, target, inside=True))
            ),
            key=lambda n: n.op == COPY,
        )  # fmt: skip

    # ------------------------------------------------------------ what a compiler sees
    def segment(self, node: Node) -> Segment:
        """The segment for which a node stands."""
        assert node.fused is not None
        cells = node.attrs["cells"]
        block = Block(
            [*_constants(node.fused.members), *node.fused.members],
            list(node.fused.inputs), list(node.fused.results),
        )  # fmt: skip
        changed = {node.inputs[i] for i in node.attrs["written"]}
        assert node.target is not None
        state = [i in cells for i in range(len(node.inputs))]
        return self._made(node.name, block, node.target, state, changed)

    def knows(self, part: Any) -> bool:
        """Whether something is a node of a segment, or of a body in one, that was made here."""
        return isinstance(part, SegmentNode) and part in self._outer

    def member(self, part: SegmentNode) -> Node:
        """The member that a node of a segment, or of a body in it, is part of."""
        return self._outer[part]

    def _body(self, name: str, block: Block, target: Target, outer: Node) -> Segment:
        state = [is_state(v) for v in block.feeds]
        changed = {Value(root, 0) for root in self._changed_in(block)}
        return self._made(name, block, target, state, changed, outer)

    def _made(
        self, name: str, block: Block, target: Target, state: Sequence[bool], changed: set[Value],
        outer: Node | None = None,
    ) -> Segment:  # fmt: skip
        lined_up, streams = schedule(block), SegmentStreams()
        frees = _frees(lined_up)
        nodes = tuple(
            self._node(step, target, streams, outer or step.node, frees.get(i, ()))
            for i, step in enumerate(lined_up.steps)
        )
        both = list(zip(lined_up.params, block.feeds, state, strict=True))
        fetched = zip(lined_up.fetches, block.fetches, strict=True)
        needed = _needed(lined_up, {slot for slot, _, cell in both if cell})
        return Segment(
            name=name,
            device=target.device,
            nodes=nodes,
            params=tuple(lined_up.params),
            inputs=tuple(_value(slot, v) for slot, v, cell in both if not cell),
            outputs=tuple(_value(slot, v) for slot, v in fetched),
            variables=tuple(
                _variable(slot, v, slot in needed, v in changed) for slot, v, cell in both if cell
            ),
            constants={s: _constant(n) for s, n in lined_up.presets.items()},
            streams=tuple(streams.found.values()),
        )  # fmt: skip

    def _node(
        self, step: Step, target: Target, streams: SegmentStreams, outer: Node,
        frees: tuple[int, ...],
    ) -> SegmentNode:  # fmt: skip
        node = step.node
        bodies = {}
        if step.kind == "control":
            bodies = {
                name: self._body(f"{node.name}/{name}", block, target, outer)
                for name, block in self._inner[node].items()
            }
        made = SegmentNode(
            name=node.name,
            op="read" if step.kind == "read" else node.op,
            attrs=node.attrs,
            inputs=tuple(step.inputs),
            outputs=tuple(step.outputs),
            results=tuple(_value(s, v) for s, v in zip(step.outputs, node.values(), strict=False)),
            call=None if bodies else self.bind(step, streams),
            bodies=bodies,
            line="" if node.origin is None else node.origin.user_line,
            frees=frees,
            host=None if bodies else functools.partial(self.on_host, node),
        )
        self._outer[made] = outer
        return made


def _traced(node: Node) -> frozenset[int]:
    """The inputs that are wanted on the host, but not by a program."""
    if node.traits.control is Control.COND:
        return frozenset({0})
    kernel, spec = node.kernel, node.spec
    if kernel is None or spec is None or not kernel.traced:
        return frozenset()
    return flat_indices(spec.definition.inputs, kernel.traced, node)


def _constants(nodes: Iterable[Node]) -> list[Node]:
    return list(dict.fromkeys(v.node for n in nodes for v in n.inputs if embedded(v.node)))


def _constant(node: Node) -> Any:
    value = node.attrs["value"]
    if node.target is None or node.target.is_host:
        return value
    return node.target.device.upload(value)


def _value(slot: int, value: Value) -> SegmentValue:
    return SegmentValue(slot, value.dtype.base_dtype, value.shape, value.node.name)


def _variable(slot: int, value: Value, read: bool, changed: bool) -> SegmentVariable:
    attrs, dtype, shape = value.node.attrs, value.dtype.base_dtype, value.shape
    if dtype is dtypes.resource:
        dtype, shape = attrs.get("dtype", dtype), attrs.get("shape")
    return SegmentVariable(slot, value.node.name, dtype, shape, read, changed)


def _frees(lined_up: Schedule) -> dict[int, tuple[int, ...]]:
    """The slots that the step of an index is the last to name."""
    last = {s: i for i, step in enumerate(lined_up.steps) for s in (*step.inputs, *step.outputs)}
    found: dict[int, tuple[int, ...]] = {}
    for slot, i in last.items():
        if slot not in lined_up.fetches:
            found[i] = (*found.get(i, ()), slot)
    return found


def _needed(lined_up: Schedule, cells: set[int]) -> set[int]:
    """The variables whose values are used before they are written as a whole."""
    names = dict(zip(cells, cells, strict=True))  # slot of a reference -> the variable's
    needed: set[int] = set()
    assigned: set[int] = set()
    for step in lined_up.steps:
        used = [names[s] for s in step.inputs if s in names]
        if used and step.kind != "read":
            made = zip(step.outputs, step.node.values(), strict=True)
            names.update((slot, used[0]) for slot, v in made if is_state(v))
        whole = step.kind == "builtin" and bool(written(step.node))
        if whole:
            assigned.update(used)
        elif step.kind != "alias":
            needed.update(s for s in used if s not in assigned)
    return needed
