"""The functions of a graph: which there are, and what may join them."""

from __future__ import annotations

from opdock import errors
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.control.function_op import FunctionSpec, functions_of
from opdock.graph.nodes.graph import Graph
from opdock.graph.serial.function_writer import function_def

__all__ = ["add_function"]


def add_function(graph: Graph, spec: FunctionSpec) -> None:
    """Makes a function one of a graph's, with the functions that it needs.

    Raises:
        InvalidArgumentError: the graph has another one of that name.
    """
    known = functions_of(graph)
    if known.get(spec.name, spec) is not spec and not _same(known[spec.name], spec):
        raise errors.InvalidArgumentError(
            None, None,
            f"Cannot add function '{spec.name}' because a different function with the same name "
            "already exists.",
        )  # fmt: skip
    known.setdefault(spec.name, spec)
    for called in (*_called(spec.function), spec.gradient_spec):
        if called is not None and called.name not in known:
            add_function(graph, called)


def _called(function: FuncGraph) -> list[FunctionSpec]:
    return [op.spec for op in function.get_operations() if isinstance(op.spec, FunctionSpec)]


def _same(a: FunctionSpec, b: FunctionSpec) -> bool:
    """Whether two functions would be one in a library."""
    return bool(function_def(a) == function_def(b))
