"""Branches by number, loops over a range and calls elsewhere: nodes that stand in files.

`tf.case` and loops are `If` and `While` here; these are for graphs that others wrote, and for
`tf.raw_ops`. Each is a call of a function that is made of the node's own ones: before any pass
looks, its `If`s or its `While` stand in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock import dtypes, errors
from opdock.dtypes import DType
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.control.function_op import DefinedGraph
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.ops.arithmetic import maximum
from opdock.ops.calls import call_gradient, known_function, stateful_partitioned_call_op
from opdock.ops.cast import cast
from opdock.ops.check import Assert
from opdock.ops.compare import equal, logical_and, logical_or, not_equal
from opdock.ops.control import if_op, while_op
from opdock.ops.elementary import abs as absolute
from opdock.ops.elementary import sign
from opdock.ops.registry import Control, ShapeSig, Traits, define_op, get
from opdock.ops.support.common_shapes import unknown
from opdock.shapes import Shape

__all__: list[str] = []

_BRANCHES = (
    "Tin: list(type) >= 0, Tout: list(type) >= 0, branches: list(func) >= 1, "
    "output_shapes: list(shape) = []"
)
case_op = define_op(
    "Case", "branch_index: int32, input: Tin -> output: Tout", _BRANCHES, stateful=True
)
stateless_case_op = define_op(
    "StatelessCase", "branch_index: int32, input: Tin -> output: Tout", _BRANCHES
)
for_op = define_op(
    "For", "start: int32, limit: int32, delta: int32, input: T -> output: T",
    "T: list(type) >= 0, body: func",
)  # fmt: skip
remote_call_op = define_op(
    "RemoteCall", "target: string, args: Tin -> output: Tout",
    "Tin: list(type) >= 1, Tout: list(type) >= 1, f: func", stateful=True,
)  # fmt: skip
for _op in (case_op, stateless_case_op, for_op, remote_call_op):
    _op.declare(Traits(builtin=True, control=Control.CALL))
    _op.gradient(call_gradient)
for _op in (for_op, remote_call_op):
    _op.shape(unknown)


@case_op.shape
@stateless_case_op.shape
def _case_shape(sig: ShapeSig) -> list[Shape]:
    declared: list[Shape] = sig.attrs["output_shapes"]
    if declared and len(declared) != sig.n_outputs:
        raise errors.InvalidArgumentError(
            None, None,
            f"`output_shapes` must be the same length as num outputs ({len(declared)} vs. "
            f"{sig.n_outputs}",
        )  # fmt: skip
    return list(declared) if declared else [None] * sig.n_outputs


# ---------------------------------------------------------------- Case
@case_op.callee
@stateless_case_op.callee
def _case_called(attrs: dict[str, Any]) -> FuncGraph:
    """The function of a number and the inputs that calls one of the branches.

    As in TF, the last one is called for a number that no branch has.
    """
    branches = [known_function(b) for b in attrs["branches"]]
    return _made_once(branches[0], ("Case", *map(id, branches[1:])), lambda: _chosen(branches))


def _chosen(branches: Sequence[FuncGraph]) -> FuncGraph:
    last = len(branches) - 1
    kinds = [t.dtype for t in branches[0].inputs]
    graph, (number, *inputs) = _function(f"{branches[0].func_name}_case", [dtypes.int32, *kinds])
    with graph.as_default():
        inside = logical_and(number >= 0, number < last)
        graph.outputs = _halved(branches, get("Select")(inside, number, last), inputs)
    return graph


def _halved(branches: Sequence[FuncGraph], number: Any, inputs: list[Tensor]) -> list[Tensor]:
    """What the branch of this number gives, by halves: few conditions are asked."""
    if len(branches) == 1:
        return _call(branches[0], inputs)
    middle = len(branches) // 2
    halves = []
    for part, first in ((branches[:middle], 0), (branches[middle:], middle)):
        kinds = [t.dtype for t in (number, *inputs)]
        graph, (inner, *arguments) = _body(f"{part[0].func_name}_from_{first}", kinds)
        with graph.as_default():
            graph.outputs = _halved(part, inner - first if first else inner, arguments)
        halves.append(graph)
    found: list[Tensor] = if_op(
        number < middle, [number, *inputs], Tout=[t.dtype for t in branches[0].outputs],
        then_branch=halves[0], else_branch=halves[1],
    )  # fmt: skip
    return found


# ---------------------------------------------------------------- For
@for_op.callee
def _for_called(attrs: dict[str, Any]) -> FuncGraph:
    body = known_function(attrs["body"])
    return _made_once(body, ("For",), lambda: _ranged(body))


def _ranged(body: FuncGraph) -> FuncGraph:
    """The function of a range and the variables that calls the body for each of its numbers."""
    kinds = [t.dtype for t in body.inputs][1:]
    around, (start, limit, delta, *inputs) = _function(
        f"{body.func_name}_for", [dtypes.int32] * 3 + kinds
    )
    variables = [dtypes.int32] * 4 + kinds
    with around.as_default():
        goes_on, (i, turns, *_) = _body(f"{body.func_name}_goes_on", variables)
        with goes_on.as_default():
            goes_on.outputs = [i < turns]
        turn, (i, turns, first, step, *values) = _body(f"{body.func_name}_turn", variables, True)
        with turn.as_default():
            turn.outputs = [i + 1, turns, first, step, *_call(body, [first + i * step, *values])]
        count = turns_of(start, limit, delta)
        found = while_op([0, count, start, delta, *inputs], cond=goes_on, body=turn)
        around.outputs = found[4:]
    return around


def turns_of(start: Tensor, limit: Tensor, delta: Tensor) -> Tensor:
    """How many numbers a range has; the step fails where it never ends."""
    ahead = (limit - start) * sign(delta)
    fits = logical_and(ahead >= 0, logical_or(not_equal(delta, 0), equal(start, limit)))
    with control_dependencies([Assert(fits, ["Invalid start/limit/delta:", start, limit, delta])]):
        size = absolute(delta)
        turns: Tensor = cast((ahead + size - 1) / maximum(size, 1), dtypes.int32)
        return turns


# ---------------------------------------------------------------- RemoteCall
@remote_call_op.callee
def _remote_called(attrs: dict[str, Any]) -> FuncGraph:
    """The function itself, after the name of a device: its operations go where placement has them.

    TF runs all of them on that device, which a tensor names, so nobody knows it before the step.
    """
    function = known_function(attrs["f"])
    return _made_once(function, ("RemoteCall",), lambda: _anywhere(function))


def _anywhere(function: FuncGraph) -> FuncGraph:
    kinds = [t.dtype for t in function.inputs]
    graph, (_, *inputs) = _function(f"{function.func_name}_remote", [dtypes.string, *kinds])
    with graph.as_default():
        graph.outputs = _call(function, inputs)
    return graph


# ---------------------------------------------------------------- functions of functions
def _function(name: str, kinds: Sequence[DType]) -> tuple[FuncGraph, list[Tensor]]:
    return _with_inputs(DefinedGraph(name, get_default_graph()), kinds)


def _body(
    name: str, kinds: Sequence[DType], is_loop: bool = False
) -> tuple[FuncGraph, list[Tensor]]:
    """The body of a branch or a loop in the function that is being made."""
    return _with_inputs(FuncGraph(name, get_default_graph(), is_loop), kinds)


def _with_inputs(graph: FuncGraph, kinds: Sequence[DType]) -> tuple[FuncGraph, list[Tensor]]:
    return graph, [graph.add_input(kind.base_dtype, None) for kind in kinds]


def _call(function: FuncGraph, inputs: Sequence[Tensor]) -> list[Tensor]:
    kinds = [t.dtype.base_dtype for t in function.outputs]
    found = stateful_partitioned_call_op(list(inputs), Tout=kinds, f=function)
    if isinstance(found, Operation):
        graph = get_default_graph()
        assert isinstance(graph, FuncGraph)
        graph.targets.append(found)
        return []
    return found if isinstance(found, list) else [found]


def _made_once(function: FuncGraph, key: tuple[Any, ...], make: Any) -> FuncGraph:
    """A function that is made of this one, which keeps it: gradients and steps ask again."""
    made: dict[Any, FuncGraph] = function.__dict__.setdefault("_made_of_this", {})
    if key not in made:
        outer = function.outer or get_default_graph()
        with outer.as_default():
            made[key] = make()
    return made[key]
