"""What is known of values while the graph is built: for programs, and for shape functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.python.framework.tensor_util import constant_value, constant_value_as_shape


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def test_values_that_programs_may_ask_for() -> None:
    two = tf.constant(2)
    unknown = tf.placeholder(tf.int32, [])
    assert constant_value(tf.stack([two, two])).tolist() == [2, 2]
    assert constant_value(tf.stack([two, unknown])) is None
    assert list(constant_value(tf.stack([two, unknown]), partial=True)) == [2, None]
    assert constant_value(tf.equal(two, [2, 3])).tolist() == [True, False]
    assert constant_value(tf.cast(tf.fill([2], 1.5), tf.int32)).tolist() == [1, 1]
    assert constant_value(tf.concat([tf.range(2), [7]], 0)).tolist() == [0, 1, 7]
    text = "as it is"
    assert constant_value(text) is text


def test_what_tensorflow_does_not_know_is_unknown() -> None:
    # A static assertion would fire otherwise, where TF's fires when the graph runs.
    assert constant_value(tf.constant(1) + 1) is None
    assert constant_value(tf.stack([[1], [2]], axis=1)) is None
    assert constant_value(tf.Variable(1.0)) is None
    tf.assert_equal(tf.constant(1) + 1, 3)


def test_the_value_is_a_copy_and_can_no_longer_be_fed() -> None:
    tensor = tf.constant([1.0, 2.0])
    constant_value(tensor)[0] = 9
    with tf.Session() as sess:
        assert sess.run(tensor).tolist() == [1, 2]
        with pytest.raises(ValueError, match="may not be fed"):
            sess.run(tensor, {tensor: [3.0, 4.0]})


SHAPES: dict[str, tuple[Callable[[Any], Any], list[int | None]]] = {
    "mod": (lambda x: tf.reshape(x, [-1, tf.constant(9) % 5 * 6]), [None, 24]),
    "reverse": (lambda x: tf.reshape(x, tf.reverse(tf.constant([4, 6, -1]), [0])), [None, 6, 4]),
    "where": (lambda x: tf.reshape(x, tf.where([True, False], [-1, 3], [5, 24])), [None, 24]),
    "ranks": (
        lambda x: tf.transpose(x, tf.concat([tf.range(tf.rank(x))[1:], [0]], 0)), [4, 6, None]
    ),
    "float": (lambda x: tf.zeros(tf.to_int32(tf.ceil(tf.sqrt([7.0, 2.0])))), [3, 2]),
    "several": (lambda x: tf.zeros(tf.unique([5, 2, 5])[0]), [5, 2]),
    "stack": (lambda x: tf.zeros(tf.unstack(tf.constant([3, 4]))), [3, 4]),
}  # fmt: skip


@pytest.mark.parametrize("case", SHAPES)
def test_shapes_from_constant_expressions(case: str) -> None:
    build, wanted = SHAPES[case]
    x = tf.placeholder(tf.float32, [None, 4, 6])
    result = build(x)
    assert result.shape.as_list() == wanted
    with tf.Session() as sess:
        actual = sess.run(result, {x: np.zeros([2, 4, 6])}).shape
    assert all(w in (None, a) for w, a in zip(wanted, actual, strict=True))


def test_what_is_random_fed_or_wrong_stays_unknown() -> None:
    assert tf.zeros(tf.random_uniform([2], 1, 5, tf.int32)).shape.as_list() == [None, None]
    default = tf.placeholder_with_default([2, 3], [2])
    assert tf.zeros(default).shape.as_list() == [None, None]
    assert tf.zeros(tf.constant([4, 2]) // tf.constant(0)).shape.as_list() == [None, None]


def test_an_edited_graph_is_looked_at_again() -> None:
    total = tf.constant(3) + 4
    assert tf.zeros([total]).shape.as_list() == [7]
    total.op._update_input(1, tf.constant(5))
    assert tf.zeros([total]).shape.as_list() == [8]


def test_numbers_of_unknown_rank_make_a_shape_of_known_rank() -> None:
    size = tf.placeholder(tf.int32, None)
    assert tf.zeros(tf.concat([[2, 3], [size]], 0)).shape.as_list() == [2, 3, None]
    assert tf.eye(size, batch_shape=[2, 3]).shape.as_list() == [2, 3, None, None]


def test_bodies_know_what_is_known_around_them() -> None:
    x = tf.placeholder(tf.float32, [None, 4])
    known = tf.identity([2, 3])
    partly = tf.concat([tf.shape(x)[:1], [5]], 0)
    fed = tf.placeholder(tf.int32, [2])
    seen = []

    def body(i: Any) -> Any:
        seen.extend(tf.zeros(s).shape.as_list() for s in (known[:1], known + 1, partly, fed))
        assert constant_value(known) is None  # programs are told no more than in the graph around
        return i + 1

    tf.while_loop(lambda i: i < 3, body, [0])
    assert seen[:4] == [[2], [3, 4], [None, 5], [None, None]]


def test_sizes_as_a_shape() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    assert constant_value_as_shape(tf.concat([tf.shape(x), [-1]], 0)).as_list() == [None, 3, None]
    assert constant_value_as_shape(tf.constant(-1)).ndims is None
    with pytest.raises(ValueError, match="require a statically known scalar"):
        constant_value_as_shape(tf.constant(3))
