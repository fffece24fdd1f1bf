"""`Session.make_callable`: like `run`, and not slower."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.io import protos


def test_like_run():
    x, k = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.int32, [])
    y = {"sum": tf.reduce_sum(x) + tf.cast(k, tf.float32), "both": [x, k]}
    with tf.Session() as session:
        call = session.make_callable(y, [x, k])
        several = [([1.0, 2.0], 3), (np.ones(2, np.float32), np.int32(3)), (np.ones(5), 1),
                   (np.ones(2, np.float32), np.array(4, np.int32))]  # fmt: skip
        for values in several:
            for _ in range(3):
                got, want = call(*values), session.run(y, dict(zip((x, k), values, strict=True)))
                assert got["sum"] == want["sum"]
                np.testing.assert_array_equal(got["both"][0], want["both"][0])
                assert got["both"][1] == want["both"][1]
                assert type(got["both"][1]) is type(want["both"][1])


def test_errors_are_those_of_run():
    x = tf.placeholder(tf.float32, [2])
    y = tf.check_numerics(x, "bad")
    good = np.ones(2, np.float32)
    session = tf.Session()
    call = session.make_callable(y, [x])
    for _ in range(3):
        call(good)
        with pytest.raises(tf.errors.InvalidArgumentError, match="must feed a value"):
            call()
        # As in TF, where the values are paired with the feeds.
        assert call(good, "more").tolist() == [1, 1]
        with pytest.raises(ValueError, match="Cannot feed value of shape"):
            call(np.ones(3, np.float32))
        with pytest.raises(tf.errors.InvalidArgumentError, match="bad"):
            call(np.full(2, np.inf, np.float32))
    session.close()
    with pytest.raises(RuntimeError, match="closed Session"):
        call(good)


def test_the_graph_may_grow_and_variables_change(graph):
    x = tf.placeholder(tf.float32, [2])
    v = tf.Variable([1.0, 2.0])
    keep = v.assign(x)
    with tf.Session() as session:
        session.run(v.initializer)
        add, store = session.make_callable(x + v, [x]), session.make_callable(keep, [x])
        fed = np.ones(2, np.float32)
        for i in range(5):
            expected = add(fed)
            tf.constant(i)
            np.testing.assert_array_equal(add(fed), expected)
            mine = np.full(2, i, np.float32)
            store(mine)
            mine[:] = -1  # the variable holds a copy
            np.testing.assert_array_equal(add(fed), fed + i)


def test_many_shapes():
    x = tf.placeholder(tf.float32, [None])
    with tf.Session() as session:
        call = session.make_callable(tf.reduce_sum(x), [x])
        for _ in range(3):
            for n in range(1, 60):
                assert call(np.ones(n, np.float32)) == n


def test_options_and_metadata():
    x = tf.placeholder(tf.float32, [2])
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        call = session.make_callable(x + 1.0, [x], accept_options=True)
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        call(np.ones(2, np.float32), options=options, run_metadata=metadata)
    assert metadata.step_stats.dev_stats


def of_options(session, fetches, feeds):
    options = protos.CallableOptions()
    options.fetch.extend(t.name for t in fetches)
    options.feed.extend(t.name for t in feeds)
    return session._make_callable_from_options(options)


def test_a_callable_of_options_takes_what_a_graph_calls_by_another_shape():
    """As Keras feeds sparse targets: of a rank less than the placeholder's."""
    target, logits = tf.placeholder(tf.float32, [None] * 3), tf.placeholder(tf.float32, [None] * 3)
    flat = tf.cast(tf.reshape(target, [-1]), tf.int32)
    total = tf.reduce_sum(tf.reshape(logits, [-1, 2]) * tf.one_hot(flat, 2))
    with tf.Session() as session:
        run = of_options(session, [total], [target, logits])
        values = np.arange(12.0, dtype="f").reshape(2, 3, 2)
        for _ in range(2):
            assert run(np.ones([2, 3], "f"), values) == [36.0]
            assert run(np.zeros([2, 3, 1], "f"), values) == [30.0]
            assert run([[1, 1, 1], [0, 0, 0]], values) == [1 + 3 + 5 + 6 + 8 + 10]
        with pytest.raises(ValueError, match="Cannot feed value of shape"):
            session.run(total, {target: np.ones([2, 3]), logits: values})
        with pytest.raises(ValueError, match="Cannot feed value of shape"):
            session.make_callable(total, [target, logits])(np.ones([2, 3]), values)
        with pytest.raises(tf.errors.InvalidArgumentError):
            run(np.ones([2, 3], "f"), values[:, :, :1])
    with pytest.raises(RuntimeError, match="closed"):
        run(np.ones([2, 3], "f"), values)


@pytest.mark.parametrize(
    ("feed", "fetch", "target", "error", "match"),
    [
        ([], [], [], tf.errors.InvalidArgumentError, "at least one target"),
        (["a:0", "a:0"], ["c:0"], [], tf.errors.InvalidArgumentError, '"a:0" fed more than once'),
        (["a:0"], ["a:0"], [], tf.errors.InvalidArgumentError, "a:0 is both fed and fetched"),
        (["z:0"], ["c:0"], [], tf.errors.NotFoundError, "unable to find feed output z:0"),
        (["a:0"], ["c:7"], [], tf.errors.NotFoundError, "FetchOutputs node c:7: not found"),
        (["a:0"], [], ["z"], tf.errors.NotFoundError, "target nodes not found: z"),
    ],
)
def test_options_are_looked_at_when_the_callable_is_made(feed, fetch, target, error, match):
    tf.add(tf.placeholder(tf.float32, [], name="a"), 1.0, name="c")
    options = protos.CallableOptions(feed=feed, fetch=fetch, target=target)
    with tf.Session() as session, pytest.raises(error, match=match):
        session._make_callable_from_options(options)


def test_a_callable_of_options_takes_a_value_for_each_feed():
    a, b = (tf.placeholder(tf.float32, [], name=n) for n in "ab")
    with tf.Session() as session:
        run = of_options(session, [a + b], [a, b])
        for values in ((), (1.0,), (1.0, 2.0, 3.0)):
            with pytest.raises(
                tf.errors.InvalidArgumentError,
                match=f"Expected 2 feed tensors, but got {len(values)}",
            ):
                run(*values)
        assert run(1.0, 2.0) == [3.0]
