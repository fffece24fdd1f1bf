"""The rewrite of TF 1's first control flow: one pattern after the other, until none is left."""

from __future__ import annotations

from typing import Any

from opdock.graph.control.v1_conds import rewrite_a_cond
from opdock.graph.control.v1_control_flow import EXIT, MERGE, FlatFunction, Rewriter, unsupported
from opdock.graph.control.v1_loops import rewrite_a_loop


def functionalize(graph_def: Any) -> tuple[Any, dict[str, FlatFunction]]:
    """A GraphDef without switches and loops, and the functions that its new nodes name.

    Raises:
        UnimplementedError: a pattern is not one that `tf.cond` and `tf.while_loop` make.
    """
    rewriter = Rewriter(graph_def)
    rewrite(rewriter)
    finish(rewriter)
    return rewriter.result(whole=True), rewriter.functions


def rewrite(graph: Rewriter) -> bool:
    """Rewrites every pattern, inner ones first; False when there is none."""
    found = False
    while (
        rewrite_a_cond(graph)
        or rewrite_a_loop(graph)
        # What is left waits for what it is in: nothing says that it is one cond.
        or rewrite_a_cond(graph, whole=False)
    ):
        found = True
    return found


def finish(graph: Rewriter) -> None:
    """Checks that nothing is left over.

    Raises:
        UnimplementedError: a pattern is not one that `tf.cond` and `tf.while_loop` make.
    """
    for node in graph.nodes.values():
        if node.op in EXIT or (node.op in MERGE and node.name not in graph.done):
            raise unsupported(node, "it is no pattern of tf.cond or tf.while_loop")
