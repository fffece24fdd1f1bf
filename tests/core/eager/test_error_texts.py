"""What operations say that run as they are made, where TensorFlow's kernels say it otherwise."""

from __future__ import annotations

import re

import numpy as np
import pytest

import opdock as tf


def test_an_assertion_tells_the_first_differences() -> None:
    x, y = tf.constant([[1, 1], [1, 2], [3, 1]]), tf.constant([[3, 1], [1, 5], [4, 1]])
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tf.debugging.assert_equal(x, y, message="they differ", summarize=2)
    assert caught.value.message == (
        "they differ\nCondition x == y did not hold.\nIndices of first 2 different values:\n"
        "[[0 0]\n [1 1]]\nCorresponding x values:\n[1 2]\nCorresponding y values:\n[3 5]\n"
        "First 2 elements of x:\n[1 1]\nFirst 2 elements of y:\n[3 1]"
    )


@pytest.mark.parametrize(
    ("summarize", "told"), [(None, "[0. 1. 2.]"), (-1, "[0. 1. 2. 3. 4. 5.]"), (1, "[0.]")]
)
def test_an_assertion_tells_as_many_elements_as_are_asked_for(summarize, told) -> None:
    x = tf.constant(np.arange(6.0, dtype=np.float32).reshape(2, 3))
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"of x:\n{re.escape(told)}\n"):
        tf.debugging.assert_none_equal(x, x, summarize=summarize)


def test_an_assertion_of_other_shapes_tells_the_elements_alone() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tf.debugging.assert_less(tf.constant([1, 7]), tf.constant(5))
    assert "Indices" not in caught.value.message
    assert "First 2 elements of x:\n[1 7]\nFirst 1 elements of y:\n[5]" in caught.value.message
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"did not hold\.$"):
        tf.debugging.assert_less(tf.constant([1, 7]), tf.constant(5), summarize=0)


def test_a_value_that_is_no_rectangle() -> None:
    with pytest.raises(ValueError, match="non-rectangular Python sequence"):
        tf.constant([[1, 2], [3]], dtype=tf.int32)


def test_a_shape_to_which_nothing_broadcasts() -> None:
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"Unable to broadcast tensor of shape \[2\] to tensor of shape \[2,1\]",
    ):
        tf.broadcast_to(tf.constant([0, 1]), tf.constant([2, 1]))


def test_updates_whose_shape_does_not_begin_as_that_of_the_indices() -> None:
    rows = tf.Variable([0, 1, 2, 3], use_resource=True)
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"shape of indices \(\[2\]\) must be a prefix of the shape of updates \(\[3\]\)",
    ):
        tf.scatter_update(rows, [0, 1], [0, 1, 2])
