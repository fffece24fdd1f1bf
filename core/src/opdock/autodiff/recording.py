"""What the backward pass of a branch or loop needs from the forward pass, and how it gets it.

The forward op is extended: an intermediate value that a gradient uses becomes one more output,
in a list (`ops.tensor_list`). A loop pushes one element a turn, and the backward loop pops them
in reverse; a branch pushes its one value, and the branch not taken leaves its list empty. Nothing
is computed twice, so random and stateful bodies have exact gradients too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from opdock import dtypes, errors
from opdock.autodiff.staying import Staying
from opdock.dtypes import DType
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import get
from opdock.ops import tensor_list
from opdock.ops.fill import zeros
from opdock.ops.support.bodies import share_captures
from opdock.ops.support.recorded import add_output, plain_scope, record_in_branch
from opdock.shapes import Shape

_DEEP: Final = 3
_FUNCTIONAL = ("If", "StatelessIf", "While", "StatelessWhile")


class BackwardGraph(FuncGraph):
    """The backward body of a branch or loop; tensors of the forward body come from the recording.

    Attributes:
        recording: of the forward op.
        rests: list parameter to what is left of the list after this turn's pop.
    """

    def __init__(self, name: str, outer: Graph, recording: Recording) -> None:
        super().__init__(name, outer)
        self.recording = recording
        self.rests: dict[Tensor, Tensor] = {}

    def _has_values_of(self, other: Graph) -> bool:
        return other is self.recording.body

    def _adopt(self, tensor: Tensor, user: str = "") -> Tensor:
        found = self._captured.get(tensor)
        if found is None and tensor._op.graph is self.recording.body:
            with plain_scope(self):
                found = self._captured[tensor] = self.recording.recover(self, tensor)
        return super()._adopt(tensor, user) if found is None else found

    def add_variable(self, dtype: DType, shape: Shape) -> Tensor:
        """Adds a parameter in front of those that stand for captured tensors."""
        at = len(self.inputs) - len(self.outside)
        parameter = self._make_arg(dtype, shape, "arg").outputs[0]
        parameter.op.attrs["index"] = at
        self.inputs.insert(at, parameter)
        return parameter

    def pop(self, items: Tensor, like: Tensor) -> Tensor:
        """This turn's element of a list that the forward op returns."""
        parameter = self._captured.get(items)
        if parameter is None:
            parameter = self._captured[items] = self.add_input(items.dtype, (), "recorded")
            self.outside[parameter] = items
        self.rests[parameter], element = tensor_list.pop(parameter, like)
        return element

    def recover_together(self, items: Sequence[Tensor]) -> None:
        """Gets lists of the forward body as one list of them.

        Deep in nested bodies every list has a way through all bodies around, out of the forward
        ones and into the backward ones. So they go as one from there on. Further out each goes
        by itself, as the compiler drops lists that nobody needs.
        """
        body = self.recording.body
        found = [t for t in dict.fromkeys(items) if t._op.graph is body and t not in self._captured]
        if len(found) < 2 or self.depth < _DEEP:
            return
        with plain_scope(body):
            packed = tensor_list.empty(found[0])
            for item in found:
                packed = tensor_list.push(packed, item)
        with plain_scope(self):
            rest = self._adopt(packed)
            for item in reversed(found):
                rest, self._captured[item] = tensor_list.pop(rest, item)


class Recording:
    """The values recorded from one body of a control-flow op."""

    def __init__(self, op: Operation, body: FuncGraph) -> None:
        self.op = op
        self.body = body
        self._lists: dict[Tensor, int] = {}
        self._places: dict[Tensor, int] = {}
        _check_unshared(op)

    def recover(self, graph: BackwardGraph, tensor: Tensor) -> Tensor:
        """A tensor of the forward body as one of the backward body."""
        if tensor.op.type == "Const":
            return graph._copy_constant(tensor)
        if tensor.op.type == "_Arg":
            outer = self.invariant(tensor)
            if outer is not None:
                return graph._adopt(outer)
        if (again := self.again(graph, tensor)) is not None:
            return again
        index = self._lists.get(tensor)
        if index is None:
            index = self._lists[tensor] = self.record(tensor)
        return graph.pop(self.op.outputs[index], tensor)

    def again(self, graph: BackwardGraph, tensor: Tensor) -> Tensor | None:
        """A tensor of the forward body that the backward body makes by itself, if it is one."""
        return None

    def place(self, parameter: Tensor) -> int:
        """Which of the body's parameters it is."""
        inputs = self.body.inputs
        at = self._places.get(parameter, len(inputs))
        # The body gets more of them, and another recording may have moved some.
        if at >= len(inputs) or inputs[at] is not parameter:
            self._places = {t: i for i, t in enumerate(inputs)}
            at = self._places[parameter]
        return at

    def invariant(self, parameter: Tensor) -> Tensor | None:
        """The op's input that a parameter always equals."""
        raise NotImplementedError

    def record(self, tensor: Tensor) -> int:
        """Adds an output that holds a tensor of the body; returns its index."""
        raise NotImplementedError


class BranchRecording(Recording):
    """Of one branch of an If."""

    def __init__(self, op: Operation, key: str) -> None:
        super().__init__(op, op.attrs[key])

    def invariant(self, parameter: Tensor) -> Tensor | None:
        """The input: a branch gets it as it is."""
        return self.op.inputs[1 + self.place(parameter)]

    def record(self, tensor: Tensor) -> int:
        """A list of one in this branch, an empty one in the other."""
        return record_in_branch(self.op, self.body, tensor)


