"""`opdock freeze-graph`: makes one GraphDef of a graph and a checkpoint."""

from __future__ import annotations

from opdock.cli._tool import tool

command = tool(
    "freeze-graph",
    "freeze_graph",
    example="opdock freeze-graph --input_meta_graph=model.ckpt.meta --input_checkpoint=model.ckpt "
    "--input_binary=true --output_node_names=y --output_graph=frozen.pb",
)
