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
    return {v.tag: v.histo for v in tf.Summary.FromString(data).value if v.HasField("histo")}


def numbers(data: bytes) -> dict[str, float]:
    found = tf.Summary.FromString(data).value
    return {v.tag: v.simple_value for v in found if v.HasField("simple_value")}


def counted(*datasets: Any, aggregator: Any, read: Any = histograms) -> dict[str, Any]:
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
        found: dict[str, Any] = read(session.run(summary))
        return found


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


def test_buffers_and_filters_tell_by_the_place_of_their_node():
    aggregator = StatsAggregator()
    even = Dataset.range(10).prefetch(2).filter(lambda x: tf.equal(x % 2, 0)).prefetch(1)
    found = counted(told(even, aggregator), aggregator=aggregator, read=numbers)
    capacities = {k: v for k, v in found.items() if k.endswith("capacity")}
    # Three constants make the range, and one each buffer.
    assert capacities == {
        "PrefetchDataset/_5::buffer_capacity": 2, "PrefetchDataset/_8::buffer_capacity": 1,
    }  # fmt: skip
    assert found["FilterDataset/_6::filtered_elements"] == 5
    assert found["FilterDataset/_6::dropped_elements"] == 5


def test_how_full_a_buffer_was():
    aggregator = StatsAggregator()
    found = counted(told(Dataset.range(7).prefetch(3), aggregator), aggregator=aggregator)
    (full,) = found.values()
    assert full.num == 7 and 0 < full.min <= full.max <= 1


@pytest.mark.parametrize(
    ("make", "calls"),
    [
        (lambda d: d.map(lambda x: x + 1, num_parallel_calls=2), 6),
        (lambda d: d.apply(tf.data.experimental.map_and_batch(lambda x: x + 1, 4)), 6),
        (lambda d: d.interleave(Dataset.range, cycle_length=2, num_parallel_calls=2), 0),
    ],
)
def test_threads_tell_how_many_of_them_work(make, calls):
    aggregator = StatsAggregator()
    found = counted(told(make(Dataset.range(6)), aggregator), aggregator=aggregator, read=bytes)
    assert [k for k in numbers(found) if k.endswith("::thread_utilization")]
    assert sum(h.num for k, h in histograms(found).items() if k.endswith("time")) == calls
