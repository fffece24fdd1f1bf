"""Streams of quantile summaries, and the boundaries that are drawn from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.ops import boosted_trees_quantiles as quantiles
from opdock.ops.composed.resources import initialize_resources, shared_resources
from opdock.train.boosted_trees import QuantileAccumulator


def _begin(sess: tf.Session) -> None:
    sess.run(initialize_resources(shared_resources()))


def test_boundaries_part_the_values_evenly() -> None:
    """Many more values than a stream keeps, in batches: ranks are off by no more than asked."""
    values = np.random.Generator(np.random.Philox(3)).permutation(5000).astype(np.float32)
    streams = QuantileAccumulator(0.01, 1, 10, name="streams")
    batch = tf.placeholder(tf.float32, [None])
    add, flush = streams.add_summaries([batch], [1.0]), streams.flush()
    with tf.Session() as sess:
        _begin(sess)
        for start in range(0, 5000, 500):
            sess.run(add, {batch: values[start : start + 500]})
        sess.run(flush)
        (found,) = sess.run(streams.get_bucket_boundaries())
    assert (found[0], found[-1]) == (0, 4999)
    assert np.diff(found).max() <= 5000 * (1 / 10 + 3 * 0.01)


def test_quantiles_are_as_many_as_asked_for() -> None:
    streams = QuantileAccumulator(0.01, 1, 5, name="streams")
    add = streams.add_summaries([np.arange(101, dtype=np.float32)], [1.0])
    flush = quantiles.flush_op(streams.resource_handle, 5, generate_quantiles=True)
    with tf.Session() as sess:
        _begin(sess)
        sess.run(add)
        sess.run(flush)
        assert sess.run(streams.get_bucket_boundaries())[0].tolist() == [0, 25, 50, 75, 100]


def test_weights_count_and_none_without() -> None:
    op = quantiles.make_summaries_op([[1.0, 2.0, 2.0, 3.0]], [4.0, 1.0, 1.0, 0.0], 0.01)
    with tf.Session() as sess:
        (summary,) = sess.run([op] if isinstance(op, tf.Tensor) else list(op))
    assert summary.tolist() == [[1, 4, 0, 4], [2, 2, 4, 6]]


def test_taken_summaries_can_be_added_again() -> None:
    streams = QuantileAccumulator(0.01, 2, 3, name="streams")
    columns: Any = [np.arange(30, dtype=np.float32), -np.arange(30, dtype=np.float32)]
    add = streams.add_summaries(columns, [1.0])
    taken = quantiles.flush_summaries_op(streams.resource_handle, num_features=2)
    given = [tf.placeholder(tf.float32, [None, 4]) for _ in range(2)]
    back, flush = quantiles.add_summaries_op(streams.resource_handle, given), streams.flush()
    with tf.Session() as sess:
        _begin(sess)
        sess.run(add)
        sess.run(back, dict(zip(given, sess.run(taken), strict=True)))
        sess.run(flush)
        first, second = sess.run(streams.get_bucket_boundaries())
    assert (first[0], first[-1], second[0], second[-1]) == (0, 29, -29, 0)
    assert len(first) == len(second) == 4


def test_boundaries_are_saved(tmp_path: Path) -> None:
    streams = QuantileAccumulator(0.01, 1, 3, name="streams")
    add, flush = streams.add_summaries([[1.0, 2.0, 3.0]], [1.0]), streams.flush()
    saver = tf.train.Saver()
    with tf.Session() as sess:
        _begin(sess)
        sess.run(add)
        sess.run(flush)
        (before,) = sess.run(streams.get_bucket_boundaries())
        path = saver.save(sess, str(tmp_path / "model"))
    with tf.Session() as sess:
        saver.restore(sess, path)
        (found,) = sess.run(streams.get_bucket_boundaries())
    assert found.tolist() == before.tolist() == [1, 3]  # so few are kept of so few


def test_bad_streams_are_refused() -> None:
    streams = QuantileAccumulator(0.0, 1, 3, name="streams")
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="epsilon"):
        _begin(sess)
