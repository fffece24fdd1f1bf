"""Several reductions in one cluster: which join, which must not, which are declined."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import opdock as tf
from opdock.plugin import CLUSTER
from tests.core.compiler import melder

pytestmark = pytest.mark.usefixtures("on_melder")

X = np.array([[-1.5, 0.25, 3.0], [0.5, -0.0, 1.0]], np.float32)
W = np.array([[0.5, 1.5, -1.0], [2.0, 0.125, 0.0], [-0.5, 1.0, 1.0]], np.float32)
KINDS = (tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min, tf.reduce_prod)


def ops(node):
    return sorted(op for _, op in node.attrs["members"])


def kinds(node):
    return sorted(r.kind for r in node.attrs["reduces"])


def reads(found):
    """How many whole arrays clusters read."""
    return sum(v.shape == (2, 3) for n in found for v in n.inputs)


# ---------------------------------------------------------------- what joins
def test_all_reductions_of_an_array_are_one(x, clusters):
    fetches = [f(x, axis) for f in KINDS for axis in (0, 1, [0, 1])]
    (node,) = clusters(fetches, {x: X})
    assert len(node.attrs["reduces"]) == 15
    assert len(node.inputs) == 1


def test_more_than_a_cluster_may_hold_are_several(x, clusters):
    y = tf.exp(x)
    fetches = [f(y, axis, keepdims=k) for f in KINDS for axis in (0, 1) for k in (False, True)]
    assert [len(n.attrs["reduces"]) for n in clusters(fetches, {x: X})] == [16, 4]


def test_reductions_of_differing_values_and_the_values(x, clusters):
    a = tf.exp(x)
    b = a * 2.0
    (node,) = clusters([tf.reduce_sum(a, 0), tf.reduce_max(b, 1), b, tf.reduce_mean(b)], {x: X})
    assert kinds(node) == ["max", "mean", "sum"]
    assert len(node.out_dtypes) == 4


def test_half_the_sum_of_squares_is_a_sum(x, clusters):
    y = tf.tanh(x)
    (node,) = clusters([tf.nn.l2_loss(y), tf.reduce_sum(y, 0)], {x: X})
    assert ops(node) == ["L2Loss", "Sum", "Tanh"]
    assert len(node.attrs["line"].results) == 2


def test_half_the_sum_of_squares_beside_what_reads_the_same(x, clusters):
    (node,) = clusters([tf.nn.l2_loss(x), tf.reduce_max(x, 1)], {x: X})
    assert ops(node) == ["L2Loss", "Max"]


def test_one_reduction_alone_stays_an_op(x, clusters):
    y = tf.placeholder(tf.float32, [2, 3])
    assert clusters([tf.reduce_sum(x), tf.reduce_sum(y)], {x: X, y: X}) == []


def test_a_reduction_waits_for_a_pass_that_reads_its_array(x, clusters):
    """The sum could run at once; the rest waits for a product."""
    late = tf.tanh(x * tf.matmul(x, W)) * 2.0
    (node,) = clusters([tf.reduce_sum(x, 0), late], {x: X})
    assert "Sum" in ops(node)


def test_what_waits_for_a_reduction_waits_longer(x, clusters):
    total = tf.reshape(tf.reduce_sum(x, 0), [3, 1])
    late = tf.tanh(x * tf.matmul(x, W)) * 2.0
    (node,) = clusters([total, late], {x: X})
    assert "Sum" in ops(node)


def test_a_loss_joins_the_pass_that_makes_its_gradient(x, clusters):
    mean = tf.reduce_mean(x, 0)
    y = x - mean
    loss = tf.reduce_sum(y * tf.sin(x))
    grad = tf.gradients(loss, x)[0]
    found = clusters([loss, grad], {x: X})
    assert reads(found) <= 2


def test_a_small_op_that_waits_for_a_sum_runs_later(x, clusters):
    y = tf.placeholder(tf.float32, [2, 3])
    inner = tf.reduce_sum(y * (x - tf.reduce_mean(x, 0)), 0)
    found = clusters([y * inner - tf.reduce_sum(y, 0) / 4.0], {x: X, y: X[::-1]})
    # The mean is alone; the sums are one pass, and what needs them is another.
    assert reads(found) == 3


def test_sums_of_what_is_cheap_wait_without_it(x, clusters):
    half = tf.placeholder(tf.float16, [2, 3])
    wide = tf.cast(half, tf.float32)
    total = tf.reduce_sum(wide, 0)
    inner = tf.reduce_sum(wide * (x - tf.reduce_mean(x, 0)), 0)
    found = clusters([wide * inner - total / 4.0], {x: X, half: X})
    assert reads(found) == 3
    assert sum(v.shape == (2, 3) for n in found for v in n.values()) == 1


def test_a_sum_whose_operand_a_write_waits_for_runs_before_it(x, clusters):
    v = tf.Variable(X)
    wide = v * 2.0
    total = tf.reduce_sum(wide, 0)
    with tf.control_dependencies([wide]):
        change = tf.assign_add(v, X)
    with tf.control_dependencies([change]):
        late = tf.reduce_max(wide * (x - tf.reduce_mean(x, 0)), 0)
    clusters([total, late], {x: X}, setup=v.initializer)


def test_the_passes_of_batch_norm(x, clusters):
    dy = tf.placeholder(tf.float32, [2, 3])
    scale, offset = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [3])
    mean, variance = tf.nn.moments(x, [0])
    y = tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3)
    loss = tf.reduce_sum(y * dy)
    feeds = {x: X, dy: X[::-1], scale: W[0], offset: W[1]}
    found = clusters([loss, *tf.gradients(loss, [x, scale, offset])], feeds)
    # The mean is an op alone; the moments and sums read both arrays, the rest does once more.
    assert reads(found) == 4
    assert sum(v.shape == (2, 3) for n in found for v in n.values()) == 1


# ---------------------------------------------------------------- what must not
def test_what_needs_a_reduction_is_another_pass(x, clusters):
    mean = tf.reduce_mean(x, 1, keepdims=True)
    found = clusters([tf.reduce_max(x, 0), mean, tf.tanh(x - mean)], {x: X})
    assert ["Sub" in ops(n) for n in found] == [False, True]


def test_a_reduction_whose_result_a_pass_needs_later_does_not_wait_for_it(x, clusters):
    """The way back leads through an op that is in no cluster."""
    row = tf.matmul(tf.reduce_sum(x, 0, keepdims=True), W)
    (node,) = clusters([tf.tanh(x * row) * 2.0, tf.exp(x * row)], {x: X})
    assert "Sum" not in ops(node)


def test_a_way_back_through_another_cluster(x, clusters):
    """Of two that wait for the sum one feeds a product, and the product the last pass."""
    total = tf.reduce_sum(x, 0, keepdims=True)
    side = tf.exp(total) * 2.0
    late = tf.tanh(x * tf.matmul(tf.matmul(x, W), W) + side)
    found = clusters([late * 2.0, side], {x: X})
    assert not any({"Sum", "Tanh"} <= set(ops(n)) for n in found)


@pytest.mark.parametrize("last", [lambda x, row: x * row, lambda x, row: tf.tanh(x * row) * 2.0])
def test_a_way_back_through_a_small_op(x, clusters, last):
    found = clusters([last(x, -tf.reduce_sum(x, 0))], {x: X})
    assert not any({"Sum", "Mul"} <= set(ops(n)) for n in found)


def test_what_moved_takes_no_sum_in(x, clusters):
    """The first sum waits for the second pass, and so does a product that another sum may join."""
    y, row = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.float32, [3])
    inner = tf.reduce_sum(y * (x - tf.reduce_mean(x, 0)), 0)
    product = tf.reduce_sum(y, 0) * row
    found = clusters([y * inner - product, tf.reduce_sum(row)], {x: X, y: X[::-1], row: W[0]})
    assert reads(found) == 3


def test_a_write_between_keeps_its_place(x, clusters):
    v = tf.Variable(X)
    with tf.control_dependencies([tf.reduce_sum(v * 2.0)]):
        change = tf.assign_add(v, X)
    with tf.control_dependencies([change]):
        late = tf.reduce_max(v.read_value() * 2.0)
    clusters([late, tf.reduce_min(x * 2.0)], {x: X}, setup=v.initializer)


# ---------------------------------------------------------------- what is declined
def test_a_backend_that_reduces_once(x, clusters):
    melder.refused["reduces"] = "one at a time"
    a = tf.exp(x)
    found = clusters([tf.reduce_sum(a, 0), tf.reduce_max(a * 2.0, 1), a], {x: X})
    assert all(len(n.attrs["reduces"]) <= 1 for n in found)
    assert any(n.attrs["reduces"] for n in found)


def test_a_backend_that_reduces_nothing_beside_other_results(x, clusters):
    melder.refused["beside"] = "a reduction beside other results"
    found = clusters([tf.exp(x * 2.0), tf.reduce_sum(tf.tanh(x) - 1.0, 0)], {x: X})
    assert sorted(map(ops, found)) == [["Exp", "Mul"], ["Sub", "Sum", "Tanh"]]


def test_only_the_declined_kind_is_left_out(x, clusters, monkeypatch):
    melder.refused["reduce-max"] = "no extremes"
    fetches = [f(tf.exp(x) * 2.0, a) for f in KINDS for a in (0, 1)]
    (node,) = clusters(fetches, {x: X})
    assert kinds(node) == ["mean", "mean", "min", "min", "prod", "prod", "sum", "sum"]
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "fuse")
    with tf.Session() as session:
        rows = session.explain(fetches, {x: X}).rows
    assert any("no extremes" in m for r in rows for m in r.missed)


def test_integers_and_other_types_join_as_well(clusters):
    n = tf.placeholder(tf.int32, [2, 3])
    (node,) = clusters([tf.reduce_sum(n, 0), tf.reduce_max(n)], {n: X.astype(np.int32)})
    assert kinds(node) == ["max", "sum"]


def test_a_cluster_that_gives_up_hands_back_to_its_reductions(x):
    melder.decline(CLUSTER)
    fetches = [f(tf.exp(x) * 0.5, a) for f in KINDS for a in (0, 1)] + [tf.reduce_sum(x)]
    with tf.Session() as session:
        first, second = (session.run(fetches, {x: X}) for _ in range(2))
        assert session.explain(fetches, {x: X}).fusions() == {}
    value = np.exp(X) * 0.5
    for got in (first, second):
        np.testing.assert_allclose(got[0], value.sum(0), rtol=1e-6)
        np.testing.assert_allclose(got[5], value.max(1), rtol=1e-6)


# ---------------------------------------------------------------- properties
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["sub", "mul", "tanh", "matmul", "centre", "norm", "loss", "row", "grad", "write"]
        ),
        st.integers(0, 30), st.integers(0, 30),
    ),
    min_size=2, max_size=16,
)  # fmt: skip
_REFUSED = st.frozensets(st.sampled_from(["reduces", "beside", "reduce-max", "reduce-sum"]))


def _built(x, steps):
    """Values of one shape, and reductions of them; variables that are written on the way."""
    values, totals, written = [x], [], []
    v = tf.Variable(X * 0.5)
    for kind, i, j in steps:
        a, b = values[i % len(values)], values[j % len(values)]
        if kind == "sub":
            values.append(a - b * 0.5)
        elif kind == "mul":
            values.append(a * b)
        elif kind == "tanh":
            values.append(tf.tanh(a) * 1.5 + 0.25)
        elif kind == "matmul":
            values.append(tf.tanh(tf.matmul(a, W)))
        elif kind == "centre":
            values.append(b - KINDS[i % 4](a, j % 2, keepdims=True))
        elif kind == "norm":
            values.append(a / (tf.nn.l2_loss(b) + 1.0))
        elif kind == "loss":
            totals += [KINDS[(i + k) % 4](a, [0, 1][: 1 + k]) for k in range(2)]
        elif kind == "row":
            values.append(a + tf.matmul(tf.reduce_sum(b, 0, keepdims=True), W))
        elif kind == "grad":
            grad = tf.gradients(tf.reduce_sum(a * b), x)[0]
            values.append(b if grad is None else grad)
        else:
            with tf.control_dependencies([tf.reduce_max(a), tf.reduce_sum(b), *written]):
                values.append(tf.identity(tf.assign(v, v.read_value() * 0.5 + X)) - 0.5)
            written = [values[-1]]
    return [*totals, values[-1], values[len(values) // 2]], v.initializer


@settings(max_examples=80, suppress_health_check=list(HealthCheck))
@given(_STEPS, _REFUSED)
def test_any_graph_gives_the_same_with_and_without(meld, steps, refused):
    melder.reset()
    melder.refused.update(dict.fromkeys(refused, "as drawn"))
    with tf.Graph().as_default(), tf.device(meld):
        x = tf.placeholder(tf.float32, [2, 3])
        fetches, setup = _built(x, steps)
        results = []
        for off in (-1, 0):
            options = tf.OptimizerOptions(opt_level=off)
            config = tf.ConfigProto(graph_options=tf.GraphOptions(optimizer_options=options))
            with tf.Session(config=config) as session:
                session.run(setup)
                results.append(session.run(fetches, {x: X * 0.25}))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)
