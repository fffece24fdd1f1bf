"""A function as two: one that computes its results, and one that computes its gradients from them.

Where operations run when they are made, the gradient of a call is asked for when the call is over.
Computing the function again would draw other random numbers and write its state twice. So a call
that a tape watches hands out what its gradient will need, as TensorFlow's does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from opdock.autodiff.flow import gradient_or_zeros, is_source
from opdock.autodiff.gradients import gradients
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.control.function_op import DefinedGraph, copy_operations
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor

__all__ = ["Backward", "backward_of", "watched"]

_WATCHED: Final = "_watched"
_BACKWARD: Final = "_backward"


@dataclass(frozen=True, slots=True)
class Backward:
    """The gradients of a call, from its arguments, what it handed out, and results' gradients.

    Attributes:
        function: gives a gradient for each argument, zeros for one without influence.
        results: how many of the call's outputs are results; the others are handed out for this.
    """

    function: FuncGraph
    results: int


def watched(function: FuncGraph) -> FuncGraph:
    """A function as it is called where a tape watches; made once.

    Its first outputs are the results.

    Raises:
        LookupError: something in it has no gradient.
    """
    found: FuncGraph | None = function.__dict__.get(_WATCHED)
    if found is None:
        found = function.__dict__[_WATCHED] = _split(function)
    return found


def backward_of(function: FuncGraph) -> Backward | None:
    """The gradients of what `watched` gave; None for another function."""
    return function.__dict__.get(_BACKWARD)


def _split(function: FuncGraph) -> FuncGraph:
    outer = function.outer or get_default_graph()
    forward = DefinedGraph(f"{function.func_name}_forward", outer)
    with forward.as_default():
        inputs = [forward.add_input(t.dtype, t.raw_shape) for t in function.inputs]
        values: dict[Tensor, Tensor] = dict(zip(function.inputs, inputs, strict=True))
        copied = copy_operations(function, function.needed(), values)
        forward.targets = [copied[op] for op in function.targets if op in copied]
        results = [values[t] for t in function.outputs]
        first = set(forward.get_operations())
        # Stand-ins for the results' gradients: parameters of the second function, in the end.
        flowing = [forward._make_arg(t.dtype.base_dtype, t.raw_shape, "grad") for t in results]
        sources = [t for t in inputs if is_source(t, forward)]
        found = gradients(results, sources, [op.outputs[0] for op in flowing])
        of_sources = dict(zip(sources, found, strict=True))
        ends = [gradient_or_zeros(t, of_sources) for t in inputs]
    handed = _cut(forward, first, flowing, ends)
    backward = DefinedGraph(f"{function.func_name}_backward", outer)
    with backward.as_default():
        given = [*inputs, *handed, *(op.outputs[0] for op in flowing)]
        values = {t: backward.add_input(t.dtype.base_dtype, t.raw_shape) for t in given}
        copy_operations(forward, _behind(ends, values), values)
        backward.outputs = [values[t] for t in ends]
    forward.outputs = [*results, *handed]
    forward.__dict__[_BACKWARD] = Backward(backward, len(results))
    return forward


def _cut(
    forward: FuncGraph, first: set[Operation], flowing: list[Operation], ends: list[Tensor]
) -> list[Tensor]:
    """What of the function's own tensors its gradients are computed from, parameters excepted."""
    given = {*forward.inputs, *(op.outputs[0] for op in flowing)}
    found: dict[Tensor, None] = {}
    stack, seen = list(ends), set[Tensor]()
    while stack:
        tensor = stack.pop()
        if tensor in seen or tensor in given:
            continue
        seen.add(tensor)
        if tensor.op in first and tensor.op.type != "Const":
            found[tensor] = None
        else:
            stack.extend(tensor.op.inputs)
    return list(found)


def _behind(ends: list[Tensor], given: dict[Tensor, Tensor]) -> set[Operation]:
    """The operations from which tensors are computed, up to what is given."""
    needed: set[Operation] = set()
    stack = [t for t in ends if t not in given]
    while stack:
        op = stack.pop().op
        if op not in needed:
            needed.add(op)
            stack.extend(t for t in op.inputs if t not in given)
    return needed
