"""Segment ops: gaps, dropped ids, errors, gradients with ties and zeros."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


DATA = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)


@pytest.mark.parametrize(
    ("fn", "wanted"),
    [
        (tf.segment_sum, [[4, 6], [0, 0], [5, 6]]), (tf.segment_mean, [[2, 3], [0, 0], [5, 6]]),
        (tf.segment_prod, [[3, 8], [1, 1], [5, 6]]), (tf.segment_max, [[3, 4], [0, 0], [5, 6]]),
        (tf.segment_min, [[1, 2], [0, 0], [5, 6]]),
    ],
)  # fmt: skip
def test_sorted(fn, wanted):
    out = fn(DATA, [0, 0, 2])
    assert run(out).tolist() == wanted and out.shape.as_list() == [None, 2]


@pytest.mark.parametrize(
    ("fn", "wanted"),
    [
        (tf.unsorted_segment_sum, [5, 1, 0]), (tf.unsorted_segment_prod, [6, 1, 1]),
        (tf.unsorted_segment_mean, [2.5, 1, 0]), (tf.unsorted_segment_sqrt_n, [5 / 2**0.5, 1, 0]),
        (tf.unsorted_segment_max, [3, 1, np.finfo(np.float32).min]),
        (tf.unsorted_segment_min, [2, 1, np.finfo(np.float32).max]),
    ],
)  # fmt: skip
def test_unsorted(fn, wanted):
    out = fn([1.0, 2.0, 3.0, 9.0], [1, 0, 0, -1], 3)
    np.testing.assert_allclose(run(out), np.array(wanted, np.float32), rtol=1e-6)
    assert out.shape == (3,)


def test_ids_of_more_dimensions():
    out = tf.unsorted_segment_sum(np.ones((2, 2, 3), np.float32), [[0, 1], [1, 1]], 2)
    assert run(out).tolist() == [[1] * 3, [3] * 3]


def test_sparse():
    out = tf.sparse_segment_sum(DATA, [0, 2, 1], [0, 0, 1])
    assert run(out).tolist() == [[6, 8], [3, 4]] and out.op.type == "SparseSegmentSum"
    assert run(tf.sparse_segment_mean(DATA, [0, 2], [0, 0])).tolist() == [[3, 4]]
    counted = tf.sparse_segment_sqrt_n(DATA, [0, 2], [1, 1], num_segments=3)
    assert counted.op.type == "SparseSegmentSqrtNWithNumSegments" and counted.shape == (3, 2)
    np.testing.assert_allclose(run(counted)[1], np.array([6, 8]) / 2**0.5, rtol=1e-6)


def test_errors():
    ids = tf.placeholder(tf.int32, [None])
    cases = [
        (tf.segment_sum(DATA, ids), [2, 1, 0], "segment ids are not increasing"),
        (tf.segment_max(DATA, ids), [-1, 0, 0], "Segment id -1 out of range"),
        (tf.segment_sum(DATA, ids), [0, 1], "should be the same size as dimension 0"),
        (tf.unsorted_segment_sum(DATA, ids, 2), [0, 1, 2], r"segment_ids\[2\] = 2 is out of range"),
        (tf.sparse_segment_sum(DATA, ids, [0, 1]), [0, 3], r"indices\[1\] == 3 out of range"),
        (tf.sparse_segment_sum(DATA, [0, 1], ids, num_segments=1), [0, 1], "must be < num_seg"),
    ]
    for fetch, value, message in cases:
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            run(fetch, {ids: value})
    with pytest.raises(ValueError, match="Dimension 0 in both shapes must be equal"):
        tf.unsorted_segment_sum(DATA, [0, 1], 2)
    with pytest.raises(ValueError, match="Shape must be rank 1 but is rank 2"):
        tf.segment_sum(DATA, [[0, 0, 1]])


def test_gradients():
    x = tf.constant([1.0, 3.0, 3.0, 0.0, 5.0])
    ids = [0, 0, 0, 1, 1]
    g = lambda y: run(tf.gradients(y, x)[0]).tolist()
    assert g(tf.segment_sum(x, ids) * [2.0, 3.0]) == [2, 2, 2, 3, 3]
    assert g(tf.segment_mean(x, ids)) == [pytest.approx(1 / 3)] * 3 + [0.5] * 2
    assert g(tf.segment_max(x, ids)) == [0, 0.5, 0.5, 0, 1]
    assert g(tf.segment_prod(x, ids)) == [9, 3, 3, 5, 0]
    dropping = [1, -1, 1, 0, 0]
    assert g(tf.unsorted_segment_sum(x, dropping, 2)) == [1, 0, 1, 1, 1]
    assert g(tf.unsorted_segment_max(x, dropping, 2)) == [0, 0, 1, 0, 1]
    assert g(tf.unsorted_segment_prod(x, dropping, 2)) == [3, 0, 1, 5, 0]
    assert g(tf.unsorted_segment_mean(x, dropping, 2)) == [0.5, 0, 0.5, 0.5, 0.5]
    assert g(tf.sparse_segment_sum(x, [0, 0, 4], [0, 1, 1])) == [2, 0, 0, 0, 1]
    assert g(tf.sparse_segment_mean(x, [0, 1, 4], [0, 0, 1])) == [0.5, 0.5, 0, 0, 1]


def test_gradients_of_unknown_rank():
    x, ids = tf.placeholder(tf.float32), tf.placeholder(tf.int32)
    feeds = {x: np.arange(6.0).reshape(3, 2), ids: [1, -1, 1]}
    for fn in (tf.unsorted_segment_max, tf.unsorted_segment_prod, tf.unsorted_segment_mean):
        got = run(tf.gradients(fn(x, ids, 2)[1], x)[0], feeds)
        assert got.shape == (3, 2) and got[1].tolist() == [0, 0]
    got = run(tf.gradients(tf.segment_mean(x, ids), x)[0], {x: np.ones((3, 2)), ids: [0, 0, 1]})
    assert got.tolist() == [[0.5, 0.5], [0.5, 0.5], [1, 1]]


def test_empty_input():
    none = tf.zeros([0, 3])
    nobody = tf.zeros([0], tf.int32)
    assert run(tf.segment_sum(none, nobody)).shape == (0, 3)
    assert run(tf.unsorted_segment_sum(none, nobody, 2)).tolist() == [[0] * 3] * 2
    assert run(tf.sparse_segment_mean(none, nobody, nobody, num_segments=1)).tolist() == [[0] * 3]
