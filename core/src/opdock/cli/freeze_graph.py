"""`opdock freeze-graph`: makes one GraphDef of a graph and a checkpoint."""

from __future__ import annotations

from opdock.cli._tool import tool

command = tool(
    "freeze-graph",
    "freeze_graph",
    help="Make one GraphDef of a graph and a checkpoint, or of a SavedModel.",
    example="opdock freeze-graph --input_meta_graph=model.ckpt.meta --input_checkpoint=model.ckpt "
    "--input_binary=true --output_node_names=y --output_graph=frozen.pb",
    keys={
        "output": "the file that was written; empty if none was named",
        "nodes": "how many nodes the graph has",
        "bytes": "its size",
        "constants": "how many of its nodes are constants",
    },
)
