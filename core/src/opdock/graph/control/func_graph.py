"""`FuncGraph`: the body of a cond branch, a loop, or a traced decomposition."""

from __future__ import annotations

import contextlib
import copy
import enum
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any, Final, cast

from opdock.dtypes import DType
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import OpSpec, ShapeSig, define_op, get
from opdock.graph.nodes.thread_scopes import alone
from opdock.graph.nodes.traits import Traits
from opdock.shapes import Shape

arg_op = define_op("_Arg", "-> output: T", "T: type, index: int >= 0")
arg_op.declare(Traits(builtin=True, placeholder=True, merge=False))


@arg_op.shape
def _arg_shape(sig: ShapeSig) -> Shape:
    shape: Shape = sig.attrs.get("_shape")
    return shape


arg_op.not_differentiable()


class _Default(enum.Enum):
    """Stands for the graph that is the default one when a body is made."""

    GRAPH = enum.auto()


DEFAULT: Final = _Default.GRAPH

# What Python recurses by at most when bodies are traced, differentiated, compiled and run.
_CALLS_PER_BODY: Final = 64
_CALLS: Final = 1000


def make_room(depth: int) -> None:
    """Lets Python recurse as deep as bodies nested `depth` times need."""
    needed = _CALLS + _CALLS_PER_BODY * depth
    if depth > 4 and sys.getrecursionlimit() < needed:
        sys.setrecursionlimit(needed)


def _around(tensor: Tensor) -> Tensor | None:
    """The tensor outside of all loops and branches that one stands for; None if made inside."""
    graph = tensor._op.graph
    while isinstance(graph, FuncGraph) and graph.leaves:
        found = next((out for out, inner in graph._captured.items() if inner is tensor), None)
        if found is None:
            return None
        tensor, graph = found, found._op.graph
    return tensor


def _around_all(graph: Graph) -> Graph:
    while isinstance(graph, FuncGraph) and graph.leaves:
        graph = cast("Graph", graph.outer)
    return graph


