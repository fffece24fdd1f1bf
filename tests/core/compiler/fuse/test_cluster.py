"""Elementwise clusters: what they take in, what they leave out, and that results stay the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import opdock as tf
from opdock import errors, plugin
from opdock.plugin import CLUSTER, KernelTable
from tests.core.compiler import melder

pytestmark = pytest.mark.usefixtures("clusters_alone")
X = np.array([[-1.5, 0.25, 3.0], [0.5, -0.0, 10.0]], np.float32)
B = np.array([1.0, -2.0, 0.5], np.float32)


@pytest.fixture
def x():
    return tf.placeholder(tf.float32, [2, 3], name="x")


def ops(node):
    return [op for _, op in node.attrs["members"]]


def functions(node):
    return sorted(node.attrs["line"].functions)


# ---------------------------------------------------------------- what is taken
def test_a_chain_is_one_node(x, clusters):
    (node,) = clusters(tf.tanh(tf.exp(-x) * 2.0 + 1.0), {x: X})
    assert ops(node) == ["Neg", "Exp", "Mul", "AddV2", "Tanh"]
    assert (node.attrs["names"], node.attrs["shape"]) == (("x0",), (2, 3))
    assert node.attrs["reduces"] == ()
    numbers = [s.value for s in node.attrs["line"].steps if s.op == "number"]
    assert numbers == [2.0, 1.0]


def test_inputs_broadcast(x, clusters):
    b = tf.placeholder(tf.float32, [3])
    c = tf.placeholder(tf.float32, [2, 1])
    (node,) = clusters(tf.nn.bias_add(x * c, b) - b, {x: X, b: B, c: [[2.0], [3.0]]})
    assert [v.shape for v in node.inputs] == [(2, 3), (2, 1), (3,)]


def test_several_results(x, clusters):
    a = tf.exp(x)
    b = a * 2.0
    (node,) = clusters([a, b, tf.matmul(b, b, transpose_b=True)], {x: X})
    assert len(node.out_dtypes) == 2


def test_results_that_are_equal_are_one(x, clusters, monkeypatch):
    a, b = tf.exp(x * 2.0), tf.exp(x * 2.0)
    monkeypatch.setattr("opdock.compiler.pipeline.cse", lambda block: None)
    (node,) = clusters([a, b, a + b], {x: X})
    assert len(node.out_dtypes) == 2


def test_other_types_and_choices(x, clusters):
    whole = tf.cast(x * 2.0, tf.int32)
    y = tf.where(whole > 1, tf.cast(whole + 1, tf.float32), tf.zeros_like(x) + x)
    (node,) = clusters(y, {x: X})
    assert {"Cast", "Greater", "Select"} <= set(ops(node))


def test_sums_of_many(x, clusters):
    (node,) = clusters(tf.add_n([x, tf.exp(x), x * 3.0]), {x: X})
    assert "AddN" in ops(node)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_16_bit_members_round_each(dtype, clusters):
    x = tf.placeholder(dtype, [2, 3])
    third = tf.constant(1 / 3, dtype)
    value = X.astype(dtype.as_numpy_dtype)
    (node,) = clusters(tf.tanh(x * third + third) - x, {x: value})
    casts = [s for s in node.attrs["line"].steps if s.op == "cast" and s.dtype is dtype]
    assert len(casts) == 4


def test_constants_of_equal_elements_are_numbers(x, clusters):
    zeros = [[-0.0, -0.0, -0.0]] * 2
    (node,) = clusters(tf.maximum(tf.exp(x * tf.fill([2, 3], 2.0)), zeros), {x: X})
    numbers = [s.value for s in node.attrs["line"].steps if s.op == "number"]
    assert numbers == [2.0, 0.0]
    assert np.signbit(numbers[1])


def test_a_constant_that_widens_the_result_stays_an_input(clusters):
    v = tf.placeholder(tf.float32, [3])
    (node,) = clusters(tf.exp(v * tf.fill([2, 3], 2.0)), {v: B})
    assert [i.shape for i in node.inputs] == [(3,), (2, 3)]


def test_gradients_are_clustered(x, clusters):
    y = tf.reduce_sum(tf.square(tf.tanh(x * 3.0)) * x)
    found = clusters(tf.gradients(y, x), {x: X})
    assert sum(len(ops(n)) for n in found) >= 6


def test_parts_of_one_shape_that_do_not_touch_are_apart(x, clusters):
    y = tf.placeholder(tf.float32, [2, 3])
    assert len(clusters([tf.exp(x * 2.0), tf.tanh(y * 3.0)], {x: X, y: X})) == 2


def test_what_is_asked_for_and_not_fetched_is_clustered_too(x, compiled):
    a = tf.exp(x)
    both = [tf.sqrt(a).op, (a * 2.0).op]
    with tf.Session() as session:
        assert session.run(both, {x: X}) == [None, None]
        (node,) = melder.clusters(compiled(session, both, {x: X}).block.nodes)
    assert ops(node) == ["Exp", "Sqrt", "Mul"]
    assert len(node.out_dtypes) == 2


def test_size_is_limited(clusters):
    x = y = tf.placeholder(tf.float32, [2000])
    for i in range(100):
        y = tf.sin(y) + float(i)
    found = clusters(y, {x: np.ones(2000, np.float32)})
    assert [len(ops(n)) for n in found] == [64, 64, 64, 8]


def test_arithmetic_on_few_elements_is_one_long_cluster(clusters):
    found = {}
    for n in (1, 1 << 10, (1 << 10) + 1):
        x = y = tf.placeholder(tf.float32, [n])
        for _ in range(1000):
            y = tf.add(y, x)
        found[n] = [len(ops(c)) for c in clusters(y, {x: np.ones(n, np.float32)})]
    assert found[1] == found[1 << 10] == [1000]
    assert found[(1 << 10) + 1] == [64] * 15 + [40]


def test_functions_on_few_elements_are_cut_as_on_many(clusters):
    x = y = tf.placeholder(tf.float32, [1])
    for _ in range(100):
        y = tf.tanh(y)
    assert [len(ops(c)) for c in clusters(y, {x: np.ones(1, np.float32)})] == [64, 36]


def test_a_variable_is_an_input(x, clusters):
    v = tf.Variable(B)
    (node,) = clusters(tf.exp(x + v) * v, {x: X}, setup=v.initializer)
    assert len(node.inputs) == 2


# ---------------------------------------------------------------- reductions
@pytest.mark.parametrize(
    ("reduce", "kind"),
    [
        (tf.reduce_sum, "sum"), (tf.reduce_mean, "mean"), (tf.reduce_max, "max"),
        (tf.reduce_min, "min"), (tf.reduce_prod, "prod"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("axis", [None, 0, -1, [0, 1]])
@pytest.mark.parametrize("keep", [False, True])
def test_a_reduction_ends_a_cluster(x, clusters, reduce, kind, axis, keep):
    (node,) = clusters(reduce(tf.exp(x), axis, keepdims=keep), {x: X})
    (found,) = node.attrs["reduces"]
    assert (found.kind, found.keep_dims) == (kind, keep)
    assert found.axes == {"0": (0,), "-1": (1,)}.get(str(axis), (0, 1))


def test_the_reduced_value_may_be_a_result_too(x, clusters):
    a = tf.exp(x) * 2.0
    (node,) = clusters([a, tf.reduce_sum(a, 0)], {x: X})
    assert node.attrs["line"].results[0] == node.attrs["line"].results[1]
    assert [tuple(s) for s in node.out_shapes] == [(2, 3), (3,)]


def test_the_gradient_of_a_bias(x, clusters):
    b = tf.placeholder(tf.float32, [3])
    y = tf.tanh(tf.nn.bias_add(x, b))
    found = clusters(tf.gradients(y, [x, b]), {x: X, b: B})
    assert any("BiasAddGrad" in ops(n) for n in found)


def test_a_reduction_that_is_declined_stays_alone(x, clusters, monkeypatch):
    melder.refused["reduce"] = "no reductions"
    y = tf.reduce_sum(tf.exp(x) * 2.0, 0)
    (node,) = clusters(y, {x: X})
    assert ops(node) == ["Exp", "Mul"]
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "fuse")
    with tf.Session() as session:
        rows = session.explain(y, {x: X}).rows
    assert any("no reductions" in m for r in rows for m in r.missed)


def test_unknown_axes_do_not_end_a_cluster(x, clusters):
    axis = tf.placeholder(tf.int32, [])
    (node,) = clusters(tf.reduce_sum(tf.exp(x) * 2.0, axis), {x: X, axis: 1})
    assert ops(node) == ["Exp", "Mul"]


# ---------------------------------------------------------------- what is not taken
def test_single_ops_stay(x, clusters):
    assert clusters(tf.exp(x), {x: X}) == []


def test_a_function_that_the_backend_lacks_stays_out(x, clusters, monkeypatch):
    monkeypatch.setattr(
        "opdock.plugin.codegen.can_render", lambda line: "tanh" not in line.functions
    )
    found = clusters(tf.exp(tf.tanh(tf.exp(x) * 2.0)) * 2.0, {x: X})
    assert [ops(n) for n in found] == [["Exp", "Mul"], ["Exp", "Mul"]]


def test_division_by_zero_keeps_its_line(clusters):
    a = tf.placeholder(tf.int32, [3])
    y = ((a + 1) // a) * 2 + 1
    (node,) = clusters(y, {a: [1, 2, 3]})
    assert "FloorDiv" not in ops(node)
    with tf.Session() as session, pytest.raises(errors.InvalidArgumentError) as caught:
        session.run(y, {a: [1, 0, 3]})
    assert "floordiv" in caught.value.message


def test_a_path_that_leaves_and_comes_back(x, clusters):
    a = tf.exp(x) * 2.0
    y = tf.tanh(a + tf.matmul(a, tf.matmul(a, a, transpose_a=True))) * a
    found = clusters(y, {x: X})
    assert [ops(n) for n in found] == [["Exp", "Mul"], ["AddV2", "Tanh", "Mul"]]


def test_a_declined_cluster_is_halved(x, clusters):
    melder.refused["several"] = "too long"
    assert clusters(tf.exp(tf.exp(tf.exp(tf.exp(x) * 0.1) * 0.1) * 0.1), {x: X}) == []


def test_empty_and_unknown_shapes_stay(clusters):
    empty = tf.placeholder(tf.float32, [0, 3])
    assert clusters(tf.exp(empty) * 2.0, {empty: np.zeros((0, 3))}) == []


def test_other_devices_stay(x, clusters):
    with tf.device("/cpu:0"):
        elsewhere = tf.exp(x)
    (node,) = clusters(elsewhere * 2.0 + 1.0, {x: X})
    assert ops(node) == ["Mul", "AddV2"]


# ---------------------------------------------------------------- order and effects
def test_reads_before_and_after_a_write_are_apart(x, clusters):
    v = tf.Variable(B)
    early = tf.exp(x + v)
    with tf.control_dependencies([early]):
        change = tf.assign_add(v, B)
    with tf.control_dependencies([change]):
        late = early * v + 1.0
    found = clusters([late, early], {x: X}, setup=v.initializer)
    assert [ops(n) for n in found] == [["AddV2", "Exp"], ["Mul", "AddV2"]]


def test_an_update_made_last_runs_last(x, clusters):
    """No dependency says so; the order in which the ops were made does."""
    v = tf.Variable(B)
    early = tf.exp(x + v)
    weights = tf.matmul(early, early, transpose_b=True)
    change = tf.assign_add(v, B)
    late = tf.tanh(early * 2.0) + tf.reduce_sum(weights)
    clusters([late, weights, change], {x: X}, setup=v.initializer)


def test_what_counts_only_for_its_shape_still_runs(x, clusters):
    checked = tf.check_numerics(x, "not a number")
    y = tf.exp(tf.raw_ops.ZerosLike(x=checked) + x) * 2.0
    (node,) = clusters(y, {x: X})
    assert "ZerosLike" in ops(node)
    assert len(node.inputs) == 1
    with tf.Session() as session, pytest.raises(errors.InvalidArgumentError, match="not a number"):
        session.run(y, {x: X * np.nan})


def test_controls_reach_the_cluster(x):
    v = tf.Variable(1.0)
    with tf.control_dependencies([tf.assign_add(v, 1.0)]):
        a = tf.exp(x)
    y = a * 2.0
    with tf.control_dependencies([y.op]):
        seen = v.read_value() + 0.0
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.explain([y, seen], {x: X}).fusions() == {"cluster": 1}
        assert session.run([y, seen], {x: X})[1] == 2.0


def test_loop_bodies_are_fused_too(x):
    _, y = tf.while_loop(
        lambda i, a: i < 3, lambda i, a: (i + 1, tf.tanh(a * 2.0) + 1.0), (0, x)
    )  # fmt: skip
    with tf.Session() as session:
        got = session.run(y, {x: X})
    want = X
    for _ in range(3):
        want = np.tanh(want * 2) + 1
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert CLUSTER in {op for op, _ in melder.calls}


# ---------------------------------------------------------------- run time
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("several", [False, True])
def test_a_cluster_that_gives_up_hands_back_to_its_members(x, soft, several):
    a = tf.exp(x) * 2.0
    y = a + tf.constant(X)
    fetches = [y, tf.reduce_sum(y, 1)] + [a] * several
    want = [np.exp(X) * 2 + X, (np.exp(X) * 2 + X).sum(1), np.exp(X) * 2]
    melder.decline(CLUSTER)
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=soft)) as session:
        for _ in range(4):
            for got, wanted in zip(session.run(fetches, {x: X}), want, strict=False):
                np.testing.assert_allclose(got, wanted, rtol=1e-6)
        found = session.explain(fetches, {x: X})
    assert found.fusions() == {}
    assert any(
        "gave up at run time: melder has had enough" in m for r in found.rows for m in r.missed
    )


def test_a_member_that_gives_up_in_turn_moves_on(x, monkeypatch):
    def tired(sig):
        def run(*_):
            raise errors.UnimplementedError(None, None, "tired")

        return run

    melder.decline(CLUSTER)
    table = KernelTable(melder.table)
    table.binder("Exp", priority=9)(tired)
    monkeypatch.setattr(melder, "table", table)
    plugin.register(melder, melder.NAME)
    y = tf.exp(x) * 2.0
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        np.testing.assert_allclose(session.run(y, {x: X}), np.exp(X) * 2, rtol=1e-6)
        moves = {m.node: m.destination for m in session.explain(y, {x: X}).moves}
    assert moves["Exp"].endswith("MELD:0")
    with tf.Session() as session, pytest.raises(errors.UnimplementedError, match="tired"):
        session.run(y, {x: X})


# ---------------------------------------------------------------- any graph
OTHERS = ("fold", "cse", "simplify", "memory")
FUSIONS = ("fuse", "cluster", "swish", "add_relu", "sum_and_scale")
others = st.lists(st.sampled_from(OTHERS), max_size=4, unique=True)
fusions = st.lists(st.sampled_from(FUSIONS), max_size=2, unique=True)
UNARY = [
    tf.tanh, tf.negative, tf.nn.relu, tf.sigmoid, lambda x: tf.exp(-tf.abs(x)), tf.square,
    lambda x: tf.cast(tf.cast(x, tf.float16), tf.float32), tf.zeros_like,
    lambda x: tf.cast(x > 0, tf.float32), lambda x: x * tf.sigmoid(x),
    lambda x: x + tf.reduce_sum(x, -1, keepdims=True) if x.shape.ndims else x + 1.0,
    lambda x: tf.reduce_mean(x, 0) if x.shape.ndims else x * 2.0,
    lambda x: tf.reduce_max(x), lambda x: tf.transpose(tf.transpose(x)),
    lambda x: tf.stop_gradient(x) * 0.5, tf.identity,
]  # fmt: skip
BINARY = [
    tf.add, tf.subtract, tf.multiply, tf.maximum, tf.minimum, tf.squared_difference,
    lambda a, b: tf.where(a > b, a + 0.0 * b, b + 0.0 * a), lambda a, b: tf.nn.relu(a + b),
    lambda a, b: tf.add_n([a + b, a - b, a * 0.5 + b]),
]  # fmt: skip
programs = st.lists(
    st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99), st.integers(0, 9)),
    min_size=3, max_size=20,
)  # fmt: skip


def build(program):
    """A graph that a list of numbers describes: (feeds, tensors to fetch, initializer)."""
    x = tf.placeholder(tf.float32, [2, 3])
    b = tf.placeholder(tf.float32, [3])
    v = tf.Variable(B)
    tensors = [x, b, tf.constant(0.5), tf.constant([[1.0], [-1.0]]), v]
    controls = []
    for op, first, second, extra in program:
        left, right = tensors[-1 - first % len(tensors)], tensors[-1 - second % len(tensors)]
        if extra == 9:
            with tf.control_dependencies([left.op]):
                controls.append(tf.assign_add(v, [0.5, 0.5, 0.5]).op)
            continue
        with tf.control_dependencies(controls[-1:] if extra > 6 else []):
            if op % 2:
                new = UNARY[op // 2 % len(UNARY)](left)
            elif op % 10 == 8 and left.shape.as_list() == right.shape.as_list() == [2, 3]:
                new = tf.matmul(left, tf.matmul(right, right, transpose_a=True)) * 0.1
            else:
                new = BINARY[op // 2 % len(BINARY)](left, right)
        tensors.append(new)
    fetched = [t + 0.0 for t in tensors[5::2]] + tensors[-3:]
    return {x: X, b: B}, fetched, v.initializer


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(program=programs, off=others, without=fusions)
def test_any_graph_with_any_passes_gives_the_same(meld, program, off, without):
    """Fusion changes nothing, variables that change on the way included."""
    with tf.Graph().as_default(), tf.device(meld), pytest.MonkeyPatch.context() as patch:
        feeds, fetches, setup = build(program)
        values = []
        for disabled in ([*off, *FUSIONS], [*off, *without]):
            patch.setenv("OPDOCK_DISABLE_PASSES", ",".join(disabled))
            with tf.Session() as session:
                session.run(setup)
                values.append([session.run(fetches, feeds) for _ in range(2)])
        for plain, fused in zip(*values, strict=True):
            for a, b in zip(plain, fused, strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_allclose(b, a, rtol=2e-5, atol=1e-6)


def chained(x, n):
    y = x
    for i in range(n):
        y = tf.tanh(y * float(i) + x) if i % 3 else tf.matmul(y, tf.matmul(y, y, True))
    return y


def sums_of_one_array(x, n):
    y = tf.matmul(x, tf.matmul(x, x, True))
    return [tf.reduce_sum(tf.exp(x - float(i)) * y) for i in range(n)]


@pytest.mark.parametrize("program", [chained, sums_of_one_array])
def test_cost_grows_with_the_graph_alone(program, x, compiled):
    """Twice the ops may not take four times as long; counted in visits, which no noise disturbs."""
    with tf.Session() as session:
        few, many = (
            compiled(session, program(x, n), {x: X}).block.visits["cluster"] for n in (200, 400)
        )
    assert few > 200
    assert many < 2.5 * few


def test_several_results_use_planned_buffers_again(x, compiled):
    """With `out=True` a kernel gets a buffer for each result that nobody keeps."""
    given = melder.use_buffers()
    y = x
    fetched = []
    for i in range(6):
        a = tf.exp(-tf.square(y) - float(i))
        b = a * 0.5
        product = tf.matmul(a, tf.matmul(b, b, transpose_a=True))
        y = product + b
        fetched.append(tf.reduce_sum(product))
    with tf.Session() as session:
        program = compiled(session, [y, *fetched], {x: X})
        assert any(len(s.outs) == 2 for s in program.schedule.steps)
        assert program.plan.planned_bytes < program.plan.naive_bytes
        first = session.run([y, *fetched], {x: X})
        session.run([y, *fetched], {x: X + 1})
        again = session.run([y, *fetched], {x: X})
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OPDOCK_DISABLE_PASSES", "cluster,memory")
            with tf.Session() as other:
                plain = other.run([y, *fetched], {x: X})
        traced = session.run([y, *fetched], {x: X}, options=tf.RunOptions(trace_level=3))
    for got in (again, traced, plain):
        for a, b in zip(first, got, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    assert any(isinstance(g, tuple) for g in given)
    planned = [p for g in given if g is not None for p in (g if isinstance(g, tuple) else [g])]
    assert any(p is not None for p in planned)


def test_results_that_are_stored_count_in_full(clusters):
    """Few elements or not: a cluster of a thousand results takes seconds to compile."""
    x = tf.placeholder(tf.float32, [])
    values = [x]
    for _ in range(300):
        values.append(values[-1] + 1.0)
    made = clusters(values[1:], {x: 1.0})
    assert len(made) > 3 and all(len(n.out_dtypes) <= 64 for n in made)
    (node,) = clusters(values[-1], {x: 1.0})
    assert len(node.attrs["members"]) == 300
