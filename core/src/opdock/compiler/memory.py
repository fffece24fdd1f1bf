"""Memory plan: which results go into buffers that the program owns and uses again every step.

A result may live in a planned buffer only if nobody can hold it after the step: it is neither
fetched nor stored in a variable, nor an alias of such a value. Buffers are shared by results of
one device, type and shape whose lifetimes do not meet; an elementwise op may write over an input
that dies there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from opdock.compiler.schedule import ALIASES, Schedule, Step
from opdock.compiler.target import Target

# NumPy checks overlapping operands: for tiny results a second buffer costs less than the check.
_IN_PLACE_FROM: Final = 4096
_Held = tuple[Any, int, int]  # of an alias root: (pool key, buffer, the slot that it was made for)


@dataclass(slots=True)
class MemoryPlan:
    """The buffers to allocate: (target, shape, type) each; and figures for `explain`.

    Attributes:
        buffers: index to what to allocate.
        planned_bytes: the size of all buffers.
        naive_bytes: what one buffer per planned result would take.
        shared: slots whose buffer someone else may hold: the caller (feeds), the program
            (constants) or a variable. Such a value is copied before the caller gets it.
        kept_params: feeds that outlive the step, so the caller's array is copied first.
    """

    buffers: list[tuple[Target, tuple[int, ...], Any]] = field(default_factory=list)
    planned_bytes: int = 0
    naive_bytes: int = 0
    shared: frozenset[int] = frozenset()
    kept_params: frozenset[int] = frozenset()


def plan_memory(schedule: Schedule, share: bool = True) -> MemoryPlan:
    """Sets `Step.out` and `Step.frees`, and returns the buffers to allocate.

    Without `share` no result gets a planned buffer.
    """
    last = _last_uses(schedule)
    root = _aliases(schedule)
    escaping = _escaping(schedule, root)
    group_end = _group_ends(schedule, last, root)
    plan = MemoryPlan()
    free: dict[Any, list[int]] = {}
    held: dict[int, _Held] = {}
    dying: dict[int, list[int]] = {}
    for r, end in group_end.items():
        dying.setdefault(end, []).append(r)
    for i, step in enumerate(schedule.steps):
        key = _pool_key(step, escaping, root) if share else None
        ends_here = dying.get(i, [])
        if key is not None:
            out_root = root[step.outputs[0]]
            buffer = _in_place(step, key, root, ends_here, held)
            if buffer is None:
                pool = free.setdefault(key, [])
                buffer = pool.pop() if pool else _new_buffer(plan, step, key)
            step.out = buffer
            held[out_root] = (key, buffer, step.outputs[0])
            plan.naive_bytes += _bytes(key)
        for r in ends_here:
            found = held.pop(r, None)
            if found is not None:
                free.setdefault(found[0], []).append(found[1])
    _mark_frees(schedule, last)
    kept = _kept(schedule, root)
    held_elsewhere = kept | {root[s] for s in (*schedule.presets, *schedule.params)}
    plan.shared = frozenset(s for s in range(schedule.n_slots) if root[s] in held_elsewhere)
    plan.kept_params = frozenset(s for s in schedule.params if root[s] in kept)
    return plan


def _last_uses(schedule: Schedule) -> dict[int, int]:
    last: dict[int, int] = {}
    for i, step in enumerate(schedule.steps):
        for slot in step.inputs:
            last[slot] = i
        for slot in step.outputs:
            last.setdefault(slot, i)
    for slot in schedule.fetches:
        last[slot] = len(schedule.steps)
    return last


def _aliases(schedule: Schedule) -> list[int]:
    """For each slot the representative of the set of slots that may share its buffer."""
    parent = list(range(schedule.n_slots))

    def find(slot: int) -> int:
        while parent[slot] != slot:
            parent[slot] = parent[parent[slot]]
            slot = parent[slot]
        return slot

    for step in schedule.steps:
        if step.kind == "alias" or (
            step.kind == "builtin" and step.node.op in ALIASES | {"IdentityN"}
        ):
            for a, b in zip(step.inputs, step.outputs, strict=False):
                parent[find(b)] = find(a)
        elif step.kind == "copy":
            # A copy between two views of host memory may be no copy at all.
            parent[find(step.outputs[0])] = find(step.inputs[0])
        elif step.kind == "kernel" and step.node.kernel is not None:
            for out, into in step.node.kernel.may_alias.items():
                if out < len(step.outputs) and into < len(step.inputs):
                    parent[find(step.outputs[out])] = find(step.inputs[into])
    return [find(s) for s in range(schedule.n_slots)]


def _escaping(schedule: Schedule, root: list[int]) -> set[int]:
    out = {root[s] for s in schedule.fetches}
    out.update(root[s] for s in schedule.presets)
    out.update(root[s] for s in schedule.params)
    for step in schedule.steps:
        # Stateful ops may keep what they are given; control flow may return it.
        if step.kind in ("control", "read") or _may_keep(step):
            out.update(root[s] for s in step.inputs)
            out.update(root[s] for s in step.outputs)
    return out


def _kept(schedule: Schedule, root: list[int]) -> set[int]:
    """Alias roots that a variable, queue or user function may hold after the step."""
    out: set[int] = set()
    for step in schedule.steps:
        if step.kind == "read":
            out.add(root[step.outputs[0]])
        elif _may_keep(step):
            out.update(root[s] for s in step.inputs)
            if step.node.op == "ReadVariableOp":
                out.add(root[step.outputs[0]])
        elif step.kind == "control":
            out.update(root[s] for s in (*step.inputs, *step.outputs))
    return out


def _may_keep(step: Step) -> bool:
    """Whether the op may hold on to its inputs: stateful ones, and those that build lists."""
    return step.node.stateful or any(d.name == "variant" for d in step.node.out_dtypes)


def _group_ends(schedule: Schedule, last: dict[int, int], root: list[int]) -> dict[int, int]:
    ends: dict[int, int] = {}
    for slot, end in last.items():
        ends[root[slot]] = max(end, ends.get(root[slot], -1))
    return ends


def _pool_key(step: Step, escaping: set[int], root: list[int]) -> Any:
    kernel = step.node.kernel
    if step.kind != "kernel" or kernel is None or not kernel.out or len(step.outputs) != 1:
        return None
    shape = step.node.out_shapes[0]
    if shape is None or None in shape or root[step.outputs[0]] in escaping or kernel.may_alias:
        return None
    if step.node.target is None or 0 in step.node.host_outputs:
        return None
    return step.node.target, shape, step.node.out_dtypes[0]


def _in_place(
    step: Step, key: Any, root: list[int], ends_here: list[int], held: dict[int, _Held]
) -> int | None:
    if step.node.spec is None or step.node.spec.expr is None or _bytes(key) < _IN_PLACE_FROM:
        return None
    for slot in step.inputs:
        r = root[slot]
        # A view of the buffer among the operands would be read after it has been written.
        if any(root[s] == r and s != slot for s in step.inputs):
            continue
        if r in ends_here and r in held and held[r] == (key, held[r][1], slot):
            return held.pop(r)[1]
    return None


def _new_buffer(plan: MemoryPlan, step: Step, key: Any) -> int:
    plan.buffers.append((key[0], key[1], key[2].base_dtype))
    plan.planned_bytes += _bytes(key)
    return len(plan.buffers) - 1


def _bytes(key: Any) -> int:
    size = int(key[2].size)
    for dim in key[1]:
        size *= dim
    return size


def _mark_frees(schedule: Schedule, last: dict[int, int]) -> None:
    keep = set(schedule.fetches) | set(schedule.presets)
    for slot, end in last.items():
        if end < len(schedule.steps) and slot not in keep:
            schedule.steps[end].frees.append(slot)
