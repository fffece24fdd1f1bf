"""What a session held is freed with it, whether or not the garbage collector ever runs."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf

FEED = np.ones((2, 4), np.float32)


@pytest.fixture(autouse=True)
def _without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def plain(x: Any, y: Any) -> Any:
    return y


def training(x: Any, y: Any) -> Any:
    return tf.train.AdamOptimizer().minimize(tf.reduce_mean(tf.square(y)))


def looping(x: Any, y: Any) -> Any:
    return tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v + tf.reduce_sum(y)), [0, 0.0])


def branching(x: Any, y: Any) -> Any:
    return tf.cond(tf.reduce_sum(x) > 0, lambda: y, lambda: -y)


def reading(x: Any, y: Any) -> Any:
    data = tf.data.Dataset.range(100).map(lambda v: v + 1, 2).prefetch(2)
    return y, tf.data.make_one_shot_iterator(data).get_next()


def calling(x: Any, y: Any) -> Any:
    return tf.py_func(lambda v: v + 1, [y], tf.float32)


def queueing(x: Any, y: Any) -> Any:
    queue = tf.FIFOQueue(3, tf.float32)
    return y, queue.size()


KINDS = (plain, training, looping, branching, reading, calling, queueing)


def run(kind: Callable[[Any, Any], Any]) -> tuple[tf.Session, Any]:
    """A session that ran twice, and a variable's array, weakly."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 4])
        fetched = kind(x, tf.layers.dense(x, 3, name="d"))
        session = tf.Session()
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            session.run(fetched, {x: FEED})
        array = session._engine.resources.cell("", "d/kernel", None).box[0]
    return session, weakref.ref(array)


@pytest.mark.parametrize("kind", KINDS)
def test_a_session_that_is_dropped(kind):
    session, array = run(kind)
    del session
    assert array() is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_session_that_is_closed(kind):
    session, array = run(kind)
    session.close()
    assert array() is None
