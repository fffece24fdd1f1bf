"""Gradients that a loop's body asks of what its variables start from: there are none.

The body stands for every turn, and only the first one has the initial values.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor

__all__ = ["check_initial_values"]


def check_initial_values(
    graph: Graph,
    ys: Iterable[Tensor],
    xs: Container[Tensor],
    stops: Container[Tensor],
    captures: dict[Tensor, Tensor],
) -> None:
    """Checks that no way from the ys to the xs leads through where a loop around starts.

    Args:
        graph: the graph in which the gradient is built.
        ys, xs, stops: what `tf.gradients` is asked for.
        captures: parameters of bodies that stand for tensors of the graphs around.

    Raises:
        ValueError: one does.
    """
    starts: dict[Tensor, Tensor] = {}
    around: Graph | None = graph
    while around is not None:
        starts.update(getattr(around, "starts", {}))
        around = getattr(around, "outer", None)
    if not starts:
        return
    first = [starts[t] for t in _reached(ys, stops, captures) if t in starts]
    for tensor in _reached(first, stops, {**captures, **starts}):
        if tensor in xs:
            raise ValueError(
                f"Cannot compute gradient inside while loop with respect to op '{tensor.op.name}'. "
                "We do not support taking the gradient wrt or through the initial value of a loop "
                "variable. Gradients can be computed through loop invariants or wrt the input "
                "parameters to the loop body."
            )


def _reached(
    roots: Iterable[Tensor], stops: Container[Tensor], captures: dict[Tensor, Tensor]
) -> list[Tensor]:
    """The tensors to which gradients of the roots could flow."""
    seen: set[Operation] = set()
    found = []
    waiting = list(roots)
    while waiting:
        tensor = waiting.pop()
        found.append(tensor)
        op = tensor._op
        if op in seen or tensor in stops:
            continue
        seen.add(op)
        if tensor in captures:
            waiting.append(captures[tensor])
        elif op._spec.is_differentiable:
            waiting += op._inputs
    return found
