"""Uploads do not wait for the device, and never see what the caller writes afterwards."""

from __future__ import annotations

import numpy as np

import opdock as tf
from opdock_opencl.staging import _LIMIT


def test_the_caller_may_write_at_once(opencl) -> None:
    arrays, kept = [], []
    source = np.zeros(50_000, np.float32)
    for i in range(200):
        source[:] = i
        arrays.append(opencl.upload(source))
        kept.append(float(i))
    source[:] = -1
    for array, value in zip(arrays, kept, strict=True):
        np.testing.assert_array_equal(opencl.download(array), np.full(50_000, value, np.float32))


def test_copies_that_arrived_are_dropped(opencl) -> None:
    for _ in range(5):
        opencl.upload(np.zeros(1000, np.float32))
    opencl.synchronize()
    opencl.upload(np.zeros(1, np.float32))
    assert len(opencl._staging._sent) <= 1
    assert opencl._staging._bytes <= 4


def test_what_waits_is_bounded(opencl) -> None:
    for _ in range(6):
        opencl.upload(np.zeros(_LIMIT // 4 // 4, np.float32))
        assert opencl._staging._bytes <= _LIMIT


def test_views_strides_and_read_only_arrays(opencl) -> None:
    base = np.arange(24, dtype=np.int32).reshape(4, 6)
    frozen = base.copy()
    frozen.flags.writeable = False
    for array in (base.T, base[::-1], base[:, ::2], frozen, np.int32(5) * np.ones((), np.int32)):
        np.testing.assert_array_equal(opencl.download(opencl.upload(array)), array)


def test_feeds_may_be_reused_between_runs(opencl) -> None:
    with tf.Graph().as_default(), tf.device("/device:OPENCL:0"):
        feed = tf.placeholder(tf.float32, [1000])
        total = tf.reduce_sum(feed * 2.0)
        buffer = np.empty(1000, np.float32)
        with tf.Session() as session:
            for i in range(50):
                buffer[:] = i
                assert session.run(total, {feed: buffer}) == 2000 * i
