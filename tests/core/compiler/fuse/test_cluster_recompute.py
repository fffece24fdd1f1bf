"""What clusters take in beside their own members, and that results stay the same."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import opdock as tf
from opdock import errors
from opdock.plugin import CLUSTER
from tests.core.compiler import melder

pytestmark = pytest.mark.usefixtures("on_melder")

X = np.array([[-1.5, 0.25, 3.0], [0.5, -0.0, 10.0]], np.float32)
W = np.array([[0.5, 1.5, -1.0], [2.0, 0.125, 0.0], [-0.5, 1.0, 1.0]], np.float32)


def kinds(nodes):
    return {n.op for n in nodes}


def members(node):
    return [op for _, op in node.attrs["members"]]


# ---------------------------------------------------------------- sources
def test_the_gradient_of_a_sum_is_no_array_of_its_own(x, fused):
    loss = tf.reduce_sum(tf.square(x) * 3.0)
    nodes = fused([tf.gradients(loss, x)[0]], {x: X})
    assert "BroadcastTo" not in kinds(nodes)


def test_a_broadcast_is_read_at_its_source(x, fused):
    row = tf.placeholder(tf.float32, [3])
    y = tf.tanh(x) * tf.broadcast_to(row * 2.0, [2, 3])
    nodes = fused([y], {x: X, row: X[0]})
    assert "BroadcastTo" not in kinds(nodes)
    (node,) = melder.clusters(nodes)
    assert sorted(v.shape for v in node.inputs) == [(2, 3), (3,)]


def test_a_broadcast_that_is_asked_for_is_made_too(x, fused):
    row = tf.placeholder(tf.float32, [3])
    wide = tf.broadcast_to(row, [2, 3])
    nodes = fused([tf.tanh(x) * wide + 1.0, wide], {x: X, row: X[0]})
    assert "BroadcastTo" in kinds(nodes)


def test_a_fill_is_a_number(x, fused):
    value = tf.placeholder(tf.float32, [])
    nodes = fused([tf.tanh(x) + tf.fill([2, 3], value) * x], {x: X, value: 3.0})
    assert "Fill" not in kinds(nodes)


@pytest.mark.parametrize("shape", [[1, 3], [1, 1, 3]])
def test_sizes_of_one_in_front_are_no_step(shape, x, clusters):
    row = tf.placeholder(tf.float32, [3])
    big = tf.reshape(x, [1, 2, 3])
    y = tf.exp(big) * tf.reshape(tf.sqrt(tf.matmul(row[None], W))[0], shape)
    found = clusters([y * 2.0], {x: X, row: np.abs(X[0])})
    assert all(v.node.op != "Reshape" or v.shape == (1, 2, 3)
               for n in found for v in n.inputs)  # fmt: skip


def test_a_column_is_no_broadcast_of_a_vector(x, fused):
    column = tf.placeholder(tf.float32, [2])
    fused([tf.exp(x) * tf.reshape(column, [2, 1]) + 1.0], {x: X, column: X[0, :2]})


# ---------------------------------------------------------------- whole parts
def test_a_part_that_one_other_reads_joins_it(x, clusters):
    early = tf.negative(x)
    late = tf.nn.relu(early * tf.matmul(x, W) + 1.0)
    (node,) = clusters([late], {x: X})
    assert members(node)[0] == "Neg"


def test_a_value_that_a_write_waits_for_stays(fused):
    v = tf.Variable(X)
    early = v * 2.0
    with tf.control_dependencies([early]):
        write = v.assign_add(tf.ones_like(X))
    late = tf.tanh(early + tf.matmul(X, W)) * early
    with tf.control_dependencies([write]):
        again = tf.tanh(v.read_value() * 2.0)
    fused([late, again], {}, setup=v.initializer)


def test_what_reads_the_same_array_is_one(x, clusters):
    (node,) = clusters([tf.exp(x * 2.0), tf.tanh(x - 1.0)], {x: X})
    assert len(node.out_dtypes) == 2


# ---------------------------------------------------------------- again
def test_a_cheap_value_is_computed_where_it_is_used(x, clusters):
    centred = x - 1.0
    first = tf.reduce_sum(tf.exp(centred), 1, keepdims=True)
    second = tf.tanh(centred / first)
    found = clusters([first, second], {x: X})
    assert sum("Sub" in members(n) for n in found) == 2
    assert all(len(n.out_dtypes) == 1 for n in found)


def test_a_second_reduction_computes_its_operand(x, fused):
    melder.refused["reduces"] = "one at a time"
    scaled = x * 2.0
    sums = [tf.reduce_sum(scaled, 0), tf.reduce_sum(tf.exp(scaled) * x, 0)]
    nodes = fused(sums, {x: X})
    assert len(melder.clusters(nodes)) == 2
    assert not kinds(nodes) & {"Sum", "Mul", "Exp"}


def test_moments_leave_nothing_whole(x, clusters):
    mean = tf.reduce_mean(x, 0, keepdims=True)
    centred = x - mean
    variance = tf.reduce_mean(tf.square(centred), 0, keepdims=True)
    found = clusters([centred * tf.rsqrt(variance + 0.1) * 3.0 + 1.0], {x: X})
    whole = [v for n in found for v in n.values() if v.shape == (2, 3)]
    assert len(whole) == 1


def test_what_is_read_to_make_a_value_is_made_too(clusters):
    half = tf.placeholder(tf.float16, [2, 3])
    wide = tf.cast(half, tf.float32)
    centred = wide - tf.reduce_mean(wide, 0)
    variance = tf.reduce_mean(tf.square(centred), 0)
    found = clusters([tf.cast(centred * tf.rsqrt(variance + 0.1), tf.float16)], {half: X})
    whole = [v for n in found for v in (*n.inputs, *n.values()) if v.shape == (2, 3)]
    assert {v.dtype for v in whole} == {tf.float16}


def test_a_value_of_which_only_copies_are_read_is_not_stored(clusters):
    """The last pass makes `gap` again, so what the second pass would need for that is not kept."""
    half, other = tf.placeholder(tf.float16, [2, 3]), tf.placeholder(tf.float16, [2, 3])
    wide, also = tf.cast(half, tf.float32), tf.cast(other, tf.float32)
    mean, inner = tf.reduce_mean(wide, 0), tf.reduce_sum(wide * also, 0)
    gap = wide - mean
    variance = tf.reduce_mean(tf.math.squared_difference(wide, mean), 0)
    found = clusters([gap * tf.rsqrt(variance + 0.1) + also * inner], {half: X, other: X[::-1]})
    assert sum(v.shape == (2, 3) for n in found for v in n.values()) == 1


def test_what_only_a_control_waits_for_reads_what_it_reads():
    """A gradient that nobody wants is computed all the same: a tuple of gradients waits for it."""
    data = tf.data.Dataset.from_tensor_slices((X, [1, 2])).repeat().batch(2)
    images, labels = tf.data.make_one_shot_iterator(data).get_next()
    weights = tf.Variable(tf.ones([3, 1]))
    loss = tf.losses.mean_squared_error(labels[:, None], tf.matmul(images, weights) + 1.0)
    step = tf.train.GradientDescentOptimizer(0.0).minimize(loss)
    expected = np.mean((np.array([[1], [2]]) - X.sum(1, keepdims=True) - 1) ** 2)
    with tf.Session() as session:
        session.run(weights.initializer)
        np.testing.assert_allclose(session.run([step, loss])[1], expected, rtol=1e-6)


def test_members_take_over_with_what_was_absorbed(x, monkeypatch):
    row = tf.placeholder(tf.float32, [3])
    centred = x - tf.broadcast_to(row, [2, 3])
    y = tf.tanh(centred / tf.reduce_sum(tf.exp(centred), 1, keepdims=True)) + centred
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "fuse,cluster")
    with tf.Session() as session:
        want = session.run(y, {x: X, row: X[0]})
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "fuse")
    melder.decline(CLUSTER)
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(y, {x: X, row: X[0]}), want)
        np.testing.assert_array_equal(session.run(y, {x: X, row: X[0]}), want)


# ---------------------------------------------------------------- properties
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["sub", "mul", "exp", "mean", "matmul", "spread", "fill", "lead", "grad"]),
        st.integers(0, 30), st.integers(0, 30),
    ),
    min_size=2, max_size=14,
)  # fmt: skip


def _built(x, steps):
    values = [x]
    for kind, i, j in steps:
        a, b = values[i % len(values)], values[j % len(values)]
        if kind == "sub":
            values.append(a - b * 0.5)
        elif kind == "mul":
            values.append(a * b)
        elif kind == "exp":
            values.append(tf.tanh(a))
        elif kind == "mean":
            values.append(a - tf.reduce_mean(b, j % 2, keepdims=True))
        elif kind == "matmul":
            values.append(tf.tanh(tf.matmul(a, W)))
        elif kind == "spread":
            values.append(a + tf.broadcast_to(tf.reduce_max(b, 0), [2, 3]))
        elif kind == "fill":
            values.append(a * tf.fill([2, 3], tf.reduce_min(b)))
        elif kind == "lead":
            values.append(a + tf.reshape(tf.reduce_sum(b, 0), [1, 3]))
        else:
            values.append(tf.gradients(tf.reduce_sum(a * b), x)[0])
    return [values[-1], values[len(values) // 2]]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(_STEPS)
def test_any_graph_gives_the_same_with_and_without(meld, steps):
    with tf.Graph().as_default(), tf.device(meld):
        x = tf.placeholder(tf.float32, [2, 3])
        fetches = _built(x, steps)
        results = []
        for off in (-1, 0):
            options = tf.OptimizerOptions(opt_level=off)
            config = tf.ConfigProto(graph_options=tf.GraphOptions(optimizer_options=options))
            with tf.Session(config=config) as session:
                results.append(session.run(fetches, {x: X * 0.25}))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


# ---------------------------------------------------------------- waiting
def test_gradients_of_one_op_do_not_wait_for_each_other(fused):
    w, b = tf.Variable(W), tf.Variable(X[0])
    loss = tf.reduce_sum(tf.tanh(tf.matmul(tf.constant(X), w) + b))
    step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    with tf.control_dependencies([step]):
        after = [w.read_value() + 0.0, b.read_value() + 0.0]
    nodes = fused(after, {}, setup=tf.global_variables_initializer())
    assert not any(n.op == "Identity" and n.control and "gradients" in n.name for n in nodes)


def test_the_collector_is_on_again_after_a_failure(x):
    assert gc.isenabled()
    with tf.device("/device:NONE:0"):
        nowhere = tf.exp(x)
    with tf.Session() as session, pytest.raises(errors.InvalidArgumentError):
        session.run(nowhere, {x: X})
    assert gc.isenabled()
