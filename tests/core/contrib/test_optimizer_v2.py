"""`tf.contrib.optimizer_v2`: steps beside those of `tf.train`, and what subclasses are told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf

v2 = tf.contrib.optimizer_v2
START = np.array([[1.0, 2.0], [3.0, -4.0], [0.5, 0.25]], np.float32)
SLOPE = np.array([[0.1, -0.2], [0.3, 0.4], [-0.5, 0.6]], np.float32)
ROWS = [2, 0, 2]


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def steps(optimizer: Any, resource: bool = True, rows: list[int] | None = None) -> Any:
    """The variable after three steps with one gradient, of all rows or of some."""
    with tf.Graph().as_default():
        var = tf.get_variable("v", initializer=START, use_resource=resource)
        grad: Any = tf.constant(SLOPE)
        if rows is not None:
            shape = tf.constant([3, 2])
            grad = tf.IndexedSlices(tf.constant(SLOPE[rows]), tf.constant(rows), shape)
        step = tf.train.get_or_create_global_step()
        train = optimizer.apply_gradients([(grad, var)], global_step=step)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(3):
                sess.run(train)
            assert sess.run(step) == 3
            return sess.run(var)


@pytest.mark.parametrize("resource", [True, False])
@pytest.mark.parametrize("rows", [None, ROWS])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("GradientDescentOptimizer", {"learning_rate": 0.5}),
        ("MomentumOptimizer", {"learning_rate": 0.5, "momentum": 0.9}),
        ("MomentumOptimizer", {"learning_rate": 0.5, "momentum": 0.9, "use_nesterov": True}),
        ("AdagradOptimizer", {"learning_rate": 0.5, "initial_accumulator_value": 0.2}),
        ("AdadeltaOptimizer", {"learning_rate": 1.0, "rho": 0.9, "epsilon": 1e-3}),
        ("AdamOptimizer", {"learning_rate": 0.5, "beta1": 0.8, "beta2": 0.9, "epsilon": 0.1}),
    ],
)
def test_steps_are_those_of_tf_train(
    name: str, arguments: dict[str, Any], rows: list[int] | None, resource: bool
) -> None:
    ours = steps(getattr(v2, name)(**arguments), resource, rows)
    theirs = steps(getattr(tf.train, name)(**arguments), resource, rows)
    np.testing.assert_array_equal(ours, theirs)
    assert not np.array_equal(ours, START)


@pytest.mark.parametrize("resource", [True, False])
@pytest.mark.parametrize("rows", [None, [2, 0]])
@pytest.mark.parametrize("centered", [True, False])
def test_the_average_of_rmsprop_begins_with_epsilon(
    centered: bool, rows: list[int] | None, resource: bool
) -> None:
    optimizer = v2.RMSPropOptimizer(0.1, 0.8, 0.5, epsilon=0.25, centered=centered)
    found = steps(optimizer, resource, rows)
    touched = [0, 1, 2] if rows is None else rows
    var, grad = START.astype(np.float64), SLOPE.astype(np.float64)
    rms, mean, momentum = np.full((3, 2), 0.25), np.zeros((3, 2)), np.zeros((3, 2))
    for _ in range(3):
        for i in touched:
            rms[i] = 0.8 * rms[i] + 0.2 * grad[i] ** 2
            mean[i] = 0.8 * mean[i] + 0.2 * grad[i]
            spread = rms[i] - mean[i] ** 2 if centered else rms[i]
            momentum[i] = 0.5 * momentum[i] + 0.1 * grad[i] / np.sqrt(spread)
            var[i] -= momentum[i]
    np.testing.assert_allclose(found, var, rtol=1e-5)


def test_a_function_is_asked_once_for_each_application() -> None:
    asked: list[float] = []

    def rate() -> float:
        asked.append(0.5 * (len(asked) + 1))
        return asked[-1]

    optimizer = v2.GradientDescentOptimizer(rate)
    variables = [tf.get_variable(n, initializer=[1.0], use_resource=True) for n in "ab"]
    pairs = [(tf.constant([1.0]), v) for v in variables]
    first, second = optimizer.apply_gradients(pairs), optimizer.apply_gradients(pairs)
    assert asked == [0.5, 1.0]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(first)
        np.testing.assert_array_equal(sess.run(variables), [[0.5], [0.5]])
        sess.run(second)
        np.testing.assert_array_equal(sess.run(variables), [[-0.5], [-0.5]])


def test_a_tensor_is_read_in_each_step() -> None:
    rate = tf.placeholder(tf.float64, [])
    var = tf.get_variable("v", initializer=[1.0])
    train = v2.MomentumOptimizer(rate, 0.0).minimize(tf.reduce_sum(3.0 * var))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train, {rate: 1.0})
        sess.run(train, {rate: 0.5})
        np.testing.assert_allclose(sess.run(var), [1 - 3 - 1.5])


class _Counting(v2.OptimizerV2):  # type: ignore[misc] # the public module is not typed
    """Subtracts a gradient as often as it was applied."""

    def __init__(self, scale: Any) -> None:
        super().__init__(False, "Counting")
        self._set_hyper("scale", scale)

    def _create_vars(self, var_list: Any, state: Any) -> None:
        state.create_non_slot(1.0, "times")
        for v in var_list:
            state.zeros_slot(v, "sum")
            made = tf.ones_initializer()
            state.create_slot_with_initializer(v, made, v.shape, v.dtype.base_dtype, "one", "One")

    def _resource_apply_dense(self, grad: Any, var: Any, state: Any) -> Any:
        step = grad * state.get_hyper("scale", var.dtype.base_dtype) * state.get_non_slot("times")
        total = state.get_slot(var, "sum").assign_add(step)
        return tf.group(total, var.assign_sub(step * state.get_slot(var, "one")))

    def _finish(self, state: Any) -> Any:
        return state.get_non_slot("times").assign_add(1.0)


def test_a_subclass_is_told_its_state() -> None:
    var = tf.get_variable("v", initializer=[10.0], use_resource=True)
    optimizer = _Counting(2)
    train = optimizer.minimize(lambda: 1.0 * var)
    assert optimizer.get_slot_names() == ["one", "sum"]
    names = [v.op.name for v in optimizer.variables()]
    assert names == ["times", "v/Counting", "v/One"]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(3):
            sess.run(train)
        assert sess.run([var, optimizer.get_slot(var, "sum")]) == [[-2.0], [12.0]]
    assert train in tf.get_collection(tf.GraphKeys.TRAIN_OP) and train.name == "Counting"


def test_rows_that_are_named_twice_are_added_first() -> None:
    told: list[Any] = []

    class Rows(v2.OptimizerV2):
        def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any, state: Any) -> Any:
            told.extend([grad, indices])
            return tf.no_op()

    var = tf.get_variable("v", initializer=START, use_resource=True)
    grad = tf.IndexedSlices(tf.constant(SLOPE), tf.constant(ROWS), tf.constant([3, 2]))
    Rows(False, "Rows").apply_gradients([(grad, var)])
    with tf.Session() as sess:
        values, indices = sess.run(told)
    np.testing.assert_array_equal(indices, [2, 0])
    np.testing.assert_allclose(values, [SLOPE[0] + SLOPE[2], SLOPE[1]])


def test_what_nobody_would_call_is_told() -> None:
    class Old(v2.OptimizerV2):
        def _create_slots(self, var_list: Any) -> None: ...

    with pytest.raises(RuntimeError, match="Override _create_vars instead of _create_slots"):
        Old(False, "Old")
    with pytest.raises(ValueError, match="optimizer name"):
        v2.OptimizerV2(False, "")
    with pytest.raises(ValueError, match="must be positive"):
        v2.AdagradOptimizer(1.0, 0.0)
    with pytest.raises(ValueError, match="No variables to optimize"):
        v2.GradientDescentOptimizer(1.0).minimize(tf.constant(1.0))
    with pytest.raises(NotImplementedError):
        v2.GradientDescentOptimizer(1.0).apply_gradients([(tf.constant(1.0), tf.constant(2.0))])


def test_nothing_goes_through_stopped_tensors() -> None:
    var = tf.get_variable("v", initializer=[1.0])
    through = tf.identity(var)
    optimizer = v2.GradientDescentOptimizer(1.0)
    ((grad, _),) = optimizer.compute_gradients(3.0 * through, [var], stop_gradients=[through])
    assert grad is None
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        optimizer.minimize(3.0 * through, stop_gradients=[through])


def test_one_optimizer_serves_several_graphs() -> None:
    optimizer = v2.AdamOptimizer(0.5)
    np.testing.assert_array_equal(steps(optimizer), steps(optimizer))
    assert optimizer.variables() == []


def test_checkpoints_hold_the_variables_of_an_optimizer(tmp_path: Path) -> None:
    def build() -> tuple[Any, Any, Any, Any]:
        var = tf.get_variable("v", initializer=[1.0], use_resource=True)
        optimizer = v2.AdamOptimizer(0.5)
        saved = tf.train.Checkpoint(optimizer=optimizer, var=var)
        return var, optimizer, saved, lambda: optimizer.minimize(lambda: var**2)

    var, optimizer, saved, made = build()
    train = made()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run([train])
        path = saved.save(str(tmp_path / "c"), session=sess)
        kept = sess.run([var, *optimizer.variables()])
        sess.run(train)
        after = sess.run([var, *optimizer.variables()])
    with tf.Graph().as_default():
        var, optimizer, saved, made = build()
        status = saved.restore(path)  # the slots are made later
        train = made()
        status.assert_consumed()
        with tf.Session() as sess:
            status.initialize_or_restore(sess)
            assert sess.run([var, *optimizer.variables()]) == kept
            sess.run(train)
            assert sess.run([var, *optimizer.variables()]) == after


@pytest.mark.parametrize("name", ["AdamOptimizer", "GradientDescentOptimizer"])
def test_replicas_apply_the_sum_of_what_they_found(name: str) -> None:
    def trained(module: Any, count: int) -> Any:
        devices = [f"/device:CPU:{i}" for i in range(count)]
        with tf.Graph().as_default():
            strategy = tf.distribute.MirroredStrategy(devices)
            with strategy.scope():
                var = tf.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
                optimizer = getattr(module, name)(0.1)

                def replica() -> Any:
                    pairs = [(tf.constant([0.5, -1.0]), var)]
                    return optimizer.apply_gradients(pairs)

                train = strategy.group(strategy.experimental_run_v2(replica))
            config = tf.ConfigProto(device_count={"CPU": count})
            with tf.Session(config=config) as sess:
                sess.run(tf.global_variables_initializer())
                sess.run(train)
                sess.run(train)
                return sess.run(strategy.experimental_local_results(var))

    ours, theirs = trained(v2, 2), trained(tf.train, 2)
    np.testing.assert_array_equal(ours, theirs)
    assert len(ours) == 2
