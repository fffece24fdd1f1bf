"""What is the same in all turns of a loop, of which backward loops have the right value."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.graph.control.func_graph import FuncGraph

TURNS = 6


@pytest.fixture(autouse=True)
def _fresh():
    with tf.Graph().as_default():
        yield


def _kept(loop):
    """How many lists a loop's turns keep."""
    return sum(t.dtype.base_dtype == tf.variant for t in loop.inputs)


def _loop(result):
    """The loop that a result is of."""
    while result.op.type != "While":
        result = result.op.inputs[0]
    return result.op


def _turned(body, *start):
    return tf.while_loop(
        lambda i, *_: i < TURNS, lambda i, *values: (i + 1, *body(*values)), [0, *start]
    )[1:]


def _run(fetches):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches)


@pytest.mark.parametrize(
    ("resource", "by_x", "by_v"), [(True, 64.0, 288.0), (False, 117_649.0, 35_275.5)]
)
def test_gradients_are_of_the_values_that_the_loop_began_with(resource, by_x, by_v):
    """A reference is what it is when it is read; the numbers are TensorFlow's."""
    v = tf.get_variable("v", initializer=2.0, use_resource=resource)
    x = tf.placeholder_with_default(1.5, ())
    (y,) = _turned(lambda y: (y * v,), x)
    with tf.control_dependencies([y]):
        later = v.assign(7.0)
    with tf.control_dependencies([later]):
        grads = tf.gradients(y, [x, v])
    assert _run([y, *grads, later]) == [96.0, by_x, by_v, 7.0]
    if resource:
        assert _kept(_loop(y)) == 1  # the factors that change


def test_a_variable_that_turns_write_has_a_value_for_each():
    v = tf.get_variable("v", initializer=1.0, use_resource=True)

    def body(y):
        y = y * v.read_value()
        with tf.control_dependencies([y]):
            more = v.assign_add(1.0)
        with tf.control_dependencies([more]):
            return (tf.identity(y),)

    (y,) = _turned(body, tf.placeholder_with_default(1.0, ()))
    (grad,) = tf.gradients(y, [_loop(y).inputs[1]])
    assert _run([y, grad]) == [720.0, 720.0]
    assert _kept(_loop(y)) >= 1


def test_pieces_of_a_variable_are_cut_out_anew():
    rng = np.random.RandomState(1)
    value = rng.randn(4, 12).astype(np.float32) * 0.3
    w = tf.get_variable("w", initializer=value, use_resource=True)
    x = tf.constant(rng.randn(3, 4).astype(np.float32))

    def body(h):
        a, b, c = tf.split(w, 3, 1)
        flat = tf.reshape(tf.transpose(w[:, 2:6]), [4, 4])
        h = tf.tanh(tf.matmul(h, a) + tf.matmul(h, b) * tf.matmul(h, tf.concat([c, flat], 0)[2:6]))
        return (h,)

    (h,) = _turned(body, x)
    (grad,) = tf.gradients(h, w)
    lists = _kept(_loop(h))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run(grad)
        for at in [(0, 0), (1, 3), (2, 5), (3, 11), (0, 8)]:
            ends = []
            for sign in (1, -1):
                moved = value.copy()
                moved[at] += sign * 1e-2
                w.load(moved, session)
                ends.append(session.run(h).astype(np.float64).sum())
            assert found[at] == pytest.approx((ends[0] - ends[1]) / 2e-2, rel=2e-2, abs=2e-3)
    # Of each turn its state, what is multiplied and the hyperbolic tangent are kept, no weights.
    kept = [t for t in _loop(h).inputs if t.dtype.base_dtype == tf.variant]
    assert len(kept) == lists
    body_ = _loop(h).get_attr("body")
    assert isinstance(body_, FuncGraph)
    pushed = [op.inputs[1] for op in body_.get_operations() if op.type == "TensorListPushBack"]
    assert {tuple(t.shape.as_list()) for t in pushed} <= {(3, 4), ()}


def test_loops_in_loops():
    w = tf.get_variable("w", initializer=np.eye(2, dtype=np.float32) * 0.5, use_resource=True)

    def outer(h):
        (h,) = _turned(lambda h: (tf.matmul(h, w[:, ::-1]),), h)
        return (h + tf.reduce_sum(w),)

    (h,) = _turned(outer, tf.ones((1, 2)))
    (grad,) = tf.gradients(h, w)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, ends = session.run(grad), []
        for sign in (1, -1):
            w.load(np.eye(2) * 0.5 + sign * np.array([[1e-2, 0], [0, 0]]), session)
            ends.append(session.run(h).sum())
        assert found[0, 0] == pytest.approx((ends[0] - ends[1]) / 2e-2, rel=1e-2)
