"""Convolution and its gradients on oneDNN, against the NumPy kernels in float64."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import opdock as tf
from opdock.plugin import windows
from opdock_cpu.onednn import conv
from opdock_cpu.onednn.declarations import Type
from tests.backends.cpu.onednn import close_to_float64, data, kernels, needs_onednn

pytestmark = needs_onednn


def with_gradients(forward):
    def build(x, w):
        y = forward(x, w)
        return [y, *tf.gradients(y * y, [x, w])]

    return build


def spatial(values, data_format):
    return [1, *values, 1] if data_format == "NHWC" else [1, 1, *values]


def image(data_format, channels=8):
    x = data(3, 13, 14, channels)
    return x if data_format == "NHWC" else np.ascontiguousarray(np.moveaxis(x, -1, 1))


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize(
    ("window", "stride", "dilation", "padding"),
    [
        ((3, 3), (1, 1), (1, 1), "SAME"), ((3, 2), (2, 2), (1, 1), "SAME"),
        ((3, 3), (2, 3), (1, 1), "VALID"), ((3, 3), (1, 1), (2, 2), "SAME"),
        ((1, 1), (1, 1), (1, 1), "VALID"), ((1, 1), (3, 3), (1, 1), "SAME"),
        ((5, 5), (4, 4), (1, 1), "VALID"),
    ],
)  # fmt: skip
def test_conv2d(window, stride, dilation, padding, data_format):
    def forward(x, w):
        return tf.nn.conv2d(
            x, w, strides=spatial(stride, data_format), padding=padding,
            data_format=data_format, dilations=spatial(dilation, data_format),
        )  # fmt: skip

    arrays = image(data_format), data(*window, 8, 6, seed=1)
    for op in ("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"):
        close_to_float64(with_gradients(forward), *arrays, op=op)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_explicit_padding_and_groups(data_format):
    pads = spatial([[2, 1], [0, 3]], data_format)
    pads = [p if p != 1 else [0, 0] for p in pads]

    def forward(x, w):
        return tf.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding=pads, data_format=data_format)

    arrays = image(data_format), data(3, 3, 4, 6, seed=1)
    close_to_float64(with_gradients(forward), *arrays, op="Conv2DBackpropFilter")


def test_conv3d():
    def forward(x, w):
        return tf.nn.conv3d(x, w, strides=[1, 1, 2, 1, 1], padding="SAME")

    arrays = data(2, 5, 6, 7, 4), data(3, 2, 3, 4, 5, seed=1)
    for op in ("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"):
        close_to_float64(with_gradients(forward), *arrays, op=op)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize(("channels", "multiplier"), [(8, 1), (8, 3), (1, 4), (5, 2)])
def test_depthwise(channels, multiplier, data_format):
    def forward(x, w):
        return tf.nn.depthwise_conv2d_native(
            x, w, strides=[1, 1, 1, 1], padding="SAME", data_format=data_format
        )

    arrays = image(data_format, channels), data(3, 3, channels, multiplier, seed=1)
    names = ("", "BackpropInput", "BackpropFilter")
    for op in (f"DepthwiseConv2dNative{name}" for name in names):
        close_to_float64(with_gradients(forward), *arrays, op=op)


def test_inputs_of_any_strides():
    """A transpose is a view; its elements are read where they are."""

    def forward(x, w):
        turned = tf.transpose(x, [0, 2, 1, 3])
        return tf.nn.conv2d(turned, tf.transpose(w, [1, 0, 3, 2]), [1, 1, 1, 1], "SAME")

    arrays = data(2, 9, 10, 4), data(3, 2, 6, 4, seed=1)
    close_to_float64(with_gradients(forward), *arrays, op="Conv2D")


def test_weights_are_laid_out_again_when_the_variable_changes():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [1, 8, 8, 16])
        w = tf.get_variable("w", initializer=data(3, 3, 16, 16, seed=1).astype(np.float32))
        y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")
        double = tf.assign(w, w * 2)
        session.run(tf.global_variables_initializer())
        feeds = {x: data(1, 8, 8, 16)}
        assert "onednn" in kernels(session, y, feeds)["Conv2D"]
        once = session.run(y, feeds)
        np.testing.assert_array_equal(session.run(y, feeds), once)
        for _ in range(3):
            session.run(double)
            twice = session.run(y, feeds)
            np.testing.assert_allclose(twice, 2 * once, rtol=1e-6)
            once = twice


def test_a_batch_size_that_was_not_known():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 6, 6, 3])
        y = tf.nn.conv2d(x, tf.constant(data(3, 3, 3, 4), tf.float32), [1, 1, 1, 1], "SAME")
        full = data(5, 6, 6, 3)
        whole = session.run(y, {x: full})
        for count in (1, 2, 0, 4):
            part = session.run(y, {x: full[:count]})
            np.testing.assert_allclose(part, whole[:count], rtol=1e-5, atol=1e-6)


def test_primitives_made_in_one_thread_compute_in_others():
    """A window that is larger than the image goes through scratch memory on every processor."""
    x, dy = (data(4, n, n, 64).astype(np.float32) for n in (4, 2))
    where = windows.Window(
        size=(4, 4), window=(5, 5), strides=(2, 2), dilations=(1, 1),
        pads=((1, 2), (1, 2)), out=(2, 2),
    )  # fmt: skip
    shape = conv.ConvShape(4, 64, 64, 1, where, False, Type.F32)
    run = conv.backward_weights(shape, shape.weights()).bind()
    found = [np.zeros((5, 5, 64, 64), np.float32) for _ in range(4)]
    for out in found[:3]:
        thread = threading.Thread(target=run, args=(x, dy, out))
        thread.start()
        thread.join()
    run(x, dy, found[3])
    padded = np.pad(x, ((0, 0), (1, 2), (1, 2), (0, 0)))
    patches = np.stack(
        [padded[:, i : i + 3 : 2, j : j + 3 : 2] for i in range(5) for j in range(5)]
    )
    expected = np.einsum("knhwc,nhwo->kco", patches, dy).reshape(5, 5, 64, 64)
    for out in found:
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


def test_batches_of_sizes_that_are_known_late():
    """As a data set gives them, the last one smaller: computed like those of known sizes."""
    images, kernel, scale = data(7, 9, 9, 3), data(3, 3, 3, 4, seed=1), data(4, seed=2)

    def values(batches, dtype):
        x = batches(dtype)
        w, s = tf.constant(kernel, dtype), tf.constant(scale, dtype)
        y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, 1, "SAME"), s))
        y = tf.nn.max_pool(tf.nn.avg_pool(y, 2, 1, "SAME"), 2, 2, "SAME")
        return [y, *tf.gradients(y * y, [x, w])]

    def of_a_data_set(dtype):
        batches = tf.data.Dataset.from_tensor_slices(images.astype(dtype.as_numpy_dtype)).batch(4)
        return batches.make_one_shot_iterator().get_next()

    with tf.Graph().as_default(), tf.Session() as session:
        fetches = values(of_a_data_set, tf.float32)
        used = kernels(session, fetches)
        for op in ("Conv2DBackpropInput", "MaxPoolGrad", "AvgPoolGrad"):
            assert "onednn" in used[op], op
        found = [session.run(fetches) for _ in range(2)]
    assert [len(y) for y, *_ in found] == [4, 3]
    for part, ours in zip((images[:4], images[4:]), found, strict=True):
        with tf.Graph().as_default(), tf.Session() as session:
            exact = session.run(values(lambda dtype, p=part: tf.constant(p, dtype), tf.float64))
        for a, b in zip(ours, exact, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4 * np.abs(b).max())
