"""The shapes-only device: it predicts shapes, memory and copies, and computes nothing."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import opdock as tf
from opdock.plugins.manager import get_manager


@pytest.fixture
def null():
    manager = get_manager()
    opened = manager.open(next(d for d in manager.devices() if d.spec.name == "null"))
    opened.device.ledger.__init__()
    return opened.device


def run(fetches, feed=None):
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        return sess.run(fetches, feed)


def test_small_integers_keep_their_values(null):
    assert null.download(null.upload(np.array([2, 3]))).tolist() == [2, 3]
    assert null.download(null.upload(np.array([2.0, 3.0]))).tolist() == [0.0, 0.0]


def test_memory_is_counted_and_given_back(null):
    buffer = null.upload(np.ones((1000,), np.float64))
    assert null.memory().in_use == 8000
    del buffer
    gc.collect()
    assert null.memory().in_use == 0
    assert null.memory().peak == 8000


def test_shapes_of_a_program(null):
    with tf.Graph().as_default(), tf.device("/device:NULL:0"):
        x = tf.placeholder(tf.float32, [None, 4])
        w = tf.Variable(tf.zeros([4, 3]))
        y = tf.reshape(tf.matmul(x, w), [3, -1])
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
            sess.run(w.initializer)
            got = sess.run(y, {x: np.ones((5, 4), np.float32)})
    assert got.shape == (3, 5)
    assert not got.any()
    assert null.ledger.kernels["MatMul"] == 1
    assert null.ledger.uploads[0] >= 1


def test_a_shape_that_depends_on_values_is_declined(null):
    from opdock.kernels.select.signature import NodeSig
    from opdock_null.kernels import table_for

    kernel = table_for(null).for_op("Where")[0]
    sig = NodeSig(
        "Where", "w", {"T": tf.bool}, [(3,)], [tf.bool], [(None, 1)], [tf.int64], device=null
    )
    with pytest.raises(tf.errors.UnimplementedError, match="depends on values"):
        kernel.bind(sig)(null.upload(np.ones(100, bool)))


def test_pretended_memory_runs_out(site):
    program = """
import numpy as np, opdock as tf
from opdock.plugins.manager import get_manager
manager = get_manager()
devices = [d for d in manager.devices() if d.spec.name == "null"]
assert len(devices) == 3
device = manager.open(devices[2]).device
device.upload(np.ones(100, np.uint8))
try:
    keep = [device.upload(np.ones(600, np.uint8)) for _ in range(2)]
except tf.errors.ResourceExhaustedError as e:
    print(e)
"""
    done = site.run("-c", program, OPDOCK_NULL_DEVICES="3", OPDOCK_NULL_MEMORY="1000")
    assert "OOM when allocating [600] of type uint8: 600 bytes on top of 600 of 1000" in done.stdout


def test_placement_never_chooses_it_unasked(null):
    with tf.Graph().as_default():
        assert run(tf.constant(1.0) + 1.0) == 2.0
    assert not null.ledger.kernels
