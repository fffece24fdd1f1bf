"""Whether `tf.cond` and `tf.while_loop` follow the rules of control flow version 2.

Branches and bodies are functions in either version. What differs is what a program may see: the
second version takes conditions of any rank whose dimensions are 1, and conditions that are no
bool, and leaves the structure of results as it is. TensorFlow has it for the functions of datasets
and of `tf.function` whatever the setting.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.control.function_op import DefinedGraph
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Tensor
from opdock.ops.registry import get

__all__ = ["building_function", "inside_function", "second_version", "squeezed"]

ENABLE_CONTROL_FLOW_V2 = False


class _Thread(threading.local):
    depth = 0


_thread = _Thread()


def second_version() -> bool:
    """Whether the second version's rules hold for what is built now."""
    return ENABLE_CONTROL_FLOW_V2 or _thread.depth > 0


@contextlib.contextmanager
def inside_function() -> Iterator[None]:
    """While a user's function is traced that TensorFlow would make a function of."""
    _thread.depth += 1
    try:
        yield
    finally:
        _thread.depth -= 1


def building_function() -> bool:
    """Whether what is built now is a part of a function, and not of the program around it."""
    graph: Graph | None = get_default_graph()
    while isinstance(graph, FuncGraph) and not isinstance(graph, DefinedGraph):
        graph = graph.outer  # a branch, or a loop's body
    return _thread.depth > 0 or isinstance(graph, DefinedGraph)


def squeezed(condition: Tensor) -> Tensor:
    """A condition without its dimensions of 1."""
    if condition.raw_shape == ():
        return condition
    scalar: Tensor = get("Squeeze")(condition)
    return scalar
