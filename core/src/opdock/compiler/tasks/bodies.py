"""Bodies of branches and loops that are in several tasks: for each task its part, as a function.

Each task has the branch or the loop, with bodies that are its part of the user's and that send and
receive as the parts of a step do. All take the same branch, for all get the predicate, and the same
turns: the task that has the loop's variables decides whether there is one more, and tells the
others. What is sent in a turn is marked with the turn's number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from opdock.compiler.ir.block import FEED, Block, Node, Value
from opdock.compiler.tasks.assign import Divided, Tasks
from opdock.compiler.tasks.stages import Bundle, Crossing, Share, Shares, Stages
from opdock.dtypes import DType, int32, int64
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.control.function_op import copy_operation
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.devicespec import DeviceSpec
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import OpSpec, ShapeSig, get
from opdock.graph.nodes.scopes import control_dependencies
from opdock.graph.nodes.traits import Control
from opdock.shapes import Shape

__all__ = ["device_in", "first_turn", "meeting", "message_attrs", "shares_of"]

_CPU: Final = "/device:CPU:0"


def shares_of(tasks: Tasks, path: str = "") -> Shares:
    """What each task has of the branches and loops of a block that are in several.

    Args:
        tasks: those of the block's nodes.
        path: what the keys of messages begin with.

    Raises:
        UnimplementedError: a handle, which means nothing elsewhere, is to leave its task.
    """
    return {node: _shares(node, divided, path) for node, divided in tasks.divided.items()}


def _shares(node: Node, divided: Divided, path: str) -> dict[str, Share]:
    loop = node.traits.control is Control.LOOP
    count = len(node.inputs) if loop else 0
    # The variables of a loop that a task hands from turn to turn.
    carried = {
        task: [i for i in range(count) if divided.owned.get(i, divided.tasks[0]) == task]
        for task in divided.tasks
    }
    pieces = {
        attr: _pieces(node, attr, divided, carried, f"{path}{node.name}/{attr}/")
        for attr in divided.bodies
    }
    found: dict[str, Share] = {}
    for task in divided.tasks:
        own = {attr: parts[task] for attr, parts in pieces.items()}
        numbers = sorted({*carried[task], *(i for p in own.values() for i in p.used())})
        functions = {a: piece.function(numbers, a == "body") for a, piece in own.items()}
        first = [] if loop else [node.inputs[0]]
        given = node.inputs if loop else node.inputs[1:]
        results: Sequence[int] = ()
        if task == divided.tasks[0]:
            results = numbers if loop else range(len(node.out_dtypes))
        crossings = [c for piece in own.values() for c in piece.crossings]
        inputs = [*first, *(given[i] for i in numbers)]
        found[task] = Share(inputs, list(results), functions, crossings)
    return found


def _pieces(
    node: Node, attr: str, divided: Divided, carried: Mapping[str, Sequence[int]], path: str
) -> dict[str, _Piece]:
    """The parts of one body."""
    block, tasks = divided.bodies[attr]
    loop = node.traits.control is Control.LOOP
    stages = Stages(block, tasks, shares_of(tasks, path), path)
    wanted: dict[str, Sequence[Value]] = {}
    for task in divided.tasks:
        if attr == "body":
            wanted[task] = [block.fetches[i] for i in carried[task]]
        else:  # the results of a branch, or the condition of a loop, which all have to know
            wanted[task] = block.fetches if loop or task == divided.tasks[0] else ()
        for value in wanted[task]:
            stages.bring(value, task)
    name = node.attrs[attr].func_name
    pieces = {task: _Piece(task, name, block, loop) for task in divided.tasks}
    stages.write(pieces)
    for task, piece in pieces.items():
        piece.results = [piece.tensor(v) for v in wanted[task]]
        if attr == "body":
            piece.carries = carried[task]
    for target in block.targets:
        if target not in tasks.divided:
            pieces[tasks[target]].run(target)
    return pieces


class _Body(FuncGraph):
    """A body whose shapes are known from the one that it is a part of."""

    def _infer(self, sig: ShapeSig, inputs: list[Tensor]) -> list[Shape]:
        return [None] * sig.n_outputs


class _Piece:
    """One task's part of a body, node by node.

    Args:
        task: its name.
        name: the body's.
        block: the whole body.
        loop: whether it is that of a loop, which has a number of turns.

    Attributes:
        results: what it gives.
        carries: for each of `results` of a turn, which variable of the loop it is.
        crossings: what it sends.
    """

    def __init__(self, task: str, name: str, block: Block, loop: bool) -> None:
        self._task, self._block, self._loop = task, block, loop
        self._body = _Body(name, None, is_loop=loop)
        self._parameters: dict[int, Tensor] = {}
        self._number = {value: i for i, value in enumerate(block.feeds)}
        self._tensors: dict[Value, Tensor] = {}
        self._here: dict[Node, Operation] = {}
        self._turn = self._body.add_input(int64, (), "turn") if loop else None
        self._step = self._body.add_input(int64, None, "step")
        self._marked: Tensor | None = None
        self._exchanged: list[Operation] = []
        self._met: list[Operation] = []
        self._came: dict[Bundle, Operation] = {}
        self.results: list[Tensor] = []
        self.carries: Sequence[int] = ()
        self.crossings: list[Crossing] = []

    def used(self) -> Iterable[int]:
        """The numbers of the parameters that it takes."""
        return self._parameters

    def function(self, numbers: Sequence[int], turns: bool) -> FuncGraph:
        """The part as a function.

        Args:
            numbers: of the parameters that it is to have.
            turns: whether it is what a loop does in a turn.
        """
        body = self._body
        parameters = [self._parameter(i) for i in numbers]
        turn = [] if self._turn is None else [self._turn]
        body.inputs = [*parameters, *turn, self._step]
        for index, tensor in enumerate(body.inputs):
            tensor.op.attrs["index"] = index
        body.outputs = self.results
        if turns and self._turn is not None:
            made = dict(zip(self.carries, self.results, strict=True))
            kept = [made.get(i, p) for i, p in zip(numbers, parameters, strict=True)]
            body.outputs = [*kept, self._plus_one(self._turn), self._step]
        return body

    # ------------------------------------------------------------ what `Stages` writes
    def add(self, node: Node) -> None:
        """A node of the body."""
        if node not in self._here:
            self._add(node, [self.tensor(v) for v in node.inputs])

    def _add(self, node: Node, inputs: list[Tensor]) -> None:
        assert node.origin is not None
        with self._body.as_default():
            op = copy_operation(self._body, node.origin, inputs, self._awaited(node))
        op._set_device(device_in(self._task, node))
        self._keep(node, op)

    def _keep(self, node: Node, op: Operation) -> None:
        self._here[node] = op
        self._tensors.update((Value(node, i), t) for i, t in enumerate(op.outputs))

    def meet(self, node: Node, share: Share) -> None:
        """The task's share of a branch or loop that is in several, within this body."""
        spec, attrs = meeting(node, share)
        inputs = [self.tensor(v) for v in share.inputs]
        turn = [self._constant(np.array(0, np.int64))] if first_turn(node) else []
        op = self._make(
            spec, node.name, [*inputs, *turn, self._mark()], attrs, results_of(attrs),
            [*self._awaited(node), *self._exchanged],
        )  # fmt: skip
        op._set_device(device_in(self._task, node))
        self._here[node] = op
        for i, tensor in zip(share.results, op.outputs, strict=False):
            tensor.set_shape(node.out_shapes[i])
            self._tensors[Value(node, i)] = tensor
        self.crossings += share.crossings
        self._body.targets.append(op)
        self._exchanged.append(op)
        self._met = [op]

    def send(self, bundle: Bundle) -> None:
        """A node that sends what another task needs."""
        inputs = [self._mark(), *(self.tensor(v) for v in bundle.values)]
        after = [self._here[n] for n in bundle.after]
        attrs = message_attrs(bundle, bundle.to)
        op = self._make(get("_SendToTask"), "send", inputs, attrs, [], after)
        self._body.targets.append(op)
        self._exchanged.append(op)
        self.crossings.append(bundle.crossing())

    def receive(self, bundle: Bundle) -> None:
        """A node that waits for what another task sends."""
        attrs = message_attrs(bundle, bundle.source)
        attrs["shapes"] = [v.shape for v in bundle.values]
        kinds = [int64, *attrs["T"]]
        before = [*self._met, *(self._came[b] for b in bundle.behind)]
        op = self._came[bundle] = self._make(
            get("_ReceiveFromTask"), "receive", [self._mark()], attrs, kinds, before
        )  # fmt: skip
        for value, i in bundle.values.items():
            tensor = self._tensors[value] = op.outputs[i + 1]
            tensor.set_shape(value.shape)
        for ran in bundle.after:
            self._here[ran] = op
        self._exchanged.append(op)

    def run(self, node: Node) -> None:
        """Has a node run for its effect."""
        self._body.targets.append(self._here[node])

    # ------------------------------------------------------------ values
    def tensor(self, value: Value) -> Tensor:
        """A value as the part has it."""
        found = self._tensors.get(value)
        if found is not None:
            return found
        if value.node.op == FEED:
            return self._parameter(self._number[value])
        assert value.node.is_const
        self._add(value.node, [])  # cheaper than sending it
        return self._tensors[value]

    def _parameter(self, number: int) -> Tensor:
        found = self._parameters.get(number)
        if found is None:
            given = self._block.feeds[number]
            found = self._parameters[number] = self._body.add_input(given.dtype, given.shape)
        return found

    def _awaited(self, node: Node) -> list[Operation]:
        return list(dict.fromkeys(self._here[c] for c in node.control if c in self._here))

    def _mark(self) -> Tensor:
        """The number of the step, with those of the turns of all loops around."""
        if self._turn is None:
            return self._step
        if self._marked is None:
            places = self._constant(np.array([-1], np.int32))
            parts = [
                self._on_host("Reshape", [t, places], {"T": int64, "Tshape": int32})
                for t in (self._step, self._turn)
            ]
            axis = self._constant(np.array(0, np.int32))
            attrs = {"N": 2, "T": int64, "Tidx": int32}
            self._marked = self._on_host("ConcatV2", [*parts, axis], attrs)
        return self._marked

    def _plus_one(self, turn: Tensor) -> Tensor:
        return self._on_host("AddV2", [turn, self._constant(np.array(1, np.int64))], {"T": int64})

    def _constant(self, value: np.ndarray[Any, Any]) -> Tensor:
        with self._body.as_default(), control_dependencies(None):
            return constant(value)

    def _on_host(self, kind: str, inputs: list[Tensor], attrs: dict[str, Any]) -> Tensor:
        op = self._make(get(kind), kind.lower(), inputs, attrs, [int64], [])
        return op.outputs[0]

    def _make(
        self, spec: OpSpec, name: str, inputs: list[Tensor], attrs: dict[str, Any],
        kinds: Sequence[DType], waits: Sequence[Operation],
    ) -> Operation:  # fmt: skip
        graph = self._body
        with graph.as_default(), control_dependencies(None), control_dependencies(list(waits)):
            op = graph._create_op(spec, graph.unique_name(name), inputs, attrs, [*kinds])
        op._set_device(f"{self._task}{_CPU}")
        return op


