"""Arithmetic, division, and sums: public functions, errors, and what gradients cost."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def test_node_types_and_default_names():
    x, y = tf.constant([4.0]), tf.constant([2.0])
    made = {
        "Add": tf.add(x, y), "Sub": tf.subtract(x, y), "Mul": tf.multiply(x, y),
        "RealDiv": tf.realdiv(x, y), "FloorDiv": tf.floor_div(x, y), "FloorMod": tf.mod(x, y),
        "Pow": tf.pow(x, y), "Maximum": tf.maximum(x, y), "Minimum": tf.minimum(x, y),
        "SquaredDifference": tf.squared_difference(x, y),
    }  # fmt: skip
    for kind, tensor in made.items():
        assert (tensor.op.type, tensor.op.name) == (kind, kind)
    assert tf.truediv(x, y).op.name == "truediv"
    # Names differ by more than case, so FloorDiv above has taken "floordiv" too.
    assert tf.floordiv(x, y).op.name == "floordiv_1"
    assert tf.div(x, y).op.name == "div" and tf.div_no_nan(x, y).op.name == "div_no_nan"
    assert tf.divide(x, y, name="ratio").op.name == "ratio"


def test_div_of_integers_floors_and_of_floats_does_not():
    assert run(tf.div(-7, 2)) == -4 and tf.div(-7, 2).op.type == "FloorDiv"
    assert run(tf.div(-7.0, 2.0)) == -3.5
    assert run(tf.truncatediv(-7, 2)) == -3 and run(tf.truncatemod(-7, 2)) == -1
    assert tf.divide(7, 2) == 3.5


def test_division_by_zero():
    zero = tf.placeholder(tf.int32)
    for quotient in (1 // zero, 1 % zero, tf.truncatediv(1, zero)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Integer division by zero"):
            run(quotient, {zero: 0})
    assert run(tf.div_no_nan([1.0, 2.0], [0.0, 4.0])).tolist() == [0.0, 0.5]
    assert run(tf.math.reciprocal_no_nan([0.0, 4.0])).tolist() == [0.0, 0.25]
    assert run(tf.math.multiply_no_nan([np.inf, 2.0], [0.0, 4.0])).tolist() == [0.0, 8.0]


def test_negative_powers_of_integers():
    power = tf.placeholder(tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="negative integer powers"):
        run(tf.pow(2, power), {power: -1})
    assert run(tf.pow(2, power), {power: 10}) == 1024


def test_add_n():
    a, b = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    assert run(tf.add_n([a, b, a])).tolist() == [5.0, 8.0]
    assert tf.add_n([a]) is a and tf.add_n([a], name="only").op.name == "only"
    for bad in ([], a, [1.0, "x"]):
        with pytest.raises((ValueError, TypeError)):
            tf.add_n(bad)
    with pytest.raises(ValueError, match="must be equal"):
        tf.add_n([tf.zeros([2]), tf.zeros([3])])
    rows = tf.IndexedSlices(tf.constant([[5.0]]), tf.constant([1]), tf.constant([2, 1]))
    assert run(tf.add_n([rows])).tolist() == [[0.0], [5.0]]


def test_accumulate_n():
    a = tf.placeholder(tf.float32, [None, 2])
    total = tf.accumulate_n([a, a], shape=[3, 2], tensor_dtype=tf.float32)
    assert total.shape.as_list() == [3, 2]
    assert run(total, {a: np.ones((3, 2))}).tolist() == [[2, 2]] * 3
    with pytest.raises(TypeError, match="tensor_dtype is int32"):
        tf.accumulate_n([a, a], tensor_dtype=tf.int32)
    with pytest.raises(ValueError, match="at least one Tensor"):
        tf.accumulate_n([a, tf.constant(1)])


def test_scalar_mul():
    assert run(tf.scalar_mul(2, tf.constant([1.5, 2.0]))).tolist() == [3.0, 4.0]
    slices = tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]))
    assert isinstance(tf.scalar_mul(3.0, slices), tf.IndexedSlices)
    with pytest.raises(ValueError, match="Only scalar multiply works"):
        tf.scalar_mul([1.0, 2.0], tf.constant([1.0]))


def test_polyval():
    x = tf.constant([0.0, 2.0])
    assert run(tf.math.polyval([3.0, 2.0, 1.0], x)).tolist() == [1.0, 17.0]
    assert run(tf.math.polyval([], x)).tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="must be list type"):
        tf.math.polyval((1.0,), x)


@pytest.mark.parametrize(
    ("left", "right", "extra"),
    [
        ([2, 3], [2, 3], []),
        ([2, 3], [], ["Sum"]),
        ([2, 3], [3], ["Sum"]),
        ([2, 3], [2, 1], ["Sum"]),
        ([None, 3], [3], ["Sum"]),
        ([4, 2, 3], [2, 1], ["Sum", "Reshape"]),
        ([None, 3], [None, 3], ["BroadcastGradientArgs"] + ["Shape", "Sum", "Reshape"] * 2),
    ],
)
def test_gradients_of_a_broadcast_add_only_the_nodes_that_shapes_require(graph, left, right, extra):
    x, y = tf.placeholder(tf.float32, left), tf.placeholder(tf.float32, right)
    z = x + y
    seed = tf.placeholder(tf.float32, z.shape)
    before = len(graph.get_operations())
    dx, dy = tf.gradients(z, [x, y], grad_ys=seed)
    made = [o.type for o in graph.get_operations()[before:] if o.type not in ("Const", "Identity")]
    assert sorted(made) == sorted(extra)
    fed = [[2 if d is None else d for d in s] for s in (left, right)]
    feeds = {x: np.zeros(fed[0]), y: np.zeros(fed[1]), seed: np.ones(np.broadcast_shapes(*fed))}
    got = run([dx, dy], feeds)
    assert [list(g.shape) for g in got] == fed


def test_gradients_when_sizes_turn_out_to_be_one():
    x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 3])
    grads = tf.gradients(x * y, [x, y])
    got = run(grads, {x: np.full((1, 3), 2.0), y: np.full((4, 3), 5.0)})
    assert got[0].tolist() == [[20.0] * 3] and got[1].tolist() == [[2.0] * 3] * 4


def test_integers_have_no_gradient():
    x = tf.constant([1, 2])
    assert tf.gradients(x * x, x) == [None]
    assert tf.gradients(tf.floordiv(tf.constant(1.0), 2.0), tf.constant(1.0)) == [None]


def test_the_gradient_of_a_power_at_a_base_that_has_no_logarithm():
    x, y = tf.constant([-2.0, 0.0, 3.0]), tf.constant([2.0, 2.0, 2.0])
    dx, dy = run(tf.gradients(x**y, [x, y]))
    np.testing.assert_allclose(dx, [-4.0, 0.0, 6.0])
    np.testing.assert_allclose(dy, [0.0, 0.0, 9 * np.log(3)], rtol=1e-6)
