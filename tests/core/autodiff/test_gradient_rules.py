"""Where gradients go and what they may be: slices, shapes, devices, declarations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.eager.modes import eager_mode


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def run(*fetches: Any) -> list[Any]:
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(list(fetches))


def test_grad_ys_may_have_another_shape() -> None:
    x = tf.constant([1.0, 2.0])
    (reshaped,) = tf.gradients(tf.reduce_sum(x * 3), x, grad_ys=tf.constant([[5.0]]))
    assert run(reshaped)[0].tolist() == [15.0, 15.0]
    with pytest.raises(ValueError, match="Incompatible shapes between op input and calculated"):
        tf.gradients(tf.identity(x), x, grad_ys=tf.constant([[5.0]]))
    integers = tf.gradients(tf.identity(x), x, grad_ys=tf.constant([1, 2]))
    assert integers[0].dtype is tf.int32
    with pytest.raises(TypeError, match="complex64 generated for real tensor"):
        tf.gradients(x, x, grad_ys=tf.constant([1j, 1j], tf.complex64))


def test_the_gradient_of_a_gather_of_something_computed_is_dense() -> None:
    a, b = tf.constant([[1.0], [2.0], [3.0]]), tf.constant([[0.0], [0.0], [0.0]])
    rows = tf.gather(tf.tanh((a + b) * 2.0), [0, 2, 2])
    slices = tf.gradients(tf.reduce_sum(tf.gather(-a, [0, 2, 2])), a)[0]
    assert isinstance(slices, tf.IndexedSlices)
    dense = tf.gradients(rows, a)[0]
    assert isinstance(dense, tf.Tensor)
    slope = 2 * (1 - np.tanh([2.0, 6.0]) ** 2)
    np.testing.assert_allclose(run(dense)[0][:, 0], [slope[0], 0, 2 * slope[1]], atol=1e-6)


def test_contributions_add_up_beside_the_first_of_each_device() -> None:
    with tf.device("/device:CPU:1"):
        w = tf.constant(1.0, name="w")
    with tf.device("/task:1"):
        left = tf.multiply(w, 2.0, name="left")
    with tf.device("/task:2"):
        right = tf.multiply(w, 3.0, name="right")
    total = left + right
    (colocated,) = tf.gradients(total, w, colocate_gradients_with_ops=True)
    assert colocated.op.colocation_groups() == [b"loc:@w"]
    (plain,) = tf.gradients(left + left, left)
    assert plain.op.inputs[0].op.colocation_groups() == plain.op.colocation_groups()


def test_sums_follow_the_order_of_the_forward_inputs() -> None:
    x = tf.constant(1.0)
    first, second = x * 2.0, x * 3.0
    (grad,) = tf.gradients(first + second, x)
    assert [t.op._original_op for t in grad.op.inputs] == [first.op, second.op]


def test_declarations_of_types_that_nobody_registered() -> None:
    tf.NotDifferentiable("NoSuchOpType")
    with tf.get_default_graph().gradient_override_map({"Square": "NoSuchOpType"}):
        y = tf.square(tf.constant(3.0))
    assert tf.gradients(y, y.op.inputs[0]) == [None]
    with pytest.raises(KeyError, match="Registering two gradients with name 'Square'"):
        tf.NotDifferentiable("Square")


def test_unknown_answers_for_the_unconnected() -> None:
    x = tf.constant(1.0)
    with pytest.raises(ValueError, match="Unknown value for unconnected_gradients: 'nonsense'"):
        tf.gradients(x, x, unconnected_gradients="nonsense")


def test_gradients_pass_through_what_has_none() -> None:
    x = tf.get_variable("x", initializer=1.0, use_resource=True)
    z = tf.get_variable("z", initializer=3.0, use_resource=True)
    assert tf.gradients(tf.assign(x, z * z), z) == [None]
    through = tf.grad_pass_through(lambda v: tf.assign(x, v))(z * z)
    assert run(*tf.gradients(through, z)) == [6.0]
    assert tf.gradients(tf.grad_pass_through(lambda v: x * v)(z), x) == [None]


def test_recomputed_gradients() -> None:
    z = tf.get_variable("z", initializer=3.0, use_resource=True)
    x = tf.constant(2.0)
    y = tf.recompute_grad(lambda v: v * v * z)(x)
    assert run(y, *tf.gradients(y, [x, z])) == [12.0, 12.0, 4.0]


def test_recomputed_gradients_of_what_runs_at_once() -> None:
    with eager_mode():
        z = tf.Variable(3.0)
        x = tf.constant(2.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.recompute_grad(lambda v: v * v * z)(x)
        assert [g.numpy() for g in tape.gradient(y, [x, z])] == [12.0, 4.0]


def test_custom_gradients_hear_of_variables_where_operations_run_at_once() -> None:
    @tf.custom_gradient
    def scaled(v: Any) -> Any:
        def grad(g: Any, variables: Any = None) -> Any:
            assert variables == [z]
            return g, [g * 7.0]

        return v * z, grad

    with eager_mode():
        z = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            y = scaled(tf.constant(2.0))
        assert tape.gradient(y, z).numpy() == 7.0


def test_custom_gradients_want_resource_variables() -> None:
    @tf.custom_gradient
    def doubled(x: Any) -> Any:
        v = tf.get_variable("v", initializer=2.0, use_resource=False)
        return x * v, lambda dy, variables=None: (dy, [dy])

    with pytest.raises(TypeError, match="must be `ResourceVariable`s"):
        doubled(tf.constant(1.0))


def test_gradients_start_at_integers_but_do_not_pass_them() -> None:
    n, x = tf.constant(3), tf.constant([1.0, 2.0])
    assert run(*tf.gradients(n, n)) == [1]
    assert tf.gradients(tf.identity(n), n) == [None]
    table = tf.constant([[1, 2], [3, 4]])
    assert tf.gradients(tf.gather(table, [1]), table) == [None]
    assert tf.gradients(tf.cast(tf.cast(x, tf.int32), tf.float32), x) == [None]
