"""`tf.contrib.copy_graph`: operations and variables of one graph in another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.serial.graphdef import build_node
from opdock.graph.variables.variable import Variable
from opdock.runtime.session import Session

__all__ = ["copy_op_to_graph", "copy_variable_to_graph", "get_copied_op"]


def copy_variable_to_graph(org_instance: Any, to_graph: Graph, scope: str = "") -> Any:
    """A variable of another graph's name, type and initial value, in this graph.

    Args:
        org_instance: the variable of the other graph.
        to_graph: this graph.
        scope: what stands before its name, and before the names of the collections that it is in,
            but those of all and of all trainable variables.

    Raises:
        TypeError: it is no variable.
    """
    if not isinstance(org_instance, Variable):
        raise TypeError(f"{org_instance} is not a Variable")
    graph: Graph = org_instance.graph
    everywhere = (GraphKeys.GLOBAL_VARIABLES, GraphKeys.TRAINABLE_VARIABLES)
    with Session(graph=graph) as session:
        value = session.run(org_instance.initialized_value())
    with to_graph.as_default():
        return Variable(
            value,
            trainable=_is_in(org_instance, graph, GraphKeys.TRAINABLE_VARIABLES),
            collections=[
                key if key in everywhere else _scoped(key, scope)
                for key in _collections(org_instance, graph)
            ],
            validate_shape=False,
            name=_scoped(org_instance.op.name, scope),
            use_resource=not org_instance.dtype._is_ref_dtype,
        )


def copy_op_to_graph(
    org_instance: Any, to_graph: Graph, variables: Iterable[Any], scope: str = ""
) -> Any:
    """An operation or tensor of another graph in this one, with all that it needs.

    What this graph has under its name already is taken for it, and so for what it needs.

    Args:
        org_instance: the operation or tensor of the other graph.
        to_graph: this graph.
        variables: the variables of this graph that take the places of the other's, as
            `copy_variable_to_graph` makes them.
        scope: what stands before the names of the copies, and of the collections of tensors.

    Raises:
        TypeError: it is neither an operation nor a tensor.
        ValueError: it needs itself, in a loop that was built by hand.
    """
    if not isinstance(org_instance, (Operation, Tensor)):
        raise TypeError(f"Could not copy instance: {org_instance}")
    own = {v.name: v for v in variables}
    name = _scoped(org_instance.name, scope)
    if name in own:
        return to_graph.get_tensor_by_name(name)
    if (there := _find(org_instance, to_graph, scope)) is not None:
        return there
    waiting = [org_instance if isinstance(org_instance, Operation) else org_instance.op]
    begun: set[Operation] = set()
    while waiting:
        op = waiting[-1]
        needed = [t for t in op.inputs if _find(t, to_graph, scope) is None]
        before = [t.op for t in needed] + [
            c for c in op.control_inputs if _find(c, to_graph, scope) is None
        ]
        if _find(op, to_graph, scope) is not None:
            waiting.pop()
        elif not before:
            waiting.pop()
            _copy(op, to_graph, scope)
        elif op in begun:
            raise ValueError(f"{op.name} needs itself, so it cannot be copied after what it needs")
        else:
            begun.add(op)
            waiting += before
    return get_copied_op(org_instance, to_graph, scope)


def get_copied_op(org_instance: Any, graph: Graph, scope: str = "") -> Any:
    """The operation or tensor of a graph that has the name of one of another graph.

    Args:
        org_instance: that of the other graph.
        graph: this graph.
        scope: what stands before the name here.

    Raises:
        KeyError: there is none.
    """
    return graph.as_graph_element(_scoped(org_instance.name, scope))


def _copy(op: Operation, graph: Graph, scope: str) -> None:
    inputs = [_find(t, graph, scope) for t in op.inputs]
    attrs = dict(op.attrs)
    if attrs.get("_class"):
        attrs["_class"] = _groups(attrs["_class"], graph, scope)
    # A copy has the device and the control inputs of its original, not those of its caller.
    with graph.control_dependencies(None), graph.colocate_with(None, ignore_existing=True):
        made = build_node(graph, op.spec, _scoped(op.name, scope), inputs, attrs)
    made._set_device(op.device)
    made._add_control_inputs([_find(c, graph, scope) for c in op.control_inputs])
    if op._original_op is not None:
        made._original_op = _find(op._original_op, graph, scope)
    for old, new in zip(op.outputs, made.outputs, strict=True):
        for key in _collections(old, op.graph):
            graph.add_to_collection(_scoped(key, scope), new)


def _find(element: Operation | Tensor, graph: Graph, scope: str) -> Any:
    """What has the name of an element in another graph, or None."""
    try:
        return get_copied_op(element, graph, scope)
    except KeyError:
        return None


def _groups(groups: Iterable[Any], graph: Graph, scope: str) -> list[str]:
    """Colocation groups, by the names of the copies that there are."""
    found = []
    for group in groups:
        name = _scoped(str(group).removeprefix("loc:@"), scope)
        if name in graph._nodes_by_name:
            found.append(f"loc:@{name}")
    return found


def _scoped(name: str, scope: str) -> str:
    return f"{scope}/{name}" if scope else name


def _collections(element: Any, graph: Graph) -> list[str]:
    """The collections of a graph, of those with plain names, that an element is in."""
    keys = [key for key in graph.get_all_collection_keys() if isinstance(key, str)]
    return [key for key in keys if _is_in(element, graph, key)]


def _is_in(element: Any, graph: Graph, key: str) -> bool:
    return any(member is element for member in graph.get_collection_ref(key))
