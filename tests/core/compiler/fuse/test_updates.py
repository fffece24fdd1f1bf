"""Updates that are joined: the values of single ones, the order that was asked for, the errors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.compiler.fuse import updates as fusion
from opdock.kernels.expr.updates import UPDATES
from opdock_cpu.jit import updates

COUNT = 5


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")


def variables(resource: bool, dtype: Any = tf.float32) -> list[Any]:
    rng = np.random.default_rng(1)
    shapes: list[tuple[int, ...]] = [(), (3,), (2, 4), (5, 1, 2), (3,)]
    return [
        tf.get_variable(
            f"v{i}", initializer=tf.constant(rng.normal(size=s), dtype), use_resource=resource
        )
        for i, s in enumerate(shapes)
    ]


def joined(session: Any, fetches: Any) -> list[int]:
    """How many updates each joined node stands for."""
    rows = session.explain(fetches).rows
    return [len(r.members) for r in rows if r.op == UPDATES]


def single() -> Any:
    """The settings of a session that joins nothing."""
    config = tf.ConfigProto()
    optimizer = config.graph_options.rewrite_options.custom_optimizers.add()
    optimizer.name = "opdock"
    optimizer.parameter_map["disable_passes"].s = b"updates"
    return config


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: tf.train.AdamOptimizer(0.01),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.01, momentum=0.9),
    "centered": lambda: tf.train.RMSPropOptimizer(0.01, centered=True),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "dual": lambda: tf.train.AdagradDAOptimizer(0.1, tf.train.get_or_create_global_step()),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.5),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "proximal": lambda: tf.train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.01),
}


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_every_bit_is_that_of_single_updates(name: str, resource: bool) -> None:
    kind = tf.float64 if name == "adam" else tf.float32
    found = []
    for config in (None, single()):
        with tf.Graph().as_default():
            weights = variables(resource, kind)
            loss = tf.add_n([tf.reduce_sum(tf.square(w * 0.5 - 1.0)) for w in weights])
            train = OPTIMIZERS[name]().minimize(loss)
            with tf.Session(config=config) as session:
                assert joined(session, train) == ([COUNT] if config is None else [])
                session.run(tf.global_variables_initializer())
                for _ in range(4):
                    session.run(train)
                found.append(session.run(tf.global_variables()))
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_update_that_waits_for_another_is_not_joined_to_it() -> None:
    with tf.Graph().as_default():
        a, b = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0])
        optimizer = tf.train.GradientDescentOptimizer(1.0)
        first = optimizer.apply_gradients([(tf.constant([1.0, 1.0]), a)])
        with tf.control_dependencies([first]):
            second = optimizer.apply_gradients([(tf.identity(a.read_value()), b)])
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            assert joined(session, second) == []
            session.run(second)
            np.testing.assert_array_equal(session.run(b), [3.0, 3.0])


def test_what_is_read_before_and_after_is_what_was_asked_for() -> None:
    with tf.Graph().as_default():
        weights = variables(resource=True)
        before = [w.read_value() for w in weights]
        with tf.control_dependencies(before):
            gradients = [(tf.ones_like(w), w) for w in before]
            train = tf.train.MomentumOptimizer(0.5, 0.9).apply_gradients(
                [(g, w) for (g, _), w in zip(gradients, weights, strict=True)]
            )
        with tf.control_dependencies([train]):
            after = [w.read_value() for w in weights]
        with tf.Session() as session:
            assert joined(session, [before, after]) == [COUNT]
            session.run(tf.global_variables_initializer())
            kept = []
            for _ in range(3):
                old, new = session.run([before, after])
                kept.append((old, new, [v.copy() for v in new]))
                assert all(np.all(n < o) for o, n in zip(old, new, strict=True))
            for _, new, copies in kept:
                for a, b in zip(new, copies, strict=True):
                    np.testing.assert_array_equal(a, b)


def test_two_updates_of_one_variable_come_one_after_the_other() -> None:
    with tf.Graph().as_default():
        weights = variables(resource=False)
        gradients = [(tf.ones_like(w.initialized_value()), w) for w in weights]
        optimizer = tf.train.GradientDescentOptimizer(1.0)
        train = tf.group(optimizer.apply_gradients(gradients), optimizer.apply_gradients(gradients))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            old = session.run(weights)
            assert joined(session, train) == [COUNT, COUNT]
            session.run(train)
            for a, b in zip(old, session.run(weights), strict=True):
                np.testing.assert_array_equal(a - np.float32(1) - np.float32(1), b)


def test_gradients_clipped_by_their_norm() -> None:
    with tf.Graph().as_default():
        weights = variables(resource=False)
        loss = tf.add_n([tf.reduce_sum(tf.square(w)) for w in weights])
        clipped, norm = tf.clip_by_global_norm(tf.gradients(loss, weights), 0.5)
        train = tf.train.AdamOptimizer(0.1).apply_gradients(zip(clipped, weights, strict=True))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            assert joined(session, [train, norm]) == [COUNT]
            norms = [session.run([norm, train])[0] for _ in range(5)]
        assert norms == sorted(norms, reverse=True)


def test_variables_assigned_and_read_by_others_between_steps() -> None:
    with tf.Graph().as_default():
        weights = variables(resource=False)
        train = tf.train.GradientDescentOptimizer(1.0).apply_gradients(
            [(tf.fill(w.shape, 1.0), w) for w in weights]
        )
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(train)
            held = session.run(weights)
            copies = [h.copy() for h in held]
            for value in (7.0, 9.0):
                weights[2].load(np.full((2, 4), value, np.float32), session)
                session.run(train)
                session.run(train)
                np.testing.assert_array_equal(session.run(weights[2]), np.full((2, 4), value - 2))
            for a, b in zip(held, copies, strict=True):
                np.testing.assert_array_equal(a, b)


def test_the_error_is_that_of_the_update_that_has_it() -> None:
    with tf.Graph().as_default():
        weights = variables(resource=False)
        train = tf.train.GradientDescentOptimizer(1.0).apply_gradients(
            [(tf.fill(w.shape, 1.0), w) for w in weights]
        )
        with tf.Session() as session:
            session.run([w.initializer for w in weights if w is not weights[1]])
            with pytest.raises(tf.errors.FailedPreconditionError, match="update_v1"):
                session.run(train)
            session.run(weights[1].initializer)
            session.run(train)
            assert joined(session, train) == [COUNT]


def test_a_variable_that_changed_its_shape_is_updated_alone() -> None:
    with tf.Graph().as_default():
        weights = [tf.Variable(tf.zeros([2]), validate_shape=False) for _ in range(3)]
        train = tf.train.GradientDescentOptimizer(1.0).apply_gradients(
            [(tf.ones([2]), w) for w in weights]
        )
        grown = tf.assign(weights[0], tf.zeros([3, 2]), validate_shape=False)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            assert joined(session, train) == [3]
            session.run(grown)
            session.run(train)
            np.testing.assert_array_equal(session.run(weights[0]), -np.ones((3, 2)))
            np.testing.assert_array_equal(session.run(weights[2]), [-1.0, -1.0])
            assert joined(session, train) == []


def test_one_variable_under_two_handles() -> None:
    with tf.Graph().as_default():
        handles = [
            tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[2], shared_name="same") for _ in "ab"
        ]
        start = tf.raw_ops.AssignVariableOp(resource=handles[0], value=tf.zeros([2]))
        train = [
            tf.raw_ops.ResourceApplyGradientDescent(var=h, alpha=1.0, delta=tf.ones([2]))
            for h in handles
        ]
        with tf.Session() as session:
            session.run(start)
            session.run(train)
            value = tf.raw_ops.ReadVariableOp(resource=handles[1], dtype=tf.float32)
            np.testing.assert_array_equal(session.run(value), [-2.0, -2.0])


def test_large_variables_stay_alone() -> None:
    with tf.Graph().as_default():
        weights = [tf.Variable(tf.zeros([200, 100])) for _ in range(3)]
        train = tf.train.GradientDescentOptimizer(1.0).minimize(
            tf.add_n([tf.reduce_sum(w) for w in weights])
        )
        with tf.Session() as session:
            assert joined(session, train) == []


def test_steps_of_several_threads_lose_no_update() -> None:
    with tf.Graph().as_default():
        weights = [tf.Variable(tf.zeros([4])) for _ in range(8)]
        first, second = (
            tf.train.GradientDescentOptimizer(1.0).apply_gradients(
                [(tf.ones([4]), w) for w in order]
            )
            for order in (weights, weights[::-1])
        )
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            threads = [
                threading.Thread(target=lambda t=t: [session.run(t) for _ in range(25)])
                for t in (first, second, first)
            ]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            for value in session.run(weights):
                np.testing.assert_array_equal(value, np.full(4, -75.0))


def test_a_buffer_that_somebody_holds_is_not_written() -> None:
    side = updates._Side([np.zeros(3), np.zeros(2)])
    same = side.arrays[0]
    held = side.arrays[1][:1]
    side.let_go()
    assert side.arrays[0] is not same
    assert side.arrays[1] is not held.base
    del same, held
    kept = list(map(id, side.arrays))
    side.let_go()
    assert list(map(id, side.arrays)) == kept


@pytest.mark.parametrize(("count", "walks"), [(1, 0), (2, 1)])
def test_a_program_without_twins_is_not_put_in_order(
    count: int, walks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    order = fusion.state_order
    monkeypatch.setattr(fusion, "state_order", lambda nodes: asked.append(nodes) or order(nodes))
    with tf.Graph().as_default():
        held = [tf.get_variable(f"v{i}", [3]) for i in range(count)]
        alone = tf.get_variable("alone", [3], tf.float64)
        loss = tf.add_n([tf.reduce_sum(v) for v in held])
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        train = [optimizer.minimize(loss), optimizer.minimize(tf.reduce_sum(alone))]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            asked.clear()
            session.run(train)
    assert len(asked) == walks
