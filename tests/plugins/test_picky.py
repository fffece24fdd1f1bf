"""Devices and routes that refuse a value: it goes another way, or who wants it runs elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf
from tests.plugins import picky

SOFT = tf.ConfigProto(allow_soft_placement=True)
ONES = np.ones(200, np.float32)


@pytest.fixture(autouse=True, scope="module")
def installed() -> Iterator[None]:
    picky.install()
    yield
    picky.uninstall()


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default(), tf.device("/device:PICKY:0"):
        yield


def device_of(sess: tf.Session, fetch: Any, feed: Any) -> str:
    rows = {r.op: r for r in sess.explain(fetch, feed).rows}
    return str(rows["AddV2"].device).rpartition("device:")[2]


def fed(dtype: tf.DType, size: int) -> tuple[Any, Any]:
    x = tf.placeholder(dtype, [None])
    return x + x, {x: np.ones(size)}


def beside_a_constant(values: np.ndarray) -> tuple[Any, Any]:
    x = tf.placeholder(values.dtype, [1])
    return x + values, {x: [1]}


REFUSED: dict[str, tuple[Callable[[], tuple[Any, Any]], type[tf.errors.OpError]]] = {
    "type": (lambda: fed(tf.float64, 3), tf.errors.UnimplementedError),
    "size": (lambda: fed(tf.float32, 200), tf.errors.ResourceExhaustedError),
    "size of a constant": (lambda: beside_a_constant(ONES), tf.errors.ResourceExhaustedError),
    "type of a constant": (
        lambda: beside_a_constant(np.ones(3)), tf.errors.UnimplementedError,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_who_wants_a_value_that_the_device_refuses_moves(what):
    fetch, feed = REFUSED[what][0]()
    with tf.Session(config=SOFT) as sess:
        for _ in range(2):
            assert np.all(sess.run(fetch, feed) == 2.0)
        assert device_of(sess, fetch, feed) == "CPU:0"


@pytest.mark.parametrize("what", REFUSED)
def test_who_asks_for_the_device_hears_what_it_said(what):
    build, error = REFUSED[what]
    fetch, feed = build()
    with tf.Session() as sess, pytest.raises(error, match="here|hundred") as found:
        sess.run(fetch, feed)
    assert "[[node " in found.value.message


def test_a_variable_that_the_device_refuses_has_nowhere_else_to_be():
    """A variable does not move: its device said nothing of types when it was placed."""
    v = tf.get_variable("v", initializer=np.ones(3))
    with tf.Session(config=SOFT) as sess, pytest.raises(tf.errors.UnimplementedError) as found:
        sess.run(v.initializer)
    assert "no arrays of float64 here" in found.value.message


def test_what_a_route_declines_goes_through_the_host():
    x = tf.placeholder(tf.float32)
    y = x + 1.0
    with tf.device("/device:PICKY:1"):
        z = y * 2.0
    picky.carried.clear()
    with tf.Session() as sess:
        for shape in ((3,), (2, 3), (3,)):
            value = np.ones(shape, np.float32)
            np.testing.assert_array_equal(sess.run(z, {x: value}), 4.0 * value)
    assert picky.carried == [False, True, False]
