"""Kernels of statistics of datasets."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.kernels.data.base import Dataset, invalid, unwrap
from opdock.kernels.data.binding import Make, hosted, resources_of, scalar_text
from opdock.kernels.data.memory import dataset_of
from opdock.kernels.data.statistics import Aggregator, MeasuredDataset, ToldDataset, latency, size
from opdock.kernels.select.signature import NodeSig

__all__: list[str] = []


def _aggregator(handle: Any) -> Aggregator:
    found = unwrap(handle)
    if not isinstance(found, Aggregator):
        raise invalid(f"The handle is not one of a StatsAggregator: {type(found).__name__}")
    return found


@hosted("StatsAggregatorHandle", earlier=True)
def stats_aggregator_handle(sig: NodeSig) -> Make:
    """The aggregator of a name: the node's own, or the one that it shares."""
    attrs, resources = sig.attrs, resources_of(sig)
    name = attrs["shared_name"] or sig.name
    return lambda: resources.get_or_create("stats_aggregator", attrs["container"], name, Aggregator)


@hosted("StatsAggregatorSummary", inputs="iterator", outputs="summary", earlier=True)
def stats_aggregator_summary(sig: NodeSig) -> Make:
    """What was counted so far."""

    def run(handle: Any) -> Any:
        out = np.empty((), object)
        out[()] = _aggregator(handle).summary()
        return out

    return run


@hosted("LatencyStatsDataset", inputs="input_dataset tag", earlier=True)
def latency_stats(sig: NodeSig) -> Make:
    """The elements, timed."""
    return lambda source, tag: MeasuredDataset(dataset_of(source), scalar_text(tag, "tag"), latency)


@hosted("BytesProducedStatsDataset", inputs="input_dataset tag", earlier=True)
def bytes_produced_stats(sig: NodeSig) -> Make:
    """The elements, measured."""
    return lambda source, tag: MeasuredDataset(dataset_of(source), scalar_text(tag, "tag"), size)


@hosted(
    "SetStatsAggregatorDataset",
    inputs="input_dataset stats_aggregator tag counter_prefix",
    earlier=True,
)
def set_stats_aggregator(sig: NodeSig) -> Make:
    """The elements, with an aggregator for the statistics of the datasets before."""

    def run(source: Any, handle: Any, tag: Any, counter_prefix: Any) -> Dataset:
        # Counters go to the monitoring of TensorFlow's servers, which nobody reads here.
        scalar_text(counter_prefix, "counter_prefix")
        return ToldDataset(dataset_of(source), _aggregator(handle), scalar_text(tag, "tag"))

    return run
