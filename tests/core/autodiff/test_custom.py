"""Gradients that users bring: custom_gradient, RegisterGradient, overrides."""

from __future__ import annotations

import uuid

import numpy as np
import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def value(what, feed=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(what, feed)


def test_custom_gradient():
    @tf.custom_gradient
    def clipped(x):
        return x * x, lambda dy: tf.clip_by_value(dy * 2.0 * x, -1.0, 1.0)

    x = tf.constant([0.1, 5.0])
    y = clipped(x)
    got = value([y, tf.gradients(y, x)[0]])
    np.testing.assert_allclose(got[0], [0.01, 25], rtol=1e-6)
    np.testing.assert_allclose(got[1], [0.2, 1], rtol=1e-6)


def test_several_inputs_and_outputs():
    @tf.custom_gradient
    def both(a, b):
        return (a + b, a * b), lambda da, db: (da * 10.0, db * 100.0)

    a, b = tf.constant(2.0), tf.constant(3.0)
    total, product = both(a, b)
    assert value([total, product]) == [5, 6]
    assert value(tf.gradients([total, product], [a, b])) == [10, 100]


def test_with_variables():
    @tf.custom_gradient
    def scaled(x):
        w = tf.get_variable("w", initializer=3.0, use_resource=True)

        def grad(dy, variables=None):
            assert [v.op.name for v in variables] == ["w"]
            return dy * 7.0, [dy * 11.0]

        return x * w, grad

    x = tf.constant(2.0)
    with tf.variable_scope(tf.get_variable_scope(), use_resource=True):
        y = scaled(x)
    (w,) = tf.trainable_variables()
    assert value([y, *tf.gradients(y, [x, w])]) == [6, 7, 11]


def test_second_order():
    @tf.custom_gradient
    def cube(x):
        return x**3.0, lambda dy: dy * 3.0 * x**2.0

    x = tf.constant(2.0)
    (g,) = tf.gradients(cube(x), x)
    np.testing.assert_allclose(value([g, tf.gradients(g, x)[0]]), [12, 12], rtol=1e-6)


def test_register_gradient_and_override():
    name = "Custom" + uuid.uuid4().hex

    @tf.RegisterGradient(name)
    def _(op, grad):
        assert op.type == "Square"
        return grad * 100.0

    x = tf.constant(3.0)
    with tf.get_default_graph().gradient_override_map({"Square": name}):
        y = tf.square(x)
        z = tf.exp(x)
    w = tf.square(x)
    assert value(tf.gradients(y, x)) == [100]
    assert value(tf.gradients(w, x)) == [6]
    np.testing.assert_allclose(value(tf.gradients(z, x))[0], np.exp(3), rtol=1e-6)
    with pytest.raises(KeyError, match="Registering two gradients"):
        tf.RegisterGradient(name)(lambda op, grad: grad)


def test_not_differentiable_ops():
    x = tf.constant([1.0, 2.0])
    assert tf.gradients(tf.cast(tf.argmax(x), tf.float32), x) == [None]
    with pytest.raises(TypeError):
        tf.RegisterGradient(3)
    with pytest.raises((TypeError, KeyError, ValueError)):
        tf.NotDifferentiable(3)


def test_a_gradient_of_a_wrong_shape_or_count_is_told():
    wrong = "Wrong" + uuid.uuid4().hex
    tf.RegisterGradient(wrong)(lambda op, grad: tf.zeros([5]))
    several = "Several" + uuid.uuid4().hex
    tf.RegisterGradient(several)(lambda op, grad: [grad, grad])
    x = tf.constant([1.0, 2.0])
    with tf.get_default_graph().gradient_override_map({"Square": wrong, "Exp": several}):
        y, z = tf.square(x), tf.exp(x)
    with pytest.raises(ValueError, match="Incompatible shapes between op input and calculated"):
        tf.gradients(y, x)
    with pytest.raises(ValueError, match="2 gradients|[Nn]um"):
        tf.gradients(z, x)


def test_gradients_may_come_with_an_empty_list_for_variables():
    @tf.custom_gradient
    def plus(x, y):
        return x + y, lambda dy, variables=(): ([2 * dy, 3 * dy], list(variables))

    x, y = tf.constant(1.0), tf.constant(2.0)
    assert value(tf.gradients(plus(x, y), [x, y])) == [2.0, 3.0]


def test_the_function_gets_the_tensors_themselves():
    seen = []

    @tf.custom_gradient
    def same(x):
        seen.append(x)
        return tf.identity(x), lambda dy: dy

    x = tf.constant(1.0)
    same(x)
    assert seen[0] is x


def test_results_may_be_nested():
    @tf.custom_gradient
    def nested(x):
        parts = {"twice": x * 2.0, "more": [tf.cast(x, tf.int32), x * 3.0]}
        # In the order of `tf.nest.flatten`: keys are sorted.
        return parts, lambda whole, triple, twice: triple * 10.0 + twice * 100.0

    x = tf.constant(1.5)
    found = nested(x)
    slope = tf.gradients([found["twice"], found["more"][1]], x)[0]
    assert value([found, slope]) == [{"twice": 3.0, "more": [1, 4.5]}, 110.0]
