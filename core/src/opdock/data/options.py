"""`tf.data.Options`: how a dataset is worked through.

What says what the elements are, such as whether their order is fixed, is heeded. TF's rewrites of
a pipeline that are done are those of `opdock.kernels.data.rewriting`; random numbers are not drawn
elsewhere, nor maps and filters joined. Other hints are kept, merged and compared.
"""

from __future__ import annotations

import enum
from typing import Any, Final

from opdock.data.statistics import StatsAggregator
from opdock.data.util.options import OptionsBase, create_option, merge_options

__all__ = [
    "AutoShardPolicy", "DistributeOptions", "ExternalStatePolicy", "MapVectorizationOptions",
    "OptimizationOptions", "Options",
    "StatsOptions", "ThreadingOptions",
]  # fmt: skip


def _flag(name: str, docstring: str) -> Any:
    return create_option(name, bool, docstring)


class AutoShardPolicy(enum.IntEnum):
    """What is shared out between workers: TensorFlow 2's names."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class DistributeOptions(OptionsBase):
    """How elements are spread over workers."""

    auto_shard = create_option(
        "auto_shard", bool, "Whether the elements are shared out by a strategy.", lambda: True
    )
    auto_shard_policy = create_option(
        "auto_shard_policy", AutoShardPolicy, "What is shared out.", lambda: AutoShardPolicy.AUTO
    )
    _make_stateless = create_option(
        "_make_stateless", bool, "Whether ops become stateless.", lambda: False
    )
    num_devices = create_option("num_devices", int, "Of how many devices there are.")


class MapVectorizationOptions(OptionsBase):
    """Whether maps work on whole batches."""

    enabled = _flag("enabled", "Whether they do.")
    use_choose_fastest = _flag("use_choose_fastest", "Whether it is measured what is faster.")


_DEFAULT: Final = ("map_and_batch_fusion", "noop_elimination", "shuffle_and_repeat_fusion")
_REWRITES: Final = (
    *_DEFAULT, "filter_fusion", "filter_with_random_uniform_fusion", "hoist_random_uniform",
    "map_and_filter_fusion", "map_fusion", "map_parallelization", "parallel_batch",
)  # fmt: skip


class OptimizationOptions(OptionsBase):
    """Which rewrites of the pipeline may be done.

    Elements are the same after them, but that an error in a map takes the place of the whole batch
    where a map and a batch are one step, which they are by default, as in TF. Epochs are shuffled
    together only if it is asked for: their elements come in another order then. Three names change
    nothing: `hoist_random_uniform` and `filter_with_random_uniform_fusion` would draw other random
    numbers than the program says, and maps write into their batch already (`parallel_batch`).
    """

    apply_default_optimizations = _flag("apply_default_optimizations", "Those on by default.")
    autotune = _flag("autotune", "Whether parallelism tunes itself.")
    autotune_buffers = _flag("autotune_buffers", "Whether buffers do.")
    autotune_algorithm = create_option("autotune_algorithm", object, "How.")
    autotune_cpu_budget = create_option("autotune_cpu_budget", int, "With how many cores.")
    filter_fusion = _flag("filter_fusion", "Filters as one.")
    filter_with_random_uniform_fusion = _flag(
        "filter_with_random_uniform_fusion", "Random filters as samples."
    )
    hoist_random_uniform = _flag("hoist_random_uniform", "Random numbers out of maps.")
    map_and_batch_fusion = _flag("map_and_batch_fusion", "A map and a batch as one.")
    map_and_filter_fusion = _flag("map_and_filter_fusion", "A map and a filter as one.")
    map_fusion = _flag("map_fusion", "Maps as one.")
    map_parallelization = _flag("map_parallelization", "Maps of several elements at once.")
    map_vectorization = create_option(
        "map_vectorization", MapVectorizationOptions, "Maps of whole batches.",
        MapVectorizationOptions,
    )  # fmt: skip
    noop_elimination = _flag("noop_elimination", "Without what does nothing.")
    parallel_batch = _flag("parallel_batch", "Batches copied in parallel.")
    shuffle_and_repeat_fusion = _flag("shuffle_and_repeat_fusion", "Both as one.")

    def _static_optimizations(self) -> list[str]:
        """The names of the rewrites that are asked for, or are on by default, as TF has them."""
        by_default = self.apply_default_optimizations is not False
        found = {
            name for name in _REWRITES
            if getattr(self, name)
            or (by_default and name in _DEFAULT and getattr(self, name) is not False)
        }  # fmt: skip
        if self.map_vectorization is not None and self.map_vectorization.enabled:
            found.add("map_vectorization")
        if self.autotune is not False and self.autotune_buffers:
            found.add("inject_prefetch")
        return sorted(found)


class StatsOptions(OptionsBase):
    """Where statistics go."""

    aggregator = create_option("aggregator", StatsAggregator, "What collects them.")
    prefix = create_option("prefix", str, "Before the names of statistics.", lambda: "")
    counter_prefix = create_option("counter_prefix", str, "Before those of counters.", lambda: "")
    latency_all_edges = create_option(
        "latency_all_edges", bool, "Whether every transformation is timed.", lambda: False
    )


class ThreadingOptions(OptionsBase):
    """How many threads there are."""

    max_intra_op_parallelism = create_option(
        "max_intra_op_parallelism", int, "Within one op of a function."
    )
    private_threadpool_size = create_option(
        "private_threadpool_size", int, "In a pool of the pipeline's own."
    )


class ExternalStatePolicy(enum.Enum):
    """What becomes of state outside the pipeline when a dataset is written down: TensorFlow 2's."""

    WARN = 0
    IGNORE = 1
    FAIL = 2


