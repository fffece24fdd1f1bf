"""Faults where operations run as they are made, and in functions whose Python was rewritten.

Kernels decline, memory is full, the device is lost, at any kernel of a training: its weights are
those of an undisturbed one. What a kernel raises is one of `tf.errors` or what Python has for other
ends, and the program goes on.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.eager.graph import EagerGraph
from tests.plugins import explosive, fickle
from tests.plugins.explosive import blast_op, lit
from tests.plugins.test_kernels_that_raise import ERRORS

STEPS = 6
FAULTS = ("declined", "full", "lost")
SOFT = tf.ConfigProto(allow_soft_placement=True)
X = np.array([[1.0, 0.5, 0.0], [1.0, 0.5, 1.0], [1.0, 0.5, 2.0]], np.float32)


# ---------------------------------------------------------------- trainings
def error_of(x: Any, w: Any) -> Any:
    """A loop and a branch over tensors, on the device that fails."""
    with tf.device("/device:FICKLE:0"):
        y = x * w
        for i in tf.range(3):
            if tf.equal(i, 1):
                y = tf.add(y, x * w)
            else:
                y = tf.add(y, x * -1.0)
        return y


def eager_training() -> np.ndarray:
    """The weights after each step, of operations that run as they are made."""
    with EagerGraph(SOFT).as_default():
        w = tf.Variable(np.ones(3, np.float32))
        optimizer = tf.train.MomentumOptimizer(0.02, 0.5)
        found = []
        for i in range(STEPS):
            x = tf.constant(X[i % 3])
            with tf.GradientTape() as tape, tf.device("/device:FICKLE:0"):
                error = tf.add(x * w, tf.add(x * w, x * -2.0))
            gradient = tape.gradient(error, w, output_gradients=2.0 * error)
            optimizer.apply_gradients([(gradient, w)])
            found.append(w.numpy())
        return np.array(found)


def function_training() -> np.ndarray:
    """The same of a `tf.function` with Python's control flow, in a session."""
    with tf.Graph().as_default(), tf.Session(config=SOFT) as session:
        x = tf.placeholder(tf.float32, [3])
        w = tf.get_variable("w", initializer=np.ones(3, np.float32), use_resource=True)
        error = tf.function(error_of)(x, w)
        step = tf.train.MomentumOptimizer(0.02, 0.5).minimize(tf.reduce_sum(tf.square(error)))
        session.run(tf.global_variables_initializer())
        found = []
        for i in range(STEPS):
            session.run(step, {x: X[i % 3]})
            found.append(session.run(w))
        return np.array(found)


def dataset_training() -> np.ndarray:
    """The same with a pipeline whose function was rewritten, some elements in other threads."""

    def changed(x: Any) -> Any:
        with tf.device("/device:FICKLE:0"):
            if tf.reduce_sum(x) > 2.0:
                x = x * 0.5
            else:
                x = tf.add(x, x)
        return x

    with tf.Graph().as_default(), tf.Session(config=SOFT) as session:
        data = tf.data.Dataset.from_tensor_slices(X).map(changed, 2).repeat().prefetch(1)
        # A step that has taken an element does not run again, so one has it from another.
        following = tf.data.make_one_shot_iterator(data).get_next()
        x = tf.placeholder(tf.float32, [3])
        w = tf.get_variable("w", initializer=np.ones(3, np.float32))
        with tf.device("/device:FICKLE:0"):
            error = tf.add(x * w, x * -2.0)
        step = tf.train.MomentumOptimizer(0.02, 0.5).minimize(tf.reduce_sum(tf.square(error)))
        session.run(tf.global_variables_initializer())
        found = []
        for _ in range(STEPS):
            session.run(step, {x: session.run(following)})
            found.append(session.run(w))
        return np.array(found)


TRAININGS: dict[str, Callable[[], np.ndarray]] = {
    "eager": eager_training, "function": function_training, "dataset": dataset_training,
}  # fmt: skip


def train(kind: str, planned: dict[int, str]) -> tuple[np.ndarray, int]:
    """The weights after each step, and how many kernels the device was asked to run."""
    demand = fickle.install()
    demand.planned = planned
    try:
        return TRAININGS[kind](), demand.calls
    finally:
        gc.collect()
        assert demand.in_use == 0
        fickle.uninstall()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", TRAININGS)
def test_one_fault(kind: str, fault: str) -> None:
    want, calls = train(kind, {})
    assert calls >= 2 * STEPS
    for number in (1, 2, calls // 2, STEPS * 2):
        found, asked = train(kind, {number: fault})
        assert asked >= number
        np.testing.assert_allclose(found, want, rtol=1e-6)


@pytest.mark.prove
@pytest.mark.parametrize("kind", TRAININGS)
def test_many_faults(kind: str) -> None:
    want, calls = train(kind, {})
    for seed in range(350):
        rng = Random(seed)
        planned = {
            rng.randrange(1, calls + 1): rng.choice(FAULTS) for _ in range(rng.randrange(1, 5))
        }
        found, _ = train(kind, planned)
        np.testing.assert_allclose(found, want, rtol=1e-6, err_msg=f"{seed}: {planned}")


# ---------------------------------------------------------------- kernels that raise
@pytest.fixture
def explosives() -> Iterator[None]:
    explosive.install()
    yield
    explosive.uninstall()


@tf.custom_gradient
def gradient_raises(x: Any) -> Any:
    return x * 2.0, blast_op


def gradient_of(x: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = gradient_raises(x) * x
    return tape.gradient(y, x)


def rewritten(x: Any) -> Any:
    total = x
    for i in tf.range(3):
        if tf.equal(i, 1):
            total = total + blast_op(x)
    return total


def from_dataset(x: Any) -> Any:
    def changed(i: Any) -> Any:
        if tf.equal(i, 2):
            return blast_op(tf.cast(i, tf.float32))
        return tf.cast(i, tf.float32)

    total = x
    for element in tf.data.Dataset.range(4).map(changed, 2).prefetch(1):
        total = total + element
    return total


PLACES: dict[str, Callable[[Any], Any]] = {
    "operation": lambda x: blast_op(x * 2.0) + 1.0,
    "gradient": gradient_of,
    "function": tf.function(rewritten),
    "while_loop": lambda x: tf.while_loop(
        lambda i, y: i < 3, lambda i, y: (i + 1, blast_op(y)), [0, x]
    )[1],
    "map_fn": lambda x: tf.map_fn(lambda y: blast_op(y * 2.0), x),
    "dataset": from_dataset,
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("device", ["CPU", "ECHO"])
@pytest.mark.usefixtures("explosives")
def test_kernels_that_raise(device: str, place: str) -> None:
    """It is told where it was made to happen, and what is done next is right."""
    with EagerGraph(SOFT).as_default(), tf.device(f"/device:{device}:0"):
        x = tf.constant(np.array([1.0, -2.0, 3.0], np.float32))
        count = tf.Variable(0.0)
        want = PLACES[place](x).numpy()
        for kind, typed in ERRORS.items():
            count.assign_add(1.0)
            error = kind("boom")
            with lit(error), pytest.raises(typed or kind) as found:
                PLACES[place](x)
            if typed is None:
                assert found.value is error
            else:
                assert "boom" in str(found.value)
            np.testing.assert_array_equal(PLACES[place](x).numpy(), want)
        assert count.numpy() == len(ERRORS)
