"""Partition: every value gets to where it is used. Copies are nodes, so traces show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from opdock.compiler.ir.block import COPY, FEED, HOST, SEGMENT, Block, Node, Value
from opdock.compiler.ir.state import cell_inputs, flat_indices, is_handle, written
from opdock.devices.answers import arriving, downloading
from opdock.devices.router import Hop, Router, from_host
from opdock.graph.nodes.traits import Control


def partition(block: Block, router: Router, results_at: str | None = HOST) -> None:
    """Inserts copies wherever a value lives elsewhere than its consumer needs it.

    Each step of a route is a node, so that a trace times it, and what passes through the host on
    its way is there for others.

    Args:
        block: changed in place.
        router: finds the cheapest ways.
        results_at: where the fetches must end: host memory, or a device for function bodies. None
            leaves them where they are.
    """
    for node in block.nodes:
        declare_memory(node)
    if _is_of_host(block, results_at):
        return
    copies = _Copies(block, router)
    for node in block.nodes:
        cells = cell_inputs(node)
        for i, value in enumerate(node.inputs):
            where = needed_at(node, i, cells)
            if where is not None:
                node.takes(i, copies.at(value, where, node))
        copies.nodes.append(node)
    block.fetches = [
        v if results_at is None or i in block.cells or is_handle(v)
        else copies.at(v, results_at, None)
        for i, v in enumerate(block.fetches)
    ]  # fmt: skip
    block.nodes = copies.nodes
    if copies.made:
        # Constants that a twin replaced everywhere.
        block.sweep()


def surrender(block: Block) -> None:
    """Lets downloads have the memory of results that nobody else uses.

    Args:
        block: changed in place; partitioned, with segments.
    """
    downloads = [n for n in block.nodes if n.op == COPY and n.attrs["how"] == "download"]
    if not downloads:
        return
    uses = Counter(v for n in block.nodes for v in n.inputs)
    uses.update(block.fetches)
    for node in downloads:
        source = node.inputs[0]
        made = source.node
        fresh = made.op == SEGMENT or _is_fresh(source)
        if fresh and uses[source] == 1 and made.target is not None:
            carry = downloading(made.target.device.surrender, made.target.name)
            node.attrs.update(carry=carry, surrenders=True)


def borrow(block: Block) -> None:
    """Lets uploads have the memory of what the user feeds, for as long as the step takes.

    Args:
        block: changed in place; partitioned.
    """
    if block.within:
        return  # a turn's values may lie in buffers that the next turn writes
    for node in block.nodes:
        if node.op != COPY or node.attrs["how"] != "upload":
            continue
        fed, target = node.inputs[0].node, node.target
        if fed.op == FEED and "at" not in fed.attrs and target and target.name == node.attrs["to"]:
            way = f"upload from {HOST} to {target.name}"
            node.attrs["carry"] = arriving(from_host(target.device.borrow), way)


def _is_of_host(block: Block, results_at: str | None) -> bool:
    """Whether all values are in host memory, where all consumers need them."""
    targets = {n.target for n in block.nodes}
    return (
        results_at in (HOST, None)
        and all(t is None or t.is_host for t in targets)
        and all(location(v) == HOST for v in block.feeds)
    )


def location(value: Value) -> str:
    """Where a value lives: a device name, or `HOST`."""
    node = value.node
    if node.op == FEED:
        return str(node.attrs.get("at", HOST))
    if node.op == COPY:
        where: str = node.attrs["to"]
        return where
    if value.dtype._is_ref_dtype and (cells := cell_inputs(node)):
        # A reference leads to the variable, wherever the op ran that passed it on.
        return location(node.inputs[min(cells)])
    if value.index in node.host_outputs or node.target is None or node.target.is_host:
        return HOST
    return node.target.name


def needed_at(node: Node, index: int, cells: frozenset[int]) -> str | None:
    """Where input `index` of `node` must live; None when anywhere will do.

    Args:
        node: placed, with its kernel's memory declared.
        index: of the input.
        cells: the `cell_inputs` of the node.
    """
    if node.target is None or index in cells:
        return None
    if index in node.host_inputs or node.target.is_host:
        return HOST
    return node.target.name


def declare_memory(node: Node) -> None:
    """Argument names that a kernel wants in host memory, as flat input and output indices."""
    kernel, spec = node.kernel, node.spec
    if node.traits.on_host:
        node.host_outputs = frozenset(range(len(node.out_dtypes)))
    if node.traits.control is Control.COND:
        node.host_inputs = frozenset({0})
    if kernel is not None and node.fused is not None:
        names = node.fused.names
        node.host_inputs = frozenset(i for i, n in enumerate(names) if n in kernel.host_inputs)
    if kernel is None or spec is None or not (kernel.host_inputs or kernel.host_outputs):
        return
    node.host_inputs = flat_indices(spec.definition.inputs, kernel.host_inputs, node)
    node.host_outputs = flat_indices(spec.definition.outputs, kernel.host_outputs, node)


class _Copies:
    """The nodes so far, and where each value has been brought."""

    def __init__(self, block: Block, router: Router) -> None:
        self.block = block
        self.router = router
        self.nodes: list[Node] = []
        # For each value and place: it there, and whether its memory is another place's too.
        self.made: dict[Value, dict[str, tuple[Value, bool]]] = {}
        self.names = {n.name for n in block.nodes}
        self.targets = {
            n.target.name: n.target for n in block.nodes if n.target and not n.target.is_host
        }

    @cached_property
    def constant(self) -> set[Node]:
        """The variables that no node writes; looked for once one is copied."""
        return _unchanged(self.block)

    def at(self, value: Value, where: str, consumer: Node | None) -> Value:
        """`value` at a place; without a consumer, as a copy that the caller may keep."""
        here = location(value)
        if here == where:
            return value
        if value.node.is_const:
            return self._constant(value, where, consumer)
        # What a reference refers to may change between two uses: then each use copies anew.
        changes = value.dtype._is_ref_dtype and value.node not in self.constant
        made = {} if changes else self.made.setdefault(value, {})
        own = consumer is None
        sources = {here: _is_fresh(value)}
        sources |= {place: True for place, (_, shares) in made.items() if not (own and shares)}
        hops = self.router.find(sources, where, own)
        start = hops[0].src if hops else where
        found, shares = made.get(start, (value, False)) if start != here else (value, False)
        for i, hop in enumerate(hops):
            found = self._copy(value, found, hop, hops, i, consumer)
            shares = hop.shares
            made[hop.dst] = found, shares
        return found

    def _constant(self, value: Value, where: str, consumer: Node | None) -> Value:
        made = self.made.setdefault(value, {})
        if where not in made:
            twin = _twin(value.node, None if where == HOST else consumer)
            self.nodes.append(twin)
            made[where] = Value(twin, 0), False
        return made[where][0]

    def _copy(
        self, value: Value, found: Value, hop: Hop, hops: Sequence[Hop], i: int,
        consumer: Node | None,
    ) -> Value:  # fmt: skip
        if hop.how == "download":
            carry = downloading(hop.carry, hop.src)
        else:
            carry = arriving(hop.carry, f"{hop.how} from {hop.src} to {hop.dst}")
        node = Node(
            COPY,
            self._name(value, hop.dst),
            spec=None,
            attrs={
                "from": hop.src, "to": hop.dst, "how": hop.how, "cost": hop.cost,
                "shares": hop.shares, "carry": carry,
            },
            inputs=[found],
            out_dtypes=[value.dtype.base_dtype],
            out_shapes=[value.shape],
            origin=value.node.origin,
            order=value.node.id,
        )  # fmt: skip
        at_end = i == len(hops) - 1 and consumer is not None
        target = consumer.target if at_end and hop.dst != HOST and consumer else None
        node.target = target or self.targets.get(hop.dst) or self.targets.get(hop.src)
        node.how, node.why = "copy", _why(hops, i)
        self.block.copies += 1
        self.nodes.append(node)
        return Value(node, 0)

    def _name(self, value: Value, where: str) -> str:
        output = f"_{value.index}" if value.index else ""
        stem = name = f"{value.node.name}/copy{output}_to_{short(where)}"
        count = 0
        while name in self.names:
            count += 1
            name = f"{stem}_{count}"
        self.names.add(name)
        return name


def _unchanged(block: Block) -> set[Node]:
    """The variables that no node of the block writes; none if it cannot be told which are."""
    changed = {n.inputs[i].node for n in block.nodes for i in written(n)}
    if not all(node.traits.holds for node in changed):
        return set()
    return {n for n in block.nodes if n.traits.holds} - changed


def _is_fresh(value: Value) -> bool:
    """Whether the memory is a kernel's new result: no feed, constant, variable or view of those."""
    node = value.node
    if node.op == COPY or node.kernel is None or node.stateful or node.how == "builtin":
        return False
    return not node.kernel.may_alias and not value.dtype._is_ref_dtype


def _why(hops: Sequence[Hop], i: int) -> str:
    """A step and its place in the whole way, for `explain`."""
    hop = hops[i]
    text = f"{short(hop.src)} to {short(hop.dst)} by {hop.how}"
    if len(hops) == 1:
        return f"{text}, cost {hop.cost:g}"
    way = " > ".join(short(p) for p in (hops[0].src, *(h.dst for h in hops)))
    return f"{text}, step {i + 1} of {way}, cost {sum(h.cost for h in hops):g}"


def short(where: str) -> str:
    """A place as part of a node name: "host", "GPU0"."""
    return where if where == HOST else "".join(where.rsplit(":", 2)[-2:])


def _twin(constant: Node, consumer: Node | None) -> Node:
    """A constant again, where it is needed: cheaper than copying it every step."""
    twin = Node(
        constant.op,
        constant.name,
        spec=constant.spec,
        attrs=constant.attrs,
        inputs=[],
        out_dtypes=constant.out_dtypes,
        out_shapes=constant.out_shapes,
        origin=constant.origin,
        order=constant.id,
    )
    twin.target = consumer.target if consumer is not None else None
    twin.how, twin.why = "builtin", "constant copied when the program was prepared"
    return twin