class LoopRecording(Recording):
    """Of the body of a While."""

    def __init__(self, op: Operation) -> None:
        super().__init__(op, op.attrs["body"])
        with plain_scope(op.graph):
            zero = get("Const")(value=_int32(0), dtype=dtypes.int32)
        self._turns = self._add_variable(zero, _plus_one)
        self._staying = Staying(self.invariant, self._last)

    def again(self, graph: BackwardGraph, tensor: Tensor) -> Tensor | None:
        """What is the same in all turns."""
        made = self._staying.again(graph, tensor, graph._adopt)
        if len(made) > 1:  # each of these may be asked for
            graph._captured.update(zip(tensor.op.outputs, made, strict=True))
        return made[tensor.value_index] if made else None

    def _last(self, tensor: Tensor) -> Tensor:
        """What a tensor of the body, of known shape, is in the last turn."""
        with plain_scope(self.op.graph):
            start = zeros(tensor.shape, tensor.dtype)
        return self.op.outputs[self._add_variable(start, lambda _: tensor)]

    @property
    def turns(self) -> Tensor:
        """The number of turns that the loop made."""
        return self.op.outputs[self._turns]

    def invariant(self, parameter: Tensor) -> Tensor | None:
        """The input, if every turn passes it on unchanged."""
        index = self.place(parameter)
        return self.op.inputs[index] if self.body.outputs[index] is parameter else None

    def record(self, tensor: Tensor) -> int:
        """A list with one element per turn."""
        with plain_scope(self.op.graph):
            start = tensor_list.empty(tensor)
        return self._add_variable(start, lambda items: tensor_list.push(items, tensor))

    def _add_variable(self, start: Tensor, step: Callable[[Tensor], Tensor]) -> int:
        # A thread that writes the graph meanwhile sees the loop before or after, not between.
        with self.op.graph._lock:
            return self._add_to_loop(start, step)

    def _add_to_loop(self, start: Tensor, step: Callable[[Tensor], Tensor]) -> int:
        op, condition = self.op, cast("FuncGraph", self.op.attrs["cond"])
        parameter = self.body.add_input(start.dtype, start.raw_shape, "recorded")
        with plain_scope(self.body):
            self.body.outputs.append(step(parameter))
        condition.add_input(start.dtype, start.raw_shape, "unused")
        op._inputs = (*op._inputs, start)
        start._add_consumer(op)
        index = add_output(op, "T", start.dtype, start.raw_shape)
        if not len(self.body.inputs) == len(self.body.outputs) == len(op.inputs):
            raise errors.InternalError(None, op, f"The signature of loop '{op.name}' is broken.")
        return index


def shared_captures(graphs: Sequence[FuncGraph]) -> list[Tensor]:
    """What backward bodies, and conditions, take from outside, in the order of their parameters.

    The default graph has all of it by then.
    """
    captures = share_captures(list(graphs))
    outer = get_default_graph()
    if isinstance(outer, BackwardGraph):
        outer.recover_together([t for t in captures if t.dtype.base_dtype is dtypes.variant])
    return captures


def branch_recordings(op: Operation) -> list[BranchRecording]:
    """The recordings of both branches of an If, made on first use: [then, else]."""
    found: list[BranchRecording] | None = op.__dict__.get("_recordings")
    if found is None:
        found = [BranchRecording(op, key) for key in ("then_branch", "else_branch")]
        op.__dict__["_recordings"] = found
    return found


def loop_recording(op: Operation) -> LoopRecording:
    """The recording of a While, made on first use."""
    found: LoopRecording | None = op.__dict__.get("_recordings")
    if found is None:
        found = op.__dict__["_recordings"] = LoopRecording(op)
    return found


def _int32(value: int) -> Any:
    import numpy as np

    return np.array(value, np.int32)


def _plus_one(count: Tensor) -> Tensor:
    one = get("Const")(value=_int32(1), dtype=dtypes.int32)
    return get("AddV2")(count, one)  # type: ignore[no-any-return]


def _check_unshared(op: Operation) -> None:
    """Raises UnimplementedError when another op runs one of the bodies: it cannot be extended."""
    users = _users_of_functions(op.graph)
    for function in op.attrs.values():
        for other in users.get(function, ()) if isinstance(function, FuncGraph) else ():
            if other is not op:
                raise errors.UnimplementedError(
                    None, op,
                    f"The gradient of '{op.name}' ({op.type}) cannot be built: '{other.name}' runs "
                    "the same function, and recording values in it would change both.",
                )  # fmt: skip


def _users_of_functions(graph: Graph) -> dict[FuncGraph, list[Operation]]:
    """The operations of a graph by the functions that they run; each is looked at once."""
    known: tuple[int, dict[FuncGraph, list[Operation]]]
    known = graph.__dict__.get("_users_of_functions", (0, {}))
    seen, users = known
    for op in graph._ops[seen:]:
        if op.type in _FUNCTIONAL:
            for function in op.attrs.values():
                if isinstance(function, FuncGraph):
                    users.setdefault(function, []).append(op)
    graph.__dict__["_users_of_functions"] = len(graph._ops), users
    return users
