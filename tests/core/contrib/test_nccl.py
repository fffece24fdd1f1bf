"""`tf.contrib.nccl`: reductions over devices, whichever they are."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

nccl = tf.contrib.nccl
DEVICES = ["/device:CPU:1", "/device:CPU:0", "/device:CPU:2"]


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def session():
    return tf.Session(config=tf.ConfigProto(device_count={"CPU": 3}))


def on_devices(values):
    tensors = []
    for value, where in zip(values, DEVICES, strict=True):
        with tf.device(where):
            tensors.append(tf.identity(value))
    return tensors


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.int64])
def test_each_device_gets_the_reduction(dtype):
    given = [(np.random.RandomState(i).uniform(-3, 3, [3, 4]) * 5).astype(dtype) for i in range(3)]
    tensors = on_devices(given)
    wanted = {
        nccl.all_sum: sum(given[1:], given[0]),
        nccl.all_prod: given[0] * given[1] * given[2],
        nccl.all_min: np.minimum(np.minimum(given[0], given[1]), given[2]),
        nccl.all_max: np.maximum(np.maximum(given[0], given[1]), given[2]),
    }
    results = {function: function(tensors) for function in wanted}
    with session() as sess:
        for function, value in wanted.items():
            parts = results[function]
            assert [p.device for p in parts] == DEVICES
            for got in sess.run(parts):
                np.testing.assert_allclose(got, value, rtol=1e-2 if dtype == np.float16 else 1e-6)


def test_a_sum_on_one_device_goes_back_to_all():
    given = [np.full([2], i + 1.0) for i in range(3)]
    inputs = [tf.constant(value) for value in given]
    with tf.device(DEVICES[2]):
        total = nccl.reduce_sum(on_devices(inputs))
        sent = nccl.broadcast(total)
    assert total.device == sent.device == DEVICES[2]
    copies = on_devices([sent] * 3)
    slopes = tf.gradients(copies, inputs, [tf.constant([1.0, 2.0], tf.float64)] * 3)
    every = nccl.all_sum(on_devices(inputs))
    through = tf.gradients(every, inputs, [tf.constant([i, 1.0], tf.float64) for i in range(3)])
    with session() as sess:
        got, back, all_back = sess.run([copies, slopes, through])
    np.testing.assert_array_equal(got, np.full([3, 2], 6.0))
    np.testing.assert_array_equal(back, np.full([3, 2], [3.0, 6.0]))
    np.testing.assert_array_equal(all_back, np.full([3, 2], 3.0))


def test_tensors_need_devices():
    with pytest.raises(ValueError, match="Must pass >0 tensors"):
        nccl.all_sum([])
    with pytest.raises(ValueError, match="Device assignment required"):
        nccl.all_sum([tf.identity(1.0)])
    with tf.device("/device:CPU:7"), pytest.raises(ValueError, match="current device"):
        nccl.reduce_sum(on_devices([1.0, 2.0, 3.0]))
