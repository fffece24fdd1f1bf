"""What set_shape says and no shape function knows: results are held to it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import opdock as tf

SHAPE = (1, 64, 64)  # so many elements that generated code takes them


def through_python(x: tf.Tensor) -> tf.Tensor:
    return tf.py_func(lambda v: v, [x], tf.float32)


def from_python_alone(x: tf.Tensor) -> tf.Tensor:
    del x
    return tf.py_func(lambda: np.float32(0.0), [], tf.float32)


def parsed(x: tf.Tensor) -> tf.Tensor:
    return tf.io.parse_tensor(tf.io.serialize_tensor(x), tf.float32)


def branch(x: tf.Tensor) -> tf.Tensor:
    return tf.cond(tf.reduce_sum(x) > 9.0, lambda: x + 1.0, lambda: x * 2.0)


def chain(source: Callable[[tf.Tensor], tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """A chain that is fused, over what `source` gives and claims."""
    x, ones = tf.placeholder(tf.float32, None), tf.placeholder(tf.float32, SHAPE)
    claimed = source(x)
    claimed.set_shape(SHAPE)
    return x, ones, 1.0 / tf.sqrt(tf.exp(claimed) * ones + 3.0)


@pytest.mark.parametrize("source", [through_python, from_python_alone, parsed, branch])
def test_a_scalar_stands_for_the_whole(source: Callable[[tf.Tensor], tf.Tensor]) -> None:
    x, ones, y = chain(source)
    with tf.Session() as sess:
        for _ in range(3):
            got = sess.run(y, {x: np.float32(0.0), ones: np.ones(SHAPE)})
            np.testing.assert_array_equal(got, np.full(SHAPE, 0.5, np.float32))


@pytest.mark.parametrize("source", [through_python, parsed, branch])
def test_a_result_of_another_shape_is_told(source: Callable[[tf.Tensor], tf.Tensor]) -> None:
    x, ones, y = chain(source)
    with tf.Session() as sess:
        fed = np.zeros(SHAPE, np.float32)
        assert sess.run(y, {x: fed, ones: np.ones(SHAPE)}).shape == SHAPE
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"has shape \[1,64,63\].*set_shape.*\[1,64,64\]"
        ):
            sess.run(y, {x: fed[:, :, 1:], ones: np.ones(SHAPE)})


def test_one_of_several_results() -> None:
    def both() -> tuple[np.ndarray, np.ndarray]:
        return np.float32(2.0), np.ones(3, np.float32)

    a, b = tf.py_func(both, [], [tf.float32, tf.float32])
    a.set_shape([2, 3])
    b.set_shape([3])
    with tf.Session() as sess:
        assert sess.run(a + b).tolist() == [[3.0] * 3] * 2


def test_what_is_handed_out_alone_has_the_shape_that_it_has() -> None:
    """Nothing was compiled for it: TF looks at no promise either."""
    x = tf.placeholder(tf.float32, None)
    claimed = through_python(x)
    claimed.set_shape(SHAPE)
    with tf.Session() as sess:
        assert sess.run(claimed, {x: np.zeros([2, 3])}).shape == (2, 3)


def test_what_a_branch_hands_out_is_held_to_its_shape() -> None:
    """What is around the branch is compiled for it."""

    def claiming() -> tf.Tensor:
        result = through_python(x)
        result.set_shape(SHAPE)
        return result

    x, choice = tf.placeholder(tf.float32, None), tf.placeholder(tf.bool, [])
    y = tf.exp(tf.cond(choice, claiming, lambda: tf.zeros(SHAPE))) * 2.0 + 3.0
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"has shape \[2,3\]"):
            sess.run(y, {x: np.zeros([2, 3]), choice: True})
        assert sess.run(y, {x: np.zeros(SHAPE), choice: True}).shape == SHAPE
