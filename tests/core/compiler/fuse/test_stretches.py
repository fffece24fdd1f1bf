"""Stretches: what is joined, that it computes what its steps do, and what is told of it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opdock as tf
from opdock import errors
from opdock.plugin import STRETCH
from opdock_cpu.jit import stretches as kernels


def session(*disabled: str) -> Any:
    config = tf.ConfigProto()
    optimizer = config.graph_options.rewrite_options.custom_optimizers.add()
    optimizer.name = "opdock"
    optimizer.parameter_map["disable_passes"].s = ",".join(disabled).encode()
    return tf.Session(config=config)


@pytest.fixture(params=["code", "NumPy"])
def _by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of stretches is there from the first step on, or never is."""
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    if request.param == "NumPy":
        request_code = kernels.request

        def never(write: Any) -> Any:
            found = request_code(write)
            return type("Never", (), {"address": None, "failure": "", "kept": found})()

        monkeypatch.setattr(kernels, "request", never)


def numbers(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(dtype)


def stretched(session: Any, fetches: Any, feeds: Any) -> list[set[str]]:
    """The names of the ops in each stretch."""
    rows = session.explain(fetches, feeds).rows
    return [set(row.members) for row in rows if row.op == STRETCH]


def same(fetches: Any, feeds: Any, rtol: float = 1e-5, atol: float = 1e-6) -> list[set[str]]:
    """Compares with the ops one by one; what was joined."""
    with session("stretches", "cluster", "fuse") as alone:
        alone.run(tf.global_variables_initializer())
        want = alone.run(fetches, feeds)
        assert not stretched(alone, fetches, feeds)
    with session() as together:
        together.run(tf.global_variables_initializer())
        for _ in range(2):
            got = together.run(fetches, feeds)
            for a, b in zip(got, want, strict=True):
                assert (a.dtype, a.shape) == (b.dtype, b.shape)
                np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
        return stretched(together, fetches, feeds)


# ---------------------------------------------------------------- values
@pytest.mark.usefixtures("_by")
def test_products_and_their_sum():
    x = tf.placeholder(tf.float32, [5, 7])
    w = [tf.Variable(numbers(7, 6, seed=i)) for i in range(30)]
    y = tf.add_n([tf.matmul(x, v) for v in w])
    (joined,) = same([y], {x: numbers(5, 7)})
    assert len(joined) == 31


@pytest.mark.usefixtures("_by")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_products_of_all_forms(turned, dtype):
    fetches, feeds = [], {}
    for m, k, n in [(1, 1, 1), (1, 9, 33), (3, 1, 2), (4, 8, 8), (7, 5, 1), (13, 17, 19)]:
        shapes = [(k, m) if turned[0] else (m, k), (n, k) if turned[1] else (k, n)]
        a, b = (tf.placeholder(dtype, shape) for shape in shapes)
        feeds |= {a: numbers(*shapes[0], dtype=dtype), b: numbers(*shapes[1], dtype=dtype)}
        fetches.append(tf.matmul(a, b, *turned))
    (joined,) = same(fetches, feeds)
    assert len(joined) == len(fetches)


@pytest.mark.usefixtures("_by")
def test_a_small_network_with_its_gradient():
    x, wanted = tf.placeholder(tf.float32, [4, 6]), tf.placeholder(tf.float32, [4, 3])
    h = x
    for i, width in enumerate((8, 8, 3)):
        w = tf.get_variable(f"w{i}", initializer=numbers(int(h.shape[1]), width))
        h = tf.matmul(h, w) + tf.get_variable(f"b{i}", initializer=numbers(width))
        h = tf.nn.relu(h) if i < 2 else h
    loss = tf.reduce_mean(tf.square(h - wanted))
    slopes = tf.gradients(loss, tf.trainable_variables())
    joined = same([loss, h, *slopes], {x: numbers(4, 6), wanted: numbers(4, 3)}, 1e-4, 1e-5)
    assert sum(name.startswith("MatMul") for names in joined for name in names) >= 2


@pytest.mark.usefixtures("_by")
def test_layers_that_patterns_have_fused():
    x = h = tf.placeholder(tf.float32, [4, 8])
    for i in range(5):
        w, b = tf.Variable(numbers(8, 8, seed=i)), tf.Variable(numbers(8, seed=i))
        h = tf.nn.relu(tf.nn.bias_add(tf.matmul(h, w), b))
    (names,) = same([h], {x: numbers(4, 8)}, 1e-4, 1e-4)
    assert {"MatMul", "BiasAdd_2", "Relu_4"} <= names


@pytest.mark.usefixtures("_by")
def test_moves_of_elements_are_places():
    x = tf.placeholder(tf.float32, [4, 6])
    w = tf.constant(numbers(6, 12))
    i, j, f, o = tf.split(tf.matmul(x, w), 4, 1)
    c = tf.sigmoid(f) * j + tf.sigmoid(i) * tf.tanh(o)
    turned = tf.matmul(tf.transpose(c), tf.reshape(c, [4, 3])[::-1])
    joined = tf.concat([turned, tf.stack([c[1], c[2, :]])[:, ::2], tf.zeros([2, 1])][:1], 0)
    first = tf.concat([c, x[:, 1:4]], 1)
    again = tf.matmul(first, tf.ones([6, 2])) + tf.expand_dims(c[:, 0], 1)
    (names,) = same([joined, first, again, tf.reshape(turned, [-1])], {x: numbers(4, 6)})
    assert {"split", "concat_1", "MatMul_1"} <= names


@pytest.mark.usefixtures("_by")
def test_types_and_numbers():
    x, fetches, feeds = tf.placeholder(tf.float64, []), [], {}
    feeds[x] = 0.3
    for shape in ((3,), (2, 2), (5,)):
        n = tf.placeholder(tf.int32, shape)
        feeds[n] = np.arange(np.prod(shape)).reshape(shape) - 2
        fetches += [tf.cast(n, tf.float64) * 2.0 + x, n * n - 4, n > 2, tf.logical_not(n > 1)]
        fetches.append(tf.where(n > 0, n + 1, tf.zeros_like(n) - 7))
        fetches.append(tf.add_n([tf.cast(n, tf.int64) * i for i in range(1, 20)]))
    assert same(fetches, feeds, 0, 0)


@pytest.mark.usefixtures("_by")
def test_what_lies_otherwise_in_memory_is_taken_too():
    x = tf.placeholder(tf.float32, [4, 4])
    y = [tf.matmul(x, x) + float(i) for i in range(3)] + [tf.matmul(x, x, transpose_b=True)]
    value = np.asfortranarray(numbers(4, 4))
    assert same(y, {x: value})


pieces = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 30), st.integers(0, 30)), max_size=25)


