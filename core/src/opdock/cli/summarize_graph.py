"""`opdock summarize-graph`: inputs, outputs, parameters and ops of a GraphDef."""

from __future__ import annotations

from opdock.cli._tool import tool

command = tool(
    "summarize-graph",
    "summarize_graph",
    example="opdock summarize-graph --in_graph=graph.pb",
)
