"""Layers: names of variables and ops, sharing, collections, errors."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.python.layers import utils


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as made:
        yield made


def names(graph: Any, kind: str) -> list[str]:
    return [op.name for op in graph.get_operations() if op.type == kind]


def variables() -> list[str]:
    return [v.name for v in tf.global_variables()]


def test_names_count_as_in_tf(graph: Any) -> None:
    x = tf.ones([2, 3])
    for _ in range(2):
        x = tf.layers.dense(x, 4, activation=tf.nn.relu)
    assert variables() == ["dense/kernel:0", "dense/bias:0", "dense_1/kernel:0", "dense_1/bias:0"]
    assert names(graph, "MatMul") == ["dense/MatMul", "dense_1/MatMul"]
    assert names(graph, "BiasAdd") == ["dense/BiasAdd", "dense_1/BiasAdd"]
    assert names(graph, "Relu") == ["dense/Relu", "dense_1/Relu"]


def test_names_below_scopes(graph: Any) -> None:
    x = tf.ones([2, 3])
    with tf.variable_scope("net"):
        tf.layers.dense(x, 4)
        tf.layers.dense(x, 4, name="out")
    assert variables() == [
        "net/dense/kernel:0", "net/dense/bias:0", "net/out/kernel:0", "net/out/bias:0",
    ]  # fmt: skip
    assert names(graph, "MatMul") == ["net/dense/MatMul", "net/out/MatMul"]


def test_a_layer_called_twice_shares_its_variables(graph: Any) -> None:
    layer = tf.layers.Dense(4)
    a, b = layer(tf.ones([2, 3])), layer.apply(tf.ones([5, 3]))
    assert variables() == ["dense/kernel:0", "dense/bias:0"]
    assert (a.op.name, b.op.name) == ("dense/BiasAdd", "dense/BiasAdd_1")
    assert layer.name == "dense_1"
    assert layer.scope_name == "dense"
    assert [v.name for v in layer.weights] == variables()
    assert layer.count_params() == 16


@pytest.mark.parametrize("reuse", [True, tf.AUTO_REUSE])
def test_functional_reuse(reuse: Any) -> None:
    x = tf.ones([2, 3])
    a = tf.layers.dense(x, 4, name="d")
    b = tf.layers.dense(x, 4, name="d", reuse=reuse)
    assert variables() == ["d/kernel:0", "d/bias:0"]
    assert (a.op.name, b.op.name) == ("d/BiasAdd", "d_1/BiasAdd")
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(*s.run([a, b]))


def test_scope_reuse() -> None:
    x = tf.ones([2, 3])
    for reuse in (False, True):
        with tf.variable_scope("m", reuse=reuse):
            tf.layers.dense(tf.layers.dense(x, 4), 5)
    assert len(variables()) == 4


def test_reuse_errors() -> None:
    x = tf.ones([2, 3])
    tf.layers.dense(x, 4, name="d")
    with pytest.raises(ValueError, match="d/kernel already exists"):
        tf.layers.dense(x, 4, name="d")
    with pytest.raises(ValueError, match="other/kernel does not exist"):
        tf.layers.dense(x, 4, name="other", reuse=True)
    with pytest.raises(ValueError, match="specified shape"):
        tf.layers.dense(x, 5, name="d", reuse=True)


def test_scope_defaults_and_getters() -> None:
    seen = []

    def getter(inner: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        seen.append(name)
        return inner(name, *args, **kwargs)

    ones = tf.ones_initializer()
    with tf.variable_scope("s", initializer=ones, regularizer=tf.reduce_sum, custom_getter=getter):
        y = tf.layers.dense(tf.ones([1, 3]), 2)
    assert seen == ["s/dense/kernel", "s/dense/bias"]
    assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 2
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        np.testing.assert_allclose(s.run(y), [[3.0, 3.0]])


def test_losses_are_collected_once() -> None:
    layer = tf.layers.Dense(
        2, kernel_regularizer=tf.nn.l2_loss, activity_regularizer=tf.reduce_sum,
        kernel_initializer=tf.ones_initializer(),
    )  # fmt: skip
    x = tf.ones([4, 3])
    layer(x)
    layer(x)
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    assert [t.op.name for t in losses] == [
        "dense/kernel/Regularizer/L2Loss", "dense/ActivityRegularizer/truediv",
        "dense/ActivityRegularizer_1/truediv",
    ]  # fmt: skip
    assert layer.get_losses_for(None) == losses[:1]
    assert layer.get_losses_for(x) == losses[1:]
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        # 6 ones; and 4 rows of two 3s, by the batch size.
        np.testing.assert_allclose(s.run(losses), [3.0, 6.0, 6.0])
        np.testing.assert_allclose(s.run(tf.losses.get_regularization_loss()), 15.0)


def test_not_trainable() -> None:
    layer = tf.layers.Dense(2, trainable=False)
    layer(tf.ones([1, 3]))
    assert tf.trainable_variables() == []
    assert layer.trainable_weights == []
    assert len(layer.non_trainable_weights) == 2


def test_types_follow_the_input() -> None:
    layer = tf.layers.Dense(2)
    assert layer(tf.ones([1, 3], tf.float64)).dtype is tf.float64
    assert layer.dtype is tf.float64
    with pytest.raises(TypeError, match="non-floating point dtype"):
        tf.layers.dense(tf.ones([1, 3], tf.int32), 2)


def test_input_errors() -> None:
    with pytest.raises(ValueError, match=r"expected min_ndim=2, found ndim=1. Full shape.*\[3\]"):
        tf.layers.dense(tf.ones([3]), 2)
    with pytest.raises(ValueError, match="its rank is undefined"):
        tf.layers.dense(tf.placeholder(tf.float32), 2)
    with pytest.raises(ValueError, match="last dimension of the inputs to `Dense` should be defin"):
        tf.layers.dense(tf.placeholder(tf.float32, [2, None]), 2)
    layer = tf.layers.Dense(2)
    layer(tf.ones([1, 3]))
    with pytest.raises(ValueError, match="expected axis -1 of input shape to have value 3"):
        layer(tf.ones([1, 4]))
    with pytest.raises(ValueError, match="expected ndim=4, found ndim=3"):
        tf.layers.conv2d(tf.ones([1, 4, 4]), 2, 3)
    with pytest.raises(ValueError, match="channel dimension of the inputs should be defined"):
        tf.layers.conv2d(tf.placeholder(tf.float32, [1, 4, 4, None]), 2, 3)
    with pytest.raises(ValueError, match="`padding` argument must be"):
        tf.layers.conv2d(tf.ones([1, 4, 4, 1]), 2, 3, padding="full")
    with pytest.raises(ValueError, match="`kernel_size` argument must be a tuple of 2 integers"):
        tf.layers.conv2d(tf.ones([1, 4, 4, 1]), 2, (3, 3, 3))
    with pytest.raises(ValueError, match='one of "channels_first", "channels_last"'):
        tf.layers.max_pooling2d(tf.ones([1, 4, 4, 1]), 2, 2, data_format="NHWC")
    with pytest.raises(ValueError, match="has not been used yet"):
        tf.layers.Dense(2).scope_name
    with pytest.raises(TypeError, match="not understood: 'unit'"):
        tf.layers.Dense(2, unit=3)


def test_own_layer() -> None:
    class Scale(tf.layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.w = self.add_weight("w", input_shape[-1:], initializer=tf.ones_initializer())

        def call(self, inputs: Any) -> Any:
            return inputs * self.w

    y = Scale()(np.ones((2, 3), np.float32))
    assert variables() == ["scale/w:0"]
    assert y.op.name == "scale/mul"
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(s.run(y), np.ones((2, 3)))


def test_a_variable_costs_the_same_however_many_there_are(graph: Any) -> None:
    """What is looked up in collections for a new variable: those that came last."""

    class Counted(list[Any]):
        """A collection that counts what is read of it."""

        read = 0

        def __getitem__(self, at: Any) -> Any:
            self.read += 1
            return super().__getitem__(at)

        def __iter__(self) -> Any:
            self.read += len(self)
            return super().__iter__()

    found = [tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.TRAINABLE_VARIABLES]
    for key in found:
        graph._collections[key] = Counted()
    x, layers = tf.ones([2, 3]), 40
    for _ in range(layers):
        x = tf.layers.dense(x, 3, kernel_regularizer=tf.nn.l2_loss)
    for key in found:
        assert len(graph._collections[key]) == 2 * layers
        assert graph._collections[key].read <= 6 * layers
    assert len(tf.losses.get_regularization_losses()) == layers
    losses = tf.get_collection_ref(tf.GraphKeys.REGULARIZATION_LOSSES)
    tf.layers.dense(x, 3, kernel_regularizer=tf.nn.l2_loss, name="dense", reuse=True)
    assert len(losses) == layers


def test_a_copy_shares_graph_and_tensors_alone() -> None:
    layer = tf.layers.Dense(3, kernel_regularizer=lambda w: tf.reduce_sum(w), name="d")
    layer._noise = tf.constant(1.0)
    layer._notes = [1, {"a": 2}]
    layer(tf.zeros([2, 4]))
    twin = copy.deepcopy(layer)
    assert type(twin) is type(layer) and twin.name == layer.name and twin.built
    assert twin._noise is layer._noise and twin.kernel is layer.kernel
    assert twin.graph is layer.graph and twin.dtype is layer.dtype
    assert twin._notes == layer._notes and twin._notes[1] is not layer._notes[1]
    twin.trainable = False
    twin._losses.clear()
    assert layer.trainable and layer.losses


def test_a_copy_has_the_variables_and_settings_of_its_own() -> None:
    layer = tf.layers.Dense(2, name="d")
    x = tf.ones([1, 3])
    layer.apply(x)
    twin = copy.deepcopy(layer)
    assert (twin.name, twin.scope_name, twin.graph) == (layer.name, layer.scope_name, layer.graph)
    assert twin.kernel is layer.kernel
    assert twin.trainable_weights == layer.trainable_weights
    twin.trainable = False
    assert layer.trainable_weights
    assert not twin.trainable_weights
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first, second = session.run([layer.apply(x), twin.apply(x)])
    assert first.tolist() == second.tolist()


def test_lengths_of_windows() -> None:
    for name, padding, size, stride, expected in (
        ("conv_output_length", "same", 4, 2, 2), ("conv_output_length", "valid", 4, 1, 3),
        ("conv_output_length", "full", 4, 2, 3), ("conv_input_length", "same", 4, 1, 3),
        ("conv_input_length", "valid", 2, 2, 4), ("conv_input_length", "full", 4, 1, 3),
        ("deconv_output_length", "valid", 4, 1, 5), ("deconv_output_length", "full", 4, 2, 6),
    ):  # fmt: skip
        assert getattr(utils, name)(size, 2, padding, stride) == expected
    assert utils.convert_data_format("channels_first", 5) == "NCDHW"
    with pytest.raises(ValueError, match="Input rank not supported: 2"):
        utils.convert_data_format("channels_last", 2)
    with pytest.raises(ValueError, match="Invalid data_format: other"):
        utils.convert_data_format("other", 4)


@pytest.mark.parametrize("shape", [None, [], [4], [3, None]])
def test_a_dense_layer_has_no_result_for_shapes_without_rows(shape: Any) -> None:
    with pytest.raises(ValueError):
        tf.layers.Dense(2).compute_output_shape(tf.TensorShape(shape))
