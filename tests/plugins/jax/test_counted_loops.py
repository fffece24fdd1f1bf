"""Loops whose turns are counted before they are traced: by whole numbers, on the host."""

from __future__ import annotations

import contextlib

import jax
import numpy as np
import pytest

import opdock as tf

DEVICE = "/device:JAX:0"


@contextlib.contextmanager
def compiled_programs():
    """The programs that XLA compiles meanwhile."""
    found = []

    def listen(event, duration, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            found.append(duration)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield found
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def summed(counter, goes_on, advance):
    """A loop and its gradient, which has to know how often it turns."""
    x = tf.placeholder(tf.float32, [2])
    _, y = tf.while_loop(
        lambda i, _: goes_on(i), lambda i, y: (advance(i), y * 0.5 + x), [counter(), x]
    )
    return [y, *tf.gradients(y, x)], {x: [1.0, -2.0]}


def results(device, build):
    """Of a step, with how its loops run."""
    with tf.Graph().as_default(), tf.device(device):
        fetches, feed = build()
        with tf.Session() as sess, compiled_programs() as compiled:
            got = sess.run(fetches, feed)
            rows = sess.explain(fetches, feed).rows
    return got, len(compiled), {row.how for row in rows if row.op == "While"}


def small(x):
    """A number that no device folds: eight bits that run over."""
    return tf.cast(x, tf.int8)


COUNTED = {
    "whole numbers": (lambda: tf.constant(0), lambda i: i < 300, lambda i: i + 1),
    "eight bits, which run over": (
        lambda: small(tf.constant(0)), lambda i: i >= small(0), lambda i: i + small(9),
    ),
    "divided": (lambda: tf.constant(4096), lambda i: i > 0, lambda i: i // 3),
    "two of them, and truth": (
        lambda: tf.constant(1), lambda i: tf.logical_not(tf.equal(i % 7, 5)), lambda i: i * 3
    ),
}  # fmt: skip


@pytest.mark.parametrize("words", COUNTED)
def test_whole_numbers_are_counted_on_the_host(words):
    """One program is compiled, that of the step: none for what counts."""
    got, compiled, _ = results(DEVICE, lambda: summed(*COUNTED[words]))
    expected, _, _ = results("/cpu:0", lambda: summed(*COUNTED[words]))
    assert compiled == 1
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_other_numbers_are_counted_where_they_are_computed():
    """What a device makes of fractions is its own affair, and so is how often it turns."""
    counted = (lambda: tf.constant(0.0), lambda i: i < 3.0, lambda i: i + 0.25)
    got, compiled, _ = results(DEVICE, lambda: summed(*counted))
    expected, _, _ = results("/cpu:0", lambda: summed(*counted))
    assert compiled > 1
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_a_counter_behind_a_branch_is_none():
    def build():
        def advance(i):
            return tf.cond(tf.equal(i % 2, 0), lambda: i + 1, lambda: i + 3)

        return summed(lambda: tf.constant(0), lambda i: i < 11, advance)

    got, _, _ = results(DEVICE, build)
    expected, _, _ = results("/cpu:0", build)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_a_number_behind_a_branch_beside_a_counter():
    """It starts known, and is not known to follow: the loop gives it all the same."""

    def build():
        x = tf.placeholder(tf.float32, [2])

        def turn(i, j, y):
            return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: j + 1, lambda: j + 3), y + x

        found = tf.while_loop(lambda i, j, _: i < 5, turn, [0, 0, x])
        return [*found], {x: [1.0, 2.0]}

    got, _, _ = results(DEVICE, build)
    expected, _, _ = results("/cpu:0", build)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_condition_that_changes_a_variable_runs_turn_by_turn():
    def run(device):
        with tf.Graph().as_default(), tf.device(device), tf.Session() as sess:
            asked = tf.get_variable("asked", initializer=0.0, use_resource=True)
            x = tf.placeholder(tf.float32, [])

            def goes_on(i, _):
                with tf.control_dependencies([asked.assign_add(1.0).op]):
                    return tf.identity(i < 4)

            _, y = tf.while_loop(goes_on, lambda i, y: (i + 1, y * 2.0), [0, x])
            sess.run(asked.initializer)
            return sess.run(y, {x: 1.0}), sess.run(asked)

    assert run(DEVICE) == run("/cpu:0") == (16.0, 5.0)


def test_an_error_of_a_counter_is_the_steps():
    def build():
        # Ten turns on, it is divided by nought.
        return summed(lambda: tf.constant(10), lambda i: 7 // i >= 0, lambda i: i - 1)

    with pytest.raises(tf.errors.InvalidArgumentError, match="[Dd]ivision by zero"):
        results(DEVICE, build)
