"""A Python function's operations as the body of a concrete function."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from opdock.graph.control.function_op import DefinedGraph, copy_operations, root_of
from opdock.graph.nodes.composite import CompositeTensor
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.graph.nodes.typespec import TensorSpec, TypeSpec, type_spec_from_value
from opdock.graph.variables.flavour import variable_creator_scope
from opdock.graph.variables.resource_variable import LateVariable
from opdock.graph.variables.variable_scope import variable_store
from opdock.ops.composed.concrete_function import ConcreteFunction
from opdock.ops.composed.effects import in_order
from opdock.ops.control import cond
from opdock.ops.registry import get
from opdock.util import nest

__all__ = ["keywords", "spec_of", "traced"]

_numbers: Final[Iterator[int]] = itertools.count()

# What a variable is told of itself that gets its value later.
_OF_LATE: Final = (
    "trainable", "collections", "caching_device", "name", "constraint", "synchronization",
    "aggregation", "shape",
)  # fmt: skip


def traced(
    python_function: Callable[..., Any], name: str, names: Sequence[str], args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> ConcreteFunction:  # fmt: skip
    """Calls a function once, for parameters in the place of tensors.

    Args:
        python_function: the function. Variables that it makes are the program's.
        name: a part of the concrete function's name.
        names: what its positional parameters are called.
        args: positional arguments, with specs for tensors.
        kwargs: named ones.

    Raises:
        ValueError: it returns what is no tensor, or makes a variable of an argument.
    """
    outer = root_of(get_default_graph())
    if not outer.eager:
        variable_store()  # the function's graph and the one around it share it from now on
    graph = DefinedGraph(f"__inference_{name}_{next(_numbers)}", outer)
    # As in TF, and not as in the functions of `Defun`: the seed is that of the program.
    graph._seed = outer.seed
    parameters = _Parameters(graph)
    with graph.as_default(), variable_creator_scope(_outside(graph, outer)):
        given = [parameters.of(n, a) for n, a in zip(names, args, strict=True)]
        named = {n: parameters.of(n, kwargs[n]) for n in sorted(kwargs)}
        before = len(graph.get_operations())
        found = python_function(*given, **named)
        results = nest.map_structure(_result, found, expand_composites=False)
        graph.outputs = [
            t if t._op.graph is graph else graph._adopt(t)
            for t in nest.flatten(results, expand_composites=True)
            if isinstance(t, Tensor)
        ]
        graph.targets = in_order(graph.get_operations()[before:])
    signature = tuple(parameters.spec(n, a) for n, a in zip(names, args, strict=True))
    concrete = ConcreteFunction(
        graph.func_name, lambda: graph, lambda: [away for away, _ in graph.captures],
        (signature, {n: parameters.spec(n, kwargs[n]) for n in sorted(kwargs)}),
        nest.map_structure(spec_of, results),
    )  # fmt: skip
    concrete._arg_keywords = keywords(parameters.asked)
    # Each may be given by its place, those in structures and the named ones as well.
    concrete._num_positional_args = len(concrete._arg_keywords)
    return concrete


class _Parameters:
    """The parameters of a body, in the order in which it gets them.

    Attributes:
        asked: the names that they ask for.
    """

    def __init__(self, graph: DefinedGraph) -> None:
        self._graph = graph
        self.asked: list[str] = []

    def of(self, name: str, value: Any) -> Any:
        """An argument with parameters in the place of specs."""
        return nest.map_structure(lambda leaf: self._made(name, leaf), value)

    def _made(self, name: str, leaf: Any) -> Any:
        if not isinstance(leaf, TypeSpec):
            return leaf
        if not isinstance(leaf, TensorSpec):
            parts = leaf._component_specs
            return leaf._from_components(nest.map_structure(lambda p: self._made(name, p), parts))
        wanted = leaf.name or name
        self.asked.append(wanted)
        # Python takes names that no node may have, `_` for one.
        return self._graph.add_input(leaf.dtype, leaf.shape.raw, wanted.lstrip("_") or "arg")

    def spec(self, name: str, value: Any) -> Any:
        """An argument as the signature has it: specs have names."""

        def named(leaf: Any) -> Any:
            if isinstance(leaf, TensorSpec) and not leaf.name:
                return TensorSpec(leaf.shape, leaf.dtype, name)
            return leaf

        return nest.map_structure(named, value)


def keywords(asked: Iterable[str]) -> list[str]:
    """The names of tensors that are arguments; those that several ask for are numbered."""
    found: list[str] = []
    for name in asked:
        proposal, number = name, 0
        while proposal in found:
            number += 1
            proposal = f"{name}_{number}"
        found.append(proposal)
    return found


def _result(found: Any) -> Any:
    """What a function returned, as a tensor or None."""
    if found is None or isinstance(found, CompositeTensor):
        return found
    if isinstance(found, Operation):
        return None
    return convert_to_tensor(found)


def spec_of(result: Any) -> Any:
    """What a concrete function says of a result: the spec of a tensor, None for nothing."""
    if isinstance(result, Tensor):
        return TensorSpec(result.shape, result.dtype.base_dtype)
    return None if result is None else type_spec_from_value(result)


class UnliftableError(ValueError):
    """What is to be computed outside of a body, or of a graph, depends on what is given there."""


def _outside(graph: DefinedGraph, outer: Any) -> Callable[..., Any]:
    """What makes the variables of a function: in the program, of initial values of its own.

    What depends on the function's arguments is the initial value of a variable if operations run as
    they are made: the call for which the function is traced computes it.
    """

    def create(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        value = kwargs.get("initial_value")
        with outer.as_default():
            try:
                if isinstance(value, Tensor) and value._op.graph is graph:
                    kwargs["initial_value"] = _lifted(graph, value)
                made = next_creator(**{**kwargs, "use_resource": True})
            except UnliftableError:
                if not outer.eager:
                    raise
                made = _started_by_call(graph, kwargs)
        graph.variables.append(made)
        return made

    return create


def _started_by_call(graph: DefinedGraph, kwargs: Mapping[str, Any]) -> Any:
    """A variable that the function itself gives its initial value, unless it has one."""
    with graph.as_default():
        value = convert_to_tensor(kwargs["initial_value"], kwargs.get("dtype"))
    # As in TF no other creator is asked: it would want a value.
    told = {key: kwargs[key] for key in _OF_LATE if kwargs.get(key) is not None}
    made = LateVariable(lambda: value, **told)

    def start() -> Tensor:
        with control_dependencies([get("AssignVariableOp")(made.handle, value, dtype=made.dtype)]):
            return constant(True)

    with graph.as_default():
        cond(get("VarIsInitializedOp")(made.handle), lambda: constant(False), start)
    graph.starts_variables = True
    return made


def _lifted(graph: DefinedGraph, value: Tensor) -> Tensor:
    """A tensor of the body as one of the program, which is the default graph.

    Raises:
        UnliftableError: it depends on an argument.
    """
    needed: set[Operation] = set()
    stack = [value.op]
    while stack:
        op = stack.pop()
        if op.type == "_Arg" and op.outputs[0] in graph.inputs:
            away = {inner: outer for outer, inner in graph.captures}
            if op.outputs[0] not in away:
                raise UnliftableError(
                    "Unable to lift tensor: the initial value of a variable depends on the "
                    f"argument {op.name!r} of the function {graph.func_name}."
                )
        elif op not in needed:
            needed.add(op)
            stack += [t.op for t in op.inputs]
    values: dict[Tensor, Tensor] = {inner: away for away, inner in graph.captures}
    copy_operations(graph, needed, values)
    return values[value]
