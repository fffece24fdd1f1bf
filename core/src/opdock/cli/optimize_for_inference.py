"""`opdock optimize-for-inference`: makes a frozen graph smaller and faster."""

from __future__ import annotations

from opdock.cli._tool import CHANGE, tool

command = tool(
    "optimize-for-inference",
    "optimize_for_inference_lib",
    help="Make a frozen graph smaller and faster.\n\nWhat only training needs goes, batch "
    "normalization goes into the weights before it, resizes and mirrored margins go into the "
    "convolution after them.",
    example="opdock optimize-for-inference --input=graph.pb --output=small.pb --input_names=x "
    "--output_names=y",
    keys=CHANGE,
)
