"""A traced step carries the device's own times of its kernels."""

from __future__ import annotations

import numpy as np

import opdock as tf


def test_kernel_times_reach_run_metadata(opencl) -> None:
    with tf.Graph().as_default(), tf.device("/device:OPENCL:0"):
        a = tf.placeholder(tf.float32, [128, 128])
        product = tf.nn.softmax(tf.matmul(a, a))
        with tf.Session() as session:
            metadata = tf.RunMetadata()
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            feed = {a: np.ones((128, 128), np.float32)}
            session.run(product, feed, options, metadata)
            plain = session.run(product, feed)
    stats = {d.device: d for d in metadata.step_stats.dev_stats}
    name = "/job:localhost/replica:0/task:0/device:OPENCL:0"
    host = {n.node_name: n for n in stats[name].node_stats}
    kernels = list(stats[f"{name}/stream:all"].node_stats)
    assert {"MatMul", "Softmax"} <= {k.node_name for k in kernels}
    for kernel in kernels:
        step = host[kernel.node_name]
        assert kernel.all_end_rel_micros <= step.all_end_rel_micros + 1
        assert kernel.all_start_micros >= step.all_start_micros - 1
    np.testing.assert_allclose(plain.sum(1), 1, rtol=1e-5)
