"""`assert_shapes`: sizes by number and by symbol, now and when the graph runs."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

assert_shapes = tf.debugging.assert_shapes


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def run(op, feeds=None):
    with tf.Session() as session:
        session.run(op, feeds)


def test_what_fits():
    x, y = tf.ones([1, 2, 3]), tf.ones([3, 1])
    run(assert_shapes([(x, ("a", "b", "c")), (y, "ca"), (tf.constant(5), "a")]))
    run(assert_shapes([(x, (None, 2, ".")), (y, ".1"), (x, None), (tf.ones([1]), ())]))
    run(assert_shapes([(x, (..., "n", 3)), (y, "*1"), (x, "*"), (x, np.array([1, 2, 3]))]))
    run(assert_shapes({x: (1, "b", "c"), y: ("c", 1)}))
    run(assert_shapes([]))


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ((("n", "q"), ("n", "d")),
         r"by tensor x:0 dimension 0.  Tensor y:0 dimension 0 must have size 3.  Received size 2"),
        (((3, "q"), (3, "d")), "Specified explicitly.  Tensor y:0 dimension 0 must have size 3"),
        (("3q", "*3d"), "Tensor y:0 dimension -2 must have size 3.  Received size 2"),
        (("3q", "abc"), "must have rank 3.  Received rank 2"),
        (("3q", 2), "must be an iterable.* Received specified shape: 2"),
        (("3q", ("n", ..., "d")), "specified shape index 1.  .*only allowed as the first entry"),
    ],
)  # fmt: skip
def test_what_does_not_fit(shapes, words):
    x, y = tf.ones([3, 2], name="x"), tf.ones([2, 3], name="y")
    with pytest.raises(ValueError, match=words):
        assert_shapes(list(zip((x, y), shapes, strict=True)))


def test_a_scalar_is_a_vector_of_one():
    with pytest.raises(ValueError, match="must have size 1.  Received size 2"):
        assert_shapes([(tf.ones([2]), ())])
    with pytest.raises(ValueError, match="must have size 2.  Received size 1"):
        assert_shapes([(tf.constant(1), (2,))])


def test_sizes_that_only_a_step_knows():
    x, y = tf.placeholder(tf.float32, [None, 2], "x"), tf.placeholder(tf.float32, name="y")
    check = assert_shapes([(x, ("n", "q")), (y, ("n",))])
    run(check, {x: np.ones([3, 2]), y: np.ones([3])})
    run(check, {x: np.ones([1, 2]), y: 1.0})
    words = r"\[Specified by tensor x:0 dimension 0\] \[Tensor y:0 dimension\] \[0\] \[must have"
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        run(check, {x: np.ones([3, 2]), y: np.ones([2])})
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have rank in"):
        run(check, {x: np.ones([3, 2]), y: np.ones([2, 2])})


def test_checks_of_numbers_are_for_graphs_without_branches():
    tf.cond(tf.placeholder(tf.bool), lambda: tf.constant(1.0), lambda: tf.constant(2.0))
    with pytest.raises(ValueError, match="not compatible with TensorFlow control flow"):
        tf.add_check_numerics_ops()
