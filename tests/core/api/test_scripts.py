"""`tf.py_function`: what functions give becomes what was promised, where nothing is lost."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.ops.rewriting.status import Status, control_status_ctx


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


@pytest.mark.parametrize("made", [tf.py_func, tf.py_function, tf.numpy_function])
def test_nothing_is_rewritten_where_a_rewritten_function_has_a_python_function(made):
    """Its calls, and those of what it calls, are Python's own."""
    seen = []

    def load(x):
        seen.append(control_status_ctx().status)
        return np.float32(x)

    def of_dataset(x):
        if tf.greater(x, 0):
            x = x + 1
        return made(lambda value: load(value), [x], tf.float32)

    dataset = tf.data.Dataset.from_tensors(tf.constant(1.0)).map(of_dataset)
    element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        assert sess.run(element) == 2
    assert set(seen) == {Status.DISABLED}
