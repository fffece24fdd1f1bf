"""`opdock benchmark-model`: how long a graph takes, and which ops take it."""

from __future__ import annotations

from opdock.cli._tool import tool

command = tool(
    "benchmark-model",
    "benchmark_model",
    example="opdock benchmark-model --graph=graph.pb --input_layer=x --input_layer_shape=1,4 "
    "--input_layer_type=float --output_layer=y --max_num_runs=3",
)
