"""One graph over the CPU, OpenCL and PyTorch: right, trained, and with every copy in the trace."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

CPU, OPENCL, TORCH = "/device:CPU:0", "/device:OPENCL:0", "/device:TORCH:0"


@pytest.fixture(autouse=True)
def _all_there() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        kinds = {d.device_type for d in session.list_devices()}
    if "OPENCL" not in kinds:
        pytest.skip("no OpenCL device here (for a CPU: apt install pocl-opencl-icd)")


def network(first: str, second: str, third: str):
    """A loss and a training step whose layers live on three devices."""
    x = tf.placeholder(tf.float32, [None, 6], name="x")
    net, width = x, 6
    for device, units in ((first, 8), (second, 8), (third, 1)):
        start = np.random.default_rng(units).normal(size=(width, units)).astype("f") / 2
        with tf.device(device):
            net = tf.tanh(tf.matmul(net, tf.Variable(start)) + tf.Variable(tf.zeros([units])))
        width = units
    loss = tf.reduce_mean(tf.square(net - 0.5))
    train = tf.train.MomentumOptimizer(0.2, 0.9).minimize(loss, colocate_gradients_with_ops=True)
    return x, loss, train


def losses(*devices: str) -> tuple[list[float], tf.RunMetadata]:
    """The losses of ten steps, and the trace of one more."""
    data = np.random.default_rng(0).normal(size=(16, 6)).astype("f")
    with tf.Graph().as_default():
        x, loss, train = network(*devices)
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
            session.run(tf.global_variables_initializer())
            found = [float(session.run([loss, train], {x: data})[0]) for _ in range(10)]
            metadata = tf.RunMetadata()
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            session.run([loss, train], {x: data}, options, metadata)
    return found, metadata


def test_three_backends_train_as_one_does() -> None:
    mixed, metadata = losses(OPENCL, TORCH, CPU)
    alone, _ = losses(CPU, CPU, CPU)
    np.testing.assert_allclose(mixed, alone, rtol=1e-4)
    assert mixed[-1] < mixed[0]
    devices = {d.device.rsplit("device:", 1)[-1] for d in metadata.step_stats.dev_stats}
    assert {"CPU:0", "OPENCL:0", "TORCH:0"} <= devices


def test_every_copy_shows_with_its_route() -> None:
    _, metadata = losses(OPENCL, TORCH, CPU)
    labels = [
        n.timeline_label
        for d in metadata.step_stats.dev_stats
        for n in d.node_stats
        if "copy_to" in n.node_name
    ]
    text = "\n".join(labels)
    assert "OPENCL0 to host" in text
    assert "host to OPENCL0" in text
    assert "TORCH0" in text
    assert all("bytes" in label for label in labels)
