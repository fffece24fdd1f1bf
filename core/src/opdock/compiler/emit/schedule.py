"""Schedule: the nodes as a straight line of steps over numbered slots.

References are followed here: a step that needs a variable's value gets a read before it, shared
with other steps until something writes the variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Final

from opdock.compiler.ir.block import COPY, FEED, SEGMENT, Block, Node, Value
from opdock.compiler.ir.state import cell_inputs, chooses, written
from opdock.graph.nodes.traits import Control
from opdock.late import record

_NONE: Final[frozenset[int]] = frozenset()


@record(eq=False, slots=True)
class Step:
    """One call: `outputs = fn(*inputs)` over slots.

    Attributes:
        kind: "kernel", "builtin", "control", "segment", "copy", "read" (of a variable) or "alias".
        out: the planned buffer that the call writes to, or None.
        outs: for a step with several results, the buffer or None for each; or empty.
        frees: slots whose last use this is.
    """

    kind: str
    node: Node
    inputs: list[int]
    outputs: list[int]
    out: int | None = None
    outs: tuple[int | None, ...] = ()
    frees: Sequence[int] = ()


@record(slots=True)
class Schedule:
    """A program before it is bound.

    Attributes:
        params: the slots of the feeds, in order.
        presets: slots bound when the program is prepared: constants and variables.
        fetches: the slots to return.
        n_slots: how many slots there are.
    """

    steps: list[Step] = field(default_factory=list)
    params: list[int] = field(default_factory=list)
    presets: dict[int, Node] = field(default_factory=dict)
    fetches: list[int] = field(default_factory=list)
    n_slots: int = 0


def schedule(block: Block) -> Schedule:
    """Numbers the values and lines up the steps."""
    return _Scheduler(block).run()


class _Scheduler:
    def __init__(self, block: Block) -> None:
        self.block = block
        self.out = Schedule()
        self.slots: dict[Value, int] = {}
        self.cell_root: dict[int, int] = {}  # slot of a variable -> the slot that named it first
        self.open = False  # whether a slot may stand for any of several variables
        self.reads: dict[int, int] = {}  # variable -> slot of its value as last read

    def run(self) -> Schedule:
        for value in self.block.feeds:
            self.out.params.append(self.slot(value))
        for node in self.block.nodes:
            self.add(node)
        self.out.fetches = [
            self.slot(v) if i in self.block.cells else self.data(v)
            for i, v in enumerate(self.block.fetches)
        ]
        return self.out

    def slot(self, value: Value) -> int:
        found = self.slots.get(value)
        if found is None:
            found = self.slots[value] = self.out.n_slots
            self.out.n_slots += 1
        return found

    def data(self, value: Value) -> int:
        """The slot of a value as data: what a reference refers to, read now."""
        slot = self.slot(value)
        if not value.dtype._is_ref_dtype:
            return slot
        root = self.cell_root.get(slot, slot)
        found = self.reads.get(root)
        if found is None:
            found = self.reads[root] = self.out.n_slots
            self.out.n_slots += 1
            self.out.steps.append(Step("read", value.node, [slot], [found]))
        return found

    def add(self, node: Node) -> None:
        if node.op == FEED:
            return
        if node.is_const or node.traits.holds:
            self.out.presets[self.slot(Value(node, 0))] = node
            return
        cells = cell_inputs(node) if node.touches else _NONE
        slots = self.slots
        inputs: list[int] = []
        for i, value in enumerate(node.inputs):
            before, index = value
            if before.out_dtypes[index]._is_ref_dtype and i not in cells:
                inputs.append(self.data(value))
            else:
                found = slots.get(value)
                inputs.append(self.slot(value) if found is None else found)
        outputs = [self.slot(v) for v in node.values()]
        self.out.steps.append(Step(_kind(node), node, inputs, outputs))
        if cells:
            self.after(node, cells, inputs, outputs)

    def after(
        self, node: Node, cells: frozenset[int], inputs: list[int], outputs: list[int]
    ) -> None:
        """Updates what is known of variables: writes end earlier reads, references pass through."""
        roots = [self.cell_root.get(inputs[i], inputs[i]) for i in sorted(cells)]
        changed = [self.cell_root.get(inputs[i], inputs[i]) for i in written(node, cells)]
        if changed:
            if not self.open and all(r in self.out.presets for r in changed):
                for root in changed:
                    self.reads.pop(root, None)
            else:
                # A variable that came in as an argument may be any of those seen so far.
                self.reads.clear()
        for value, slot in zip(node.values(), outputs, strict=True):
            if value.dtype._is_ref_dtype and chooses(node):
                self.open = True
            elif value.dtype._is_ref_dtype and roots:
                self.cell_root[slot] = roots[0]


def _kind(node: Node) -> str:
    if node.op == COPY:
        return "copy"
    if node.op == SEGMENT:
        return "segment"
    if node.traits.control is not Control.NONE:
        return "control"
    if node.is_alias and node.kernel is None:
        return "alias"
    return "builtin" if node.how == "builtin" or node.kernel is None else "kernel"
