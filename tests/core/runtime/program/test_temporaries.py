"""Variables that live within one step, and references to one of several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf

raw = tf.raw_ops


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def temporary(name: str = "", shape: Any = (2,)) -> Any:
    return raw.TemporaryVariable(shape=shape, dtype=tf.float32, var_name=name)


def test_a_temporary_variable() -> None:
    x = tf.placeholder(tf.float32, [2])
    held = tf.assign_add(tf.assign(temporary("t"), x), [10.0, 20.0])
    y = raw.DestroyTemporaryVariable(ref=held, var_name="t")
    with tf.Session() as sess:
        for value in ([1.0, 2.0], [3.0, 4.0]):
            np.testing.assert_array_equal(sess.run(y, {x: value}), np.add(value, [10.0, 20.0]))


def test_each_step_has_its_own() -> None:
    held = temporary("t")
    more = tf.assign_add(held, [1.0, 1.0])
    with tf.Session() as sess:
        first = sess.run(more)
        np.testing.assert_array_equal(sess.run(more), first)
        sess.run(temporary("t") + temporary("u"))


def test_the_name_is_the_node_s_by_default() -> None:
    held = temporary()
    y = raw.DestroyTemporaryVariable(ref=tf.assign(held, [1.0, 2.0]), var_name=held.op.name)
    with tf.Session() as sess:
        np.testing.assert_array_equal(sess.run(y), [1.0, 2.0])


def test_destroying_what_is_not_there() -> None:
    held = temporary("t")
    wrong = raw.DestroyTemporaryVariable(ref=held, var_name="bad")
    once = raw.DestroyTemporaryVariable(ref=held, var_name="t")
    with tf.control_dependencies([once]):
        twice = raw.DestroyTemporaryVariable(ref=held, var_name="t")
    with tf.Session() as sess:
        with pytest.raises(tf.errors.NotFoundError, match="Resource bad does not exist"):
            sess.run(wrong)
        with pytest.raises(tf.errors.NotFoundError, match="destroyed already"):
            sess.run([once, twice])


def test_two_of_a_name() -> None:
    first = tf.assign(temporary("t"), [1.0, 2.0])
    both = first + tf.assign(temporary("t"), [3.0, 4.0])
    ended = raw.DestroyTemporaryVariable(ref=first, var_name="t")
    with tf.control_dependencies([ended]):
        again = tf.assign(temporary("t"), [5.0, 6.0])
    with tf.Session() as sess:
        with pytest.raises(tf.errors.AlreadyExistsError, match="Resource t exists already"):
            sess.run(both)
        np.testing.assert_array_equal(sess.run(ended + again), [6.0, 8.0])


def test_its_shape_must_be_known() -> None:
    with (
        tf.Session() as sess,
        pytest.raises(tf.errors.InvalidArgumentError, match="needs a whole shape"),
    ):
        sess.run(temporary("t", (None, 2)))


def test_reads_around_a_write_by_a_chosen_reference() -> None:
    """Whoever reads one of the variables sees what came before by another name."""
    index = tf.placeholder(tf.int32, [])
    a, b = tf.Variable(1.0, use_resource=False), tf.Variable(2.0, use_resource=False)
    chosen = raw.RefSelect(index=index, inputs=[a._ref(), b._ref()])
    before = [tf.identity(t) + 0.0 for t in (a._ref(), b._ref(), chosen)]
    with tf.control_dependencies(before):
        write = tf.assign(b, 5.0)
    with tf.control_dependencies([write]):
        middle = tf.identity(chosen) + 0.0
    with tf.control_dependencies([middle]):
        through = tf.assign(chosen, 7.0)
    with tf.control_dependencies([through]):
        after = [tf.identity(t) + 0.0 for t in (a._ref(), b._ref())]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run([before, middle, after], {index: 1}) == [[1.0, 2.0, 2.0], 5.0, [1.0, 7.0]]
