"""tf.keras, which is the library tf_keras: models train, save and load, with TensorFlow's numbers.

The numbers are those of TensorFlow 2.21 with tf_keras in version 1's mode.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf

# The library advises its users to move to TensorFlow 2.
pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning")


def data() -> tuple[Any, Any]:
    rng = np.random.RandomState(0)
    x = rng.randn(64, 8).astype("f")
    return x, (x[:, :3] @ rng.randn(3, 2)).astype("f")


def fill(model: Any) -> None:
    rng = np.random.RandomState(1)
    model.set_weights([rng.randn(*w.shape) * 0.3 for w in model.get_weights()])


def dense(keras: Any) -> Any:
    layers = keras.layers
    model = keras.Sequential(
        [layers.Dense(16, activation="relu", input_shape=(8,)), layers.Dense(2)]
    )
    model.compile(keras.optimizers.Adam(learning_rate=0.01), "mse", metrics=["mae"])
    fill(model)
    return model


def test_a_model_trains_as_in_tensorflow(keras) -> None:
    x, y = data()
    model = dense(keras)
    told = model.fit(x, y, epochs=3, batch_size=16, verbose=0, shuffle=False).history
    np.testing.assert_allclose(told["loss"], [4.33864, 3.52236, 2.91784], rtol=1e-4)
    np.testing.assert_allclose(told["mean_absolute_error"], [1.59196, 1.43705, 1.31736], rtol=1e-4)
    np.testing.assert_allclose(
        model.predict(x[:2]), [[-0.39198, -0.31062], [-0.13268, 0.16279]], atol=1e-4
    )
    assert [w.name for w in model.weights][:2] == ["dense/kernel:0", "dense/bias:0"]
    assert model.optimizer.weights[1].name == "training/Adam/dense/kernel/m:0"


def test_a_dataset_is_data(keras) -> None:
    x, y = data()
    expected = dense(keras).fit(x, y, batch_size=16, verbose=0, shuffle=False).history
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(16)
    told = dense(keras).fit(dataset, epochs=1, verbose=0).history
    np.testing.assert_allclose(told["loss"], expected["loss"], rtol=1e-5)


def test_weights_and_slots_come_back_from_a_checkpoint(keras, tmp_path: Path) -> None:
    x, y = data()
    saved, later = dense(keras), dense(keras)
    saved.fit(x, y, batch_size=16, verbose=0, shuffle=False)
    saved.save_weights(str(tmp_path / "w"))
    later.load_weights(str(tmp_path / "w"))
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "w")
    histories = [
        m.fit(x, y, batch_size=16, verbose=0, shuffle=False).history["loss"] for m in (saved, later)
    ]
    np.testing.assert_allclose(*histories, rtol=1e-5)


def test_a_model_comes_back_from_hdf5(keras, tmp_path: Path) -> None:
    x, _ = data()
    model = dense(keras)
    model.save(tmp_path / "m.h5")
    again = keras.models.load_model(tmp_path / "m.h5")
    np.testing.assert_allclose(again.predict(x[:4]), model.predict(x[:4]), atol=1e-6)


def test_ops_are_layers_of_functional_models(keras) -> None:
    given = keras.Input((5,))
    result = tf.nn.tanh(keras.layers.Dense(2)(given) * 2.0 + 1.0)
    model = keras.Model(given, result)
    assert [layer.name for layer in model.layers][-1] == "tf_op_layer_Tanh"
    again = keras.Model.from_config(model.get_config())
    again.set_weights(model.get_weights())
    x = np.ones((2, 5), "f")
    np.testing.assert_allclose(again.predict(x), model.predict(x), atol=1e-6)


def test_layers_serve_in_programs_of_sessions(keras) -> None:
    cell = keras.layers.LSTMCell(3)
    outputs, state = tf.nn.dynamic_rnn(cell, tf.ones([2, 5, 4]), dtype=tf.float32)
    assert outputs.shape.as_list() == [2, 5, 3] and len(state) == 2
    assert keras.layers.Dense(2).apply(outputs).shape.as_list() == [2, 5, 2]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert np.isfinite(session.run(outputs)).all()


def test_the_list_of_a_models_layers_is_called_layers(keras) -> None:
    class Net(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self._layers.append(keras.layers.Dense(2))
            self._layers.append(keras.layers.Dense(3))

        def call(self, inputs: Any) -> Any:
            for layer in self._layers:
                inputs = layer(inputs)
            return inputs

    class Own(keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self._layers = "its own"

    net = Net()
    assert net(tf.zeros([4, 5])).shape.as_list() == [4, 3]
    assert len(net.layers) == 2 and len(net.trainable_weights) == 4
    assert Own()._layers == "its own"


def test_features_of_embedding_columns_are_dense(keras) -> None:
    column = tf.feature_column.embedding_column(
        tf.feature_column.categorical_column_with_identity("a", 4), 3
    )
    layer = importlib.import_module("tf_keras.src.feature_column.dense_features_v2").DenseFeatures(
        [column]
    )
    out = layer({"a": tf.constant([[1], [3], [1]])})
    assert out.shape.as_list() == [3, 3] and len(layer.trainable_weights) == 1
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        found = sess.run(out)
    np.testing.assert_array_equal(found[0], found[2])
