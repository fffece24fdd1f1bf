"""Overlap: whether a program gains from running independent steps at the same time.

The estimates are rough: what they must tell apart is work that takes as long as a thread needs to
take it over from work that takes a hundred times that.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from opdock.compiler.emit.schedule import Step
from opdock.compiler.ir.block import Node
from opdock.compiler.ir.state import cell_inputs
from opdock.graph.nodes.traits import Cost
from opdock.late import record
from opdock.shapes import num_elements

HEAVY_US: Final = 50.0
"""From this estimate on a step is worth handing to another thread."""
_WAIT_US: Final = 1000.0  # a function of the user's, or a file: as good a guess as any
_LONG_US: Final = 10_000.0
"""What may be done between two looks at whether a step is to end."""
_FLOPS_PER_US: Final = 4e4
_BYTES_PER_US: Final = 1e4
_GAIN_US: Final = 100.0  # what threads cost, whatever they do
_GAIN_STEP_US: Final = 2.0  # what each step costs when it is not part of the straight line
_GAIN_PART: Final = 0.1


def work_us(step: Step) -> float:
    """About how many microseconds a step takes on one core; 0 where nothing is known."""
    if step.kind not in ("kernel", "builtin"):
        return 0.0
    node = step.node
    if node.traits.cost is Cost.WAIT:
        return _WAIT_US
    moved = _bytes(node)
    if node.traits.cost is Cost.PRODUCT:
        return max(_flops(node) / _FLOPS_PER_US, moved / _BYTES_PER_US)
    return moved / _BYTES_PER_US


def pauses(steps: Sequence[Step], work: Sequence[float]) -> frozenset[int]:
    """The steps before which a program looks whether it is to end, as much was done since the last.

    What waits, and products whose shapes are not known, may take any time; so may functions of the
    user's. Little work is left to end by itself: looking would cost more than it saves.

    Args:
        steps: in executable order.
        work: `work_us` of each.
    """
    found: set[int] = set()
    done = 0.0
    for i, (step, own) in enumerate(zip(steps, work, strict=True)):
        if done >= _LONG_US:
            found.add(i)
            done = 0.0
        if step.kind in ("kernel", "builtin"):
            done += _LONG_US if _takes_any_time(step.node) else own
    return frozenset(found)


def _takes_any_time(node: Node) -> bool:
    if node.traits.cost is Cost.WAIT:
        return True
    return node.traits.cost is Cost.PRODUCT and not _flops(node)


def movable(step: Step) -> bool:
    """Whether any thread may run the step: it is the host's, and holds no variable."""
    node = step.node
    if step.kind not in ("kernel", "builtin") or not (node.target is None or node.target.is_host):
        return False
    return not cell_inputs(node)


@record(frozen=True, slots=True)
class Overlap:
    """How the steps of a program may run at the same time.

    Attributes:
        waiting: for each step how many it waits for.
        followers: for each step those that wait for it.
        heavy: the steps that another thread may take over.
        uses: for each slot by how many steps it is used.
    """

    waiting: list[int]
    followers: list[list[int]]
    heavy: frozenset[int]
    uses: Counter[int]


def overlap(
    steps: Sequence[Step], work: Sequence[float], threads: int, cores: int, one_core: bool
) -> Overlap | None:
    """The overlap of a program, or None when the straight line is as quick.

    Args:
        steps: in executable order.
        work: `work_us` of each.
        threads: how many may run them.
        cores: how many the machine has.
        one_core: kernels use one core each; else those of products and fused ops use all.
    """
    costs = [
        own if own >= HEAVY_US and movable(step) else 0.0
        for step, own in zip(steps, work, strict=True)
    ]
    heavy = frozenset(i for i, c in enumerate(costs) if c)
    if threads < 2 or len(heavy) < 2:
        return None
    waits = dependencies(steps)
    if not _gains(steps, costs, waits, threads, cores, one_core):
        return None
    followers: list[list[int]] = [[] for _ in steps]
    for i, before in enumerate(waits):
        for b in before:
            followers[b].append(i)
    uses = Counter(s for step in steps for s in step.inputs)
    return Overlap([len(w) for w in waits], followers, heavy, uses)


def _gains(
    steps: Sequence[Step], costs: Sequence[float], waits: Sequence[set[int]], threads: int,
    cores: int, one_core: bool,
) -> bool:  # fmt: skip
    """Whether threads save enough: a part of the step, and more than they cost."""
    ends: list[float] = []
    serial = work = 0.0
    for step, cost, before in zip(steps, costs, waits, strict=True):
        own = cost if one_core or not _spreads(step.node) else cost / cores
        serial += own
        work += 0.0 if step.node.traits.cost is Cost.WAIT else cost
        ends.append(max((ends[b] for b in before), default=0.0) + own)
    at_best = max(*ends, work / cores, serial / threads)
    return serial - at_best > max(_GAIN_US + _GAIN_STEP_US * len(steps), _GAIN_PART * serial)


def calls_user(step: Step) -> bool:
    """Whether it calls a user's function, which may wait for whatever it likes."""
    traits = step.node.traits
    return traits.foreign and traits.cost is Cost.WAIT and not traits.blocks


def dependencies(steps: Sequence[Step], waits_in_order: bool = True) -> list[set[int]]:
    """For each step those before it that it waits for.

    Args:
        steps: in executable order.
        waits_in_order: whether what waits for other steps, and what a user's functions do, keeps
            its place among the effects.
    """
    made_by: dict[int, int] = {}
    node_at: dict[Node, int] = {}
    waits: list[set[int]] = []
    last_effect = -1
    for i, step in enumerate(steps):
        before = {made_by[s] for s in step.inputs if s in made_by}
        before.update(node_at[c] for c in step.node.control if c in node_at)
        free = not waits_in_order and (step.node.traits.blocks or calls_user(step))
        if (step.kind in ("read", "control") or step.node.stateful) and not free:
            # Effects keep the order of the straight line.
            if last_effect >= 0:
                before.add(last_effect)
            last_effect = i
        waits.append(before)
        for s in step.outputs:
            made_by[s] = i
        if step.kind != "read":
            node_at[step.node] = i
    return waits


def _bytes(node: Node) -> int:
    # Every step is asked, so loops are plain.
    total = 0
    for before, index in node.inputs:
        total += (num_elements(before.out_shapes[index]) or 0) * before.out_dtypes[index]._size
    for shape, dtype in zip(node.out_shapes, node.out_dtypes, strict=True):
        total += (num_elements(shape) or 0) * dtype._size
    return total


def _flops(node: Node) -> float:
    """Two for each multiply-add: every element of one factor meets some of the other."""
    shapes = [*(v.shape for v in node.inputs[:3]), node.out_shapes[0]]
    known = sorted((n for n in map(num_elements, shapes) if n), reverse=True)
    # For matrices [m, k], [k, n] and [m, n] this is m * k * n exactly.
    return 2.0 * math.sqrt(math.prod(known[:3])) if len(known) >= 3 else 0.0


def _spreads(node: Node) -> bool:
    """Whether the node's kernel is one that may use all cores by itself."""
    return node.traits.cost is Cost.PRODUCT or node.fused is not None
