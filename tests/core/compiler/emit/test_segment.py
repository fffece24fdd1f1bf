"""Segments: what is formed, and that a step is the same step as op by op."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import opdock as tf
from opdock import plugin
from tests.core.compiler import welder


@pytest.fixture
def weld() -> Iterator[str]:
    """The device scope of a backend that compiles segments."""
    welder.forget()
    plugin.register(welder, welder.NAME)
    yield welder.DEVICE
    plugin.unregister(welder.NAME)


def session(*off: str) -> tf.Session:
    config = tf.ConfigProto(graph_options=tf.GraphOptions(), allow_soft_placement=True)
    return tf.Session(config=config)


def training(weld: str):
    with tf.device(weld):
        x = tf.placeholder(tf.float32, [4, 3])
        w = tf.get_variable("w", initializer=tf.ones([3, 2]))
        count = tf.get_variable("count", initializer=0, dtype=tf.int32, trainable=False)
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
        step = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
        with tf.control_dependencies([step]):
            counted = tf.assign_add(count, 1)
    return x, w, loss, counted


def test_a_training_step_is_one_program(weld: str) -> None:
    x, w, loss, counted = training(weld)
    with session() as sess:
        sess.run(tf.global_variables_initializer())
        welder.runs.clear()
        value = np.arange(12, dtype=np.float32).reshape(4, 3) / 10
        found = [sess.run([loss, counted], {x: value}) for _ in range(3)]
        explained = sess.explain([loss, counted], {x: value})
        table = sess.run(w)
    assert len(welder.runs) == 3  # the read of w only moves a value
    assert welder.runs[0] == welder.runs[2]
    assert explained.counts()["segment"] == 1
    assert [c for _, c in found] == [1, 2, 3]
    expected, velocity = np.ones((3, 2), np.float32), 0
    for got, _ in found:
        error = value @ expected - 1
        np.testing.assert_allclose(got, np.mean(error**2), rtol=1e-5)
        velocity = 0.9 * velocity + value.T @ error / 4
        expected = expected - 0.1 * velocity
    np.testing.assert_allclose(table, expected, rtol=1e-5)


def test_reads_see_what_was_written_before_them(weld: str) -> None:
    with tf.device(weld):
        v = tf.Variable([1.0, 2.0], use_resource=False)
        first = v + 0.0
        with tf.control_dependencies([first]):
            changed = tf.assign(v, [5.0, 6.0])
        with tf.control_dependencies([changed]):
            second = tf.identity(v) * 1.0
        grown = tf.assign_add(changed, [1.0, 1.0])
        with tf.control_dependencies([second, grown]):
            third = v.read_value() * 2.0
    with session() as sess:
        sess.run(v.initializer)
        a, c, again = sess.run([first, third, grown])
        assert a.tolist() == [1, 2] and c.tolist() == [12, 14] and again.tolist() == [6, 7]
        assert sess.run(v).tolist() == [6, 7]


def test_a_variable_without_a_value_is_named(weld: str) -> None:
    with tf.device(weld):
        v = tf.get_variable("blank", [2])
        doubled = v * 2.0
    with session() as sess, pytest.raises(tf.errors.FailedPreconditionError, match="blank"):
        sess.run(doubled)


def test_what_is_refused_splits_the_segment(weld: str) -> None:
    welder.refused["Tanh"] = "no tangents here"
    with tf.device(weld):
        x = tf.placeholder(tf.float32, [3])
        y = tf.exp(tf.tanh(x * 2.0 + 1.0)) - x
    with session() as sess:
        got = sess.run(y, {x: [0.1, 0.2, 0.3]})
        explained = sess.explain(y, {x: [0.1, 0.2, 0.3]})
    v = np.array([0.1, 0.2, 0.3])
    np.testing.assert_allclose(got, np.exp(np.tanh(v * 2 + 1)) - v, rtol=1e-5)
    assert len(welder.runs) == 2
    (row,) = [r for r in explained.rows if r.op == "Tanh"]
    assert row.how == "portable" and any("no tangents here" in m for m in row.missed)


def test_nothing_compiled_runs_op_by_op(weld: str) -> None:
    welder.entirely.append("closed today")
    x, _, loss, counted = training(weld)
    with session() as sess:
        sess.run(tf.global_variables_initializer())
        explained = sess.explain([loss, counted], {x: np.ones((4, 3))})
        assert sess.run(counted, {x: np.ones((4, 3))}) == 1
    assert not welder.runs
    assert "segment" not in explained.counts()
    assert any("closed today" in m for r in explained.rows for m in r.missed)


@pytest.mark.parametrize("error", [tf.errors.UnimplementedError, tf.errors.ResourceExhaustedError])
def test_a_failing_program_runs_op_by_op_in_the_same_step(weld: str, error: type) -> None:
    x, _, loss, counted = training(weld)
    feed = {x: np.ones((4, 3), np.float32)}
    with session() as sess:
        sess.run(tf.global_variables_initializer())
        before = sess.run(loss, feed)
        welder.failing.append(error(None, None, "the program fails"))
        first, one = sess.run([loss, counted], feed)
        second, two = sess.run([loss, counted], feed)
        explained = sess.explain([loss, counted], feed)
    assert (one, two) == (1, 2)
    assert first == before
    assert second < first
    assert "segment" not in explained.counts()
    assert explained.moves


def test_loops_and_branches_are_inside(weld: str) -> None:
    with tf.device(weld):
        x = tf.placeholder(tf.float32, [2, 2])
        w = tf.get_variable("w", initializer=tf.eye(2) * 0.5, use_resource=True)
        n, y = tf.while_loop(
            lambda i, _: i < 4,
            lambda i, y: (i + 1, tf.cond(y[0, 0] > 1.0, lambda: y * 0.5, lambda: tf.matmul(y, w))),
            [tf.constant(0), x + 1.0],
        )  # fmt: skip
        out = tf.reduce_sum(y) + tf.cast(n, tf.float32)
    with session() as sess:
        sess.run(tf.global_variables_initializer())
        welder.runs.clear()
        got = sess.run(out, {x: np.full((2, 2), 3.0)})
    value = np.full((2, 2), 4.0)
    for _ in range(4):
        value = value * 0.5
    assert got == value.sum() + 4
    assert len(welder.runs) == 1
    assert {n.op for s in welder.segments for n in s.nodes} >= {"While"}


def test_a_loop_writes_the_variables_that_its_bodies_write(weld: str) -> None:
    def program(device: str) -> list[np.ndarray]:
        with tf.Graph().as_default(), tf.device(device):
            seen, deep, kept = (
                tf.get_variable(name, initializer=tf.ones([2]), use_resource=True)
                for name in ("seen", "deep", "kept")
            )

            def body(i, y):
                def grow():
                    with tf.control_dependencies([deep.assign_add(seen.read_value())]):
                        return y + kept.read_value()

                return i + 1, tf.cond(i > 0, grow, lambda: y * seen.read_value())

            _, y = tf.while_loop(lambda i, _: i < 3, body, [0, tf.ones([2])])
            with tf.control_dependencies([y]):
                changed = kept.assign(y * 2.0)
            with session() as sess:
                sess.run(tf.global_variables_initializer())
                welder.segments.clear()
                sess.run(changed)
                return [*sess.run([y, seen, deep, kept])]

    expected, got = program("/cpu:0"), program(weld)
    for one, other in zip(expected, got, strict=True):
        np.testing.assert_allclose(one, other)
    segment = max(welder.segments, key=lambda g: len(g.nodes))
    assert "While" in {n.op for n in segment.nodes}
    told = {v.name: (v.read, v.written) for v in segment.variables}
    assert told == {"seen": (True, False), "deep": (True, True), "kept": (True, True)}


def test_random_ops_go_on_in_their_streams(weld: str) -> None:
    def draw(device: str) -> list[np.ndarray]:
        with tf.Graph().as_default(), tf.device(device):
            a = tf.random_uniform([3, 2], seed=5) * 2.0
            b = tf.random_normal([5], seed=6) + 1.0
            with session() as sess:
                return [v for _ in range(3) for v in sess.run([a, b])]

    expected, got = draw("/cpu:0"), draw(weld)
    assert welder.runs
    for one, other in zip(expected, got, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert not np.array_equal(got[0], got[2])


def test_the_key_is_that_of_the_computation(weld: str) -> None:
    def key(scale: float, name: str) -> str:
        welder.segments.clear()
        with tf.Graph().as_default(), tf.device(weld):
            x = tf.placeholder(tf.float32, [3], name=name)
            y = tf.tanh(x * scale)
            with session() as sess:
                sess.run(y, {x: [1, 2, 3]})
        (segment,) = welder.segments
        return segment.key

    assert key(2.0, "a") == key(2.0, "b")
    assert key(2.0, "a") != key(3.0, "a")


def test_updates_in_two_threads_lose_nothing(weld: str) -> None:
    import threading

    with tf.device(weld):
        v = tf.get_variable("v", initializer=np.zeros(3, np.int32), use_resource=True)
        grow = tf.assign_add(v, tf.ones([3], tf.int32) * 1)
        other = tf.assign_add(v, tf.ones([3], tf.int32) * 100)
    with session() as sess:
        sess.run(v.initializer)
        threads = [
            threading.Thread(target=lambda op=op: [sess.run(op) for _ in range(50)])
            for op in (grow.op, other.op)
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert sess.run(v).tolist() == [5050] * 3


def test_switched_off_like_any_pass(weld: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_DISABLE_PASSES", "segments")
    with tf.device(weld):
        x = tf.placeholder(tf.float32, [3])
        y = tf.tanh(x * 2.0)
    with session() as sess:
        sess.run(y, {x: [1, 2, 3]})
    assert not welder.runs


def test_lists_stay_inside_with_the_loops_that_fill_them(weld: str) -> None:
    def slope(device: str) -> tuple[float, np.ndarray]:
        with tf.Graph().as_default(), tf.device(device):
            x = tf.placeholder(tf.float32, [2, 2])
            _, y = tf.while_loop(
                lambda i, _: i < 3, lambda i, y: (i + 1, tf.tanh(tf.matmul(y, x))), [0, x]
            )
            total = tf.reduce_sum(y)
            (dx,) = tf.gradients(total, x)
            feed = {x: [[0.1, 0.2], [0.3, -0.4]]}
            with session() as sess:
                return tuple(sess.run([total, dx], feed))

    expected, got = slope("/cpu:0"), slope(weld)
    assert len(welder.runs) == 1
    for one, other in zip(expected, got, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_lists_that_cross_stay_outside(weld: str) -> None:
    welder.refused["TensorListPopBack"] = "no lists here"
    with tf.device(weld):
        x = tf.placeholder(tf.float32, [2])
        _, y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.tanh(y) * x), [0, x])
        (dx,) = tf.gradients(y * 2.0, x)
        with session() as sess:
            found = sess.run(dx, {x: [0.5, -0.5]})
            told = sess.explain(dx, {x: [0.5, -0.5]})
    np.testing.assert_allclose(found[0], -found[1], rtol=1e-6)
    assert any("no lists here" in text for row in told.rows for text in row.missed)
