"""What of TensorFlow 1.15 hangs on tf.keras: variables, columns, estimators, old names."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf

pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning")


def data() -> tuple[Any, Any]:
    rng = np.random.RandomState(0)
    x = rng.randn(64, 8).astype("f")
    return x, x[:, :2]


def test_a_layer_keeps_variables_of_either_kind(keras: Any) -> None:
    class Scale(keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.kept = [tf.Variable(2.0), {"a": tf.Variable(3.0, use_resource=True)}]

        def call(self, inputs: Any) -> Any:
            return inputs * self.kept[0] * self.kept[1]["a"]

    model = keras.Sequential([keras.layers.Input((1,)), Scale()])
    assert len(model.trainable_weights) == 2
    np.testing.assert_allclose(model.predict(np.ones((2, 1))), [[6.0], [6.0]])


def test_columns_are_a_layer_that_is_saved(keras: Any) -> None:
    column = tf.feature_column
    words = column.categorical_column_with_hash_bucket("word", 5)
    columns = [column.numeric_column("x"), column.embedding_column(words, 2)]
    inputs = {
        "x": keras.layers.Input((1,), name="x"),
        "word": keras.layers.Input((1,), name="word", dtype="string"),
    }
    dense = keras.layers.Dense(1)(keras.layers.DenseFeatures(columns)(inputs))
    model = keras.Model(inputs, dense)
    given = {"x": np.ones((2, 1)), "word": np.array([["a"], ["b"]])}
    weights, expected = model.get_weights(), model.predict(given)
    with pytest.raises(ValueError, match="embedding_weights already exists"):
        keras.models.model_from_json(model.to_json())  # columns ask tf.get_variable
    with tf.Graph().as_default(), tf.Session().as_default():
        copy = keras.models.model_from_json(model.to_json())
        copy.set_weights(weights)
        np.testing.assert_array_equal(copy.predict(given), expected)


def test_every_column_of_a_layer_is_saved(keras: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    column = tf.feature_column
    columns = [
        column.embedding_column(column.categorical_column_with_hash_bucket(name, 10), 2)
        for name in "ab"
    ]
    given = {"a": np.array([["p"], ["q"]]), "b": np.array([["r"], ["s"]])}

    def made(**kwargs: Any) -> Any:
        inputs = {name: keras.layers.Input((1,), name=name, dtype="string") for name in "ab"}
        return keras.Model(inputs, keras.layers.DenseFeatures(columns, **kwargs)(inputs))

    def saved() -> set[str]:
        names = (name for name, _ in tf.train.list_variables("weights"))
        return {name.split("/")[1] for name in names if name.startswith("layer")}

    model = made()
    model.save_weights("weights")
    model.save("model.h5")  # into the folder that is current
    expected = model.predict(given)
    # The first by TensorFlow 2's name, as two have the one that 1.15 takes.
    assert saved() == {"a_embedding.Sembedding_weights", "embedding_weights"}
    with tf.Graph().as_default(), tf.Session().as_default():
        copy = made()
        copy.load_weights("weights").assert_consumed()
        np.testing.assert_array_equal(copy.predict(given), expected)
    with tf.Graph().as_default(), tf.Session().as_default():
        np.testing.assert_array_equal(keras.models.load_model("model.h5").predict(given), expected)
    with tf.Graph().as_default(), tf.Session().as_default():
        parts = made(partitioner=tf.fixed_size_partitioner(2))
        parts.save_weights("weights")
        assert len(parts.trainable_weights) == 4
    assert saved() == {
        f"{name}_embedding.Sembedding_weights.S{at}" for name in "ab" for at in (0, 5)
    }


def test_modules_of_columns_have_the_layers_of_keras(keras: Any) -> None:
    def found(module: str, name: str) -> Any:
        return getattr(importlib.import_module(f"opdock.python.feature_column.{module}"), name)

    for module in ("dense_features", "feature_column_lib"):
        assert found(module, "DenseFeatures") is keras.layers.DenseFeatures
    for module in ("sequence_feature_column", "feature_column_lib"):
        assert found(module, "SequenceFeatures") is keras.experimental.SequenceFeatures


@pytest.mark.parametrize("version", ["", "_v2"])
def test_variables_of_columns_have_the_layers_name_once(keras: Any, version: str) -> None:
    found = importlib.import_module(f"opdock.python.feature_column.dense_features{version}")
    kinds = {found.DenseFeatures, keras.layers.DenseFeatures}
    cities = tf.feature_column.categorical_column_with_vocabulary_list("city", ["a", "b"])
    columns = [tf.feature_column.embedding_column(cities, dimension=2)]
    for kind in kinds:
        with tf.Graph().as_default():
            with tf.variable_scope("dnn"):
                layer = kind(columns, name="input_layer")
                layer({"city": tf.constant([["a"], ["b"]])})
            names = [v.name for v in tf.global_variables()]
        assert names == ["dnn/input_layer/city_embedding/embedding_weights:0"]


def test_an_estimator_of_a_model(keras: Any, tmp_path: Path) -> None:
    x, y = data()
    model = keras.Sequential([keras.layers.Dense(2, input_shape=(8,), name="all")])
    model.compile(keras.optimizers.SGD(0.1), "mse", metrics=["mae"])
    start = model.evaluate(x, y, verbose=0)
    estimator = keras.estimator.model_to_estimator(model, model_dir=str(tmp_path))

    def batches() -> Any:
        return tf.data.Dataset.from_tensors(({model.input_names[0]: x}, y)).repeat(20)

    first = estimator.evaluate(batches, steps=1)
    np.testing.assert_allclose([first["loss"], first["mean_absolute_error"]], start, rtol=1e-5)
    estimator.train(batches, steps=20)
    assert estimator.evaluate(batches, steps=1)["loss"] < start[0] / 2
    assert next(estimator.predict(batches))["all"].shape == (2,)


def test_a_peephole_cell_is_the_same_in_both_ways(keras: Any) -> None:
    x, _ = data()
    found = []
    for way in (1, 2):
        cell = keras.experimental.PeepholeLSTMCell(
            3, implementation=way, kernel_initializer="ones", recurrent_initializer="ones"
        )
        inputs = keras.layers.Input((4, 2))
        model = keras.Model(inputs, keras.layers.RNN(cell)(inputs))
        assert len(model.weights) == 6
        found.append(model.predict(x.reshape(-1, 4, 2)))
    np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-7)


def test_old_names_lead_somewhere(keras: Any) -> None:
    network = importlib.import_module("tensorflow.python.keras.engine.network")
    inputs = keras.layers.Input((3,))
    assert len(network.Network(inputs, keras.layers.Dense(1)(inputs)).weights) == 2
    python = importlib.import_module("tensorflow.python")
    assert python.math_ops.add is tf.add


def test_names_that_libraries_lean_on(keras: Any) -> None:
    v2 = tf.compat.v2
    assert v2.losses.Reduction.AUTO == "auto"
    assert issubclass(v2.metrics.Mean, keras.metrics.Metric)
    # `from tensorflow.python import ops` is the framework's.
    ops = importlib.import_module("tensorflow.python.ops")
    assert ops.convert_to_tensor is tf.convert_to_tensor
    tracking = importlib.import_module("tensorflow.python.training.tracking.base")
    layer = keras.layers.Layer()
    with tracking.no_automatic_dependency_tracking_scope(layer):
        layer.kept = tf.Variable(1.0)
    assert layer.variables == []


def test_keras_own_input_specs_are_heeded_by_layers_of_tf_layers(keras) -> None:
    class Flat(tf.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.input_spec = keras.layers.InputSpec("float32", ndim=2, axes={-1: 3})

        def call(self, inputs: Any) -> Any:
            return inputs

    assert Flat()(tf.zeros([2, 3])).shape == [2, 3]
    with pytest.raises(ValueError, match="expected ndim=2"):
        Flat()(tf.zeros([2]))
    with pytest.raises(ValueError, match="expected dtype=float32, found dtype=<dtype: 'int32'>"):
        Flat()(tf.zeros([2, 3], tf.int32))
    with pytest.raises(ValueError, match="expected axis -1"):
        Flat()(tf.zeros([2, 4]))


@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.nn.rnn_cell.GRUCell(4),
        lambda: tf.contrib.rnn.SRUCell(4),
        lambda: tf.nn.rnn_cell.BasicLSTMCell(4),
    ],
)
def test_cells_of_tensorflow_are_cells_of_keras(keras: Any, make: Any, stacked: bool) -> None:
    steps = tf.constant(np.random.RandomState(0).randn(2, 3, 5), tf.float32)
    cell = keras.layers.StackedRNNCells([make(), make()]) if stacked else make()
    outputs = keras.layers.RNN(cell, return_sequences=True)(steps)
    assert outputs.shape.as_list() == [2, 3, 4]
    if stacked:
        own = tf.nn.dynamic_rnn(tf.nn.rnn_cell.MultiRNNCell(cell.cells), steps, dtype=tf.float32)[0]
    else:
        own = tf.nn.dynamic_rnn(cell, steps, dtype=tf.float32)[0]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_allclose(*sess.run([outputs, own]), rtol=1e-6)
