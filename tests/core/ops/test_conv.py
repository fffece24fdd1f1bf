"""Convolution: arguments, names, static shapes, dilation, second derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.autodiff.checker import compute_gradient_error


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def draw(*shape):
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape)


def test_names_and_attributes():
    x, w = tf.zeros([1, 5, 5, 2]), tf.zeros([3, 3, 2, 4])
    y = tf.nn.conv2d(x, w, 2, "SAME")
    assert y.op.name == "Conv2D" and y.shape.as_list() == [1, 3, 3, 4]
    assert y.op.get_attr("strides") == [1, 2, 2, 1]
    valid = tf.nn.conv2d(x, filters=w, strides=[2, 1], padding="VALID")
    assert valid.shape.as_list() == [1, 2, 3, 4]
    assert tf.nn.conv2d_transpose(y, w, [1, 5, 5, 2], 2).op.name == "conv2d_transpose"
    assert tf.nn.conv1d(x[0], w[0], 1, "SAME").name == "conv1d/Squeeze:0"
    assert tf.nn.convolution(x, w, "SAME").op.name == "convolution"
    assert tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME").op.name == "depthwise"
    separable = tf.nn.separable_conv2d(x, w, tf.zeros([1, 1, 8, 3]), [1, 1, 1, 1], "SAME")
    assert separable.op.name == "separable_conv2d" and separable.shape.as_list() == [1, 5, 5, 3]


def test_arguments():
    x, w = tf.zeros([1, 5, 5, 2]), tf.zeros([3, 3, 2, 4])
    with pytest.raises(ValueError, match="Cannot specify both 'filter' and 'filters'"):
        tf.nn.conv2d(x, w, 1, "SAME", filters=w)
    with pytest.raises(ValueError, match="strides should be of length 1, 2 or 4 but was 3"):
        tf.nn.conv2d(x, w, [1, 1, 1], "SAME")
    with pytest.raises(ValueError, match="the padding parameter must be a list"):
        tf.nn.conv2d(x, w, 1, "EXPLICIT")
    with pytest.raises(ValueError, match="Element with index 1 of padding has size 1"):
        tf.nn.conv2d(x, w, 1, [[0, 0], [1], [1, 1], [0, 0]])
    with pytest.raises(ValueError, match="must be nonnegative"):
        tf.nn.conv2d(x, w, 1, [[0, 0], [-1, 1], [1, 1], [0, 0]])
    with pytest.raises(ValueError, match="in the batch or depth dimensions"):
        tf.nn.conv2d(x, w, 1, [[1, 0], [1, 1], [1, 1], [0, 0]])
    with pytest.raises(ValueError, match="data_format must be"):
        tf.nn.conv1d(x[0], w[0], 1, "SAME", data_format="CNW")
    with pytest.raises(ValueError, match="not supported in conjunction with"):
        tf.nn.convolution(x, w, "SAME", strides=[2, 2], dilation_rate=[2, 2])


def test_shape_errors_name_op_and_shapes():
    with pytest.raises(ValueError, match=r"Depth of input \(3\).*'Conv2D'.*\[1,4,4,3\]"):
        tf.nn.conv2d(tf.zeros([1, 4, 4, 3]), tf.zeros([2, 2, 2, 5]), 1, "SAME")
    with pytest.raises(ValueError, match="Negative dimension size caused by subtracting 5 from 4"):
        tf.nn.conv2d(tf.zeros([1, 4, 4, 2]), tf.zeros([3, 3, 2, 5]), 1, "VALID", dilations=2)


def test_partly_known_shapes():
    x = tf.placeholder(tf.float32, [None, None, 8, 3])
    y = tf.nn.conv2d(x, tf.zeros([3, 3, 3, 4]), [1, 2, 2, 1], "SAME")
    assert y.shape.as_list() == [None, None, 4, 4]
    unknown = tf.nn.conv2d(tf.placeholder(tf.float32), tf.zeros([3, 3, 3, 4]), 1, "SAME")
    assert unknown.shape.as_list() == [None, None, None, 4]
    (grad,) = tf.gradients(y, x)
    assert run(grad, {x: np.zeros((2, 5, 8, 3))}).shape == (2, 5, 8, 3)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_dilation_by_batches_equals_dilation_by_attribute(padding):
    x, w = tf.constant(draw(2, 9, 8, 3)), tf.constant(draw(3, 2, 3, 4))
    by_attribute = tf.nn.conv2d(x, w, 1, padding, dilations=[2, 3])
    by_batches = tf.nn.convolution(x, w, padding, dilation_rate=[2, 3])
    assert by_batches.shape == by_attribute.shape
    np.testing.assert_allclose(*run([by_batches, by_attribute]), rtol=1e-10)
    first = tf.nn.convolution(
        tf.transpose(x, [0, 3, 1, 2]), w, padding, dilation_rate=[2, 3], data_format="NCHW"
    )
    back = tf.transpose(first, [0, 2, 3, 1])
    np.testing.assert_allclose(*run([back, by_attribute]), rtol=1e-10)


def test_dilation_of_unknown_sizes():
    x = tf.placeholder(tf.float64, [None, None, None, 3])
    w = tf.constant(draw(3, 3, 3, 2))
    y = tf.nn.atrous_conv2d(x, w, 2, "SAME")
    z = tf.nn.conv2d(x, w, 1, "SAME", dilations=2)
    np.testing.assert_allclose(*run([y, z], {x: draw(1, 7, 6, 3)}), rtol=1e-10)


def test_dilated_depthwise():
    x, w = tf.constant(draw(1, 7, 8, 2)), tf.constant(draw(3, 2, 2, 2))
    y = tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME", rate=[2, 2])
    z = tf.nn.depthwise_conv2d_native(x, w, [1, 1, 1, 1], "SAME", dilations=[1, 2, 2, 1])
    np.testing.assert_allclose(*run([y, z]), rtol=1e-10)


def test_atrous_transpose_is_the_gradient_of_atrous():
    x, w = tf.constant(draw(1, 6, 7, 2)), tf.constant(draw(3, 3, 2, 4))
    y = tf.nn.atrous_conv2d(x, w, 2, "SAME")
    g = tf.constant(draw(1, 6, 7, 4))
    (want,) = tf.gradients(y, x, g)
    got = tf.nn.atrous_conv2d_transpose(g, w, [1, 6, 7, 2], 2, "SAME")
    np.testing.assert_allclose(*run([got, want]), rtol=1e-10)


def test_one_dimensional_formats_and_transpose():
    x, w = tf.constant(draw(2, 7, 3)), tf.constant(draw(3, 3, 4))
    y = tf.nn.conv1d(x, w, 2, "SAME")
    first = tf.nn.conv1d(tf.transpose(x, [0, 2, 1]), w, 2, "SAME", data_format="NCW")
    np.testing.assert_allclose(run(y), run(tf.transpose(first, [0, 2, 1])), rtol=1e-12)
    back = tf.nn.conv1d_transpose(y, w, [2, 7, 3], 2)
    (want,) = tf.gradients(y, x, y)
    np.testing.assert_allclose(*run([back, want]), rtol=1e-10)
    dynamic = tf.nn.conv1d_transpose(y, w, tf.shape(x), 2)
    np.testing.assert_allclose(*run([back, dynamic]), rtol=1e-10)


def test_three_dimensional_transpose():
    x, w = tf.constant(draw(1, 4, 5, 3, 2)), tf.constant(draw(2, 3, 2, 2, 3))
    y = tf.nn.conv3d(x, w, [1, 2, 1, 1, 1], "SAME")
    back = tf.nn.conv3d_transpose(y, w, [1, 4, 5, 3, 2], [1, 2, 1, 1, 1])
    (want,) = tf.gradients(y, x, y)
    np.testing.assert_allclose(*run([back, want]), rtol=1e-10)


def test_grouped_convolution_is_convolution_by_parts():
    x, w = tf.constant(draw(1, 5, 5, 4)), tf.constant(draw(3, 3, 2, 6))
    y = tf.nn.conv2d(x, w, 1, "SAME")
    halves = [
        tf.nn.conv2d(x[..., 2 * i : 2 * i + 2], w[..., 3 * i : 3 * i + 3], 1, "SAME")
        for i in range(2)
    ]
    np.testing.assert_allclose(*run([y, tf.concat(halves, 3)]), rtol=1e-10)


@pytest.mark.parametrize("kind", ["conv2d", "depthwise", "conv3d"])
def test_second_derivatives(kind):
    shapes = {
        "conv2d": ((1, 4, 4, 2), (2, 3, 2, 2)), "depthwise": ((1, 4, 4, 2), (3, 2, 2, 2)),
        "conv3d": ((1, 3, 3, 3, 1), (2, 2, 2, 1, 2)),
    }  # fmt: skip
    data, kernel = shapes[kind]
    x, w = tf.placeholder(tf.float64, data), tf.placeholder(tf.float64, kernel)
    ones = [1] * len(data)
    function = {
        "conv2d": tf.nn.conv2d, "depthwise": tf.nn.depthwise_conv2d_native, "conv3d": tf.nn.conv3d
    }[kind]  # fmt: skip
    y = function(x, w, ones, "SAME")
    dx, dw = tf.gradients(y * y, [x, w])
    feeds = [draw(*data), draw(*kernel)]
    with tf.Session():
        for out, shape in ((dx, data), (dw, kernel)):
            error = compute_gradient_error([x, w], [data, kernel], out, shape, feeds, delta=1e-4)
            assert error < 1e-5


def test_erosion_is_the_least_difference():
    x, k = draw(1, 4, 4, 1), draw(2, 2, 1)
    y = run(tf.nn.erosion2d(x, k, [1, 1, 1, 1], [1, 1, 1, 1], "VALID"))
    window = x[0, :2, :2, 0] - k[::-1, ::-1, 0]
    np.testing.assert_allclose(y[0, 0, 0, 0], window.min(), rtol=1e-12)


def test_results_do_not_alias_inputs():
    x = tf.placeholder(tf.float32, [1, 2, 2, 2])
    y = tf.nn.conv2d(x, tf.constant(np.eye(2, dtype=np.float32).reshape(1, 1, 2, 2)), 1, "SAME")
    fed = np.ones((1, 2, 2, 2), np.float32)
    out = run(y, {x: fed})
    out[...] = 7
    assert fed.max() == 1


def test_conv_transpose_by_the_number_of_dimensions():
    for n in (1, 2, 3):
        x, w = np.ones([1, *[2] * n, 1], np.float32), np.ones([*[2] * n, 1, 1], np.float32)
        whole = [1, *[4] * n, 1]
        out = tf.nn.conv_transpose(x, w, whole, 2, data_format=None)
        assert out.shape.as_list() == whole
        with tf.Session() as session:
            assert session.run(out).tolist() == np.ones(whole).tolist()
    with pytest.raises(ValueError, match="length 3, 4 or 5 but was 2"):
        tf.nn.conv_transpose(x, w, [1, 4], 2)
    with pytest.raises(ValueError, match="sized collection"):
        tf.nn.conv_transpose(x, w, 4, 2)


def test_a_filter_that_is_an_array_takes_the_type_of_the_input():
    x = tf.placeholder(tf.float32)
    assert tf.nn.convolution(x, np.ones([3, 6, 6, 5]), "SAME").dtype == tf.float32
