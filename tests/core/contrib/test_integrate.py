"""`tf.contrib.integrate`: solutions that are known, and gradients through them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.contrib import integrate

TIMES = np.array([0.0, 0.3, 1.0, 1.5])


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def run(fetches: Any) -> Any:
    with tf.Session() as session:
        return session.run(fetches)


def test_a_wave_and_how_it_was_found() -> None:
    turn = tf.constant([[0.0, 1.0], [-1.0, 0.0]], tf.float64)
    start = np.array([[1.0], [0.0]])
    y, info = integrate.odeint(lambda y, t: tf.matmul(turn, y), start, TIMES, full_output=True)
    assert y.shape.as_list() == [4, 2, 1]
    found, told = run([y, info])
    np.testing.assert_allclose(found[:, 0, 0], np.cos(TIMES), atol=1e-6)
    assert told["num_func_evals"] == 6 * len(told["integrate_points"]) + 1
    assert told["integrate_points"][-1] >= 1.5
    assert len(told["error_ratio"]) == len(told["integrate_points"])


def test_the_gradient_of_a_solution() -> None:
    rate, start = tf.constant(0.7, tf.float64), tf.constant(2.0, tf.float64)
    y = integrate.odeint(lambda y, t: rate * y, start, TIMES)[-1]
    found = run([y, *tf.gradients(y, [rate, start])])
    end = 2 * np.exp(0.7 * 1.5)
    np.testing.assert_allclose(found, [end, 1.5 * end, end / 2], rtol=1e-5)


@pytest.mark.parametrize(("method", "accuracy"), [("midpoint", 1e-3), ("rk4", 1e-7)])
def test_steps_of_given_length(method: str, accuracy: float) -> None:
    def shrinks(y: Any, t: Any) -> Any:
        return -tf.cast(t, y.dtype) * y

    found = integrate.odeint_fixed(shrinks, tf.ones([2], tf.float64), TIMES, 0.02, method)
    wanted = np.exp(-(TIMES**2) / 2)
    np.testing.assert_allclose(run(found), np.stack([wanted, wanted], 1), rtol=accuracy)


def test_what_is_refused() -> None:
    def same(y: Any, t: Any) -> Any:
        return y

    with pytest.raises(ValueError, match="invalid method: 'euler'"):
        integrate.odeint(same, 1.0, TIMES, method="euler")
    with pytest.raises(ValueError, match="cannot supply `options` without"):
        integrate.odeint(same, 1.0, TIMES, options={"first_step": 0.1})
    with pytest.raises(TypeError, match="`y0` must have a floating point"):
        integrate.odeint(same, 1, TIMES)
    with pytest.raises(ValueError, match="method not supported: euler"):
        integrate.odeint_fixed(same, 1.0, TIMES, method="euler")
    with pytest.raises(ValueError, match="t must be a 1D tensor"):
        integrate.odeint_fixed(same, 1.0, TIMES[None], 0.1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="monotonic increasing"):
        run(integrate.odeint(same, 1.0, TIMES[::-1].copy()))
    with pytest.raises(tf.errors.InvalidArgumentError, match="max_num_steps exceeded"):
        run(integrate.odeint(same, 1.0, TIMES, method="dopri5", options={"max_num_steps": 1}))
