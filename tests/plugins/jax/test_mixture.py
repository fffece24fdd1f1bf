"""One graph over several backends: right, trained, and with every copy in the trace."""

from __future__ import annotations

import random

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


def strewn(seed: int | None, steps: int) -> list[float]:
    """The losses of a small network whose ops stand on devices drawn by lot; None for the CPU."""
    draw = random.Random(seed)
    devices = [CPU] if seed is None else [CPU, JAX, OPENCL, TORCH]
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 24)
    images = (rng.normal(size=(24, 6, 6, 1)) + labels[:, None, None, None]).astype("f")
    with tf.Graph().as_default():
        tf.set_random_seed(3)
        with tf.device(lambda op: draw.choice(devices)):
            x, y = tf.placeholder(tf.float32, images.shape), tf.placeholder(tf.int32, [24])
            net = tf.layers.conv2d(x, 5, 3, padding="same", activation=tf.nn.relu)
            net = tf.layers.batch_normalization(net, training=True)
            net = tf.layers.flatten(tf.layers.max_pooling2d(net, 2, 2))
            rows = tf.get_variable("rows", [6, 5])
            net = tf.concat([net, tf.nn.embedding_lookup(rows, tf.argmax(net, 1) % 6)], 1)
            logits = tf.layers.dense(tf.nn.dropout(net, rate=0.1, seed=5), 4)
            loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
            optimizer = tf.train.AdamOptimizer(0.003)
            slopes, variables = zip(*optimizer.compute_gradients(loss), strict=True)
            slopes, _ = tf.clip_by_global_norm(slopes, 1.0)
            train = optimizer.apply_gradients(zip(slopes, variables, strict=True))
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
            session.run(tf.global_variables_initializer())
            feed = {x: images, y: labels}
            return [float(session.run([loss, train], feed)[0]) for _ in range(steps)]


@pytest.mark.parametrize(
    ("seed", "steps"),
    [(1, 20), *(pytest.param(s, 200, marks=pytest.mark.prove) for s in (2, 3))],
)
def test_ops_strewn_over_backends_train_as_on_the_cpu(seed: int, steps: int) -> None:
    need("OPENCL", "TORCH")
    found, expected = strewn(seed, steps), strewn(None, steps)
    np.testing.assert_allclose(found[:20], expected[:20], rtol=1e-3)
    # Rounding grows from step to step, and the network learns all the same.
    np.testing.assert_allclose(found, expected, rtol=0.02, atol=0.01)
    assert found[-1] < found[0]
