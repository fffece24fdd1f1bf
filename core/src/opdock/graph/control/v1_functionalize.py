"""The rewrite of TF 1's first control flow: one pattern after the other, until none is left."""

from __future__ import annotations

from typing import Any

from opdock.graph.control.v1_conds import rewrite_a_cond
from opdock.graph.control.v1_control_flow import (
    EXIT,
    MERGE,
    V1_OPS,
    FlatFunction,
    Rewriter,
    unsupported,
)
from opdock.graph.control.v1_loops import keep_records, rewrite_a_loop
from opdock.graph.nodes import registry
from opdock.graph.serial.attr_proto import native_attr


def functionalize(graph_def: Any) -> tuple[Any, dict[str, FlatFunction]]:
    """A GraphDef without switches and loops, and the functions that its new nodes name.

    Raises:
        UnimplementedError: a pattern is not one that `tf.cond` and `tf.while_loop` make.
        ValueError: a node of such a pattern is malformed.
    """
    for node in graph_def.node:
        if node.op in V1_OPS:
            _check(node)
    rewriter = Rewriter(graph_def)
    rewrite(rewriter)
    finish(rewriter)
    return rewriter.result(whole=True), rewriter.functions


def _check(node: Any) -> None:
    """ValueError for a node that lacks a type or an input, before anything is looked up in it."""
    definition = registry.get(node.op).definition
    wanted = sum(int(node.attr[a.number_attr].i) if a.number_attr else 1 for a in definition.inputs)
    given = sum(not text.startswith("^") for text in node.input)
    if given != wanted:
        raise ValueError(
            f"NodeDef expected {wanted} inputs, {given} specified; node '{node.name}', op {node.op}"
        )
    for attr in definition.attrs.values():
        try:
            if attr.name in node.attr or not attr.has_default:
                value = native_attr(node.attr[attr.name], attr.type)
                if isinstance(value, bytes):
                    raise TypeError(f"{value!r} is no text")
        except TypeError as e:
            raise ValueError(f"Node '{node.name}', attr '{attr.name}': {e}") from None
    if node.op in MERGE and wanted < 1:
        raise ValueError(f"Node '{node.name}' merges nothing (op {node.op})")


def rewrite(graph: Rewriter) -> bool:
    """Rewrites every pattern, inner ones first; False when there is none."""
    found = False
    keep_records(graph)
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
