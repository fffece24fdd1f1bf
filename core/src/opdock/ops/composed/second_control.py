"""Control flow of version 2 by its internal names, whatever `enable_control_flow_v2` says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.nodes.operation import Operation
from opdock.ops.composed import loops
from opdock.ops.control import cond
from opdock.ops.support.control_mode import inside_function

__all__: list[str] = []  # TF 1.15 has these names in its internal tree only.


def cond_v2(
    pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any], name: str | None = "cond"
) -> Any:
    """`tf.cond` by the rules of version 2."""
    with inside_function():
        return cond(pred, true_fn, false_fn, name=name or "cond")


def while_loop(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any,
    shape_invariants: Any = None, parallel_iterations: int = 10, maximum_iterations: Any = None,
    name: str | None = None, return_same_structure: bool = True, back_prop: bool = True,
) -> Any:  # fmt: skip
    """`tf.while_loop` by the rules of version 2."""
    with inside_function():
        return loops.while_loop(
            cond, body, loop_vars, shape_invariants, parallel_iterations, back_prop,
            name=name or "while", maximum_iterations=maximum_iterations,
            return_same_structure=return_same_structure,
        )  # fmt: skip


def branches_of(op: Operation) -> tuple[FuncGraph, FuncGraph]:
    """The functions of an `If`."""
    return op.attrs["then_branch"], op.attrs["else_branch"]


def function_of(op: Operation, which: str) -> FuncGraph:
    """The function "cond" or "body" of a `While`."""
    graph: FuncGraph = op.attrs[which]
    return graph