@given(pieces, st.lists(st.integers(0, 30), min_size=1, max_size=4))
def test_random_steps(steps, fetched):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [3, 3])
        made = [x, tf.matmul(x, x), tf.transpose(x)]
        for kind, i, j in steps:
            a, b = made[i % len(made)], made[j % len(made)]
            made.append((
                lambda a, b: tf.matmul(a, b) * 0.25, lambda a, b: tf.matmul(a, b, True, True) * 0.5,
                lambda a, b: tf.tanh(a) + b, lambda a, b: tf.add_n([a, b, x, a]),
                lambda a, b: tf.concat([a[:1], b[1:]], 0), lambda a, b: tf.reshape(a[::-1], [3, 3]),
                lambda a, b: tf.identity(a), lambda a, b: tf.stack([a[0], b[:, 1], a[2]]),
            )[kind](a, b))  # fmt: skip
        same([made[i % len(made)] for i in fetched], {x: numbers(3, 3)}, 1e-3, 1e-4)


# ---------------------------------------------------------------- what is joined
def test_what_is_large_stays_alone_and_small_steps_around_it_are_joined():
    x = tf.placeholder(tf.float32, [256, 8])
    wide = tf.constant(numbers(8, 512))
    small = [tf.matmul(x[:8], tf.constant(numbers(8, 8, seed=i)), name=f"in{i}") for i in range(4)]
    large = tf.matmul(x + tf.tile(tf.add_n(small), [32, 1]), wide, name="large")
    after = [
        tf.matmul(large[:4, :8], tf.constant(numbers(8, 8, seed=i)), name=f"out{i}")
        for i in range(4)
    ]
    joined = same(after, {x: numbers(256, 8)}, 1e-4, 1e-4)
    found = [{n for n in names if n[:2] in ("in", "ou", "la")} for names in joined]
    assert sorted(map(sorted, found)) == [
        [f"in{i}" for i in range(4)],
        [f"out{i}" for i in range(4)],
    ]


