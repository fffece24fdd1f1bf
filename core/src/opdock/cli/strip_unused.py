"""`opdock strip-unused`: cuts a graph down to what leads from inputs to outputs."""

from __future__ import annotations

from opdock.cli._tool import CHANGE, tool

command = tool(
    "strip-unused",
    "strip_unused_lib",
    help="Cut a graph down to what leads from given inputs to given outputs.",
    example="opdock strip-unused --input_graph=graph.pb --input_binary=true "
    "--output_graph=small.pb --input_node_names=x --output_node_names=y",
    keys=CHANGE,
)
