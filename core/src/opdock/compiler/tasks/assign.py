"""Which task of a cluster runs which node: the first question of placement, asked before devices.

Within its task a node finds device and kernel as in any program. A branch or a loop whose bodies
ask for several tasks is in all of them, each of which runs its part of the bodies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from opdock import errors
from opdock.compiler.clean.prune import as_written
from opdock.compiler.ir.block import FEED, Block, Node
from opdock.compiler.ir.state import is_handle, is_state
from opdock.compiler.place.placer import Placer, colocated, groups, requested_by
from opdock.compiler.place.target import parsed
from opdock.graph.nodes.devicespec import DeviceSpec
from opdock.graph.nodes.traits import Control

__all__ = ["Divided", "Tasks", "assign", "task_of"]

_PREDICATE: Final = 1


class Tasks(dict[Node, str]):
    """The task of each node but of feeds, which go wherever they are needed.

    Feeds that are here are parameters of a body: a variable, or what changes from turn to turn.

    Attributes:
        divided: the branches and loops that are in more tasks than the one that has their results.
    """

    def __init__(self) -> None:
        super().__init__()
        self.divided: dict[Node, Divided] = {}

    def everywhere(self) -> set[str]:
        """All tasks that have anything to do."""
        found = set(self.values())
        return found.union(*(d.tasks for d in self.divided.values()))


@dataclass(frozen=True, slots=True)
class Divided:
    """A branch or a loop in several tasks.

    Attributes:
        tasks: which ones; that which has the results comes first.
        bodies: for each attribute that is a body, its block and the tasks of its nodes.
        owned: the parameters that a task has for itself, by their number: variables and handles.
    """

    tasks: tuple[str, ...]
    bodies: Mapping[str, tuple[Block, Tasks]]
    owned: Mapping[int, str] = field(default_factory=dict)


def task_of(device: str) -> str:
    """The task in a device's full name: `/job:ps/replica:0/task:0`."""
    return device.rpartition("/device:")[0]


def assign(block: Block, placer: Placer) -> Tasks:
    """The task of each node that is no feed: what is fed goes wherever it is needed.

    Args:
        block: pruned, a node for each operation.
        placer: over the devices of all tasks, those of the task that nodes prefer first.

    Raises:
        InvalidArgumentError: no task has the device that a node asks for.
        UnimplementedError: what must stay in one task was asked to be in several.
    """
    return _assign(block, placer, Tasks(), "")


def _assign(block: Block, placer: Placer, found: Tasks, home: str) -> Tasks:
    """Adds the tasks of a block's nodes.

    Args:
        block: a step, or a body.
        placer: as for `assign`.
        found: the tasks of parameters that have one.
        home: where the nodes of a body are that ask for no task; empty for a step.
    """
    given = dict(found)
    together = colocated(block)
    for node in block.nodes:
        for value in node.inputs:
            # A handle names what only its own task has.
            if is_handle(value) and value.node.op != FEED and _may_join(node):
                together.join(node, value.node)
    for members in groups(together, block.nodes).values():
        members = [n for n in members if n.op != FEED]
        if members:
            owner = _owner(members, given)
            requested, asking = requested_by(members)
            requested = requested or _asked_by_users(members)
            task = owner or _choose(placer, asking, requested, home)
            found.update(dict.fromkeys(members, task))
    for node in block.nodes:
        if not _may_join(node):
            _follow_state(node, found)
            _divide(node, found, placer)
    _check_control_flow(block, found)
    return found


def _may_join(node: Node) -> bool:
    return node.traits.control is Control.NONE


def _owner(members: Iterable[Node], given: Mapping[Node, str]) -> str:
    """The task that has the variables or handles among a body's parameters that nodes take.

    Raises:
        UnimplementedError: these are in several tasks.
    """
    if not given:
        return ""
    held = {
        given[v.node]: v.node
        for node in members
        if _may_join(node)
        for v in node.inputs
        if v.node in given and (is_state(v) or is_handle(v))
    }
    if len(held) > 1:
        raise _several(next(iter(members)), held)
    return next(iter(held), "")


def _asked_by_users(members: Iterable[Node]) -> str:
    """What users of handles that ask for nothing ask for, be they of this step or of another.

    TensorFlow places whole graphs: a variable is in one task for the steps that set it and for
    those in which an operation of a task only looks whether it is there.
    """
    for node in members:
        if node.traits.holds and node.origin is not None:
            for output in node.origin.outputs:
                for user in output.consumers() if output.dtype._is_handle else ():
                    if parsed(user.device).job is not None:
                        return user.device
    return ""


