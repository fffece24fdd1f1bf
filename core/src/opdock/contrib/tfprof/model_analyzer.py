"""`tf.contrib.tfprof.model_analyzer`: `tf.profiler` by the names that it had first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from opdock.graph.nodes.graph import Graph
from opdock.profiler.model_analyzer import ALL_ADVICE, Profiler, advise, profile
from opdock.profiler.options import ProfileOptionBuilder
from opdock.profiler.profile_context import ProfileContext

__all__ = [
    "ALL_ADVICE", "FLOAT_OPS_OPTIONS", "PRINT_ALL_TIMING_MEMORY",
    "TRAINABLE_VARS_PARAMS_STAT_OPTIONS", "ProfileContext", "Profiler", "advise",
    "print_model_analysis",
]  # fmt: skip

TRAINABLE_VARS_PARAMS_STAT_OPTIONS: Final[dict[str, Any]] = (
    ProfileOptionBuilder.trainable_variables_parameter() | {"dump_to_file": ""}
)
"""Options that count the numbers in trainable variables."""
FLOAT_OPS_OPTIONS: Final[dict[str, Any]] = ProfileOptionBuilder.float_operation() | {
    "dump_to_file": ""
}
"""Options that count floating-point operations."""
PRINT_ALL_TIMING_MEMORY: Final[dict[str, Any]] = ProfileOptionBuilder.time_and_memory() | {
    "order_by": "name",
    "dump_to_file": "",
}
"""Options that show the time and the memory of traced steps, by name."""


def print_model_analysis(
    graph: Graph | None,
    run_meta: Any = None,
    op_log: Any = None,
    tfprof_cmd: str = "scope",
    tfprof_options: Mapping[str, Any] | int | None = None,
) -> Any:
    """What `tf.profiler.profile` does, with arguments by other names."""
    return profile(graph, run_meta, op_log, tfprof_cmd, tfprof_options)
