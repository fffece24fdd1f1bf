"""`StatsAggregator`: what counts the statistics of datasets."""

from __future__ import annotations

from opdock.graph.nodes.operation import Tensor
from opdock.ops.data_stats import stats_aggregator_handle_op, stats_aggregator_summary_op

__all__ = ["StatsAggregator"]


class StatsAggregator:
    """Counts statistics of the iterators of a session.

    Set it as `tf.data.Options().experimental_stats.aggregator` of a dataset; then it hears of the
    datasets before that one which measure something: those of `latency_stats` and its like, and
    under names such as "PrefetchDataset/_5::buffer_size" buffers, filters and threads.
    """

    def __init__(self) -> None:
        self._resource: Tensor = stats_aggregator_handle_op()

    def get_summary(self) -> Tensor:
        """A serialized Summary of what was counted so far, a string scalar."""
        summary: Tensor = stats_aggregator_summary_op(self._resource)
        return summary
