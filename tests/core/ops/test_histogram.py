"""Counting: bincount, histograms of fixed width."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def test_bincount():
    values = [1, 1, 3]
    assert run(tf.bincount(values)).tolist() == [0, 2, 0, 1]
    assert run(tf.bincount(values, minlength=6)).tolist() == [0, 2, 0, 1, 0, 0]
    assert run(tf.bincount(values, maxlength=2)).tolist() == [0, 2]
    assert run(tf.bincount(values, weights=[1.0, 0.5, 2.0])).tolist() == [0, 1.5, 0, 2]
    assert tf.bincount(values, dtype=tf.int64).dtype == tf.int64
    assert run(tf.bincount(tf.zeros([0], tf.int32))).tolist() == []
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be non-negative"):
        run(tf.bincount([-1, 2]))


def test_histogram_fixed_width():
    values = np.array([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], np.float32)
    assert run(tf.histogram_fixed_width(values, [0.0, 5.0], nbins=5)).tolist() == [2, 1, 1, 0, 2]
    bins = tf.histogram_fixed_width_bins(values, [0.0, 5.0], nbins=5)
    assert run(bins).tolist() == [0, 0, 1, 2, 4, 4]
    assert tf.histogram_fixed_width(values, [0.0, 5.0], dtype=tf.int64).shape == (100,)
    with pytest.raises(ValueError, match="Requires nbins > 0: 0"):
        tf.histogram_fixed_width(values, [0.0, 5.0], nbins=0)
    limits = tf.placeholder(tf.float32, [2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="value_range should satisfy"):
        run(tf.histogram_fixed_width(values, limits), {limits: [1, 1]})
