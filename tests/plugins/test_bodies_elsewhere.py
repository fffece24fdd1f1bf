"""Bodies of loops and branches on one device, their variables on another, memory apart."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf
from tests.plugins import fickle

DEVICES = ("/device:CPU:0", "/device:FICKLE:0", "")
PLACES = [p for p in itertools.product(DEVICES, repeat=3) if len(set(p)) > 1]
X = np.array([1.0, 2.0], np.float32)


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    fickle.install()
    with tf.Graph().as_default():
        yield
    fickle.uninstall()


@pytest.mark.parametrize("use_resource", [True, False], ids=["resource", "ref"])
@pytest.mark.parametrize(("holds", "around", "inside"), PLACES)
def test_bodies_read_and_write_variables_where_they_are(holds, around, inside, use_resource):
    with tf.device(holds):
        v = tf.get_variable("v", initializer=2.0 * X, use_resource=use_resource)
        count = tf.get_variable("count", initializer=0.0 * X, use_resource=use_resource)
    x = tf.placeholder(tf.float32, [2])

    def body(i: Any, y: Any) -> Any:
        with tf.device(inside), tf.control_dependencies([tf.assign_add(count, X)]):
            return i + 1, y * 2.0 + v

    with tf.device(around):
        loop = tf.while_loop(lambda i, y: i < 3, body, (0, x))[1]
        branch = tf.cond(x[0] > 0.0, lambda: body(0, x)[1], lambda: x)
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(sess.run(loop, {x: X}), 22.0 * X)
        np.testing.assert_array_equal(sess.run(branch, {x: X}), 4.0 * X)
        np.testing.assert_array_equal(sess.run(count), 4.0 * X)