class FuncGraph(Graph):
    """A graph with inputs and outputs. Tensors of outer graphs become inputs when used.

    Attributes:
        outer: the graph in which the function is called; the default graph if none is given.
        inputs: the parameters, explicit ones first, then captures.
        outputs: the results.
        outside: parameters that stand for tensors of the outer graph -> those, by first use.
        targets: operations that run for their own sake. All else runs only where a result or a
            target depends on it.
        depth: how many bodies this one is in, itself included.
        loop: the innermost body of a loop that this is or is in.
        starts: of a loop's body, the parameters that are its variables -> what they start from.
        starts_variables: whether the first call gives variables their values.
        leaves: whether this is a loop or branch of version 1, in TF a part of the graph around.
        hand_out: of a branch of a cond, what gives a tensor in there to a graph outside; None where
            it cannot.
    """

    def __init__(
        self, name: str, outer: Graph | _Default | None = DEFAULT, is_loop: bool = False,
        leaves: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if isinstance(outer, _Default):
            outer = get_default_graph()
        self._building_function = True
        self.func_name = name
        self.outer = outer
        self.leaves = leaves
        self.loop: FuncGraph | None = self if is_loop else getattr(outer, "loop", None)
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.outside: dict[Tensor, Tensor] = {}
        self.targets: list[Operation] = []
        self.starts: dict[Tensor, Tensor] = {}
        self.starts_variables = False
        self.hand_out: Callable[[Tensor, Graph], Tensor | None] | None = None
        self.depth: int = 1 + getattr(outer, "depth", 0)
        self._captured: dict[Tensor, Tensor] = {}
        self._awaited: dict[Operation, Operation] = {}
        self._waited_for: set[Tensor] = set()
        make_room(self.depth)
        if outer is not None:
            # Variables, seeds and collections belong to the program, not to a branch.
            self._seed = outer.seed
            self._collections = outer._collections
            self._scoped_state = outer._scoped_state
            self._scopes.devices = list(outer._scopes.devices)
            self._scopes.colocation = list(outer._scopes.colocation)
            self._container = outer._container
            # Names are those of TF, where a body is a part of the graph; so are the numbers, from
            # which operations have their seeds: no two bodies draw the same.
            self._count = outer._count
            self._names_in_use = outer._names_of_bodies()
            self._name_stack = outer._name_stack
            self._thread.variable_creators = outer._thread.variable_creators

    @property
    def outer_graph(self) -> Graph | None:
        """The graph in which the function is called."""
        return self.outer

    @property
    def external_captures(self) -> list[Tensor]:
        """What the body takes from outside."""
        return [outer for outer, _ in self.captures]

    @property
    def internal_captures(self) -> list[Tensor]:
        """The parameters that stand for what the body takes from outside."""
        return [inner for _, inner in self.captures]

    @property
    def control_outputs(self) -> list[Operation]:
        """The operations that a call waits for beside the results."""
        return list(self.targets)

    @property
    def captures(self) -> list[tuple[Tensor, Tensor]]:
        """(outer tensor, inner parameter) in order of first use."""
        return [(outer, inner) for inner, outer in self.outside.items()]

    @contextlib.contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """As of any graph; the top is that of the program, so the graphs around go there too."""
        with contextlib.ExitStack() as stack:
            if not name and self.outer is not None:
                stack.enter_context(self.outer.name_scope(None))
            yield stack.enter_context(super().name_scope(name))

    def add_input(self, dtype: DType, shape: Shape, name: str = "arg") -> Tensor:
        """Adds a parameter."""
        op = self._make_arg(dtype, shape, name)
        self.inputs.append(op.outputs[0])
        return op.outputs[0]

    def _make_arg(self, dtype: DType, shape: Shape, name: str) -> Operation:
        with alone(self._scopes):
            attrs = {"T": dtype.base_dtype, "index": len(self.inputs), "_shape": shape}
            return self._create_op(arg_op, self.unique_name(name), [], attrs, [dtype])

    def _adopt(self, tensor: Tensor, user: str = "") -> Tensor:
        reference = read_reference(tensor)
        if reference is not None and tensor not in self._waited_for and self._writes(reference):
            return self._read(reference)
        found = self._captured.get(tensor)
        if found is not None:
            return found
        if not self._may_capture(tensor._op.graph):
            self._captured[tensor] = found = super()._adopt(tensor, user)
            return found
        if self.outer is not None and tensor._op.graph is not self.outer:
            tensor_outer = self.outer._adopt(tensor)
        else:
            tensor_outer = tensor
        if self._may_repeat(tensor_outer):
            inner = self._copy_constant(tensor_outer)
        else:
            inner = self.add_input(
                tensor_outer._dtype, tensor_outer._shape, _last_part(tensor_outer._op.name)
            )
            self.outside[inner] = tensor_outer
        self._captured[tensor] = inner
        return inner

    def _may_repeat(self, tensor: Tensor) -> bool:
        """Whether the body has a copy of what makes a tensor, rather than a parameter for it."""
        return _is_small_fact(tensor)

    def _may_capture(self, other: Graph) -> bool:
        graph: Graph | None = self
        while isinstance(graph, FuncGraph):
            if graph.outer is other or graph._has_values_of(other):
                return True
            graph = graph.outer
        return False

    def _has_values_of(self, other: Graph) -> bool:
        """Whether the tensors of another body, which has run before, are at hand."""
        return False

    # ------------------------------------------------------------ waiting
    def _control_input(self, item: Any) -> Operation | None:
        op = item if isinstance(item, Operation) else getattr(item, "op", None)
        if isinstance(op, Operation) and op.graph is not self and self._may_capture(op.graph):
            if op.outputs and read_reference(op.outputs[0]) is not None:
                self._keep_value(op.outputs[0])
            return self._await(op)
        return super()._control_input(item)

    def _keep_value(self, tensor: Tensor) -> None:
        """Has a variable's value be that of now: what waits for it may write the variable."""
        if tensor not in self._waited_for:
            self._captured[tensor] = self._adopt(tensor)
            self._waited_for.add(tensor)

    def _await(self, op: Operation) -> Operation | None:
        """What stands in here for an operation of a graph around; None if it ran long before."""
        found = self._awaited.get(op)
        if found is None and not self._has_values_of(op.graph):
            if op.graph is not self.outer and cast("FuncGraph", self.outer)._await(op) is None:
                return None
            with alone(self._scopes):
                found = self._create_op(get("NoOp"), self.unique_name("awaited"), [], {}, [])
            self._awaited[op] = found
        return found

    def awaited(self) -> list[Operation]:
        """The operations of the outer graph for which a call of this function waits."""
        needed = self.needed()
        found = [op for op, stand_in in self._awaited.items() if stand_in in needed]
        return [
            op if op.graph is self.outer else cast("FuncGraph", self.outer)._awaited[op]
            for op in found
        ]

    # ------------------------------------------------------------ leaving
    @contextlib.contextmanager
    def control_dependencies(self, control_inputs: Iterable[Any] | None) -> Iterator[None]:
        """As of any graph; None leaves the loops and branches in which the operations are, too.

        So TF has it, where those are parts of the graph around: what needs nothing from inside is
        made outside, once for all turns.
        """
        with super().control_dependencies(control_inputs):
            before = self._scopes.left
            self._scopes.left = before or (control_inputs is None and self.leaves)
            try:
                yield
            finally:
                self._scopes.left = before

    def _create_op(
        self, spec: OpSpec, name: str, inputs: list[Tensor], attrs: dict[str, Any],
        output_dtypes: list[DType],
    ) -> Operation:  # fmt: skip
        if self._scopes.left:
            outside = [_around(t) for t in inputs]
            waits = [self._waited_outside(op) for c in self._scopes.controllers for op in c.inputs]
            if None not in outside and None not in waits:
                graph = _around_all(self)
                scopes, devices = graph._scopes, graph._scopes.devices
                with alone(scopes), graph.control_dependencies(waits):
                    scopes.devices = self._scopes.devices
                    try:
                        found = cast("list[Tensor]", outside)
                        return graph._create_op(spec, name, found, attrs, output_dtypes)
                    finally:
                        scopes.devices = devices
        return super()._create_op(spec, name, inputs, attrs, output_dtypes)

    def _waited_outside(self, op: Operation) -> Operation | None:
        """What an operation stands for that outer ones are waited for by; None for one in here."""
        graph: Graph = op.graph
        while isinstance(graph, FuncGraph) and graph.leaves:
            found = next((out for out, stand_in in graph._awaited.items() if stand_in is op), None)
            if found is None:
                return None
            op, graph = found, found.graph
        return op

    # ------------------------------------------------------------ what runs
    def needed(self) -> set[Operation]:
        """The operations on which the results and the targets depend."""
        found: set[Operation] = set()
        stack = [t._op for t in self.outputs] + self.targets
        while stack:
            op = stack.pop()
            if op not in found:
                found.add(op)
                stack += [t._op for t in op._inputs]
                stack += op._control_inputs
        return found

    # ------------------------------------------------------------ shapes
    def _infer(self, sig: ShapeSig, inputs: list[Tensor]) -> list[Shape]:
        """As of any graph; but where values from outside do not fit, they are not known, as in TF.

        A branch may have been written for other values than those it is built with: then it is
        not taken.
        """
        try:
            return super()._infer(sig, inputs)
        except ValueError:
            outside = {i for i, tensor in enumerate(inputs) if self._is_from_outside(tensor)}
            if not outside:
                raise
            return super()._infer(sig._without(outside), inputs)

    def _is_from_outside(self, tensor: Tensor) -> bool:
        """Whether a tensor depends on what the body captures, copies of constants among that."""
        captured = {t._op for t in self._captured.values()}
        seen: set[Operation] = set()
        stack = [tensor._op]
        while stack:
            op = stack.pop()
            if op in captured:
                return True
            if op not in seen:
                seen.add(op)
                stack += [t._op for t in op._inputs]
        return False

    # ------------------------------------------------------------ references
    def _writes(self, reference: Tensor) -> bool:
        """Whether the body hands a reference of an outer graph to more than reads."""
        inner = self._captured.get(reference)
        return inner is not None and any(c.type != "Identity" for c in inner.consumers())

    def _read(self, reference: Tensor) -> Tensor:
        dtype = reference._dtype.base_dtype
        inputs, name = [self._adopt(reference)], self.unique_name("read")
        return self._create_op(get("Identity"), name, inputs, {"T": dtype}, [dtype]).outputs[0]

    def written(self) -> set[Tensor]:
        """The references of outer graphs that the body writes."""
        return {t for t in self._captured if t._dtype._is_ref_dtype and self._writes(t)}

    def read_again(self, written: set[Tensor]) -> None:
        """Has a body read what its turns write, where it took the value from before the first.

        In TF a read shares the memory of the variable, so one made before a loop sees what the
        loop writes.
        """
        for outer, inner in list(self._captured.items()):
            reference = read_reference(outer)
            if reference is not None and reference in written:
                with alone(self._scopes):
                    value = self._read(reference)
                # It takes the place of the argument in the order of the body.
                value._op._id = inner._op._id
                for consumer in inner.consumers():
                    consumer._inputs = tuple(value if t is inner else t for t in consumer._inputs)
                    value._add_consumer(consumer)

    def forget_unused(self) -> None:
        """Drops captures that no result and no target depends on."""
        needed = self.needed()
        unused = {inner for inner in self.outside if inner._op not in needed}
        if not unused:
            return
        self.outside = {k: v for k, v in self.outside.items() if k not in unused}
        self.inputs = [t for t in self.inputs if t not in unused]
        self._captured = {k: v for k, v in self._captured.items() if v not in unused}
        for index, tensor in enumerate(self.inputs):
            tensor._op.attrs["index"] = index

    def part(self, parameters: Sequence[int], results: Sequence[int]) -> FuncGraph:
        """This function with some of its parameters and results only, over the same operations.

        Args:
            parameters: indices of the inputs that the results and all effects depend on.
            results: indices of the outputs.
        """
        view = copy.copy(self)
        view.inputs = [self.inputs[i] for i in parameters]
        view.outputs = [self.outputs[i] for i in results]
        return view

    @property
    def stateful(self) -> bool:
        """Whether any op that runs is stateful."""
        return any(op.spec.stateful or _has_ref(op) for op in self.needed())


def read_reference(tensor: Tensor) -> Tensor | None:
    """The reference of which a tensor is the value; None for other tensors."""
    op = tensor._op
    if op.type != "Identity" or not op._inputs or not op._inputs[0]._dtype._is_ref_dtype:
        return None
    return op._inputs[0]


def _last_part(name: str) -> str:
    return name.rpartition("/")[2]


def _is_small_fact(tensor: Tensor) -> bool:
    """Whether a body gets a copy: of a small constant of which nobody can ask the gradient."""
    base = tensor._dtype.base_dtype
    if tensor._op.type != "Const" or base.is_floating or base.is_complex:
        return False
    return bool(tensor._op.attrs["value"].size <= 16)


def _has_ref(op: Operation) -> bool:
    return any(t._dtype._is_ref_dtype for t in op._inputs)


def trace(
    name: str,
    fn: Callable[..., Any],
    inputs: Sequence[tuple[DType, Shape]],
    outer: Graph | None = None,
) -> tuple[FuncGraph, Any]:
    """Builds a FuncGraph by calling `fn` with one parameter tensor per input.

    Returns:
        The graph, whose `outputs` the caller sets, and what `fn` returned.
    """
    graph = FuncGraph(name, get_default_graph() if outer is None else outer)
    with graph.as_default():
        parameters = [graph.add_input(dtype, shape) for dtype, shape in inputs]
        result = fn(*parameters)
    return graph, result


def by_inputs(operations: Sequence[Operation], needed: Container[Operation]) -> Iterator[Operation]:
    """Those that are needed, each behind what makes its inputs.

    That is the order in which they were made, but for those that were given more inputs later: a
    loop whose gradient is taken.
    """
    begun: set[Operation] = set()
    given: set[Operation] = set()
    for first in operations:
        pending = [first]
        while pending:
            op = pending[-1]
            if op in given or op not in needed:
                pending.pop()
                continue
            begun.add(op)
            missing = [t.op for t in op.inputs if t.op in needed and t.op not in begun]
            if missing:
                pending += missing
                continue
            pending.pop()
            given.add(op)
            yield op
