"""`tf.contrib.framework`: tensors of known shapes, and the graph that tensors are in."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import opdock as tf
from opdock.contrib import framework


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def test_shapes_are_made_sure_of_now_or_later() -> None:
    known = tf.ones([2, 3])
    assert framework.with_shape([2, 3], known) is known
    with pytest.raises(ValueError, match="Invalid shape for tensor ones:0"):
        framework.with_shape([2, 4], known)
    with pytest.raises(ValueError, match="Invalid rank 2 for shape"):
        framework.with_shape(np.ones([1, 1], np.int32), known)
    with pytest.raises(ValueError, match="Invalid dtype .* for shape"):
        framework.with_shape(tf.constant([2.0]), known)
    assert framework.with_shape([], tf.ones([1])).shape.as_list() == []
    late = tf.placeholder(tf.float32, name="late")
    checked = framework.with_shape([2, -1], late)
    assert checked.shape.as_list() == [2, None]
    same = framework.with_same_shape(late, known)
    with tf.Session() as sess:
        assert sess.run(checked, {late: np.ones([2, 5])}).shape == (2, 5)
        for bad in ([3, 5], [2]):
            with pytest.raises(tf.errors.InvalidArgumentError, match="Wrong shape for late:0"):
                sess.run(checked, {late: np.ones(bad)})
        with pytest.raises(tf.errors.InvalidArgumentError, match="Wrong shape for ones:0"):
            sess.run(same, {late: np.ones([3, 2])})


def test_sums_scalars_and_squeezes() -> None:
    total = framework.reduce_sum_n([tf.ones([2, 3]), tf.constant(4.0)])
    predictions, labels = framework.remove_squeezable_dimensions(tf.ones([4, 1]), tf.ones([4]))
    assert [predictions.shape.as_list(), labels.shape.as_list()] == [[4], [4]]
    with tf.Session() as sess:
        assert sess.run(total) == 10.0
    with pytest.raises(ValueError, match="No tensors provided"):
        framework.reduce_sum_n([])
    with pytest.raises(ValueError, match="Expected integer type for"):
        framework.assert_scalar_int(tf.constant(1.0))
    assert framework.assert_scalar_int(3).shape.as_list() == []


def test_the_graph_of_tensors() -> None:
    here, graph = tf.constant(1), tf.get_default_graph()
    with tf.Graph().as_default() as other:
        there = tf.constant(1)
        assert framework.get_graph_from_inputs(["x", here.op]) is graph
        assert framework.get_graph_from_inputs([]) is other
        with pytest.raises(ValueError, match="must be from the same graph as"):
            framework.get_graph_from_inputs([here, there])
        with pytest.raises(ValueError, match="not from the passed-in graph"):
            framework.get_graph_from_inputs([here], graph=other)
        with tf.name_scope("a"), tf.name_scope("b"):
            assert framework.get_name_scope() == "a/b"
