"""What layers have of tf.keras' layers: configurations, values, submodules, and nodes they lack."""

from __future__ import annotations

import json

import numpy as np
import pytest

import opdock as tf
from opdock.python.layers import utils


@pytest.fixture(autouse=True)
def graph_of_its_own():
    with tf.Graph().as_default():
        yield


LAYERS = [
    tf.layers.Dense(3, activation=tf.nn.relu, kernel_regularizer="l2", name="d"),
    tf.layers.Conv2D(4, 3, strides=2, padding="same", use_bias=False),
    tf.layers.SeparableConv2D(4, 3, depth_multiplier=2),
    tf.layers.Conv2DTranspose(4, (3, 5)),
    tf.layers.BatchNormalization(momentum=0.5, fused=False),
    tf.layers.MaxPooling2D(2, 2),
    tf.layers.Dropout(0.25),
    tf.layers.Flatten(),
]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: type(layer).__name__)
def test_a_layer_is_made_again_from_its_configuration(layer):
    config = layer.get_config()
    assert json.loads(json.dumps(config)).keys() == config.keys()
    again = type(layer).from_config(config)
    assert again.get_config() == config
    assert again.name == layer.name


def test_what_a_configuration_says():
    config = tf.layers.Dense(3, activation=tf.nn.relu, name="d").get_config()
    assert config["units"] == 3
    assert config["activation"] == "relu"
    assert config["bias_initializer"] == {"class_name": "Zeros", "config": {"dtype": "float32"}}
    assert config["kernel_initializer"] is None
    assert config["name"] == "d"


def test_arguments_that_a_class_does_not_keep():
    class Scaled(tf.layers.Layer):
        def __init__(self, factor):
            super().__init__()
            self._by = factor

    with pytest.raises(NotImplementedError, match="Scaled does not keep 'factor'"):
        Scaled(2).get_config()


def test_weights_are_given_and_taken():
    layer = tf.layers.Dense(2)
    out = layer(tf.ones([1, 3]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        kernel, bias = layer.get_weights()
        assert (kernel.shape, bias.shape) == ((3, 2), (2,))
        layer.set_weights([np.full((3, 2), 2.0), np.ones(2)])
        np.testing.assert_array_equal(session.run(out), [[7.0, 7.0]])
        with pytest.raises(ValueError, match="expecting 2 weights"):
            layer.set_weights([kernel])
        with pytest.raises(ValueError, match="not compatible with provided weight shape"):
            layer.set_weights([kernel.T, bias])


def test_layers_are_modules_whose_weights_are_their_own():
    class Block(tf.layers.Layer):
        def __init__(self):
            super().__init__()
            self.first, self.rest = tf.layers.Dense(2), [tf.layers.Dense(2), tf.layers.Dense(1)]

        def build(self, _):
            self.scale = self.add_weight("scale", [1])

        def call(self, x):
            for layer in (self.first, *self.rest):
                x = layer(x)
            return x * self.scale

    block = Block()
    block(tf.ones([1, 4]))
    assert isinstance(block, tf.Module)
    assert set(block.submodules) == {block.first, *block.rest}
    assert [v.op.name for v in block.weights] == ["block/scale"]


def test_signatures_of_results():
    layer = tf.layers.Dense(5)
    spec = layer.compute_output_signature(tf.TensorSpec([None, 3], tf.float64))
    assert (spec.shape.as_list(), spec.dtype) == ([None, 5], tf.float64)
    with pytest.raises(TypeError, match="Only TensorSpec"):
        layer.compute_output_signature(tf.TensorShape([1, 3]))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("input", "is not connected"),
        ("input_mask", "is not connected"),
        ("output", "has no inbound nodes"),
        ("output_mask", "has no inbound nodes"),
        ("input_shape", "no defined input shape"),
        ("output_shape", "no defined output shape"),
    ],
)
def test_layers_are_no_nodes_of_a_model(name, words):
    layer = tf.layers.Dense(1)
    layer(tf.ones([1, 1]))
    with pytest.raises(AttributeError, match=words):
        getattr(layer, name)
    with pytest.raises(RuntimeError, match="never been called"):
        getattr(layer, f"get_{name}_at")(0)
    assert (layer.inbound_nodes, layer.outbound_nodes, layer.metrics) == ([], [], [])
    assert layer.dynamic is False
    assert layer.compute_mask(None) is None
    with pytest.raises(tf.errors.UnimplementedError, match="use tf.metrics"):
        layer.add_metric(1.0)


def test_a_cell_has_the_variables_that_its_call_gets():
    class Cell(tf.nn.rnn_cell.RNNCell):
        state_size = output_size = 2

        def __init__(self):
            super().__init__()
            self.inner = tf.nn.rnn_cell.GRUCell(2)

        def call(self, x, state):
            frozen = tf.get_variable("frozen", [2], trainable=False)
            return self.inner(x * tf.get_variable("scale", [2]) + frozen, state)

    cell = Cell()
    tf.nn.static_rnn(cell, [tf.ones([1, 2])] * 3, dtype=tf.float32)
    assert [v.op.name for v in cell.trainable_weights] == [
        f"rnn/cell/{name}" for name in (
            "scale", "gru_cell/gates/kernel", "gru_cell/gates/bias", "gru_cell/candidate/kernel",
            "gru_cell/candidate/bias",
        )
    ]  # fmt: skip
    assert [v.op.name for v in cell.non_trainable_weights] == ["rnn/cell/frozen"]


@pytest.mark.parametrize(
    ("layer", "shape", "expected"),
    [
        (tf.layers.conv1d, [2, 9, 3], "layer/conv1d/ExpandDims_1/ReadVariableOp"),
        (tf.layers.conv2d, [2, 9, 9, 3], "layer/Conv2D/ReadVariableOp"),
        (tf.layers.conv3d, [2, 9, 9, 9, 3], "layer/Conv3D/ReadVariableOp"),
    ],
)
@pytest.mark.parametrize("dilation", [1, 2])
def test_a_convolution_reads_its_kernel_in_its_own_scope(layer, shape, expected, dilation):
    """As TensorFlow's do: what reads graphs finds the kernel's value by this name."""
    with tf.Graph().as_default() as graph, tf.variable_scope("", use_resource=True):
        layer(
            tf.zeros(shape), 4, 3, dilation_rate=dilation, padding="same", use_bias=False,
            name="layer",
        )  # fmt: skip
        read = graph.get_operation_by_name(expected)
        assert read.type == "ReadVariableOp"
        assert [op.name for op in read.inputs[0].consumers() if op.type == "ReadVariableOp"] == [
            "layer/kernel/Read/ReadVariableOp", expected,
        ]  # fmt: skip


def test_a_condition_is_known_or_refused():
    assert utils.constant_value(1) is True
    assert utils.constant_value(tf.constant(5)) == 5
    assert utils.constant_value(tf.placeholder(tf.bool, [])) is None
    with pytest.raises(TypeError, match="must be a Tensor, a Python bool, or 1 or 0"):
        utils.constant_value(5)
