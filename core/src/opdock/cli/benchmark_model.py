"""`opdock benchmark-model`: how long a graph takes, and which ops take it."""

from __future__ import annotations

from opdock.cli._tool import tool

command = tool(
    "benchmark-model",
    "benchmark_model",
    help="Say how long a graph takes, and which of its ops.",
    example="opdock benchmark-model --graph=graph.pb --input_layer=x --input_layer_shape=1,4 "
    "--input_layer_type=float --output_layer=y --max_num_runs=3",
    keys={
        "initialized_us": "how long graph and session took to make",
        "runs": "how many runs count",
        "latency_us": "of these min, mean, p50, p90, p95, p99 and max",
        "warmup_us": "the mean of the runs before; null without any",
        "traced_us": "the mean of those in which ops were timed",
        "planned_bytes": "of memory, as planned",
        "buffers": "in how many buffers",
        "flops": "an estimate for a run (--show_flops); null otherwise",
        "ops": "in the order in which they run: name, op, start_us, us, bytes, "
        "times, outputs (dtype and shape of each)",
    },
)
