"""Calls of functions that stand in attributes, and the gradient of a function as a function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock import dtypes, errors
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.control.function_op import DefinedGraph, FunctionSpec, copied_into
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation
from opdock.ops.fill import zeros_like
from opdock.ops.registry import Control, ShapeSig, Traits, define_op
from opdock.ops.support import common_shapes
from opdock.shapes import Shape

__all__: list[str] = []

_TYPES = "Tin: list(type) >= 0, Tout: list(type) >= 0, f: func, "
_CONFIG = 'config: string = "", config_proto: string = "", executor_type: string = ""'

partitioned_call_op = define_op("PartitionedCall", "args: Tin -> output: Tout", _TYPES + _CONFIG)
stateful_partitioned_call_op = define_op(
    "StatefulPartitionedCall", "args: Tin -> output: Tout", _TYPES + _CONFIG, stateful=True
)
symbolic_gradient_op = define_op(
    "SymbolicGradient", "input: Tin -> output: Tout",
    "Tin: list(type) >= 1, Tout: list(type) >= 1, f: func",
)  # fmt: skip
for _op in (partitioned_call_op, stateful_partitioned_call_op, symbolic_gradient_op):
    _op.declare(Traits(builtin=True, control=Control.CALL))
# As in TF: whoever makes a call knows what the function's results are like.
for _op in (partitioned_call_op, stateful_partitioned_call_op):
    _op.shape(common_shapes.unknown)


@symbolic_gradient_op.shape
def _like_arguments(sig: ShapeSig) -> list[Shape]:
    """The gradient of an argument has its shape; that of a handle, the shape of the variable."""

    def like(index: int) -> Shape:
        if sig.attrs["Tin"][index].base_dtype is not dtypes.resource:
            return sig.shapes[index]
        variable = sig.handle(index)
        return None if variable is None else variable.shape

    return [like(index) for index in range(sig.n_outputs)]


@partitioned_call_op.callee
@stateful_partitioned_call_op.callee
def _called(attrs: dict[str, Any]) -> FuncGraph:
    return known_function(attrs["f"])


@symbolic_gradient_op.callee
def _gradient_called(attrs: dict[str, Any]) -> FuncGraph:
    return gradient_function(known_function(attrs["f"]))


def known_function(function: Any) -> FuncGraph:
    """The function that an attribute names.

    Raises:
        NotFoundError: it is no function of the graph.
    """
    if not isinstance(function, FuncGraph):
        name = getattr(function, "name", function)
        raise errors.NotFoundError(None, None, f"Function {name} is not defined.")
    return function


@partitioned_call_op.gradient
@stateful_partitioned_call_op.gradient
def call_gradient(op: Operation, *grads: Any) -> list[Any]:
    """The gradient of an op that stands for a function: a call of that function's."""
    from opdock.autodiff.split import backward_of

    assert op.spec.callee_fn is not None
    backward = backward_of(op.spec.callee_fn(op.attrs))
    if backward is not None and all(g is None for g in grads[backward.results :]):
        return _gradient_of_watched(op, grads, backward)
    if backward is not None:
        # What it handed out has gradients only where its gradients are differentiated again.
        _check_repeatable(op, op.spec.callee_fn(op.attrs))
    flowing = [zeros_like(y) if g is None else g for y, g in zip(op.outputs, grads, strict=True)]
    function = op.spec.callee_fn(op.attrs)
    # The gradient of a handle has the type of its variable, which the gradient of f knows.
    kinds = [t.dtype.base_dtype for t in gradient_function(function).outputs]
    found = symbolic_gradient_op([*op.inputs, *flowing], Tout=kinds, f=function)
    return _that_flow(found, kinds)


def _check_repeatable(op: Operation, function: FuncGraph) -> None:
    """Raises UnimplementedError where a function, computed again, would give something else."""
    for inner in function.needed():
        if inner.spec.traits.random or inner.spec.has_effect:
            raise errors.UnimplementedError(
                None, op,
                f"The second derivative of a call of {function.func_name} cannot be computed where "
                f"operations run as they are made: its operation {inner.name} ({inner.type}) is "
                "random or has effects. Differentiate twice within one tf.function.",
            )  # fmt: skip


def _that_flow(found: Any, kinds: Sequence[dtypes.DType]) -> list[Any]:
    """Gradients of arguments that have some: numbers, and lists of these."""
    return [
        g if k.is_floating or k.is_complex or k is dtypes.variant else None
        for g, k in zip(found, kinds, strict=True)
    ]


def _gradient_of_watched(op: Operation, grads: Sequence[Any], backward: Any) -> list[Any]:
    """The gradient of a call that handed out what its gradient is computed from."""
    results, handed = op.outputs[: backward.results], op.outputs[backward.results :]
    flowing = [
        zeros_like(y) if g is None else g
        for y, g in zip(results, grads[: backward.results], strict=True)
    ]
    kinds = [t.dtype.base_dtype for t in backward.function.outputs]
    call = stateful_partitioned_call_op if backward.function.stateful else partitioned_call_op
    found = call([*op.inputs, *handed, *flowing], Tout=kinds, f=backward.function)
    return _that_flow(found, kinds)


@symbolic_gradient_op.gradient
def _second_gradient(op: Operation, *grads: Any) -> list[Any]:
    """Of the gradient, which is a function as well."""
    flowing = [zeros_like(y) if g is None else g for y, g in zip(op.outputs, grads, strict=True)]
    first = gradient_function(known_function(op.attrs["f"]))
    kinds = [t.dtype.base_dtype for t in gradient_function(first).outputs]
    found = symbolic_gradient_op([*op.inputs, *flowing], Tout=kinds, f=first)
    return _that_flow(found, kinds)


def gradient_function(function: FuncGraph) -> FuncGraph:
    """The function from a function's arguments and its results' gradients to its arguments' ones.

    It computes the function again, as TensorFlow's does; what has no effect and is not random is
    merged with the first computation. Made once for each function.

    Raises:
        InvalidArgumentError: the gradient that the user gave has another number of results.
    """
    spec: FunctionSpec | None = function.__dict__.get("_gradient_spec")
    if spec is not None:
        given = len(spec.function.outputs)
        if given != len(function.inputs):
            raise errors.InvalidArgumentError(
                None, None,
                f"SymGrad expects to return {len(function.inputs)} gradient(s), but get {given} "
                "instead.",
            )  # fmt: skip
        return spec.function
    known: FuncGraph | None = function.__dict__.get("_gradient_function")
    if known is None:
        known = function.__dict__["_gradient_function"] = _differentiated(function)
    return known


def _differentiated(function: FuncGraph) -> FuncGraph:
    from opdock.autodiff.flow import gradient_or_zeros, is_source
    from opdock.autodiff.gradients import gradients

    outer = function.outer or get_default_graph()
    graph = DefinedGraph(f"{function.func_name}_grad", outer)
    with graph.as_default():
        inputs = [graph.add_input(t.dtype, t.raw_shape) for t in function.inputs]
        grads = [graph.add_input(t.dtype.base_dtype, t.raw_shape) for t in function.outputs]
        results = copied_into(function, inputs)
        sources = [t for t in inputs if is_source(t, graph)]
        found = dict(zip(sources, gradients(results, sources, grads), strict=True))
        graph.outputs = [gradient_or_zeros(t, found) for t in inputs]
    return graph
