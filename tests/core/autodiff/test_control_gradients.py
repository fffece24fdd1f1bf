"""Gradients through cond and while_loop: exact, of any order, nothing runs twice."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def run(fetches, feed=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feed)


def power(x, n):
    """x ** n by a loop."""
    return tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, y * x), [0, tf.constant(1.0)])[1]


def test_loop_gradient_of_a_captured_tensor_sums_over_turns():
    x, n = tf.placeholder(tf.float32, []), tf.placeholder(tf.int32, [])
    (dx,) = tf.gradients(power(x, n), x)
    for turns in (0, 1, 4):
        assert run(dx, {x: 2.0, n: turns}) == pytest.approx(turns * 2.0 ** max(turns - 1, 0))


def test_second_and_third_order_through_a_loop():
    x = tf.constant(3.0)
    (first,) = tf.gradients(power(x, 4), x)
    (second,) = tf.gradients(first, x)
    assert run([first, second]) == pytest.approx([4 * 27.0, 12 * 9.0])
    (third,) = tf.gradients(second, x)
    assert run(third) == pytest.approx(24 * 3.0)


def nested(x):
    def turn(i, a):
        inner = tf.while_loop(lambda j, _: j < 2, lambda j, b: (j + 1, b * a), [0, a])[1]
        return i + 1, inner * 0.5 + x

    return tf.while_loop(lambda i, _: i < 3, turn, [0, x])[1]


def branching(x):
    def turn(i, a):
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: a * x, lambda: tf.tanh(a) + a * a)

    return tf.while_loop(lambda i, _: i < 4, turn, [0, x])[1]


def through_arrays(x):
    array = tf.TensorArray(tf.float64, 4, clear_after_read=False)
    array = tf.while_loop(
        lambda i, *_: i < 4, lambda i, t, a: (i + 1, t.write(i, a * a), a * x), [0, array, x]
    )[1]
    return array.stack() * array.read(1)


def by_its_own_gradient(x):
    def turn(i, a):
        return i + 1, tf.gradients(a * a * x, a)[0] * 0.5 + a

    return tf.while_loop(lambda i, _: i < 3, turn, [0, x])[1]


def growing(x):
    return tf.while_loop(
        lambda i, _: i < 2, lambda i, a: (i + 1, tf.concat([a, a[-1:] * x[:1]], 0)), [0, x * x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )[1]  # fmt: skip


def until_large(x):
    return tf.while_loop(lambda a: tf.reduce_sum(a) < 30.0, lambda a: (a * x + a,), [x])


def scanned(x):
    return tf.scan(lambda a, e: a * e * x, tf.stack([x, x * 2, x * x]))


@pytest.mark.parametrize(
    "build",
    [nested, branching, through_arrays, by_its_own_gradient, growing, until_large, scanned],
)
def test_higher_derivatives_of_loops_are_those_of_differences(build):
    """TensorFlow 1 refuses them, as its recording loops cannot be recorded again; these can."""
    x = tf.placeholder(tf.float64, [2])
    slopes = [build(x)]
    for _ in range(3):
        slopes.append(tf.gradients(slopes[-1], x)[0])
    at, step = np.array([0.7, 1.2]), 1e-4
    with tf.Session() as session:
        values = session.run(slopes[2:], {x: at})
        for lower, found in zip(slopes[1:], values, strict=False):
            for i, unit in enumerate(np.eye(2) * step):
                above, below = (session.run(lower, {x: v}).sum() for v in (at + unit, at - unit))
                assert found[i] == pytest.approx((above - below) / (2 * step), rel=1e-5)


def test_a_variable_that_one_branch_reads_has_a_gradient_of_its_own_type():
    p = tf.placeholder(tf.bool, [])
    v = tf.get_variable("v", initializer=[2.0, 3.0], use_resource=True)
    y = tf.cond(p, lambda: v * v, lambda: tf.constant([1.0, 1.0]))
    (dv,) = tf.gradients(y + v, v)
    assert dv.dtype == tf.float32
    np.testing.assert_array_equal(run(dv, {p: True}), [5.0, 7.0])
    np.testing.assert_array_equal(run(dv, {p: False}), [1.0, 1.0])


def test_second_order_through_cond():
    p, x = tf.placeholder(tf.bool, []), tf.constant(2.0)
    y = tf.cond(p, lambda: x * x * x, lambda: tf.exp(x))
    (first,) = tf.gradients(y, x)
    (second,) = tf.gradients(first, x)
    assert run([first, second], {p: True}) == pytest.approx([12.0, 12.0])
    assert run([first, second], {p: False}) == pytest.approx([np.exp(2.0)] * 2)


def test_nested_loops():
    x = tf.constant(1.5)

    def outer(i, y):
        inner = tf.while_loop(lambda j, _: j < 2, lambda j, z: (j + 1, z * x), [0, y])[1]
        return i + 1, tf.sin(inner)

    y = tf.while_loop(lambda i, _: i < 3, outer, [0, x])[1]
    (dx,) = tf.gradients(y, x)

    def plain(v):
        out = v
        for _ in range(3):
            out = np.sin(out * v * v)
        return out

    expected = (plain(1.5 + 1e-5) - plain(1.5 - 1e-5)) / 2e-5
    assert run(dx) == pytest.approx(expected, rel=1e-4)


def test_cond_inside_a_loop_and_a_loop_inside_a_cond():
    x, p = tf.constant(1.1), tf.placeholder(tf.bool, [])

    def body(i, y):
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: y * x, lambda: tf.sin(y) + x)

    looped = tf.cond(p, lambda: tf.while_loop(lambda i, _: i < 5, body, [0, x])[1], lambda: x * 3)
    (dx,) = tf.gradients(looped, x)

    def plain(v):
        y = v
        for i in range(5):
            y = y * v if i % 2 == 0 else np.sin(y) + v
        return y

    expected = (plain(1.1 + 1e-6) - plain(1.1 - 1e-6)) / 2e-6
    assert run(dx, {p: True}) == pytest.approx(expected, rel=1e-4)
    assert run(dx, {p: False}) == pytest.approx(3.0)


def test_random_bodies_have_the_gradient_of_the_numbers_that_were_drawn():
    x = tf.constant(2.0)

    def body(i, total, drawn):
        r = tf.random_uniform([])
        return i + 1, total + r * x, drawn + r

    _, total, drawn = tf.while_loop(
        lambda i, *_: i < 3, body, [0, tf.constant(0.0), tf.constant(0.0)]
    )
    (dx,) = tf.gradients(total, x)
    grad, numbers = run([dx, drawn])
    assert grad == pytest.approx(numbers)


@pytest.mark.filterwarnings("ignore:Converting sparse IndexedSlices")
@pytest.mark.parametrize("use_resource", [False, True])
def test_variables_and_embeddings_in_a_loop(use_resource):
    table = tf.get_variable(
        "table",
        initializer=np.arange(8.0, dtype="float32").reshape(4, 2),
        use_resource=use_resource,
    )

    def body(i, total):
        return i + 1, total + tf.reduce_sum(tf.gather(table, [i, i]) ** 2)

    total = tf.while_loop(lambda i, _: i < 3, body, [0, tf.constant(0.0)])[1]
    grad = tf.gradients(total, table)[0]
    expected = 4 * np.arange(8.0).reshape(4, 2)
    expected[3] = 0
    assert isinstance(grad, tf.IndexedSlices)
    assert run(grad.indices).tolist() == [2, 2, 1, 1, 0, 0]
    np.testing.assert_allclose(run(tf.convert_to_tensor(grad)), expected)


def test_shapes_that_grow():
    x = tf.constant([1.0, 2.0])
    y = tf.while_loop(
        lambda i, _: i < 3, lambda i, v: (i + 1, tf.concat([v, v * x[0]], 0)), [0, x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )[1]  # fmt: skip
    (dx,) = tf.gradients(y, x)
    # sum y = (a + b)(1 + a)^3
    a, b = 1.0, 2.0
    np.testing.assert_allclose(run(dx), [(1 + a) ** 3 + 3 * (a + b) * (1 + a) ** 2, (1 + a) ** 3])


def test_maximum_iterations_bounds_the_gradient_too():
    x = tf.constant(2.0)
    y = tf.while_loop(lambda v: v < 1e9, lambda v: v * x, [x], maximum_iterations=3)
    assert run([y, tf.gradients(y, x)[0]]) == pytest.approx([16.0, 32.0])


def test_gradients_inside_a_body():
    x = tf.constant(3.0)

    def descend(i, v):
        (g,) = tf.gradients(v * v * x, [v])
        return i + 1, v - 0.1 * g

    _, v = tf.while_loop(lambda i, _: i < 2, descend, [0, tf.constant(1.0)])
    assert run(v) == pytest.approx(0.16)
    inside = tf.cond(tf.constant(True), lambda: tf.gradients(x * x, x)[0], lambda: x)
    assert run(inside) == pytest.approx(6.0)


def test_training_in_a_session_that_ran_the_loop_before():
    w = tf.get_variable("w", initializer=1.0)
    y = tf.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, v * w), [0, tf.constant(3.0)])[1]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(y) == 3.0
        step = tf.train.GradientDescentOptimizer(0.1).minimize(y)
        session.run(step)
        assert session.run(w) == pytest.approx(1 - 0.1 * 6.0)


def test_two_gradient_calls_share_what_was_recorded():
    x = tf.constant(2.0)
    y = power(x, 3)
    first, second = tf.gradients(y, x)[0], tf.gradients(2 * y, x)[0]
    loop = next(op for op in tf.get_default_graph().get_operations() if op.type.endswith("While"))
    assert run([first, second]) == pytest.approx([12.0, 24.0])
    before = len(loop.outputs)
    tf.gradients(y, x)
    assert len(loop.outputs) == before


def test_a_session_with_echo_devices():
    x = tf.constant(2.0)
    with tf.device("/device:ECHO:0"):
        y = power(x, 3)
    (dx,) = tf.gradients(y, x)
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        assert session.run(dx) == pytest.approx(12.0)


def test_a_limit_that_only_the_step_knows():
    n, x = tf.placeholder(tf.int32, []), tf.constant(2.0)
    y = tf.while_loop(lambda v: v < 1e9, lambda v: v * x, [x], maximum_iterations=n)
    (dx,) = tf.gradients(y, x)
    assert run([y, dx], {n: 3}) == pytest.approx([16.0, 32.0])
    assert run([y, dx], {n: 0}) == pytest.approx([2.0, 1.0])
    pair = tf.while_loop(
        lambda i, v: i < 10, lambda i, v: (i + 1, v * 2.0), (0, x), maximum_iterations=n
    )
    assert run(pair, {n: 2}) == (2, 8.0)


def test_nothing_flows_through_a_python_function():
    x = tf.constant([1.0, 2.0])
    y = tf.while_loop(
        lambda v: tf.reduce_sum(v) < 9.0,
        lambda v: tf.py_func(lambda a: a * 2, [v], tf.float32),
        [x], shape_invariants=[tf.TensorShape(None)],
    )  # fmt: skip
    np.testing.assert_array_equal(run(tf.gradients(y, x)[0]), [0, 0])


def test_a_differentiated_graph_survives_export_and_import():
    x, n = tf.placeholder(tf.float32, [], "x"), tf.placeholder(tf.int32, [], "n")

    def body(i, v):
        return i + 1, tf.cond(v < 5.0, lambda: tf.sin(v) * x, lambda: v + x)

    y = tf.while_loop(lambda i, _: i < n, body, [0, x])[1]
    rows = tf.map_fn(lambda v: v * x, tf.range(3.0))
    dx = tf.identity(tf.gradients([y, rows], x)[0], name="dx")
    expected = run(dx, {x: 1.3, n: 5})
    definition = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default():
        tf.import_graph_def(definition, name="")
        assert run("dx:0", {"x:0": 1.3, "n:0": 5}) == expected


def test_traced_and_parallel_steps_give_the_same():
    x = tf.constant(1.1)
    (dx,) = tf.gradients(power(x, 5), x)
    expected = run(dx)
    with tf.Session(config=tf.ConfigProto(inter_op_parallelism_threads=4)) as session:
        assert session.run(dx) == expected
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        assert session.run(dx, options=options, run_metadata=metadata) == expected
        assert metadata.step_stats.dev_stats


def test_back_prop_false_stops_gradients():
    x = tf.constant([2.0, 3.0])
    y = tf.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, v * v), [0, x], back_prop=False)[1]
    assert tf.gradients(y, x) == [None]
    assert tf.gradients(tf.map_fn(lambda v: v * v, x, back_prop=False), x) == [None]


def test_a_loop_variable_without_influence_has_zeros():
    x, y = tf.constant(3.0), tf.constant(2.0)

    def body(x, y):
        stopped = tf.stop_gradient(tf.square(y))
        return tf.square(x) + stopped, stopped

    end = tf.while_loop(lambda x, _: x < 100.0, body, [x, y])[0]
    assert run(tf.gradients(end, [x, y])) == [156.0, 0.0]


@pytest.mark.parametrize("resource", [False, True])
def test_rows_taken_in_a_branch_have_gradients_of_rows(resource):
    table = tf.Variable(np.ones((4, 2), np.float32), use_resource=resource)
    p = tf.placeholder(tf.bool, [])
    for other, row in (
        (lambda: tf.constant(1.0), 0),
        (lambda: tf.reduce_sum(tf.gather(table, [3])), 1),
    ):
        y = tf.cond(p, lambda: 3.0 * tf.reduce_sum(tf.gather(table, [1, 1])), other)
        grad = tf.gradients(y, table)[0]
        assert isinstance(grad, tf.IndexedSlices)
        for taken, expected in (True, [0, 6, 0, 0]), (False, [0, 0, 0, row]):
            slices = run(grad, {p: taken})
            dense = np.zeros(slices.dense_shape)
            np.add.at(dense, slices.indices, slices.values)
            np.testing.assert_array_equal(dense, np.outer(expected, [1, 1]))


@pytest.mark.parametrize("colocate", [False, True])
def test_gradients_of_bodies_stand_where_the_forward_ops_do_if_asked(colocate):
    def turn(x):
        with tf.device("/device:CPU:0"):
            y = tf.square(x)
        return tf.cond(y < 1e9, lambda: y, lambda: -y)

    def devices(type_of_op):
        bodies = {op.attrs["body"] for op in graph.get_operations() if "body" in op.attrs}
        return {op.device for b in bodies for op in b.get_operations() if op.type == type_of_op}

    with tf.Graph().as_default() as graph:
        x = tf.constant(2.0)
        loop = tf.while_loop(lambda v: v < 100.0, turn, [x])
        with tf.device("/device:CPU:1"):
            (slope,) = tf.gradients(loop, x, colocate_gradients_with_ops=colocate)
        assert devices("Square") == {"/device:CPU:0"}
        # The slope of x*x in the body, 2x * g.
        assert devices("Mul") == {"/device:CPU:0" if colocate else "/device:CPU:1"}
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
            assert session.run(slope) == 1024.0


@pytest.mark.parametrize(
    ("turn", "wanted"),
    [
        (lambda v, u: (v * 2.0, u * 3.0), [8.0, None]),
        (lambda v, u: (v * 2.0, u), [8.0, None]),
        (lambda v, u: (v * 2.0 + tf.stop_gradient(u), u), [8.0, 0.0]),
        (lambda v, u: (v * 2.0 + tf.stop_gradient(u), u + 1.0), [8.0, 0.0]),
        (lambda v, u: (v * tf.floor(u), u), [27.0, 0.0]),
        (lambda v, u: (tf.stop_gradient(v) * u, u), [0.0, 18.0]),
    ],
)
def test_variables_of_a_loop_that_matter_in_some_way_have_zeros(turn, wanted):
    with tf.Graph().as_default(), tf.Session() as sess:
        v, u = tf.constant(2.0), tf.constant(3.0)
        end = tf.while_loop(
            lambda i, v, u: i < 3, lambda i, v, u: (i + 1, *turn(v, u)), [0, v, u * 1.0]
        )[1]
        grads = tf.gradients(end, [v, u])
        assert [None if g is None else sess.run(g) for g in grads] == wanted


def test_what_is_read_of_an_array_without_a_gradient_has_zeros():
    def turn(i, v, array):
        read = tf.stop_gradient(array.read(i))
        return i + 1, v + read, array.write(i + 1, read * 2.0)

    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.constant(2.0)
        array = tf.TensorArray(tf.float32, 5, clear_after_read=False).write(0, x)
        end = tf.while_loop(lambda i, *_: i < 3, turn, [0, tf.constant(0.0), array])
        assert sess.run(end[1]) == 14
        assert sess.run(tf.gradients(end[1], x)) == [0.0]
        assert sess.run(tf.gradients(end[2].gather([0, 1, 2]), x)) == [1.0]


def test_what_a_loop_computes_for_a_stopped_result_has_a_gradient_of_zeros():
    """As in TensorFlow; of a result that nothing comes from, there is none."""
    a, b = tf.Variable(1.5, name="a"), tf.Variable(2.5, name="b")
    one, other = tf.scan(lambda state, x: (a * 1.0, b * 1.0), tf.zeros(5), initializer=(0.0, 0.0))
    stopped = tf.gradients(one + tf.stop_gradient(other), [a, b])
    assert tf.gradients(one, [a, b])[1] is None
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(stopped) == [5.0, 0.0]
