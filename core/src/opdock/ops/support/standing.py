"""Ops that stand for a function of other ops, which take their place before any pass looks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.control.function_op import DefinedGraph
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.opdef import ArgDef
from opdock.ops.registry import Control, OpSpec, Traits, define_op

__all__ = ["older_name", "stands_for"]

Body = Callable[..., Any]


def stands_for(
    name: str, signature: str, attrs: str, *, stateful: bool = False
) -> Callable[[Body], OpSpec]:
    """A decorator: defines an op by a function that adds others.

    The function is given the node's attributes and an argument for each input, which is a list
    where the input is one. Shape and gradient are to be added to the op.

    Args:
        name: the op type.
        signature, attrs: as of `define_op`.
        stateful: whether equal nodes may give unequal results.
    """

    def define(body: Body) -> OpSpec:
        op = define_op(name, signature, attrs, stateful=stateful)
        op.declare(Traits(builtin=True, control=Control.CALL))
        op.callee(lambda given: _function(op, body, given))
        return op

    return define


def older_name(name: str, op: OpSpec) -> OpSpec:
    """Defines the name that an op had in earlier versions; a node of it is one of the op's."""
    signature, attrs = op.text

    @stands_for(name, signature, attrs, stateful=op.stateful)
    def same(given: dict[str, Any], *inputs: Any) -> Any:
        own = op.definition.attrs.keys() - op.definition.inferred
        return op(*inputs, **{key: value for key, value in given.items() if key in own})

    if op.shape_fn is not None:
        same.shape(op.shape_fn)
    return same


def _function(op: OpSpec, body: Body, attrs: dict[str, Any]) -> FuncGraph:
    graph = DefinedGraph(op.name, Graph())
    with graph.as_default():
        given: list[Any] = []
        for argument in op.definition.inputs:
            tensors = [graph.add_input(kind, None) for kind in _kinds(argument, attrs)]
            given.append(tensors if argument.is_list else tensors[0])
        found = body(attrs, *given)
        if isinstance(found, (list, tuple)):
            graph.outputs = list(found)
        elif op.definition.outputs:
            graph.outputs = [found]
        else:
            graph.targets = [found]
    return graph


def _kinds(argument: ArgDef, attrs: dict[str, Any]) -> list[Any]:
    if argument.type_list_attr:
        return list(attrs[argument.type_list_attr])
    kind = attrs[argument.type_attr] if argument.type_attr else argument.dtype
    return [kind] * (attrs[argument.number_attr] if argument.number_attr else 1)
