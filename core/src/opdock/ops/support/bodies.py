"""What is asked of the functions in a node's attributes, and what they share."""

from __future__ import annotations

from typing import Any

from opdock import errors
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.nodes.operation import Tensor

__all__ = ["check_loop", "share_captures"]


def check_loop(cond: Any, body: Any, count: int) -> None:
    """Checks that the functions of a loop have the results that they should.

    Args:
        cond: its condition; what is no graph, but a name, is not known yet.
        body: what a turn computes.
        count: how many variables it has.

    Raises:
        InvalidArgumentError: the condition gives not one value, or the body not one a variable.
    """
    conditions, results = getattr(cond, "outputs", None), getattr(body, "outputs", None)
    if conditions is not None and len(conditions) != 1:
        raise errors.InvalidArgumentError(
            None, None, f"Expected a single scalar return value, got {len(conditions)} tensors."
        )
    if results is not None and len(results) != count:
        raise errors.InvalidArgumentError(
            None, None, f"While loop body returned {len(results)} arguments. Expected: {count}"
        )


def share_captures(graphs: list[FuncGraph]) -> list[Tensor]:
    """Gives all graphs the same list of captured inputs, and returns the outer tensors."""
    order: dict[Tensor, None] = {}
    for graph in graphs:
        order.update(dict.fromkeys(graph.outside.values()))
    for graph in graphs:
        known = dict(graph.captures)
        inputs, outside = graph.inputs[: len(graph.inputs) - len(known)], {}
        for outer in order:
            inner = known.get(outer)
            if inner is None:
                inner = graph._make_arg(outer.dtype, outer.raw_shape, "unused").outputs[0]
            inner.op.attrs["index"] = len(inputs)
            inputs.append(inner)
            outside[inner] = outer
        graph.inputs, graph.outside = inputs, outside
    return list(order)
