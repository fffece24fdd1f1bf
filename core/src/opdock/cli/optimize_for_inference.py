"""`opdock optimize-for-inference`: makes a frozen graph smaller and faster."""

from __future__ import annotations

from opdock.cli._tool import tool

command = tool(
    "optimize-for-inference",
    "optimize_for_inference_lib",
    example="opdock optimize-for-inference --input=graph.pb --output=small.pb --input_names=x "
    "--output_names=y",
)
