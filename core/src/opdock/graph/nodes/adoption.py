"""Tensors of one graph that another one uses, where it does not simply capture them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opdock.graph.nodes.graph import Graph
    from opdock.graph.nodes.operation import Tensor


def adopted(tensor: Tensor, user: str, graph: Graph) -> Tensor:
    """What stands in a graph for a tensor of a branch of a cond that was built before.

    Args:
        tensor: the tensor.
        user: the name of the node that uses it.
        graph: the node's graph.

    Raises:
        ValueError: the tensor is of another program, of a loop, or of a branch that does not
            compute it for its own results; in TF's words.
    """
    loop: Any = getattr(tensor._op.graph, "loop", None)
    around: Any = graph
    while around is not None and around is not loop:
        around = getattr(around, "outer", None)
    if around is loop and getattr(tensor._op.graph, "depth", 0) > 0:
        if tensor._op.type == "Const":
            return graph._copy_constant(tensor)
        hand_out: Any = getattr(tensor._op.graph, "hand_out", None)
        found: Tensor | None = None if hand_out is None else hand_out(tensor, graph)
        if found is not None:
            return found
    raise _out_of_reach(tensor, user, graph)


def _out_of_reach(tensor: Tensor, user: str, graph: Graph) -> ValueError:
    name, loop = tensor._op.name, getattr(tensor._op.graph, "loop", None)
    if loop is None or loop is getattr(graph, "loop", None):
        function = getattr(tensor._op.graph, "func_name", None)
        where = tensor._op.graph if function is None else f"the branch or function '{function}'"
        hint = "" if function is None else " What is to be used outside has to be returned there."
        return ValueError(f"{tensor} of {where} must be from the same graph as '{user}'.{hint}")
    why = f"'{name}' is in a while loop"
    if getattr(graph, "loop", None) is not None:
        why = "they are in different while loops"
    return ValueError(
        f"Cannot use '{name}' as input to '{user}' because {why}. See info log for more details."
    )
