"""The example backend: complete, short, and quoted by the documentation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import opdock as tf
from opdock.plugins.manager import get_manager

SOURCE = Path(__file__).resolve().parents[2] / "plugins" / "echo" / "src" / "opdock_echo"


def open_echo(index=0):
    manager = get_manager()
    return manager.open([d for d in manager.devices() if d.spec.name == "echo"][index])


def test_it_stays_short():
    lines = sum(len(p.read_text(encoding="utf-8").splitlines()) for p in SOURCE.glob("*.py"))
    assert lines < 100


def test_it_has_memory_of_its_own():
    device = open_echo().device
    array = np.arange(3.0)
    buffer = device.upload(array)
    array[:] = 0
    assert type(buffer) is not np.ndarray
    fetched = device.download(buffer)
    assert type(fetched) is np.ndarray
    assert fetched.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(tf.errors.UnimplementedError, match="hold no object"):
        device.upload(np.array([b"s"], object))


def test_two_devices():
    assert open_echo(0).device is not open_echo(1).device


def test_own_and_portable_kernels():
    kernels = open_echo().kernels
    assert {"AddV2", "MatMul", "Relu"} <= {e.kernel.op for e in kernels if e.plugin == "echo"}
    assert any(e.kernel.is_portable for e in kernels)


def test_programs_run_there():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 2])
        with tf.device("/device:ECHO:0"):
            y = tf.nn.relu(tf.matmul(x, x, transpose_b=True) - 1.0)
        with tf.device("/device:ECHO:1"):
            z = y + 0.5
        config = tf.ConfigProto(allow_soft_placement=False)
        with tf.Session(config=config) as sess:
            value = np.array([[1.0, 2.0], [0.0, 0.5]], np.float32)
            got = sess.run(z, {x: value})
    expected = np.maximum(value @ value.T - 1, 0) + 0.5
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def network(device):
    """The gradients of a convnet's loss, and the kernels that compute them."""
    rng = np.random.default_rng(0)
    image = rng.standard_normal((2, 8, 8, 3)).astype(np.float32)
    shapes = [(3, 3, 3, 4), (3, 3, 4, 2), (128, 5)]
    with tf.Graph().as_default(), tf.device(device):
        weights = [tf.constant(rng.standard_normal(s).astype(np.float32)) for s in shapes]
        x = tf.placeholder(tf.float32, image.shape)
        y = tf.nn.relu(tf.nn.conv2d(x, weights[0], 1, "SAME", dilations=2))
        y = tf.nn.max_pool(y, 2, 2, "VALID")
        y = tf.nn.depthwise_conv2d_native(y, weights[1], [1, 1, 1, 1], "SAME")
        y = tf.matmul(tf.reshape(y, [2, 128]), weights[2])
        gradients = tf.gradients(tf.reduce_sum(tf.tanh(y)), [x, *weights])
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=False)) as sess:
            told = sess.explain(gradients, {x: image})
            return sess.run(gradients, {x: image}), {row.op: row.how for row in told.rows}


def test_a_whole_convnet_runs_on_nothing_but_an_array_namespace():
    found, how = network("/device:ECHO:0")
    assert {how[op] for op in how if "Conv" in op or "Pool" in op} == {"portable"}
    assert {"Conv2DBackpropInput", "Conv2DBackpropFilter", "MaxPoolGrad"} <= set(how)
    for got, wanted in zip(found, network("/device:CPU:0")[0], strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_placement_does_not_choose_it_unasked():
    with tf.Graph().as_default(), tf.Session() as sess:
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        sess.run(tf.constant(1.0) + tf.constant(2.0), options=options, run_metadata=metadata)
        used = {s.device for s in metadata.step_stats.dev_stats}
    assert not [d for d in used if "ECHO" in d]