class Options(OptionsBase):
    """Options of a dataset: see `tf.data.Dataset.with_options`."""

    experimental_deterministic = _flag(
        "experimental_deterministic",
        "Whether elements come in one order whatever is ready first. None: they do.",
    )
    experimental_distribute = create_option(
        "experimental_distribute", DistributeOptions, "How elements are spread.", DistributeOptions
    )
    experimental_optimization = create_option(
        "experimental_optimization", OptimizationOptions, "Hints to the optimizer.",
        OptimizationOptions,
    )  # fmt: skip
    experimental_slack = _flag("experimental_slack", "Whether a last prefetch leaves room.")
    experimental_stats = create_option(
        "experimental_stats", StatsOptions, "Statistics.", StatsOptions
    )
    experimental_threading = create_option(
        "experimental_threading", ThreadingOptions, "Threads.", ThreadingOptions
    )
    experimental_stateful_whitelist = create_option(
        "experimental_stateful_whitelist", list, "Ops whose state may be left out when saving."
    )
    experimental_external_state_policy = create_option(
        "experimental_external_state_policy", ExternalStatePolicy,
        "What becomes of state outside the pipeline.",
    )  # fmt: skip

    def _static_optimizations(self) -> list[str]:
        """The names of all rewrites of the pipeline that TF would do for these options."""
        found = set(self.experimental_optimization._static_optimizations())
        if self.experimental_deterministic is False:
            found.add("make_sloppy")
        if self.experimental_slack:
            found.add("slack")
        if self.experimental_stats.latency_all_edges:
            found.add("latency_all_edges")
        return sorted(found)

    def _rewrites(self) -> list[str]:
        """The rewrites that are done: epochs are shuffled together only if a program asks for it,
        as their elements come in another order then.
        """
        asked = self.experimental_optimization.shuffle_and_repeat_fusion
        left = set() if asked else {"shuffle_and_repeat_fusion"}
        return sorted(set(self._static_optimizations()) - left)

    def merge(self, options: Any) -> Any:
        """These options and others; ValueError where they contradict each other."""
        return merge_options(self, options)
