"""`opdock transform-graph`: rewrites a GraphDef by transforms, as TensorFlow's tool."""

from __future__ import annotations

from opdock.cli._tool import tool

command = tool(
    "transform-graph",
    "transform_graph",
    help="Rewrite a GraphDef by transforms.",
    example="opdock transform-graph --in_graph=graph.pb --out_graph=small.pb --inputs=x "
    '--outputs=y --transforms="fold_constants"',
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
