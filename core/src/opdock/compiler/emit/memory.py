"""Memory plan: which results go into buffers that the program owns and uses again every step.

A result may live in a planned buffer only if nobody can hold it after the step: it is neither
fetched nor stored in a variable, nor an alias of such a value. A gradient that an optimizer reads
to write fresh state is not held: `Kernel.keeps` says so. Results of
one device whose lifetimes do not meet share memory; an elementwise op or cluster may write over an
input that dies there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import field
from typing import Final

from opdock import dtypes
from opdock.compiler.emit.arena import Buffers, Form, Forms, Planned
from opdock.compiler.emit.schedule import Schedule, Step
from opdock.compiler.ir.state import cell_inputs, flat_indices
from opdock.compiler.ir.together import Together
from opdock.compiler.place.target import Target
from opdock.kernels.expr.cluster import CLUSTER
from opdock.late import record

# NumPy checks overlapping operands: for tiny results a second buffer costs less than the check.
_IN_PLACE_FROM: Final = 4096
_Held = tuple[Form, int, int]  # of an alias root: (form, buffer, the slot that it was made for)


@record(slots=True)
class MemoryPlan:
    """The buffers to allocate, and figures for `explain`.

    Attributes:
        buffers: index to what to allocate.
        blocks: the size of each device's block of memory, where buffers are places in one.
        planned_bytes: the size of all blocks and buffers: their peak, as they are there all along.
        naive_bytes: what one buffer per planned result would take.
        shared: slots whose buffer someone else may hold: the caller (feeds), the program
            (constants) or a variable. Such a value is copied before the caller gets it.
        kept_params: feeds that outlive the step, so the caller's array is copied first.
        placeable: slots of fetches that a kernel writes where the caller wants them, if it says.
        over: those of them, by the feed where they may lie: whoever gives its array up may have the
            result written there.
    """

    buffers: list[Planned] = field(default_factory=list)
    blocks: dict[Target, int] = field(default_factory=dict)
    planned_bytes: int = 0
    naive_bytes: int = 0
    shared: frozenset[int] = frozenset()
    kept_params: frozenset[int] = frozenset()
    placeable: frozenset[int] = frozenset()
    over: Mapping[int, int] = field(default_factory=dict)


def plan_memory(schedule: Schedule, share: bool = True) -> MemoryPlan:
    """Sets `Step.out` and `Step.frees`, and returns the buffers to allocate.

    Without `share` no result gets a planned buffer.
    """
    last = last_uses(schedule)
    root = aliases(schedule)
    keeps = [s for step in schedule.steps for s in _keeps(step)]
    lent = _escaping(schedule, root, keeps)
    escaping = lent | {root[s] for s in schedule.fetches}
    group_end = group_ends(last, root)
    plan, buffers, forms = MemoryPlan(), Buffers(), Forms()
    held: dict[int, _Held] = {}
    for i, step in enumerate(schedule.steps):
        found: list[int | None] = []
        for j, slot in enumerate(step.outputs if share else ()):
            form = _form(step, j, escaping, root, forms)
            if form is None:
                found.append(None)
                continue
            over = _writes_over(step, j) if form.nbytes >= _IN_PLACE_FROM else ()
            ending = [slot for slot in [step.inputs[k] for k in over] if group_end[root[slot]] == i]
            buffer = _in_place(step, ending, form, root, held)
            if buffer is None:
                buffer = buffers.take(form)
            found.append(buffer)
            held[root[slot]] = (form, buffer, slot)
            plan.naive_bytes += form.nbytes
        if len(found) == 1:
            step.out = found[0]
        elif any(b is not None for b in found):
            step.outs = tuple(found)
        # What ends here has a slot that the step takes or makes.
        for slot in (*step.inputs, *step.outputs) if held else ():
            r = root[slot]
            if group_end[r] == i and r in held:
                buffers.give(held.pop(r)[1])
    plan.buffers = buffers.planned
    plan.blocks = {target: block.size for target, block in buffers.blocks.items()}
    plan.planned_bytes = buffers.nbytes
    _mark_frees(schedule, last)
    kept = _kept(schedule, root, keeps)
    held_elsewhere = kept | {root[s] for s in (*schedule.presets, *schedule.params)}
    plan.shared = frozenset(s for s in range(schedule.n_slots) if root[s] in held_elsewhere)
    plan.kept_params = frozenset(s for s in schedule.params if root[s] in kept)
    if share:
        plan.placeable = _placeable(schedule, root, lent, forms)
        plan.over = _over(schedule, root, group_end, plan, forms)
    return plan


def last_uses(schedule: Schedule) -> list[int]:
    """For each slot the step that uses it last; for fetches the one after all, -1 for no step."""
    last = [-1] * schedule.n_slots
    for i, step in enumerate(schedule.steps):
        for slot in step.inputs:
            last[slot] = i
        for slot in step.outputs:
            if last[slot] < 0:
                last[slot] = i
    for slot in schedule.fetches:
        last[slot] = len(schedule.steps)
    return last


def aliases(schedule: Schedule) -> list[int]:
    """For each slot the representative of the set of slots that may share its buffer."""
    together = Together(range(schedule.n_slots))
    for step in schedule.steps:
        if step.kind in ("alias", "builtin") and step.node.traits.forwards:
            for a, b in zip(step.inputs, step.outputs, strict=False):
                together.join(b, a)
        elif step.kind == "copy" and step.node.attrs.get("how") != "download":
            # A copy between two views of host memory may be no copy at all.
            together.join(step.outputs[0], step.inputs[0])
        elif step.kind == "kernel" and step.node.kernel is not None:
            for out, into in step.node.kernel.may_alias.items():
                if out < len(step.outputs) and into < len(step.inputs):
                    together.join(step.outputs[out], step.inputs[into])
    return [together.root(s) for s in range(schedule.n_slots)]


def _escaping(schedule: Schedule, root: list[int], keeps: list[int]) -> set[int]:
    """Alias roots that someone else than the caller who gets them may hold, `keeps` among them."""
    out = {root[s] for s in (*keeps, *schedule.presets, *schedule.params)}
    for step in schedule.steps:
        attrs = step.node.attrs
        if step.kind == "copy" and (attrs.get("shares") or attrs.get("surrenders")):
            # Two devices see this memory, and neither waits until the other has read it; or it
            # becomes the caller's.
            out.add(root[step.inputs[0]])
        # Control flow and segments may return what they are given, or keep it.
        if step.kind in ("control", "segment", "read"):
            out.update(root[s] for s in (*step.inputs, *step.outputs))
    return out


def _kept(schedule: Schedule, root: list[int], keeps: list[int]) -> set[int]:
    """Alias roots that a variable, queue or user function may hold after the step."""
    out = {root[s] for s in keeps}
    for step in schedule.steps:
        if step.kind == "read":
            out.add(root[step.outputs[0]])
        elif step.kind in ("control", "segment"):
            # What a segment takes from the host it has read when it returns.
            lent = step.node.host_inputs if step.kind == "segment" else ()
            inputs = (s for i, s in enumerate(step.inputs) if i not in lent)
            out.update(root[s] for s in (*inputs, *step.outputs))
    return out


def _keeps(step: Step) -> list[int]:
    """The slots whose buffers the step's op may hold on to when the step is over.

    Ops that build lists keep what goes into them. Of stateful ops, the kernel's record tells.
    """
    node = step.node
    if node.spec is None or step.kind in ("alias", "read"):
        return []
    if True in [d is dtypes.variant for d in node.out_dtypes]:
        return [*step.inputs, *step.outputs]
    # A variable that is only read for its value makes no op stateful here.
    if not node.spec.stateful and not cell_inputs(node):
        return []
    names = node.traits.keeps if node.kernel is None else node.kernel.keeps
    if names is None:
        return [*step.inputs, *step.outputs]
    definition = node.spec.definition
    inputs = flat_indices(definition.inputs, names, node)
    outputs = flat_indices(definition.outputs, names, node)
    return [step.inputs[i] for i in inputs] + [step.outputs[i] for i in outputs]


def group_ends(last: Sequence[int], root: Sequence[int]) -> list[int]:
    """For each representative of `aliases` the step that uses any of its slots last, or -1."""
    ends = [-1] * len(last)
    for r, end in zip(root, last, strict=True):
        ends[r] = max(ends[r], end)
    return ends


def _form(
    step: Step, output: int, escaping: Container[int], root: list[int], forms: Forms
) -> Form | None:
    """What a planned buffer for a result must be like; None if it may not have one."""
    kernel = step.node.kernel
    if step.kind != "kernel" or kernel is None or not kernel.out or kernel.may_alias:
        return None
    node = step.node
    if node.target is None or output in node.host_outputs or root[step.outputs[output]] in escaping:
        return None
    return forms.of(node.target, node.out_shapes[output], node.out_dtypes[output].base_dtype)


def _placeable(schedule: Schedule, root: list[int], lent: set[int], forms: Forms) -> frozenset[int]:
    fetched = set(schedule.fetches)
    if not fetched:
        return frozenset()
    return frozenset(
        slot
        for step in schedule.steps
        for i, slot in enumerate(step.outputs)
        if slot in fetched
        and (form := _form(step, i, lent, root, forms)) is not None
        and form.target.is_host
    )


def _over(
    schedule: Schedule, root: list[int], group_end: list[int], plan: MemoryPlan, forms: Forms
) -> dict[int, int]:
    """The fetches that may lie where a feed lies which nobody reads any more, by that feed."""
    if not plan.placeable:
        return {}
    members = Counter(root)
    free = set(schedule.params) - plan.kept_params
    found: dict[int, int] = {}
    for i, step in enumerate(schedule.steps):
        for j, slot in enumerate(step.outputs):
            # A view of either, or a fetch of the feed, would see what is written.
            if slot not in plan.placeable or members[root[slot]] != 1:
                continue
            form = _form(step, j, (), root, forms)
            if form is None or form.nbytes < _IN_PLACE_FROM:
                continue
            for at in _writes_over(step, j):
                of, (node, output) = step.inputs[at], step.node.inputs[at]
                alone = of in free and members[root[of]] == 1 and group_end[root[of]] == i
                shape, dtype = node.out_shapes[output], node.out_dtypes[output].base_dtype
                if alone and forms.of(form.target, shape, dtype) is form:
                    free.discard(of)
                    found[of] = slot
                    break
    return found


def _writes_over(step: Step, output: int) -> Sequence[int]:
    """The inputs of which one of a result's form may lie where that does.

    What is elementwise reads each element before it writes there; of others their kernel says it.
    """
    node = step.node
    if node.op == CLUSTER:
        whole = output < len(step.outputs) - len(node.attrs["reduces"])
    else:
        whole = node.spec is not None and node.spec.expr is not None
    if whole:
        return range(len(step.inputs))
    named = None if node.kernel is None else node.kernel.over.get(output)
    # What reads the same array elsewhere too would find the result there.
    once = named is not None and step.inputs.count(step.inputs[named]) == 1
    return (named,) if named is not None and once else ()


def _in_place(
    step: Step, ending: Sequence[int], form: Form, root: list[int], held: dict[int, _Held]
) -> int | None:
    """The buffer of one of the step's operands whose last use it is, if the result may lie there.

    Args:
        step: what makes the result.
        ending: the slots of such operands.
        form, root, held: of the result, of slots, and what lies in buffers.
    """
    for slot in ending:
        r = root[slot]
        if r not in held or held[r] != (form, held[r][1], slot):
            continue
        # A view of the buffer among the operands would be read after it has been written.
        if not any(root[s] == r and s != slot for s in step.inputs):
            return held.pop(r)[1]
    return None


def _mark_frees(schedule: Schedule, last: Sequence[int]) -> None:
    for i, step in enumerate(schedule.steps):
        ending = [s for s in (*step.inputs, *step.outputs) if last[s] == i]
        freed = [s for s in ending if s not in schedule.presets]
        if freed:
            step.frees = tuple(dict.fromkeys(freed))
