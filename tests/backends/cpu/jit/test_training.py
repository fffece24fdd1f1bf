"""Generated optimizer updates: the values of the portable rule, in buffers nobody else holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock_cpu.jit import llvm, training
from opdock_cpu.jit.generated import Generated
from opdock_cpu.jit.row_updates import RowUpdates
from opdock_cpu.jit.training import _Spares

SIZE = 40_000


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")


OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: tf.train.AdamOptimizer(0.01),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.01, momentum=0.9),
    "centered": lambda: tf.train.RMSPropOptimizer(0.01, centered=True),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.5),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "ftrl_power": lambda: tf.train.FtrlOptimizer(0.1, learning_rate_power=-0.7),
    "proximal": lambda: tf.train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.01),
}


def trained(name: str, *, resource: bool, fused: bool) -> list[np.ndarray]:
    start = np.random.default_rng(1).normal(size=SIZE).astype(np.float32)
    with tf.Graph().as_default():
        weights = tf.Variable(start, use_resource=resource)
        loss = tf.reduce_sum(tf.square(weights * 0.5 - 1.0))
        train = OPTIMIZERS[name]().minimize(loss)
        with tf.Session() as session:
            rows = session.explain(train).rows
            session.run(tf.global_variables_initializer())
            seen = []
            for _ in range(4):
                session.run(train)
                seen.append(session.run(weights))
            kernels = " ".join(row.kernel for row in rows if "Apply" in row.op)
    assert ("opdock_cpu.jit" in kernels) == fused
    return seen


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_each_optimizer_gives_what_the_rule_gives(
    name: str, resource: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    generated = trained(name, resource=resource, fused=True)
    monkeypatch.setattr(llvm, "available", lambda: False)
    wanted = trained(name, resource=resource, fused=False)
    for a, b in zip(generated, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("power", [-0.5, -0.7])
def test_powers_of_double_precision_that_are_roots(
    power: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is code for the usual power alone: others are NumPy's."""
    start = np.random.default_rng(1).normal(size=SIZE)
    made = []

    def counted(*args: Any) -> Any:
        made.append(args)
        return Generated(*args)

    monkeypatch.setattr(training, "Generated", counted)

    def ran() -> np.ndarray:
        with tf.Graph().as_default(), tf.Session() as session:
            weights = tf.Variable(start, use_resource=True)
            train = tf.train.FtrlOptimizer(0.1, power, l1_regularization_strength=0.01)
            step = train.minimize(tf.reduce_sum(tf.square(weights * 0.5 - 1.0)))
            session.run(tf.global_variables_initializer())
            session.run(step)
            session.run(step)
            return session.run(weights)

    found = ran()
    assert bool(made) == (power == -0.5)
    monkeypatch.setattr(llvm, "available", lambda: False)
    np.testing.assert_allclose(found, ran(), rtol=1e-13, atol=1e-15)


def test_a_buffer_is_written_again_only_when_nobody_holds_it() -> None:
    spares, buffer = _Spares(), np.zeros(10, np.float32)
    spares.keep(buffer)
    assert spares.take(buffer) is None
    like = np.ones(10, np.float32)
    address = buffer.ctypes.data
    del buffer
    taken = spares.take(like)
    assert taken is not None
    assert taken.ctypes.data == address
    assert spares.take(like) is None


def test_a_view_of_other_memory_is_never_kept() -> None:
    spares, whole = _Spares(), np.zeros(10, np.float32)
    spares.keep(whole[:5])
    assert spares.take(np.ones(5, np.float32)) is None


def test_values_that_a_user_holds_stay_as_they_were() -> None:
    with tf.Graph().as_default():
        weights = tf.Variable(tf.zeros([SIZE]))
        train = tf.train.MomentumOptimizer(1.0, 0.5).apply_gradients([(tf.ones([SIZE]), weights)])
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            held = []
            for _ in range(20):
                session.run(train)
                held.append(session.run(weights))
    velocity = value = 0.0
    for array in held:
        velocity = velocity * 0.5 + 1
        value -= velocity
        np.testing.assert_allclose(array, np.full(SIZE, value), rtol=1e-6)


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("name", sorted(OPTIMIZERS.keys() - {"sgd", "adam"}))
def test_updates_of_some_rows(name: str, resource: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of many elements are generated code, with the values that NumPy gives."""
    start = np.random.default_rng(2).normal(size=(60, 300)).astype(np.float32)
    rows, seen, made = [5, 59, 0, 17, 18, *range(20, 50)], [], []
    update = RowUpdates.__call__

    def counted(*args):
        made.append(update(*args))
        return made[-1]

    monkeypatch.setattr(RowUpdates, "__call__", counted)
    for generated in (True, False):
        monkeypatch.setattr(
            RowUpdates,
            "writes",
            staticmethod(RowUpdates.writes if generated else lambda sig: False),
        )
        made.clear()
        with tf.Graph().as_default(), tf.Session() as session:
            weights = tf.Variable(start, use_resource=resource)
            loss = tf.reduce_sum(tf.square(tf.gather(weights, rows) * 0.5 - 1.0))
            train = OPTIMIZERS[name]().minimize(loss)
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                session.run(train)
            seen.append(session.run([weights, *tf.global_variables()]))
        assert made == ([True] * 3 if generated else [])
    for found, wanted in zip(*seen, strict=True):
        np.testing.assert_allclose(found, wanted, 2e-5, 2e-6)
    untouched = np.setdiff1d(np.arange(60), rows)
    np.testing.assert_array_equal(seen[0][0][untouched], start[untouched])
