"""`tf.contrib.layers`: convolutions of other kinds, shapes, units, stacks and summaries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.contrib import layers
from opdock.contrib.framework import arg_scope
from opdock.contrib.layers import utils


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def _run(value: Any, feed: Any = None) -> Any:
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(value, feed)


def test_variables_of_convolutions_have_tensorflows_names() -> None:
    images = tf.ones([2, 6, 6, 3])
    up = layers.conv2d_transpose(images, 4, 3, stride=2)
    apart = layers.separable_conv2d(images, None, 3, 2)
    mixed = layers.separable_conv2d(images, 5, 3, 2, normalizer_fn=layers.batch_norm)
    plane = layers.conv2d_in_plane(images, 3)
    volume = layers.conv3d_transpose(tf.ones([1, 2, 2, 2, 1]), 2, 3, stride=2, padding="VALID")
    assert [t.shape.as_list()[1:] for t in (up, apart, mixed, plane, volume)] == [
        [12, 12, 4], [6, 6, 6], [6, 6, 5], [6, 6, 3], [5, 5, 5, 2],
    ]  # fmt: skip
    shapes = {v.op.name: v.shape.as_list() for v in tf.global_variables()}
    assert shapes == {
        "Conv2d_transpose/weights": [3, 3, 4, 3],
        "Conv2d_transpose/biases": [4],
        "SeparableConv2d/depthwise_weights": [3, 3, 3, 2],
        "SeparableConv2d/biases": [6],
        "SeparableConv2d_1/depthwise_weights": [3, 3, 3, 2],
        "SeparableConv2d_1/pointwise_weights": [1, 1, 6, 5],
        "SeparableConv2d_1/BatchNorm/beta": [5],
        "SeparableConv2d_1/BatchNorm/moving_mean": [5],
        "SeparableConv2d_1/BatchNorm/moving_variance": [5],
        "ConvInPlane/weights": [3, 3, 1, 1],
        "ConvInPlane/biases": [3],
        "Conv3d_transpose/weights": [3, 3, 3, 2, 1],
        "Conv3d_transpose/biases": [2],
    }
    assert set(tf.model_variables()) == set(tf.global_variables())
    with pytest.raises(ValueError, match="data_format has to be either NCHW or NHWC"):
        layers.conv2d_transpose(images, 4, 3, data_format="CHWN")


def test_one_filter_for_every_channel() -> None:
    images = np.random.default_rng(1).normal(size=(1, 4, 4, 2)).astype(np.float32)
    ones = tf.ones_initializer()
    plane = layers.conv2d_in_plane(images, [1, 2], padding="VALID", weights_initializer=ones,
                                   activation_fn=None)  # fmt: skip
    np.testing.assert_allclose(_run(plane), images[:, :, :-1] + images[:, :, 1:], rtol=1e-6)


def test_outputs_are_collected_under_the_names_of_their_scopes() -> None:
    images = tf.ones([1, 8, 8, 3])
    with arg_scope([layers.conv2d, layers.max_pool2d], outputs_collections="ends"):
        net = layers.repeat(images, 2, layers.conv2d, 4, 3, scope="block")
        net = layers.max_pool2d(net, 2, scope="pool")
    ends = utils.convert_collection_to_dict("ends")
    assert list(ends) == ["block/block_1", "block/block_2", "pool"]
    assert ends["pool"] is net
    assert net.aliases == ["pool"]
    assert utils.gather_tensors_aliases([net, images]) == ["pool", "ones"]
    stacked = layers.stack(tf.ones([2, 3]), layers.fully_connected, [5, (6, None)])
    assert stacked.op.name == "Stack/fully_connected_2/BiasAdd"
    assert (
        layers.stack(tf.ones([2, 3]), layers.relu, [4]).op.name == "Stack_1/fully_connected_1/Relu"
    )


def test_shapes() -> None:
    images = np.arange(48.0, dtype=np.float32).reshape(2, 2, 3, 4)
    sequence = layers.images_to_sequence(images)
    assert sequence.shape.as_list() == [3, 4, 4]
    back = layers.sequence_to_images(sequence, 2)
    np.testing.assert_array_equal(_run(back), images)
    late = tf.placeholder(tf.float32, [None, 2, 3])
    flat = layers.shaping.inner_flatten(late, 2)
    assert flat.shape.as_list() == [None, 6]
    sparse = tf.SparseTensor([[0, 1, 1]], [5.0], [1, 2, 3])
    assert _run(layers.shaping.inner_flatten(sparse, 2)).indices.tolist() == [[0, 4]]
    rows = layers.one_hot_encoding(tf.constant([1, 0]), 3)
    assert _run(rows).tolist() == [[0, 1, 0], [1, 0, 0]]
    assert layers.pool(images, [2, 3], "MAX").shape.as_list() == [2, 1, 1, 4]


def test_units() -> None:
    x = np.random.default_rng(2).normal(size=(3, 6)).astype(np.float32)
    np.testing.assert_allclose(
        _run(layers.maxout(x, 2)), x.reshape(3, 2, 3).max(-1), rtol=1e-6
    )  # fmt: skip
    lengths = np.linalg.norm(_run(layers.unit_norm(tf.constant(x), 1)), axis=1)
    np.testing.assert_allclose(lengths, 1.0, rtol=1e-4)
    ball = _run(layers.poincare_normalize(x * 9))
    assert (np.linalg.norm(ball, axis=1) < 1.0).all()
    with pytest.raises(ValueError, match=r"number of features\(6\) is not a multiple"):
        layers.maxout(x, 4)
    source = tf.constant([1.0, 2.0])
    scaled = layers.scale_gradient(source, tf.constant(-3.0))
    assert _run([scaled, tf.gradients(scaled, source)[0]])[1].tolist() == [-3.0, -3.0]
    peak = np.zeros([1, 3, 5, 1], np.float32)
    peak[0, 2, 0, 0] = 100.0
    np.testing.assert_allclose(_run(layers.spatial_softmax(tf.constant(peak))), [[1.0, -1.0]])


def test_group_and_instance_norm_are_of_each_example() -> None:
    x = np.random.default_rng(3).normal(3.0, 2.0, size=(2, 4, 5, 6)).astype(np.float32)
    by_channel = _run(layers.instance_norm(x, data_format="NHWC"))
    np.testing.assert_allclose(by_channel.mean((1, 2)), 0.0, atol=1e-5)
    np.testing.assert_allclose(by_channel.var((1, 2)), 1.0, rtol=1e-3)
    for mean_close_to_zero in (False, True):
        grouped = _run(layers.group_norm(x, 3, mean_close_to_zero=mean_close_to_zero))
        parts = grouped.reshape(2, 4, 5, 3, 2)
        np.testing.assert_allclose(parts.mean((1, 2, 4)), 0.0, atol=1e-4)
        np.testing.assert_allclose(parts.var((1, 2, 4)), 1.0, rtol=1e-3)
    names = [v.op.name for v in tf.global_variables()]
    assert names[:4] == [
        "InstanceNorm/beta", "InstanceNorm/gamma", "GroupNorm/beta", "GroupNorm/gamma",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="6 channels is not commensurate with 4 groups"):
        layers.group_norm(x, 4)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_gdn_bounds_its_variables(data_format: str) -> None:
    x = np.random.default_rng(4).normal(size=(2, 3, 3, 3)).astype(np.float32)
    outputs = layers.gdn(tf.constant(x), data_format=data_format, gamma_init=0.2)
    np.testing.assert_allclose(_run(outputs), x / np.sqrt(1 + 0.2 * x**2), rtol=1e-4)
    assert [v.op.name for v in tf.global_variables()] == ["gdn/reparam_beta", "gdn/reparam_gamma"]
    # From below the bound a gradient that leads up passes, one that leads down does not.
    inverse = layers.gdn(tf.constant(x), inverse=True, name="up", beta_min=4.0)
    beta = tf.global_variables()[2]
    down, up = (tf.gradients(sign * inverse, beta)[0] for sign in (x, -x))
    found = _run([down, up])
    assert [bool(np.all(g == 0)) for g in found] == [True, False]


def test_legacy_layers_and_summaries() -> None:
    x = tf.ones([2, 3, 4])
    hidden = layers.legacy_relu(x, 5, bias_init=tf.constant_initializer(-9.0))
    assert hidden.shape.as_list() == [2, 3, 5]
    assert [v.op.name for v in tf.global_variables()] == [
        "fully_connected/weights", "fully_connected/bias",
    ]  # fmt: skip
    assert tf.get_collection(tf.GraphKeys.ACTIVATIONS)[0] is hidden
    made = [
        *layers.summarize_activations(),
        *layers.summarize_weights(),
        *layers.summarize_biases(),
    ]
    assert [s.op.name for s in made] == [
        "fully_connected/Relu/activation", "fully_connected/weights_summary",
        "fully_connected/bias_summary",
    ]  # fmt: skip
    assert len(tf.get_collection(tf.GraphKeys.SUMMARIES)) == 4
    assert layers.summarize_tensor(tf.constant("text")) is None
    zeros = tf.summary.Summary.FromString(_run(tf.summary.merge_all("summaries")))
    shares = {v.tag: v.simple_value for v in zeros.value}
    assert shares["fully_connected/Relu/zeros"] == 1.0