def test_few_steps_are_left_alone():
    x = tf.placeholder(tf.float32, [4, 4])
    y = tf.matmul(tf.matmul(x, x), x)
    assert not same([y], {x: numbers(4, 4)})


def test_steps_see_the_writes_before_them_and_none_after():
    v = tf.Variable(numbers(3, 3))
    x = tf.placeholder(tf.float32, [3, 3])
    before = [tf.matmul(x, v) for _ in range(2)] + [v * x + 1.0, tf.matmul(v, x)]
    with tf.control_dependencies(before):
        write = tf.assign(v, tf.zeros([3, 3]))
    with tf.control_dependencies([write]):
        after = [tf.matmul(x, v.read_value()) + float(i) for i in range(4)]
    fetches = [*before, *after]
    want = numbers(3, 3) @ numbers(3, 3)
    with session() as one:
        one.run(tf.global_variables_initializer())
        got = one.run(fetches, {x: numbers(3, 3)})
        assert stretched(one, fetches, {x: numbers(3, 3)})
    np.testing.assert_allclose(got[0], want, rtol=1e-5)
    for i, value in enumerate(got[4:]):
        np.testing.assert_array_equal(value, np.full([3, 3], i, np.float32))


def test_what_may_fail_names_its_op():
    x, d = tf.placeholder(tf.int32, [4]), tf.placeholder(tf.int32, [4])
    y = [x * 2, x + 3, x - d, tf.div(x, d, name="halved"), tf.maximum(x, d)]
    feeds = {x: [1, 2, 3, 4], d: [1, 0, 1, 1]}
    with session() as one, pytest.raises(errors.InvalidArgumentError, match="halved"):
        one.run(y, feeds)


# ---------------------------------------------------------------- what is told, and who may call
def products(count: int) -> tuple[Any, list[Any]]:
    x = tf.placeholder(tf.float32, [4, 4])
    w = tf.constant(numbers(4, 4))
    return x, [tf.matmul(x, w * float(i + 1), name=f"product{i}") for i in range(count)]


def test_explain_and_traces_name_the_ops():
    x, y = products(5)
    total = tf.add_n(y, name="total")
    with session() as one:
        explained = one.explain(total, {x: numbers(4, 4)})
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        metadata = tf.RunMetadata()
        one.run(total, {x: numbers(4, 4)}, options=options, run_metadata=metadata)
    (row,) = (r for r in explained.rows if r.op == STRETCH)
    assert row.members == (*(f"product{i}" for i in range(5)), "total")
    for name in row.members:
        (member,) = (r for r in explained.rows if r.node == name and r.op != STRETCH)
        assert (member.how, member.fusion, member.into) == ("fused", "stretches", STRETCH)
    labels = [s.timeline_label for d in metadata.step_stats.dev_stats for s in d.node_stats]
    assert any("product3 MatMul" in label for label in labels)


def test_many_threads_may_run_one_stretch(monkeypatch):
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    x, y = products(6)
    total = tf.add_n([tf.tanh(v) for v in y])
    values = [numbers(4, 4, seed=i) for i in range(4)]
    with session() as one:
        want = [one.run(total, {x: v}) for v in values]
        wrong = []

        def work(i: int) -> None:
            for _ in range(200):
                if not np.array_equal(one.run(total, {x: values[i]}), want[i]):
                    wrong.append(i)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_a_kernel_that_gives_up_leaves_the_ops_to_themselves(monkeypatch):
    def gives_up(self: Any, *args: Any) -> Any:
        raise errors.UnimplementedError(None, None, "not today")

    monkeypatch.setattr(kernels._Stretch, "__call__", gives_up)
    x, y = products(5)
    with session() as one:
        got = one.run(y, {x: numbers(4, 4)})
        again = one.run(y, {x: numbers(4, 4)})
        assert not stretched(one, y, {x: numbers(4, 4)})
    want = numbers(4, 4) @ numbers(4, 4)
    for values in (got, again):
        for i, value in enumerate(values):
            np.testing.assert_allclose(value, want * (i + 1), rtol=1e-5)
