"""One graph over several backends: right, trained, and with every copy in the trace."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

CPU, JAX = "/device:CPU:0", "/device:JAX:0"
OPENCL, TORCH = "/device:OPENCL:0", "/device:TORCH:0"
WHERE = {
    "OPENCL": "no OpenCL device here (for a CPU: apt install pocl-opencl-icd)",
    "TORCH": "PyTorch is not installed (make torch)",
}


def need(*kinds: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        found = {d.device_type for d in session.list_devices()}
    for kind in kinds:
        if kind not in found:
            pytest.skip(WHERE[kind])


def network(*devices: str):
    """A loss and a training step with a layer on each device."""
    x = tf.placeholder(tf.float32, [None, 6], name="x")
    net, width = x, 6
    for i, device in enumerate(devices):
        units = 1 if i == len(devices) - 1 else 8
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


@pytest.mark.parametrize(
    "devices",
    [(JAX, CPU, JAX), (OPENCL, JAX, CPU), (OPENCL, TORCH, JAX, CPU)],
    ids=["two", "three", "four"],
)
def test_several_backends_train_as_one_does(devices: tuple[str, ...]) -> None:
    kinds = {device.split(":")[1] for device in devices}
    need(*sorted(kinds - {"CPU", "JAX"}))
    mixed, metadata = losses(*devices)
    alone, _ = losses(*[CPU] * len(devices))
    np.testing.assert_allclose(mixed, alone, rtol=1e-4)
    assert mixed[-1] < mixed[0]
    seen = {d.device.rsplit("device:", 1)[-1] for d in metadata.step_stats.dev_stats}
    assert {f"{kind}:0" for kind in kinds} <= seen
    labels = [
        n.timeline_label
        for d in metadata.step_stats.dev_stats
        for n in d.node_stats
        if "copy_to" in n.node_name
    ]
    assert all("bytes" in label for label in labels)
    assert any("JAX0 to " in label for label in labels)
    assert any(" to JAX0" in label for label in labels)
