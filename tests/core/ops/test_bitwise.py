"""Operations on bits."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.ops.bitwise import population_count


def run(fetch):
    with tf.Session() as session:
        return session.run(fetch)


def test_logic_of_bits():
    x, y = np.array([0b1100], np.uint8), np.array([0b1010], np.uint8)
    got = run([tf.bitwise.bitwise_and(x, y), tf.bitwise.bitwise_or(x, y),
               tf.bitwise.bitwise_xor(x, y), tf.bitwise.invert(x)])  # fmt: skip
    assert [int(g[0]) for g in got] == [0b1000, 0b1110, 0b0110, 0b11110011]


def test_shifts_beyond_the_width():
    x = tf.constant([-8, -8, -8], tf.int8)
    by = tf.constant([1, 100, -3], tf.int8)
    assert run(tf.bitwise.right_shift(x, by)).tolist() == [-4, -1, -8]
    assert run(tf.bitwise.left_shift(x, by)).tolist() == [-16, 0, -8]


def test_counting_ones():
    got = run(population_count(tf.constant([-1, 0, 5], tf.int16)))
    assert got.dtype == np.uint8 and got.tolist() == [16, 0, 2]


def test_floats_have_no_bits_here():
    with pytest.raises(TypeError, match="not in list of allowed values"):
        tf.bitwise.invert(tf.constant([1.0]))
