"""`tf.contrib.opt`: each optimizer's steps beside the same steps in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf

opt = tf.contrib.opt
START = np.array([[1.0, 2.0], [3.0, -4.0], [0.5, 0.25]], np.float32)
SLOPE = np.array([[0.1, -0.2], [0.3, 0.4], [-0.5, 0.6]], np.float32)
ROWS = [2, 0]


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def steps(optimizer: Any, resource: bool, rows: list[int] | None, count: int = 3) -> Any:
    """The variable after some steps with one gradient, of all rows or of some."""
    var = tf.get_variable("v", initializer=START, use_resource=resource)
    grad: Any = tf.constant(SLOPE)
    if rows is not None:
        grad = tf.IndexedSlices(tf.constant(SLOPE[rows]), tf.constant(rows), tf.constant([3, 2]))
    step = tf.train.get_or_create_global_step()
    train = optimizer.apply_gradients([(grad, var)], global_step=step)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(count):
            sess.run(train)
        return sess.run(var)


def adam(
    decay_all: bool = True, nesterov: bool = False, weight: float = 0.0
) -> Callable[[list[int]], Any]:
    """Adam in NumPy on chosen rows; the moments of the others decay or stay."""

    def run(rows: list[int]) -> Any:
        var, m, v = START.astype(np.float64), np.zeros((3, 2)), np.zeros((3, 2))
        for t in range(1, 4):
            rate = 0.001 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
            var[rows] -= weight * var[rows]
            grad = np.zeros((3, 2))
            grad[rows] = SLOPE[rows]
            touched = list(range(3)) if decay_all else rows
            m[touched] = 0.9 * m[touched] + 0.1 * grad[touched]
            v[touched] = 0.999 * v[touched] + 0.001 * grad[touched] ** 2
            ahead = 0.9 * m + 0.1 * grad if nesterov else m
            moved = rows if nesterov else touched
            var[moved] -= rate * ahead[moved] / (np.sqrt(v[moved]) + 1e-8)
        return var

    return run


def adamax(rows: list[int]) -> Any:
    var, m, v = START.astype(np.float64), np.zeros((3, 2)), np.zeros((3, 2))
    for t in range(1, 4):
        m[rows] = 0.9 * m[rows] + 0.1 * SLOPE[rows]
        v[rows] = np.maximum(0.999 * v[rows], np.abs(SLOPE[rows]))
        var[rows] -= 0.001 / (1 - 0.9**t) * m[rows] / (v[rows] + 1e-8)
    return var


def signed(factor: Callable[[Any], Any]) -> Callable[[list[int]], Any]:
    """AddSign or PowerSign in NumPy; the average decays in all rows."""

    def run(rows: list[int]) -> Any:
        var, m = START.astype(np.float64), np.zeros((3, 2))
        grad = np.zeros((3, 2))
        grad[rows] = SLOPE[rows]
        for t in range(3):
            m = 0.9 * m + 0.1 * grad
            var -= 0.1 * factor((1 - t / 10) * np.sign(grad * m)) * grad
        return var

    return run


CASES: dict[str, tuple[Callable[[], Any], Callable[[list[int]], Any]]] = {
    "adamax": (opt.AdaMaxOptimizer, adamax),
    "nadam": (opt.NadamOptimizer, adam(nesterov=True)),
    "lazy": (opt.LazyAdamOptimizer, adam(decay_all=False)),
    "adamw": (lambda: opt.AdamWOptimizer(0.01), adam(weight=0.01)),
    "extended": (
        lambda: opt.extend_with_decoupled_weight_decay(tf.train.AdamOptimizer)(0.01),
        adam(weight=0.01),
    ),
    "gs": (lambda: opt.AdamGSOptimizer(tf.train.get_or_create_global_step()), adam()),
    "lazy-gs": (
        lambda: opt.LazyAdamGSOptimizer(tf.train.get_or_create_global_step()),
        adam(decay_all=False),
    ),
    "addsign": (
        lambda: opt.AddSignOptimizer(alpha=1.5, sign_decay_fn=opt.get_linear_decay_fn(10)),
        signed(lambda agreed: 1.5 + agreed),
    ),
    "powersign": (
        lambda: opt.PowerSignOptimizer(base=2.0, sign_decay_fn=opt.get_linear_decay_fn(10)),
        signed(lambda agreed: 2.0**agreed),
    ),
    "multitask": (lambda: opt.MultitaskOptimizerWrapper(tf.train.AdamOptimizer()), adam()),
}


@pytest.mark.parametrize("resource", [False, True], ids=["reference", "resource"])
@pytest.mark.parametrize("name", CASES)
def test_steps_are_the_formulas(name: str, resource: bool) -> None:
    make, expected = CASES[name]
    found = steps(make(), resource, None)
    np.testing.assert_allclose(found, expected([0, 1, 2]), rtol=1e-5)
    with tf.Graph().as_default():
        np.testing.assert_allclose(steps(make(), resource, ROWS), expected(ROWS), rtol=1e-5)


@pytest.mark.parametrize("resource", [False, True], ids=["reference", "resource"])
def test_lars_scales_by_the_ratio_of_norms(resource: bool) -> None:
    size, slope = np.linalg.norm(START), np.linalg.norm(SLOPE)
    ratio = 0.001 * size / (slope + 1e-4 * size)
    moved = START - 0.5 * ratio * (SLOPE + 1e-4 * START)
    found = steps(opt.LARSOptimizer(0.5), resource, None, count=1)
    np.testing.assert_allclose(found, moved, rtol=1e-6)
    with tf.Graph().as_default():
        plain = steps(opt.LARSOptimizer(0.5, skip_list=["v"]), resource, None, count=1)
    np.testing.assert_allclose(plain, START - 0.5 * SLOPE, rtol=1e-6)
    with pytest.raises(ValueError, match="momentum should be positive: -1"):
        opt.LARSOptimizer(0.1, momentum=-1)


def test_decay_is_of_the_chosen_variables() -> None:
    a, b = (tf.get_variable(n, initializer=START) for n in "ab")
    loss = tf.reduce_sum(a) + tf.reduce_sum(b)
    train = opt.MomentumWOptimizer(0.1, 0.0, 0.9).minimize(loss, decay_var_list=[b])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        np.testing.assert_allclose(sess.run(a), START)
        np.testing.assert_allclose(sess.run(b), 0.9 * START, rtol=1e-6)


def test_adagrad_leaves_its_slots_alone_when_it_is_told_to() -> None:
    var = tf.get_variable("v", initializer=START)
    optimizer = opt.RegAdagradOptimizer(0.1)
    train = optimizer.apply_gradients([(tf.constant(SLOPE), var)])
    with optimizer.avoid_updating_slots():
        regularize = optimizer.apply_gradients([(tf.constant(SLOPE), var)])
    slot = optimizer.get_slot(var, "accumulator")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(regularize)
        np.testing.assert_allclose(sess.run(slot), np.full((3, 2), 0.1), rtol=1e-6)
        sess.run(train)
        np.testing.assert_allclose(sess.run(slot), 0.1 + SLOPE**2, rtol=1e-6)


def test_averages_are_saved_in_the_place_of_variables(tmp_path: Path) -> None:
    var = tf.get_variable("v", initializer=START)
    optimizer = opt.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(1.0), 0.5)
    with pytest.raises(RuntimeError, match="Must call apply_gradients or minimize before"):
        optimizer.swapping_saver()
    train = optimizer.apply_gradients([(tf.constant(SLOPE), var)])
    saver = optimizer.swapping_saver()
    with pytest.raises(ValueError, match="v/ExponentialMovingAverage is not part of variables"):
        optimizer.swapping_saver([var])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        path = saver.save(sess, str(tmp_path / "model"))
        tf.train.Saver().restore(sess, path)
        np.testing.assert_allclose(sess.run(var), START - 0.5 * SLOPE, rtol=1e-6)
        saver.restore(sess, path)
        np.testing.assert_allclose(sess.run(var), START - SLOPE, rtol=1e-6)


def test_variables_are_clipped_after_the_step() -> None:
    dense, sparse = (tf.get_variable(n, initializer=START) for n in ("dense", "sparse"))
    rows = tf.IndexedSlices(tf.zeros([1, 2]), tf.constant([1]), tf.constant([3, 2]))
    optimizer = opt.VariableClippingOptimizer(
        tf.train.GradientDescentOptimizer(1.0), {dense: [1], sparse: [1]}, 2.0
    )
    train = optimizer.apply_gradients([(tf.zeros([3, 2]), dense), (rows, sparse)])
    clipped = START * np.minimum(1, 2 / np.linalg.norm(START, axis=1, keepdims=True))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        np.testing.assert_allclose(sess.run(dense), clipped, rtol=1e-6)
        np.testing.assert_allclose(sess.run(sparse), [START[0], clipped[1], START[2]], rtol=1e-6)


def test_a_gradient_of_zeros_is_none() -> None:
    var = tf.get_variable("v", initializer=START)
    here = tf.placeholder(tf.float32, [])
    optimizer = opt.MultitaskOptimizerWrapper(tf.train.MomentumOptimizer(1.0, 0.9))
    pairs, norm = opt.clip_gradients_by_global_norm(
        [(here * SLOPE, var), (tf.constant([3.0, 4.0]), tf.get_variable("w", [2]))], 1000.0
    )
    train = optimizer.apply_gradients(pairs)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train, {here: 1.0})
        before = sess.run(var)
        assert sess.run([norm, train], {here: 0.0})[0] == 5.0
        np.testing.assert_array_equal(sess.run(var), before)
    with pytest.raises(TypeError, match=r"must be an instance of tf\.train\.Optimizer"):
        opt.MultitaskOptimizerWrapper(object())


def test_late_gradients_are_dropped() -> None:
    step = tf.train.get_or_create_global_step()
    var = tf.get_variable("v", initializer=START)
    optimizer = opt.DropStaleGradientOptimizer(tf.train.GradientDescentOptimizer(1.0), 0)
    pairs = optimizer.compute_gradients(tf.reduce_sum(var))
    others = tf.placeholder_with_default(0, [])
    with tf.control_dependencies([pairs[0][0]]):
        meanwhile = tf.cond(others > 0, lambda: tf.assign_add(step, 1), lambda: step + 0)
    with tf.control_dependencies([meanwhile]):
        late = [(tf.identity(pairs[0][0]), var)]
    train = optimizer.apply_gradients(late, global_step=step)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(train) == 0.0
        np.testing.assert_allclose(sess.run(var), START - 1)
        assert sess.run(train, {others: 1}) == 1.0
        np.testing.assert_allclose(sess.run(var), START - 1)


class _Halves(opt.ExternalOptimizerInterface):  # type: ignore[misc]
    """Walks against the gradient."""

    def _minimize(self, **given: Any) -> Any:
        vector = given["initial_val"]
        for _ in range(60):
            _, slope = given["loss_grad_func"](vector)
            vector = np.clip(vector - 0.25 * slope, *np.array(given["packed_bounds"]).T)
            given["step_callback"](vector)
        return vector


def test_an_optimizer_outside_of_the_graph_moves_the_variables() -> None:
    a = tf.get_variable("a", initializer=tf.constant([7.0, 7.0]))
    b = tf.get_variable("b", initializer=tf.constant(-3.0))
    loss = tf.reduce_sum(tf.square(a)) + tf.square(b - 1)
    seen: list[Any] = []
    interface = _Halves(loss, var_to_bounds={a: ([1, -np.inf], np.inf)})
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        interface.minimize(fetches=[loss], loss_callback=seen.append)
        np.testing.assert_allclose(sess.run(a), [1, 0], atol=1e-5)
        assert sess.run(b) == pytest.approx(1)
        with pytest.raises(NotImplementedError, match="implement the _minimize"):
            opt.ExternalOptimizerInterface(loss).minimize()
    assert seen[0] == 114 and len(seen) == 60


def test_subclasses_find_what_tf_calls_the_hyperparameters() -> None:
    class Signed(tf.train.AdamOptimizer):  # type: ignore[misc]
        def _apply_dense(self, grad: Any, var: Any) -> Any:
            return tf.assign_sub(var, self._lr_t * tf.sign(grad) * (self._beta1_t / self._beta1))

    class Plain(tf.train.GradientDescentOptimizer):  # type: ignore[misc]
        def _apply_dense(self, grad: Any, var: Any) -> Any:
            return tf.assign_sub(var, self._learning_rate_tensor * grad)

    found = steps(Signed(0.5), False, None, count=1)
    np.testing.assert_allclose(found, START - 0.5 * np.sign(SLOPE), rtol=1e-6)
    with tf.Graph().as_default():
        np.testing.assert_allclose(steps(Plain(0.5), False, None, 1), START - 0.5 * SLOPE)


def test_the_part_of_the_sign_shrinks_as_the_schedules_say() -> None:
    step = tf.placeholder(tf.int64, [])
    schedules = [
        opt.get_linear_decay_fn(10)(step),
        opt.get_cosine_decay_fn(10)(step),
        opt.get_cosine_decay_fn(10, num_periods=2.0, zero_after=1)(step),
        opt.get_restart_decay_fn(10, num_periods=2)(step),
    ]
    with tf.Session() as sess:
        found = np.array([sess.run(schedules, {step: t}) for t in range(12)]).T
    done = np.minimum(np.arange(12), 10) / 10
    wave = 0.5 * (1 + np.cos(4 * np.pi * done))
    np.testing.assert_allclose(found[0], 1 - done, atol=1e-6)
    np.testing.assert_allclose(found[1], 0.5 * (1 + np.cos(np.pi * done)), atol=1e-6)
    np.testing.assert_allclose(found[2], np.where(4 * done >= 2, 0, wave), atol=1e-6)
    np.testing.assert_allclose(found[3], 0.5 * (1 + np.cos(np.pi * (2 * done % 1))), atol=1e-6)
    with pytest.raises(ValueError, match="global_step is required for linear_decay"):
        opt.get_linear_decay_fn(10)(None)


@pytest.mark.parametrize("iterative", [False, True], ids=["svd", "iterations"])
def test_shampoo_multiplies_by_roots_of_the_sums(iterative: bool) -> None:
    left, right = SLOPE @ SLOPE.T / 3, SLOPE.T @ SLOPE / 2

    def root(matrix: Any, power: float) -> Any:
        values, vectors = np.linalg.eigh(matrix + 1e-2 * np.eye(len(matrix)))
        return vectors * values**power @ vectors.T

    expected = START - root(left, -0.25) @ SLOPE @ root(right, -0.25)
    optimizer = opt.ShampooOptimizer(epsilon=1e-2, use_iterative_root=iterative)
    found = steps(optimizer, True, None, count=1)
    np.testing.assert_allclose(found, expected, rtol=2e-3)


def test_shampoo_is_adagrad_where_matrices_would_be_too_large() -> None:
    rows, columns = (SLOPE**2).sum(1) / 3, (SLOPE**2).sum(0) / 2
    expected = START - SLOPE * rows[:, None] ** -0.25 * columns**-0.25
    found = steps(opt.ShampooOptimizer(max_matrix_size=1), False, None, count=1)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    with tf.Graph().as_default(), pytest.raises(NotImplementedError, match="mat_gbar_decay"):
        steps(opt.ShampooOptimizer(max_matrix_size=1, mat_gbar_decay=0.5), False, ROWS)


def test_ggt_steps_by_the_root_of_its_window() -> None:
    flat = SLOPE.ravel().astype(np.float64)
    average = 0.1 * flat
    matrix = np.zeros((6, 2))
    matrix[:, 0] = average
    values, u = np.linalg.eigh(matrix.T @ matrix + 1e-6 * np.eye(2))
    within = u.T @ matrix.T @ average
    step = matrix @ u @ (within / (np.sqrt(values) + 1e-2) ** 3)
    tail = (average - matrix @ u @ (within / values)) / np.sqrt(values.min())
    found = steps(opt.GGTOptimizer(0.5, window=2), True, None, count=1)
    np.testing.assert_allclose(found.ravel(), START.ravel() - 0.5 * (step + tail), rtol=2e-3)
    with tf.Graph().as_default(), pytest.raises(NotImplementedError, match="Sparse gradient"):
        steps(opt.GGTOptimizer(), True, ROWS)
