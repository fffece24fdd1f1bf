"""Segments whose executable fails, after whatever it has written: no value is lost by that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import opdock as tf
from tests.plugins import hasty

DECLINES = [
    tf.errors.UnimplementedError(None, None, "not this time"),
    tf.errors.ResourceExhaustedError(None, None, "no room"),
    NotImplementedError("not this time"),
]
FAILS = [tf.errors.InternalError(None, None, "a bug in the compiler"), RuntimeError("XLA")]


@pytest.fixture
def demand() -> Iterator[hasty.Demand]:
    with tf.Graph().as_default():
        yield hasty.install()
    hasty.uninstall()


def program(resource: bool) -> tuple[Any, Any, Any]:
    """A variable, a step that updates it and counts, and a random number drawn beside it."""
    with tf.device("/device:HASTY:0"):
        v = tf.Variable([1.0, 2.0], use_resource=resource)
        m = tf.Variable([0.0, 0.0], use_resource=resource)
        grown = m.assign_add(v * 0.5)
        with tf.control_dependencies([grown]):
            step = v.assign_add(tf.ones([2]))
        return (v, m), [step.op, tf.random_uniform([], seed=7)], tf.global_variables_initializer()


def after(steps: int) -> list[list[float]]:
    """The two variables after so many steps."""
    v, m = [1.0, 2.0], [0.0, 0.0]
    for _ in range(steps):
        m = [a + b * 0.5 for a, b in zip(m, v, strict=True)]
        v = [a + 1.0 for a in v]
    return [v, m]


def drawn(count: int) -> list[float]:
    with tf.Graph().as_default(), tf.device("/cpu:0"), tf.Session() as sess:
        sess.run(tf.constant(0))
        tf.set_random_seed(1)
        number = tf.random_uniform([], seed=7)
        return [float(sess.run(number)) for _ in range(count)]


def values(sess: tf.Session, variables: Any) -> list[list[float]]:
    return [list(map(float, x)) for x in sess.run(variables)]


@pytest.mark.parametrize("resource", [False, True], ids=["reference", "resource"])
@pytest.mark.parametrize("when", [1, 4])
@pytest.mark.parametrize("error", DECLINES, ids=lambda e: type(e).__name__)
def test_a_run_that_declines_is_done_by_the_ops(demand, error, when, resource):
    tf.set_random_seed(1)
    variables, step, start = program(resource)
    with tf.Session() as sess:
        sess.run(start)
        demand.runs = 0
        demand.fails = lambda run: error if run == when else None
        numbers = []
        for done in range(1, 7):
            numbers.append(float(sess.run(step)[1]))
            assert values(sess, variables) == after(done)
        assert demand.runs >= when
        assert demand.reused >= (when > 2)
    assert numbers == drawn(6)


@pytest.mark.parametrize("resource", [False, True], ids=["reference", "resource"])
@pytest.mark.parametrize("when", [1, 4])
@pytest.mark.parametrize("error", FAILS, ids=lambda e: type(e).__name__)
def test_a_run_that_fails_ends_its_step_and_nothing_else(demand, error, when, resource):
    variables, step, start = program(resource)
    with tf.Session() as sess:
        sess.run(start)
        demand.runs = 0
        demand.fails = lambda run: error if run == when else None
        for _ in range(when - 1):
            sess.run(step)
        with pytest.raises(tf.errors.OpError, match=r"compiler|XLA"):
            sess.run(step)
        assert values(sess, variables) == after(when - 1)
        for done in range(when, when + 4):
            sess.run(step)
            assert values(sess, variables) == after(done)
