"""Staging areas: order, bounds, keys, parts, and that what is staged is nobody else's."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.ops.composed.staging import MapStagingArea, StagingArea
from tests.threads import start


def test_a_step_gets_what_an_earlier_one_has_put() -> None:
    x = tf.placeholder(tf.float32, [3])
    area = StagingArea([tf.float32, tf.string], shapes=[[3], []])
    put = area.put([tf.exp(x) * 2.0, tf.constant("s")])
    y, word = area.get()
    assert y.shape.as_list() == [3]
    both = [put, tf.log(y / 2.0), word]
    with tf.Session() as sess:
        sess.run(put, {x: [0, 0, 0]})
        for turn in range(1, 5):
            _, found, text = sess.run(both, {x: [turn] * 3})
            np.testing.assert_allclose(found, [turn - 1] * 3, atol=1e-5)
            assert text == b"s"


def test_what_is_staged_is_nobody_elses() -> None:
    x = tf.placeholder(tf.float32, [3])
    area = StagingArea([tf.float32])
    put, peek, clear, size = area.put(x), area.peek(0), area.clear(), area.size()
    mine = np.ones(3, np.float32)
    with tf.Session() as sess:
        sess.run(put, {x: mine})
        mine[:] = 7
        (found,) = sess.run(peek)
        if found.flags.writeable:
            found[:] = 9
        np.testing.assert_array_equal(sess.run(peek)[0], [1, 1, 1])
        sess.run(clear)
        assert sess.run(size) == 0


@pytest.mark.parametrize("bound", [{"capacity": 2}, {"memory_limit": 20}])
def test_whoever_puts_waits_for_room(bound: dict[str, int]) -> None:
    x = tf.placeholder(tf.float32, None)
    area = StagingArea([tf.float32], **bound)
    put, get, size = area.put([x]), area.get(), area.size()
    with tf.Session() as sess:
        for value in ([0.0, 0], [1.0, 1]):
            sess.run(put, {x: value})
        done = start(lambda: sess.run(put, {x: [2.0, 2]}))
        assert sess.run(size) == 2
        assert [sess.run(get)[0][0] for _ in range(3)] == [0, 1, 2]
        assert done() is None
        if area.memory_limit:
            with pytest.raises(tf.errors.ResourceExhaustedError, match="'24' bytes.*'20'"):
                sess.run(put, {x: [0.0] * 6})


def test_a_full_area_is_emptied_and_filled_in_one_step() -> None:
    x = tf.placeholder(tf.int32, [])
    area = StagingArea([tf.int32], capacity=1)
    put, get = area.put([x]), area.get()
    config = tf.ConfigProto(inter_op_parallelism_threads=1)
    with tf.Session(config=config) as sess:
        sess.run(put, {x: 0})
        for turn in range(1, 4):
            assert sess.run([put, get], {x: turn})[1] == [turn - 1]


@pytest.mark.parametrize("how", ["put", "end", "deadline"])
def test_what_ends_the_waiting(how: str) -> None:
    area, table = StagingArea([tf.int32]), MapStagingArea([tf.int32])
    value = tf.constant(5)
    gets = [area.get(), table.get(3)[1], area.peek(0)]
    puts = [area.put([value]), table.put(3, [value], [0]), area.put([value])]
    options = tf.RunOptions(timeout_in_ms=50) if how == "deadline" else None
    for get, put in zip(gets, puts, strict=True):
        sess, begun = tf.Session(), threading.Event()

        def wait(sess: Any = sess, get: Any = get, begun: Any = begun) -> Any:
            begun.set()
            try:
                return sess.run(get, options=options)
            except RuntimeError as e:  # the session was closed before
                return tf.errors.CancelledError(None, None, str(e))

        found = start(wait)
        begun.wait()
        if how == "put":
            sess.run(put)
            assert found() == [5]
        else:
            if how == "end":
                sess.close()
            wanted = tf.errors.CancelledError if how == "end" else tf.errors.DeadlineExceededError
            assert isinstance(found(), wanted)
        sess.close()


def test_keys_and_parts() -> None:
    key, x = tf.placeholder(tf.int64, []), tf.placeholder(tf.int32, [])
    area = MapStagingArea([tf.int32, tf.int32], names=["a", "b"], ordered=True)
    put_a, put_b, put = (
        area.put(key, {"a": x}),
        area.put(key, {"b": x}),
        area.put(key, {"a": x, "b": x}),
    )
    least, only_a, peek_b = area.get(), area.get(key, ["a"]), area.peek(key, ["b"])
    sizes = area.size(), area.incomplete_size()
    invalid = tf.errors.InvalidArgumentError
    with tf.Session() as sess:
        sess.run(put_a, {key: 9, x: 1})
        with pytest.raises(invalid, match="index '0' for key '9' was already initialized"):
            sess.run(put_a, {key: 9, x: 2})
        assert sess.run(sizes) == (0, 1)
        sess.run(put_b, {key: 9, x: 2})
        sess.run(put, {key: 4, x: 3})
        assert sess.run(least) == (4, {"a": 3, "b": 3})
        assert sess.run(peek_b, {key: 9}) == {"b": 2}
        assert sess.run(only_a, {key: 9}) == (9, {"a": 1})
        with pytest.raises(invalid, match="index '0' for key '9' has already been removed"):
            sess.run(only_a, {key: 9})
        assert sess.run(sizes) == (1, 0)
        sess.run(area.clear())
        assert sess.run(sizes) == (0, 0)
        # A part counts for the limit of memory alone: whoever brings the rest is not shut out.
        full = MapStagingArea([tf.int32, tf.int32], capacity=1)
        for step in (
            full.put(1, [tf.constant(1)], [0]), full.put(2, [tf.constant(1)] * 2, [0, 1]),
            full.put(1, [tf.constant(1)], [1]),
        ):  # fmt: skip
            sess.run(step)
        assert sess.run(full.size()) == 2


def test_mistakes() -> None:
    one, word = tf.constant(1), tf.constant("a")
    area, named = MapStagingArea([tf.int32] * 2), StagingArea([tf.int32], names=["x"])
    for text, wrong in (
        ("same length", lambda: StagingArea([tf.int32], shapes=[[], []])),
        ("must be a string", lambda: StagingArea([tf.int32], shared_name=3)),
        ("dictionary in a staging area with names", lambda: named.put([one])),
        ("do not match names", lambda: named.put({"y": one})),
        ("must have names", lambda: area.put(1, {"x": one})),
        ("Indices must be supplied", lambda: area.put(1, [one])),
        ("doesn't match number of values", lambda: area.put(1, [one], [0, 1])),
        ("Unexpected number of inputs", lambda: area.put(1, [one] * 3, [0, 1, 1])),
        ("Datatypes do not match", lambda: area.put(1, [word], [0])),
        ("Empty indices", lambda: area.get(1, [])),
        ("not created with names", lambda: area.get(1, ["x"])),
    ):
        with pytest.raises(ValueError, match=text):
            wrong()
    for wrong in (3, [0, "x"]):
        with pytest.raises(TypeError, match="indices"):
            area.get(1, wrong)
    with pytest.raises(ValueError, match="rank 0"):
        named.peek([0])
    invalid = tf.errors.InvalidArgumentError
    with tf.Session() as sess:
        with pytest.raises(invalid, match="not strictly ordered"):
            sess.run(area.put(1, [one, one], [1, 0]))
        sess.run(area.put(1, [one, one], [0, 1]))
        with pytest.raises(invalid, match="Index '5' for key '1' was out of bounds '2'"):
            sess.run(tf.raw_ops.MapPeek(
                key=1, indices=[5], dtypes=[tf.int32], shared_name=area.name
            ))  # fmt: skip
        with pytest.raises(invalid, match="index must be >= 0"):
            sess.run(named.peek(-1))
        wide = StagingArea([tf.int32] * 2, shared_name=named.name)
        sess.run(named.put({"x": one}))
        with pytest.raises(invalid, match="Mismatch stage/unstage: 1 vs. 2"):
            sess.run(wide.get())
