"""`tf.gradients` inside a loop or branch, with respect to tensors and variables outside of it."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def run(fetch, feed=None):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(fetch, feed)


@pytest.mark.parametrize("use_resource", [False, True])
def test_reaches_a_variable_through_ops_outside(use_resource):
    w = tf.Variable([1.0, 2.0], use_resource=use_resource)
    z = w * 2.0

    def body(i, total):
        return i + 1, total + tf.gradients(tf.reduce_sum(z * z * w), w)[0]

    _, total = tf.while_loop(lambda i, _: i < 3, body, [0, tf.zeros([2])])
    np.testing.assert_allclose(run(total), [3 * 12.0, 3 * 48.0])


def test_adds_up_what_is_used_inside_and_outside():
    x = tf.placeholder(tf.float32, [])
    y = tf.square(x)
    grad = tf.cond(x > 0, lambda: tf.gradients(y * x + x, [x, y])[0], lambda: 0.0)
    assert run(grad, {x: 3.0}) == 28.0
    assert run(grad, {x: -3.0}) == 0.0


def test_of_outer_tensors_alone_after_their_capture():
    x = tf.constant(3.0)
    y = x * x

    def branch():
        used = x + 1.0
        return tf.gradients(y, x)[0] + 0.0 * used

    assert run(tf.cond(tf.constant(True), branch, lambda: x)) == 6.0


def test_through_two_bodies():
    x = tf.constant([1.0, 2.0])
    y = x * x

    def inner():
        return tf.gradients(tf.reduce_sum(y * x), x)[0]

    out = tf.map_fn(lambda k: k * tf.cond(k > 1.0, inner, lambda: x), tf.constant([1.0, 2.0]))
    np.testing.assert_allclose(run(out), [[1.0, 2.0], [6.0, 24.0]])


def test_stop_gradients_outside():
    x = tf.constant(2.0)
    y = x * x
    grad = tf.cond(
        tf.constant(True),
        lambda: tf.gradients(y * x, x, stop_gradients=[y])[0],
        lambda: x,
    )
    assert run(grad) == 4.0


def test_learning_to_learn():
    """The gradient of a step of descent made inside `map_fn`, against the closed form."""
    w = tf.Variable([1.0, 2.0])
    tasks = tf.constant([[1.0, 1.0], [2.0, 0.0]])

    def after_one_step(a):
        grad = tf.gradients(tf.reduce_sum(tf.square(w * a)), w)[0]
        return tf.reduce_sum(tf.square((w - 0.1 * grad) * a))

    meta = tf.gradients(tf.reduce_sum(tf.map_fn(after_one_step, tasks)), w)[0]
    a = np.array([[1.0, 1.0], [2.0, 0.0]])
    w0 = np.array([1.0, 2.0])
    expected = (2 * w0 * (1 - 0.2 * a**2) ** 2 * a**2).sum(axis=0)
    np.testing.assert_allclose(run(meta), expected, rtol=1e-5)


def test_a_whole_training_loop_in_the_graph():
    v = tf.Variable(5.0, use_resource=True)
    optimizer = tf.train.GradientDescentOptimizer(0.1)

    def body(i):
        with tf.control_dependencies([optimizer.minimize(tf.square(v))]):
            return i + 1

    loop = tf.while_loop(lambda i: i < 10, body, [0])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(loop)
        assert sess.run(v) == pytest.approx(5 * 0.8**10)


@pytest.mark.parametrize("shape", [[3], [None], None])
def test_hessians_of_any_static_shape(shape):
    x = tf.placeholder(tf.float32, shape)
    (hessian,) = tf.hessians(tf.reduce_sum(x**3) + x[0] * x[1], x)
    expected = np.diag([6.0, 12.0, 18.0])
    expected[0, 1] = expected[1, 0] = 1.0
    np.testing.assert_allclose(run(hessian, {x: [1.0, 2.0, 3.0]}), expected)
    assert hessian.shape.as_list() == [3, 3] if shape == [3] else True


def test_hessians_of_a_matrix_and_a_scalar():
    m, s = tf.Variable([[1.0, 2.0]]), tf.Variable(3.0, use_resource=True)
    y = tf.reduce_sum(m * m) * s * s
    of_m, of_s = tf.hessians(y, [m, s])
    assert of_m.shape == (1, 2, 1, 2)
    of_m, of_s = run([of_m, of_s])
    np.testing.assert_allclose(of_m.reshape(2, 2), np.eye(2) * 18)
    assert of_s == 10.0


def test_hessians_of_a_linear_function_are_refused_as_in_tensorflow():
    x = tf.constant([1.0, 2.0])
    with pytest.raises(ValueError, match="None values not supported"):
        tf.hessians(tf.reduce_sum(x), x)


def test_hessians_say_what_is_unconnected():
    x = tf.constant([1.0, 2.0], name="lonely")
    with pytest.raises(ValueError, match="lonely"):
        tf.hessians(tf.constant(1.0), x)


# ---------------------------------------------------------------- where a loop starts
def refused(body, start):
    with pytest.raises(ValueError, match="inside while loop with respect to op 'x'.*initial value"):
        tf.while_loop(lambda i, v: i < 3, body, [0, start])


def test_no_gradient_flows_to_what_a_loop_starts_from():
    x = tf.placeholder(tf.float32, (), name="x")
    refused(lambda i, v: (i + 1, tf.gradients(v * 2, x)[0]), x + 1)
    # A part of the gradient would be worse than none.
    refused(lambda i, v: (i + 1, tf.gradients(v * 2 + x, x)[0]), x + 1)
    y = x * 2
    refused(lambda i, v: (i + 1, tf.gradients(v * y, x)[0]), y * y)


def test_a_loop_in_a_loop_may_not_ask_for_the_outer_start():
    x = tf.placeholder(tf.float32, (), name="x")

    def body(i, v):
        inner = lambda j, w: (j + 1, tf.gradients(w * v, x)[0])
        return i + 1, tf.while_loop(lambda j, w: j < 2, inner, [0, 1.0])[1]

    refused(body, x * 3)


def test_what_does_not_come_from_the_start_has_its_gradient():
    x = tf.placeholder(tf.float32, (), name="x")
    own = tf.while_loop(
        lambda i, v: i < 3, lambda i, v: (i + 1, v - 0.25 * tf.gradients(v * v, v)[0]), [0, x * 1.0]
    )[1]
    outer = tf.while_loop(
        lambda i, v: i < 3,
        lambda i, v: (i + 1, v + tf.gradients(tf.stop_gradient(v) * x * x, x)[0]), [0, x * 1.0],
    )[1]  # fmt: skip
    with tf.Session() as session:
        assert session.run(own, {x: 8.0}) == 1.0
        assert session.run(outer, {x: 1.0}) == 27.0


def cubes(x):
    """A loop over an array: the cube of each number."""
    return tf.map_fn(lambda row: row**3, x)


def test_each_turn_has_gradients_of_its_own_of_an_array_from_outside():
    x = tf.constant([1.0, 2.0, 3.0])
    y = cubes(x)
    jacobian = tf.map_fn(lambda i: tf.gradients(y[i], x)[0], tf.range(3), dtype=tf.float32)
    # The loop of the next derivative goes back through the turns of this one.
    flat = tf.reshape(jacobian, [-1])
    second = tf.map_fn(lambda i: tf.gradients(flat[i], x)[0], tf.range(9), dtype=tf.float32)
    (slope,) = tf.gradients(y, x)
    hessian = tf.map_fn(lambda i: tf.gradients(slope[i], x)[0], tf.range(3), dtype=tf.float32)
    with tf.Session() as session:
        found, again, of_slope = session.run([jacobian, second, hessian])
    np.testing.assert_allclose(found, np.diag([3.0, 12.0, 27.0]))
    np.testing.assert_allclose(of_slope, np.diag([6.0, 12.0, 18.0]))
    want = np.zeros([3, 3, 3])
    want[range(3), range(3), range(3)] = [6.0, 12.0, 18.0]
    np.testing.assert_allclose(again, want.reshape([9, 3]))


def test_each_turn_collects_all_that_its_loop_reads_of_an_array_from_outside():
    x = tf.constant([1.0, 2.0, 3.0])
    array = tf.TensorArray(tf.float32, 3, clear_after_read=False).unstack(x)

    def of(power):
        _, total = tf.while_loop(
            lambda j, _: j < 3, lambda j, s: (j + 1, s + array.read(j) * array.read(2) ** power),
            [0, 0.0],
        )  # fmt: skip
        return tf.gradients(total, x)[0]

    rows = tf.map_fn(of, tf.constant([1.0, 2.0]))
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(rows), [[3, 3, 9], [9, 9, 45]])


def test_a_function_that_is_called_again_begins_its_gradients_anew():
    x = tf.constant([1.0, 2.0])
    y = cubes(x)

    @tf.function
    def slope(i):
        return tf.gradients(y[i], x)[0]

    with tf.Session() as session:
        assert np.array_equal(session.run([slope(0), slope(1)]), [[3, 0], [0, 12]])


@pytest.mark.parametrize("traced", [False, True])
def test_jacobians_of_loops(traced):
    def nested(x):
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with tf.GradientTape(persistent=True) as inner:
                inner.watch(x)
                y = cubes(x)
            first = inner.jacobian(y, x)
        return first, outer.jacobian(first, x)

    call = tf.function(nested) if traced else nested
    with tf.Session() as session:
        first, second = session.run(call(tf.constant([1.0, 2.0])))
    np.testing.assert_allclose(first, [[3, 0], [0, 12]])
    np.testing.assert_allclose(second, [[[6, 0], [0, 0]], [[0, 0], [0, 12]]])
