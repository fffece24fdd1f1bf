"""Batches across steps: who meets whom is decided by sizes, so no test waits for a clock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.contrib import batching
from opdock.kernels.portable.batching import Batcher, _Task
from tests.threads import start

LONG = 10**9
raw = tf.raw_ops


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def batch(inputs: Any, size: int, timeout: int = LONG, **more: Any) -> Any:
    return raw.Batch(
        in_tensors=inputs, num_batch_threads=1, max_batch_size=size, batch_timeout_micros=timeout,
        grad_timeout_micros=LONG, **more,
    )  # fmt: skip


def both(sess: Any, fetch: Any, feeds: list[dict[Any, Any]]) -> list[Any]:
    """What steps give that run at the same time."""
    waiting = [start(lambda feed=feed: sess.run(fetch, feed)) for feed in feeds]
    return [wait() for wait in waiting]


def test_one_step_gets_all_and_the_others_nothing() -> None:
    x, y = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.string, [None, 2])
    batched, index, own = batch([x, y], 5)
    assert batched[0].shape.as_list() == [None] and index.shape.as_list() == [None, 3]
    feeds = [{x: [1, 2], y: [["a", "b"]] * 2}, {x: [3, 4, 5], y: [["c", "d"]] * 3}]
    with tf.Session() as sess:
        found = both(sess, [batched, index, own], feeds)
    (rows, texts), parts, _ = max(found, key=lambda f: len(f[0][0]))
    (no_rows, no_texts), no_parts, _ = min(found, key=lambda f: len(f[0][0]))
    assert sorted(rows) == [1, 2, 3, 4, 5] and texts.shape == (5, 2)
    assert no_rows.shape == (0,) and no_texts.shape == (0, 2) and no_parts.shape == (0, 3)
    assert {int(p[0]) for p in parts} == {int(f[2]) for f in found}
    for key, begin, end in parts:
        step = next(i for i, f in enumerate(found) if f[2] == key)
        assert rows[begin:end].tolist() == feeds[step][x]


def test_a_batch_is_filled_up() -> None:
    batched, index, own = batch([tf.constant([7, 8])], 10, timeout=0, allowed_batch_sizes=[5, 10])
    with tf.Session() as sess:
        rows, parts, key = sess.run([batched[0], index, own])
    assert rows.tolist() == [7, 8, 7, 7, 7] and parts.tolist() == [[key, 0, 2]]


def test_steps_take_their_rows_out_and_the_gradient_goes_back() -> None:
    x = tf.placeholder(tf.float32, [None])
    (batched,), index, own = batch([x], 3)
    squares = raw.Unbatch(
        batched_tensor=batched * batched, batch_index=index, id=own, timeout_micros=LONG,
        shared_name="squares",
    )  # fmt: skip
    (grad,) = tf.gradients(squares * [10.0], x)
    with tf.Session() as sess:
        found = both(sess, [squares, grad], [{x: [1, 2]}, {x: [3]}])
    assert [[v.tolist() for v in f] for f in found] == [[[1, 4], [20, 40]], [[9], [60]]]


@pytest.mark.parametrize("decorator", [
    tf.nondifferentiable_batch_function, batching.batch_function, batching.batch_function_v1,
])  # fmt: skip
def test_decorated_functions(decorator: Callable[..., Any]) -> None:
    calls = []

    def seen(a: Any) -> Any:
        calls.append(len(a))
        return a

    scale = tf.placeholder_with_default(2.0, [])
    offset = tf.Variable(1.0, trainable=False)

    @decorator(1, 4, LONG)
    def computation(a: Any, b: Any) -> Any:
        a = tf.py_func(seen, [a], tf.float32)
        return [a * scale + offset, tf.reduce_sum(b, 1)]

    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None, 2])
    result = computation(x, y)
    with tf.Session() as sess:
        sess.run(offset.initializer)
        feeds = [{x: [1, 2, 3], y: np.ones([3, 2])}, {x: [4], y: [[5, 6]]}]
        found = both(sess, result, feeds)
    assert [[v.tolist() for v in f] for f in found] == [[[3, 5, 7], [2, 2, 2]], [[9], [11]]]
    # The step that got nothing computes with no rows where the function is a part of the graph.
    assert sorted(calls) == ([0, 4] if decorator is batching.batch_function else [4])
    with pytest.raises(ValueError, match="supposed to be Tensors; found 3"):
        computation(3)


def test_a_decorated_function_of_one_tensor_in_a_graph_that_was_written() -> None:
    @tf.nondifferentiable_batch_function(1, 2, 0)
    def twice(a: Any) -> Any:
        return a + a

    x = tf.placeholder(tf.int32, [None], "x")
    tf.identity(twice(x), "y")
    written = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.import_graph_def(written, name="")
        assert sess.run("y:0", {"x:0": [1, 2]}).tolist() == [[2, 4]]


def test_an_error_comes_to_all_and_the_next_batch_is_none_of_it() -> None:
    @tf.nondifferentiable_batch_function(1, 4, LONG)
    def rows(a: Any) -> Any:
        return tf.boolean_mask(a, a > 0)

    x = tf.placeholder(tf.int32, [None])
    result = rows(x)
    with tf.Session() as sess:
        for error in both(sess, result, [{x: [-1, 1]}, {x: [1, 1]}]):
            assert isinstance(error, tf.errors.FailedPreconditionError)
            assert "does not equal the sum" in error.message
        assert sess.run(result, {x: [1, 2, 3, 4]})[0].tolist() == [1, 2, 3, 4]


def test_who_leaves_a_batch_leaves_it_to_the_others() -> None:
    batcher, one = Batcher(1, 4, LONG, 10, []), np.zeros(1)
    last = _Task([one])
    held, released, seen = threading.Event(), threading.Event(), []

    def wait(condition: Any, ready: Any, give_up: Any = None, deadline: Any = None) -> None:
        while not ready():
            condition.wait()

    def interrupted(condition: Any, ready: Any, give_up: Any = None, deadline: Any = None) -> None:
        if deadline is None:  # it is the last of a batch that is full, and another is computed
            raise KeyboardInterrupt
        wait(condition, ready)

    def hold(batch: Any) -> None:
        held.set()
        released.wait()

    full = start(lambda: batcher.run(_Task([np.zeros(4)]), hold, wait))
    held.wait()
    others = [
        start(lambda: batcher.run(_Task([one]), lambda b: seen.append(b.size), wait))
        for _ in range(3)
    ]
    with batcher.changed:
        while batcher._open is None or len(batcher._open.tasks) < 3:
            batcher.changed.wait(0.01)
    with pytest.raises(KeyboardInterrupt):
        batcher.run(last, hold, interrupted)
    released.set()
    for join in (full, *others):
        join()
    assert seen == [3] and batcher._waiting == batcher._running == 0


def test_the_end_of_a_session_ends_the_waiting() -> None:
    x = tf.constant([1])
    fetch = batch([x], 2)[1]
    sess, begun = tf.Session(), threading.Event()

    def wait() -> Any:
        begun.set()
        try:
            return sess.run(fetch)
        except RuntimeError as e:  # the session was closed before
            return tf.errors.CancelledError(None, None, str(e))

    found = start(wait)
    begun.wait()
    sess.close()
    assert isinstance(found(), tf.errors.CancelledError)


@pytest.mark.parametrize(("inputs", "more", "text"), [
    ([[1], [2, 3]], {}, "must have equal 0th-dimension size"),
    ([[1, 2, 3]], {}, "Task size 3 is larger than maximum batch size 2"),
    ([[1]], {"allowed_batch_sizes": [2, 1]}, "must be monotonically increasing"),
    ([[1]], {"allowed_batch_sizes": [1]}, "must equal max_batch_size"),
])  # fmt: skip
def test_what_cannot_be_batched(inputs: Any, more: dict[str, Any], text: str) -> None:
    feeds = {tf.placeholder(tf.int32, None): value for value in inputs}
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match=text):
        sess.run(batch(list(feeds), 2, 0, **more)[1], feeds)


def test_parts_that_do_not_come() -> None:
    late = raw.Unbatch(
        batched_tensor=tf.zeros([0, 2]), batch_index=tf.zeros([0, 3], tf.int64),
        id=tf.constant(7, tf.int64), timeout_micros=0,
    )  # fmt: skip
    with tf.Session() as sess, pytest.raises(
        tf.errors.DeadlineExceededError, match="did not arrive within timeout window"
    ):  # fmt: skip
        sess.run(late)
