"""Elements of datasets in the memory of an OpenCL device."""

from __future__ import annotations

import numpy as np

import opdock as tf
from opdock.data.devices import MultiDeviceIterator

DEVICE = "/device:OPENCL:0"


def test_a_step_takes_what_was_copied_ahead(opencl) -> None:
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    with tf.Graph().as_default():
        dataset = tf.data.Dataset.from_tensor_slices((rows, np.arange(3, dtype=np.int32)))
        dataset = dataset.apply(tf.data.experimental.prefetch_to_device(DEVICE, 2))
        with tf.device(DEVICE):
            iterator = tf.data.make_initializable_iterator(dataset)
            row, number = iterator.get_next()
            result = row * tf.cast(number, tf.float32)
        with tf.Session() as session:
            for _ in range(2):
                session.run(iterator.initializer)
                found = [session.run(result) for _ in range(3)]
                np.testing.assert_array_equal(found, rows * [[0], [1], [2]])
            told = session.explain([result]).rows
    kernels = {row.op: row.kernel for row in told}
    assert kernels["IteratorGetNext"].endswith(".get_next_there")
    assert [row.kernel for row in told if row.how == "copy"] == ["download"]


def test_elements_are_dealt_out_to_it_and_to_the_host(opencl) -> None:
    with tf.Graph().as_default():
        dealt = MultiDeviceIterator(tf.data.Dataset.range(6), ["/cpu:0", DEVICE])
        both = dealt.get_next()
        with tf.Session() as session:
            session.run(dealt.initializer)
            assert [session.run(both) for _ in range(3)] == [[0, 1], [2, 3], [4, 5]]
