"""`tf.py_function`: what functions give becomes what was promised, where nothing is lost."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def ran(value, promised):
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(tf.py_function(lambda _: value, [1], promised))


@pytest.mark.parametrize(
    ("value", "promised"),
    [
        (np.float64(1.5), tf.float32),
        (np.arange(3.0), tf.half),
        (np.arange(3), tf.float32),
        (np.int64(3), tf.int32),
        (np.arange(3, dtype=np.uint8), tf.int64),
        (np.float32(2), tf.complex64),
        (2, tf.float32),
        (np.array([True]), tf.bool),
    ],
)
def test_numbers_become_the_type_that_was_promised(value, promised) -> None:
    found = ran(value, promised)
    assert np.asarray(found).dtype == promised.as_numpy_dtype
    np.testing.assert_array_equal(found, value)


def test_each_of_several_becomes_its_own() -> None:
    several = [np.arange(2.0), np.float32(2), b"text"]
    found = ran(several, [tf.float32, tf.float64, tf.string])
    assert [np.asarray(x).dtype for x in found[:2]] == [np.float32, np.float64]
    assert found[2] == b"text"


@pytest.mark.parametrize(
    ("value", "promised"),
    [
        (np.array([1.5]), tf.int32),
        (np.array([1j]), tf.float32),
        (np.array([True]), tf.float32),
        (np.array(["a"]), tf.float32),
        (np.array([1]), tf.bool),
    ],
)
def test_what_would_be_lost_is_told(value, promised) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="but expects"):
        ran(value, promised)
