"""Values of the bodies of branches and loops that are used outside: their op gets more outputs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.thread_scopes import alone
from opdock.ops import tensor_list
from opdock.shapes import Shape

__all__ = ["add_output", "hand_out", "plain_scope", "record_in_branch"]


@contextlib.contextmanager
def plain_scope(graph: Graph) -> Iterator[None]:
    """Makes `graph` the default, free of the control dependencies that are in force."""
    with graph.as_default(), alone(graph._scopes):
        yield


def add_output(op: Operation, types: str, dtype: DType, shape: Shape) -> int:
    """Adds an output to a control-flow op; returns its index.

    Args:
        op: the op.
        types: the attribute that lists the types of its outputs.
        dtype, shape: of the output.
    """
    index = len(op.outputs)
    declared = op.attrs["output_shapes"] or [t.raw_shape for t in op.outputs]
    op.attrs[types] = [*op.attrs[types], dtype]
    op.attrs["output_shapes"] = [*declared, shape]
    op.outputs.append(Tensor(op, index, dtype, shape))
    graph: Graph | None = op.graph
    while graph is not None:
        # Programs of any enclosing graph hold the op's former signature.
        graph._changed()
        graph = getattr(graph, "outer", None)
    return index


def record_in_branch(op: Operation, body: FuncGraph, tensor: Tensor) -> int:
    """Adds an output that is a list of one where the branch is taken, else an empty one.

    Args:
        op: the If.
        body: one of its branches.
        tensor: a tensor in there.

    Returns:
        The output's index.
    """
    with plain_scope(body):
        body.outputs.append(tensor_list.push(tensor_list.empty(tensor), tensor))
    for other in (op.attrs["then_branch"], op.attrs["else_branch"]):
        if other is not body:
            with plain_scope(other):
                other.outputs.append(tensor_list.empty(tensor))
    return add_output(op, "Tout", dtypes.variant, ())


def hand_out(op: Operation, tensor: Tensor, to: Graph) -> Tensor | None:
    """What a branch computes, for a graph outside; to use it where the branch was not taken fails.

    Args:
        op: the If.
        tensor: a tensor of one of its branches.
        to: the graph that uses it.

    Returns:
        A tensor of `to`; None where the branch does not compute the tensor for its own results.
    """
    body = tensor._op.graph
    if not isinstance(body, FuncGraph) or tensor.op not in body.needed():
        return None
    recorded: dict[Tensor, int] = op.__dict__.setdefault("_handed_out", {})
    if tensor not in recorded:
        recorded[tensor] = record_in_branch(op, body, tensor)
    with plain_scope(to):
        return tensor_list.pop(op.outputs[recorded[tensor]], tensor)[1]
