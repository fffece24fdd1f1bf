"""Faults at random kernels of a training: its weights are those of an undisturbed one."""

from __future__ import annotations

import gc
from random import Random

import numpy as np
import pytest

import opdock as tf
from tests.plugins import fickle

STEPS = 12
FAULTS = ("declined", "full", "lost")


BATCHES = [np.array([1, 0.5, i % 3], np.float32) for i in range(STEPS)]


def train(planned: dict[int, str], taken: bool) -> tuple[list[np.ndarray], int]:
    """The weights after each step, and how many kernels the device was asked to run.

    Args:
        planned: what happens at which call of a kernel.
        taken: whether steps take their batches, whose size nobody knows, or are fed.
    """
    demand = fickle.install()
    demand.planned = planned
    config = tf.ConfigProto(allow_soft_placement=True)
    try:
        with tf.Graph().as_default(), tf.Session(config=config) as session:
            x = tf.placeholder(tf.float32, [3])
            if taken:
                batches = tf.data.Dataset.from_generator(lambda: BATCHES, tf.float32, [None])
                x = tf.data.make_one_shot_iterator(batches).get_next()
            with tf.device("/cpu:0"):
                w = tf.get_variable("w", initializer=np.ones(3, np.float32))
                v = tf.get_variable("v", initializer=np.zeros(3, np.float32), use_resource=True)
            with tf.device("/device:FICKLE:0"):
                y = tf.add(x * w, x * v)
                error = tf.add(y, x * -2.0)
            with tf.device("/cpu:0"):
                loss = tf.reduce_sum(tf.square(error))
                step = tf.train.MomentumOptimizer(0.02, 0.5).minimize(loss)
            session.run(tf.global_variables_initializer())
            found = []
            for batch in BATCHES:
                session.run(step, {} if taken else {x: batch})
                found.append(np.concatenate(session.run([w, v])))
        return found, demand.calls
    finally:
        gc.collect()
        assert demand.in_use == 0
        fickle.uninstall()


def disturbed(seed: int, want: list[np.ndarray], calls: int, taken: bool) -> None:
    """A training with one to four faults."""
    rng = Random(seed)
    planned = {rng.randrange(1, calls + 1): rng.choice(FAULTS) for _ in range(rng.randrange(1, 5))}
    found, asked = train(planned, taken)
    assert asked >= min(planned)
    np.testing.assert_allclose(found, want, rtol=1e-6, err_msg=f"{seed}: {planned}")


@pytest.mark.parametrize("taken", [False, True])
@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault(fault: str, taken: bool) -> None:
    want, calls = train({}, taken)
    assert calls >= 3 * STEPS
    for number in (1, 2, calls // 2, calls):
        found, _ = train({number: fault}, taken)
        np.testing.assert_allclose(found, want, rtol=1e-6)


@pytest.mark.prove
@pytest.mark.parametrize("taken", [False, True])
def test_many_faults(taken: bool) -> None:
    want, calls = train({}, taken)
    for seed in range(250):
        disturbed(seed, want, calls, taken)