# ---------------------------------------------------------------- nodes that tasks have
def device_in(task: str, node: Node) -> str:
    """What a node asks for, in a task: its group may have led it there."""
    own = DeviceSpec.from_string(task)
    asked = DeviceSpec.from_string(node.requested) if node.requested else DeviceSpec()
    return DeviceSpec(
        job=own.job, replica=own.replica, task=own.task,
        device_type=asked.device_type, device_index=asked.device_index,
    ).to_string()  # fmt: skip


def message_attrs(bundle: Bundle, task: str) -> dict[str, Any]:
    """The attributes that a send and a receive have."""
    kinds = [v.dtype.base_dtype for v in bundle.values]
    return {"T": kinds, "task": task, "key": bundle.key}


def results_of(attrs: Mapping[str, Any]) -> list[DType]:
    """The types of what a share of a branch or loop gives, by its attributes."""
    kinds: list[DType] = attrs["Tout"] if "Tout" in attrs else attrs["T"]
    return kinds


def first_turn(node: Node) -> bool:
    """Whether a task's share of a node takes the number of its turns, which begins with 0."""
    return node.traits.control is Control.LOOP


def meeting(node: Node, share: Share) -> tuple[OpSpec, dict[str, Any]]:
    """The op type of a task's share of a branch or loop, and its attributes."""
    kept = {k: v for k, v in node.attrs.items() if k.startswith("_") and k != "_class"}
    kinds = [v.dtype.base_dtype for v in share.inputs]
    shapes = [node.out_shapes[i] for i in share.results]
    if first_turn(node):
        kinds += [int64, int64]
        given = [v.shape for v in share.inputs]
        told = [*(shapes or given), (), None]
        turns = node.attrs.get("parallel_iterations", 1)
        own = {"T": kinds, "output_shapes": told, "parallel_iterations": turns}
        return get("While"), {**kept, **own, **share.functions}
    own = {
        "Tcond": kinds[0], "Tin": [*kinds[1:], int64],
        "Tout": [node.out_dtypes[i].base_dtype for i in share.results], "output_shapes": shapes,
    }  # fmt: skip
    return get("If"), {**kept, **own, **share.functions}
