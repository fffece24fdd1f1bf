"""Paths of a beam search."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

gather_tree = tf.contrib.seq2seq.gather_tree


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def test_each_beam_goes_back_to_where_it_grew_from() -> None:
    steps = np.array([[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]], [[0, 0, 0]]], np.int32)
    parents = np.array([[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]], [[0, 0, 0]]], np.int32)
    got = run(gather_tree(steps, parents, max_sequence_lengths=[3], end_token=10))
    assert got[:, 0].T.tolist() == [[2, 6, 7, 10], [2, 5, 8, 10], [2, 6, 9, 10]]


def test_nothing_stands_behind_the_first_end() -> None:
    steps = np.array([[[1]], [[9]], [[3]]], np.int32)
    got = run(gather_tree(steps, np.zeros_like(steps), [3], 9))
    assert got.ravel().tolist() == [1, 9, 9]
    assert run(gather_tree(steps, np.zeros_like(steps), [0], 9)).ravel().tolist() == [9, 9, 9]


def test_shapes_and_errors() -> None:
    steps = np.zeros((2, 1, 2), np.int32)
    some, same = tf.placeholder(tf.int32, [None, 3, 4]), np.zeros((5, 3, 4), np.int32)
    assert gather_tree(some, same, [1] * 3, 0).shape == [5, 3, 4]
    with pytest.raises(ValueError, match="must be rank 3"):
        gather_tree(steps[0], steps[0], [2], 0)
    with pytest.raises(ValueError, match="Dimension"):
        gather_tree(steps, np.zeros((3, 1, 2), np.int32), [2], 0)
    wrong = np.array([[[0, 0]], [[0, -1]]], np.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"parent id -1 at .* \(0, 0, 1\)"):
        run(gather_tree(steps, wrong, [2], 9))
    ids, lengths = tf.placeholder(tf.int32), tf.placeholder(tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"step_ids.shape\[1\]"):
        run(gather_tree(ids, ids, lengths, 9), {ids: steps, lengths: [2, 2]})
