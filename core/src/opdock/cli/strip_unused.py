"""`opdock strip-unused`: cuts a graph down to what leads from inputs to outputs."""

from __future__ import annotations

from opdock.cli._tool import tool

command = tool(
    "strip-unused",
    "strip_unused_lib",
    help="Cut a graph down to what leads from given inputs to given outputs.",
    example="opdock strip-unused --input_graph=graph.pb --input_binary=true "
    "--output_graph=small.pb --input_node_names=x --output_node_names=y",
    keys={
        "output": "the file that was written",
        "nodes_before": "how many nodes the graph had",
        "nodes": "how many it has",
        "bytes_before": "the graph's size before",
        "bytes": "its size now",
        "removed": "how many nodes of each op went",
        "added": "how many came",
    },
)