def _choose(placer: Placer, asking: Node, requested: str, home: str = "") -> str:
    """The task of the first device that satisfies a request."""
    spec = parsed(requested) if requested else DeviceSpec()
    if home:
        if spec.job is None or _within(home, spec):
            return home
        # A body asks for a task; which of its devices that is, the task finds out.
        requested = DeviceSpec(job=spec.job, replica=spec.replica, task=spec.task).to_string()
    if placer.soft and not any(t.matches(spec) for t in placer.targets):
        # Soft placement looks for another device, but not in another task.
        requested = DeviceSpec(job=spec.job, replica=spec.replica, task=spec.task).to_string()
    candidates, _ = placer.candidates(asking, requested)
    return task_of(candidates[0].name)


def _within(task: str, asked: DeviceSpec) -> bool:
    """Whether a task is what a request asks for."""
    own = parsed(task)
    return all(
        a in (None, b)
        for a, b in ((asked.job, own.job), (asked.replica, own.replica), (asked.task, own.task))
    )


def _held(node: Node, found: Mapping[Node, str]) -> dict[str, Node]:
    """The tasks that have the variables and handles which the bodies of a node take."""
    return {
        found[v.node]: v.node
        for v in node.inputs
        if (is_state(v) or is_handle(v)) and v.node in found
    }


def _follow_state(node: Node, found: Tasks) -> None:
    """A branch or a loop runs where the variables are that its bodies take, if that is one task."""
    held = _held(node, found)
    if len(held) == 1:
        found[node] = next(iter(held))


def _several(node: Node, held: Mapping[str, Node]) -> errors.UnimplementedError:
    told = ", ".join(f"{holder.name} in {task}" for task, holder in sorted(held.items()))
    return errors.UnimplementedError(
        None, node.origin,
        f"Operation {node.name} ({node.op}) takes variables of several tasks: {told}.",
    )  # fmt: skip


# ---------------------------------------------------------------- branches and loops
def _divide(node: Node, found: Tasks, placer: Placer) -> None:
    """Has a branch or a loop be in several tasks if its bodies are."""
    attributes = node.traits.control.functions
    home = found[node]
    held = _held(node, found)
    if not attributes or (
        set(held) <= {home} and not any(_asks_elsewhere(node.attrs[a], home) for a in attributes)
    ):
        return
    first = _PREDICATE if node.traits.control is Control.COND else 0
    owned = {
        i: found[v.node]
        for i, v in enumerate(node.inputs[first:])
        if (is_state(v) or is_handle(v)) and v.node in found
    }
    changing = _changing(node.attrs["body"]) if node.traits.control is Control.LOOP else ()
    for i in set(changing) & owned.keys():
        if owned[i] != home:  # its result is handed out where the loop has its results
            raise _several(
                node, {t: v.node for t, v in ((home, node.inputs[0]), (owned[i], node.inputs[i]))}
            )
    bodies = {a: _body(node.attrs[a], placer, home, owned, changing) for a in attributes}
    used = {home: None, **dict.fromkeys(owned.values())}
    for _, tasks in bodies.values():
        used.update(dict.fromkeys(sorted(tasks.everywhere())))
    if len(used) > 1:
        found.divided[node] = Divided(tuple(used), bodies, owned)


def _asks_elsewhere(function: Any, home: str) -> bool:
    """Whether an operation of a body, or of bodies in it, asks for another task."""
    for op in function.needed():
        if op.device and not _within(home, parsed(op.device)):
            return True
        if any(_asks_elsewhere(op.attrs[a], home) for a in op.spec.traits.control.functions):
            return True
    return False


def _changing(body: Any) -> tuple[int, ...]:
    """The numbers of those variables of a loop that its turns change."""
    return tuple(
        i for i, (a, b) in enumerate(zip(body.inputs, body.outputs, strict=True)) if a is not b
    )


def _body(
    function: Any, placer: Placer, home: str, owned: Mapping[int, str], changing: Iterable[int]
) -> tuple[Block, Tasks]:
    """The block of a body and the tasks of its nodes."""
    given = [(t, t.dtype, t.raw_shape) for t in function.inputs]
    block = as_written(function.outputs, function.targets, given)
    tasks = Tasks()
    for i, value in enumerate(block.feeds):
        if i in owned or i in changing:
            tasks[value.node] = owned.get(i, home)
    return block, _assign(block, placer, tasks, home)


def _check_control_flow(block: Block, found: Mapping[Node, str]) -> None:
    """Checks that no value which may not be there has to leave its task.

    Raises:
        UnimplementedError: what a Switch decides about is in another task.
    """
    for node in block.nodes:
        for value in node.inputs:
            source = value.node
            if source.traits.control in (Control.SWITCH, Control.TURN) and (
                found[source] != found[node]
            ):
                raise errors.UnimplementedError(
                    None, node.origin,
                    f"Operation {node.name} in {found[node]} takes a value of {source.name} "
                    f"({source.op}) in {found[source]}, which may have none: what such an operation"
                    " decides about has to be in its task.",
                )  # fmt: skip
