"""`tf.gradients`: values, arguments, what is None, names, second order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opdock as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def value(what, feed=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(what, feed)


def test_of_a_sum_of_ys():
    x = tf.constant([1.0, 2.0])
    (g,) = tf.gradients([x * 2.0, x * x], x)
    assert value(g).tolist() == [4, 6]


def test_grad_ys_weigh():
    x = tf.constant([1.0, 2.0])
    (g,) = tf.gradients([x * 2.0, x * x], [x], grad_ys=[tf.constant([10.0, 0.0]), None])
    assert value(g).tolist() == [22, 4]
    (h,) = tf.gradients(x * x, x, grad_ys=np.array([1.0, 5.0], np.float32))
    assert value(h).tolist() == [2, 20]


@pytest.mark.parametrize(
    ("grad_ys", "error"),
    [([1, 2], ValueError), (tf.constant, TypeError), ([np.zeros(3, np.float32)], ValueError)],
)
def test_wrong_grad_ys(grad_ys, error):
    x = tf.constant([1.0, 2.0])
    with pytest.raises((error, TypeError, ValueError)):
        tf.gradients(x * x, x, grad_ys=grad_ys)


def test_integers_and_unconnected_are_none():
    x, y, n = tf.constant(1.0), tf.constant(2.0), tf.constant(3)
    assert tf.gradients(x * x, [y, n]) == [None, None]
    assert tf.gradients(n * 2, n) == [None]
    assert tf.gradients(tf.cast(tf.cast(x, tf.int32), tf.float32), x) == [None]
    assert tf.gradients(tf.round(x), x) == [None]
    zero = tf.gradients(x * x, [y], unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert value(zero) == [0]
    assert value(tf.gradients(x * x, [y], unconnected_gradients="zero")) == [0]
    with pytest.raises(ValueError):
        tf.gradients(x, y, unconnected_gradients="maybe")


def test_y_is_x():
    x = tf.constant([1.0, 2.0])
    assert value(tf.gradients(x, x))[0].tolist() == [1, 1]
    assert value(tf.gradients([x, x * 3.0], x))[0].tolist() == [4, 4]


def test_an_x_in_the_middle_cuts_nothing():
    x = tf.constant(3.0)
    y = x * x
    z = y * y
    assert value(tf.gradients(z, [x, y])) == [108, 18]


def test_stop_gradients_and_stop_gradient():
    a = tf.constant(2.0)
    b = a * 3.0
    assert value(tf.gradients(a + b, [a, b], stop_gradients=[a, b])) == [1, 1]
    assert value(tf.gradients(a + b, [a, b])) == [4, 1]
    assert tf.gradients(tf.stop_gradient(a) * 2.0, a) == [None]
    assert value(tf.gradients(tf.stop_gradient(b) * b, a)) == [18]


def test_names(graph):
    x = tf.constant(1.0, name="x")
    y = tf.square(x, name="y")
    tf.gradients(y, x)
    tf.gradients(y, x)
    tf.gradients(y, x, name="mine")
    names = [o.name for o in graph.get_operations()]
    for scope in ("gradients", "gradients_1", "mine"):
        assert any(n.startswith(f"{scope}/y_grad/") for n in names)
        assert f"{scope}/Shape" in names
        assert f"{scope}/grad_ys_0" in names
        assert f"{scope}/Fill" in names


def test_gather_gives_slices():
    v = tf.Variable([1.0, 2.0, 3.0])
    (g,) = tf.gradients(tf.gather(v, [2, 0, 2]) * [1.0, 10.0, 100.0], v)
    assert isinstance(g, tf.IndexedSlices)
    got = value(g)
    assert got.indices.tolist() == [2, 0, 2]
    assert got.values.tolist() == [1, 10, 100]
    assert value(tf.convert_to_tensor(g)).tolist() == [10, 0, 101]


def test_slices_from_two_ways_lie_side_by_side_and_with_dense_become_dense():
    v = tf.Variable([1.0, 2.0, 3.0])
    (g,) = tf.gradients([tf.gather(v, [0]), tf.gather(v, [2])], v)
    assert isinstance(g, tf.IndexedSlices)
    assert sorted(value(g).indices.tolist()) == [0, 2]
    (h,) = tf.gradients([tf.gather(v, [0]), v * 2.0], v)
    assert value(h).tolist() == [3, 2, 2]
    (k,) = tf.gradients([tf.gather(v, [0]), tf.gather(v, tf.constant([1], tf.int64))], v)
    assert value(tf.convert_to_tensor(k)).tolist() == [1, 1, 0]


@pytest.mark.parametrize("method", [None, 0, 1, 2])
def test_aggregation_methods_agree(method):
    x = tf.constant([1.0, 2.0])
    y = x * x + tf.sin(x) + x * 3.0 + tf.exp(x)
    (g,) = tf.gradients(y, x, aggregation_method=method)
    point = np.array([1, 2], np.float32)
    np.testing.assert_allclose(value(g), 2 * point + np.cos(point) + 3 + np.exp(point), rtol=1e-6)
    with pytest.raises(ValueError, match="aggregation_method"):
        tf.gradients(y, x, aggregation_method=17)


@pytest.mark.parametrize("resource", [False, True])
def test_of_variables(resource):
    v = tf.Variable([1.0, 2.0], use_resource=resource)
    w = tf.Variable([5.0], use_resource=resource)
    y = v * v + tf.square(v.read_value())
    assert value(tf.gradients(y, [v, w])[0]).tolist() == [4, 8]
    assert tf.gradients(y, w) == [None]


def test_gated_gradients():
    x, y = tf.constant(2.0), tf.constant(3.0)
    assert value(tf.gradients(x * y, [x, y], gate_gradients=True)) == [3, 2]


def test_gated_gradients_have_tensorflows_names():
    x, rows = tf.constant(3.0), tf.constant([[1.0], [2.0]])
    product = tf.multiply(x, tf.reduce_sum(tf.gather(rows, [1])), name="product")
    given = tf.gradients(product, [x, rows], name="gradients", gate_gradients=True)
    assert given[0].name == "gradients/product_grad/tuple/control_dependency:0"
    gate = given[0].op.control_inputs
    assert [op.name for op in gate] == ["gradients/product_grad/tuple/group_deps"]
    assert len(gate[0].control_inputs) == 2
    assert isinstance(given[1], tf.IndexedSlices)
    alone = tf.gradients(tf.square(x), x, name="alone", gate_gradients=True)
    assert "tuple" not in alone[0].name


def test_colocation(graph):
    with tf.device("/cpu:0"):
        x = tf.placeholder(tf.float32, [2], name="x")
        y = tf.exp(x, name="y")
    tf.gradients(y, x, colocate_gradients_with_ops=True)
    ops = [o for o in graph.get_operations() if o.name.startswith("gradients/y_grad/")]
    assert ops
    assert all(b"loc:@y" in o.colocation_groups() for o in ops)


def test_second_and_third_order():
    x = tf.placeholder(tf.float32, [])
    y = x**4.0
    order = [y]
    for _ in range(3):
        order.append(tf.gradients(order[-1], x)[0])
    np.testing.assert_allclose(value(order, {x: 2.0}), [16, 32, 48, 48], rtol=1e-6)


def test_hessians():
    x = tf.placeholder(tf.float32, [2])
    y = x[0] ** 2.0 * x[1] + tf.reduce_sum(x * x)
    (h,) = tf.hessians(y, x)
    np.testing.assert_allclose(value(h, {x: [3.0, 5.0]}), [[12, 6], [6, 2]], rtol=1e-6)


def test_an_op_without_gradient_names_itself():
    x = tf.constant([1.0, 2.0])
    y = tf.raw_ops.Exp(x=x)
    y.op.attrs["_gradient_op_type"] = "NobodyRegisteredThis"
    with pytest.raises(LookupError, match="Exp|NobodyRegisteredThis"):
        tf.gradients(y, x)


def test_complex_needs_grad_ys():
    x = tf.constant(1 + 1j)
    with pytest.raises(TypeError, match="complex"):
        tf.gradients(x * x, x)
    assert value(tf.gradients(x * x, x, grad_ys=tf.constant(1 + 0j, tf.complex128))) == [2 - 2j]


def test_ys_that_are_variables_and_numbers():
    v = tf.Variable(2.0)
    assert value(tf.gradients(v, v)) == [1]
    with pytest.raises((TypeError, ValueError)):
        tf.gradients(v * 2.0, None)


UNARY = [tf.sin, tf.exp, tf.tanh, tf.square, tf.nn.sigmoid, lambda t: t * 0.5, tf.nn.softplus]
BINARY = [tf.add, tf.subtract, tf.multiply, lambda a, b: a * 0.3 + tf.cos(b)]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99)), min_size=1,
                max_size=8), st.integers(0, 999))  # fmt: skip
def test_random_graphs_agree_with_differences(program, seed):
    point = np.random.default_rng(seed).uniform(-1, 1, 3)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float64, [3])
        made = [x]
        for op, a, b in program:
            left, right = made[-1 - a % len(made)], made[-1 - b % len(made)]
            new = UNARY[op % len(UNARY)](left) if op % 2 else BINARY[op % 4](left, right)
            made.append(tf.tanh(new))  # bounded, so that differences mean something
        y = tf.reduce_sum(made[-1] * [1.0, 2.0, 3.0])
        (g,) = tf.gradients(y, x, unconnected_gradients="zero")
        with tf.Session() as session:
            got = session.run(g, {x: point})
            for i in range(3):
                step = np.zeros(3)
                step[i] = 1e-5
                high, low = (session.run(y, {x: point + s * step}) for s in (1, -1))
                slope = (high - low) / 2e-5
                assert abs(slope - got[i]) < 1e-5 * max(1, abs(slope))


def test_edges_may_go_against_the_order_of_making():
    """As in a graph that was edited: an op may take the result of one that was made later."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(3.0)
        first = tf.identity(x)
        last = tf.square(first)
        last.op._update_input(0, tf.exp(x))
        (grad,) = tf.gradients(last, x)
        assert session.run(grad) == pytest.approx(2 * np.exp(6.0))
