"""Distances between sequences."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def sequences(words):
    cells = [[row, i] for row, word in enumerate(words) for i in range(len(word))]
    return tf.SparseTensor(
        np.array(cells, np.int64).reshape(-1, 2),
        list("".join(words)) or np.array([], object),
        [len(words), max(map(len, words))],
    )


def test_distances():
    out = tf.edit_distance(
        sequences(["kitten", "abc", "", "x"]),
        sequences(["sitting", "abc", "ab", ""]),
        normalize=False,
    )
    assert out.shape == (4,)
    with tf.Session() as session:
        assert session.run(out).tolist() == [3, 0, 2, 1]


def test_normalized():
    out = tf.edit_distance(sequences(["kitten", "ab", "x"]), sequences(["sitting", "abcd", ""]))
    with tf.Session() as session:
        found = session.run(out)
    np.testing.assert_allclose(found[:2], [3 / 7, 0.5], rtol=1e-6)
    assert np.isinf(found[2])


def test_arguments():
    with pytest.raises(TypeError, match="Hypothesis must be a SparseTensor"):
        tf.edit_distance(tf.constant([1]), sequences(["a"]))
    with pytest.raises(TypeError, match="Truth must be a SparseTensor"):
        tf.edit_distance(sequences(["a"]), tf.constant([1]))
