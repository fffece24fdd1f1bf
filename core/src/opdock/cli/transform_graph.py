"""`opdock transform-graph`: rewrites a GraphDef by transforms, as TensorFlow's tool."""

from __future__ import annotations

from opdock.cli._tool import CHANGE, tool

command = tool(
    "transform-graph",
    "transform_graph",
    help="Rewrite a GraphDef by transforms.",
    example="opdock transform-graph --in_graph=graph.pb --out_graph=small.pb --inputs=x "
    '--outputs=y --transforms="fold_constants"',
    keys=CHANGE,
)
