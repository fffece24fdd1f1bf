"""Statistics: counted for the aggregator of a dataset, and for nobody else."""

from __future__ import annotations

from typing import Any

import pytest

import opdock as tf
from opdock.data import Dataset
from opdock.data.experimental import StatsAggregator, bytes_produced_stats, latency_stats
from opdock.data.experimental.statistics import set_stats_aggregator


def told(dataset: Any, aggregator: Any, prefix: str = "") -> Any:
    options = tf.data.Options()
    options.experimental_stats.aggregator = aggregator
    options.experimental_stats.prefix = prefix
    return dataset.with_options(options)


def histograms(data: bytes) -> dict[str, Any]:
    return {v.tag: v.histo for v in tf.Summary.FromString(data).value}


def counted(*datasets: Any, aggregator: Any) -> dict[str, Any]:
    """The histograms after all elements, which are counted one after the other."""
    iterators = [d.make_initializable_iterator() for d in datasets]
    following, summary = [i.get_next() for i in iterators], aggregator.get_summary()
    with tf.Session() as session:
        session.run([i.initializer for i in iterators])
        assert session.run(summary) == b""
        for element in following:
            with pytest.raises(tf.errors.OutOfRangeError):
                while True:
                    session.run(element)
        return histograms(session.run(summary))


def test_bytes_of_numbers_and_letters():
    aggregator = StatsAggregator()
    texts = Dataset.from_tensor_slices((["a", "bcd", ""], [1, 2, 3]))
    found = counted(told(texts.apply(bytes_produced_stats("b")), aggregator), aggregator=aggregator)
    assert list(found) == ["b"]
    b = found["b"]
    assert (b.num, b.sum, b.min, b.max, b.sum_squares) == (3, 16, 4, 7, 25 + 49 + 16)
    assert sum(b.bucket) == 3 and len(b.bucket) == len(b.bucket_limit)


def test_several_datasets_tell_one_aggregator():
    aggregator = StatsAggregator()
    twice = Dataset.range(5).apply(latency_stats("t")).batch(2).apply(latency_stats("t"))
    other = (
        Dataset.range(4)
        .apply(latency_stats("t"))
        .apply(set_stats_aggregator(aggregator, prefix="other"))
    )
    found = counted(told(twice, aggregator), other, aggregator=aggregator)
    assert {tag: h.num for tag, h in found.items()} == {"t": 8, "other::t": 4}
    assert all(0 <= h.min <= h.max for h in found.values())


def test_functions_datasets_are_heard_too():
    aggregator = StatsAggregator()
    inner = Dataset.range(3).interleave(
        lambda i: Dataset.range(i).apply(bytes_produced_stats("in")), cycle_length=2
    )
    found = counted(told(inner.prefetch(2), aggregator), aggregator=aggregator)
    assert (found["in"].num, found["in"].sum) == (3, 24)


def test_nobody_hears_where_nobody_asked(walk):
    assert walk(Dataset.range(3).apply(latency_stats("t"))) == [0, 1, 2]
    with pytest.raises(TypeError, match="aggregator"):
        tf.data.Options().experimental_stats.aggregator = object()
