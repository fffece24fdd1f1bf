"""`opdock optimize-for-inference`: makes a frozen graph smaller and faster."""

from __future__ import annotations

from opdock.cli._tool import tool

command = tool(
    "optimize-for-inference",
    "optimize_for_inference_lib",
    help="Make a frozen graph smaller and faster.\n\nWhat only training needs goes, batch "
    "normalization goes into the weights before it, resizes and mirrored margins go into the "
    "convolution after them.",
    example="opdock optimize-for-inference --input=graph.pb --output=small.pb --input_names=x "
    "--output_names=y",
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
