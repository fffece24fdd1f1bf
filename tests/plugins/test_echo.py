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


def test_placement_does_not_choose_it_unasked():
    with tf.Graph().as_default(), tf.Session() as sess:
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        sess.run(tf.constant(1.0) + tf.constant(2.0), options=options, run_metadata=metadata)
        used = {s.device for s in metadata.step_stats.dev_stats}
    assert not [d for d in used if "ECHO" in d]
