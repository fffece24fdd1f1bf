"""`control_dependencies(None)` leaves loops and branches, which TF has in the graph around."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def _graph_of_its_own() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def values(fetches: Any) -> Any:
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(fetches)


def test_what_is_made_outside_of_a_loop_runs_once_and_can_be_fetched() -> None:
    made = []

    def body(i: Any, array: Any) -> Any:
        with tf.control_dependencies(None):
            made.append(tf.random_uniform([], name="noise"))
        return i + 1, array.write(i, made[0] + tf.random_uniform([]) * 0)

    _, array = tf.while_loop(lambda i, _: i < 4, body, [0, tf.TensorArray(tf.float32, 4)])
    assert made[0].graph is tf.get_default_graph()
    assert made[0].op.name == "while/noise"
    turns, once = values([array.stack(), made[0]])
    assert np.array_equal(turns, np.full(4, once))


def test_weights_that_are_sampled_there_are_the_same_in_each_step_of_an_rnn() -> None:
    def sampled(getter: Any, *args: Any, **kwargs: Any) -> Any:
        mean = getter(*args, **kwargs)
        with tf.control_dependencies(None):
            return mean + tf.random_normal(mean.shape)

    class Cell(tf.nn.rnn_cell.RNNCell):
        state_size = output_size = 3

        def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
            with tf.variable_scope("core", custom_getter=sampled, reuse=tf.AUTO_REUSE):
                return tf.matmul(inputs, tf.get_variable("w", [2, 3])), state

    outputs, _ = tf.nn.dynamic_rnn(Cell(), tf.ones([1, 5, 2]), dtype=tf.float32)
    (w,) = tf.trainable_variables()
    slope = tf.gradients(tf.reduce_sum(outputs), w)[0]
    found, slope = values([outputs[0], slope])
    assert np.array_equal(found, np.broadcast_to(found[0], (5, 3)))
    assert np.array_equal(slope, np.full((2, 3), 5.0))


def test_what_bodies_capture_is_taken_from_outside() -> None:
    x = tf.placeholder_with_default([1.0, 2.0], [2])
    w = tf.get_variable("w", [2], initializer=tf.ones_initializer(), use_resource=True)
    made = []

    def turn(i: Any, total: Any) -> Any:
        inside = tf.identity(x)  # the body has a parameter for it

        def taken() -> Any:
            with tf.control_dependencies(None):
                made.append(x * w)
            return total + made[0] + 0 * inside

        return i + 1, tf.cond(i < 2, taken, lambda: total)

    _, total = tf.while_loop(lambda i, _: i < 3, turn, [0, tf.zeros([2])])
    assert made[0].graph is tf.get_default_graph()
    found, outside, slope = values([total, made[0], tf.gradients(total, w)[0]])
    assert (outside.tolist(), found.tolist(), slope.tolist()) == ([1, 2], [2, 4], [2, 4])


def test_what_waits_outside_waits_for_what_is_outside() -> None:
    v = tf.get_variable("v", [], initializer=tf.zeros_initializer(), use_resource=True)
    before = tf.assign_add(v, 10.0)

    def body(i: Any, total: Any) -> Any:
        with tf.control_dependencies(None), tf.control_dependencies([before]):
            added = tf.assign_add(v, 1.0)
            with tf.control_dependencies([added]):
                value = v.read_value()
        return i + 1, total + value

    assert values(tf.while_loop(lambda i, _: i < 3, body, [0, 0.0])[1]) == 33


@pytest.mark.parametrize("taken", [True, False])
def test_what_needs_something_from_inside_stays_there(taken: bool) -> None:
    def branch() -> Any:
        inner = tf.random_uniform([], 1, 2)
        with tf.control_dependencies([inner]), tf.control_dependencies(None):
            doubled = inner * 2
            with tf.control_dependencies([inner]):
                fixed = tf.identity(tf.constant(1.0))
        assert doubled.graph is fixed.graph is inner.graph
        return doubled + fixed

    found = values(
        tf.cond(tf.placeholder_with_default(taken, []), branch, lambda: tf.constant(0.0))
    )
    assert 3 <= found <= 5 if taken else found == 0


def test_functions_are_not_left() -> None:
    """A body of `Defun` or of a dataset's function is a graph of its own in TF, too."""

    def halve(x: Any) -> Any:
        with tf.control_dependencies(None):
            half = tf.constant([0.5]) * 1.0
        assert half.graph is tf.get_default_graph()
        return x * half

    element = tf.data.Dataset.from_tensors([4.0]).map(halve).make_one_shot_iterator().get_next()
    assert values(element).tolist() == [2.0]
