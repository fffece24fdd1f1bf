"""Models of tf.keras as SavedModels: written, read back, and called by whoever knows no Keras."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.saved_model.file import parse_saved_model

# The library advises its users to move to TensorFlow 2.
pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning")


def several_ends(keras: Any) -> Any:
    layers = keras.layers
    a, b = keras.Input((5,), name="a"), keras.Input((3,), name="b")
    regularized = layers.Dense(4, kernel_regularizer=keras.regularizers.l2(0.01))(a)
    joined = layers.concatenate([regularized, layers.Dropout(0.5)(b)])
    model = keras.Model([a, b], [layers.Dense(2, name="o1")(joined), layers.Dense(1)(joined)])
    model.compile("adam", "mse", metrics=["mae"])
    return model


def images(keras: Any) -> Any:
    layers = keras.layers
    model = keras.Sequential([
        layers.Conv2D(3, 3, activation="relu", input_shape=(6, 6, 1)), layers.BatchNormalization(),
        layers.Flatten(), layers.Dense(3, activity_regularizer="l2"),
    ])  # fmt: skip
    model.compile("rmsprop", "mse")
    return model


def sequences(keras: Any) -> Any:
    layers = keras.layers
    model = keras.Sequential([
        layers.Embedding(10, 4, input_length=5, mask_zero=True),
        layers.LSTM(3, return_sequences=True), layers.Bidirectional(layers.GRU(2)), layers.Dense(1),
    ])  # fmt: skip
    model.compile("sgd", "mse")
    return model


def inputs_of(model: Any) -> list[Any]:
    rng = np.random.RandomState(0)
    return [rng.uniform(0, 9, (6, *t.shape.as_list()[1:])).astype("f") for t in model.inputs]


def trained(model: Any) -> tuple[list[Any], list[Any]]:
    x = inputs_of(model)
    y = [np.ones((6, *t.shape.as_list()[1:]), "f") for t in model.outputs]
    model.fit(x, y, verbose=0)
    return x, results(model, x)


def results(model: Any, x: Any) -> list[Any]:
    found = model.predict(x)
    return found if isinstance(found, list) else [found]


@pytest.mark.parametrize("make", [several_ends, images, sequences])
def test_a_model_comes_back_and_trains_on(make: Callable[[Any], Any], keras, tmp_path) -> None:
    model = make(keras)
    x, expected = trained(model)
    model.save(str(tmp_path / "m"), save_format="tf")
    again = keras.models.load_model(str(tmp_path / "m"))
    for found, wanted in zip(results(again, x), expected, strict=True):
        # Code that is generated meanwhile may round otherwise than what serves until it is there.
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    for found, wanted in zip(again.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(found, wanted)
    y = [np.zeros_like(e) for e in expected]
    told = [np.ravel(m.evaluate(x, y, verbose=0)) for m in (again, model)]
    np.testing.assert_allclose(*told, rtol=1e-5)
    again.train_on_batch(x, y)
    again.save(str(tmp_path / "twice"), save_format="tf")
    twice = keras.models.load_model(str(tmp_path / "twice"))
    np.testing.assert_allclose(results(twice, x)[0], results(again, x)[0], rtol=1e-6)


def test_models_are_written_by_all_names(keras, tmp_path) -> None:
    model = images(keras)
    x, (expected,) = trained(model)
    keras.models.save_model(model, str(tmp_path / "keras"), save_format="tf")
    tf.saved_model.save(model, str(tmp_path / "plain"))
    assert (tmp_path / "keras" / "keras_metadata.pb").exists()
    for name in ("keras", "plain"):
        with tf.Graph().as_default(), tf.Session() as sess:
            meta = tf.saved_model.load(sess, ["serve"], str(tmp_path / name))
            signature = meta.signature_def["serving_default"]
            (given,), (made,) = signature.inputs.values(), signature.outputs.values()
            found = sess.run(made.name, {given.name: x[0]})
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_an_object_that_was_a_model_is_called(keras, tmp_path) -> None:
    model = images(keras)
    x, (expected,) = trained(model)
    model.save(str(tmp_path / "m"), save_format="tf")
    with tf.Graph().as_default(), tf.Session() as sess:
        loaded = tf.saved_model.load_v2(str(tmp_path / "m"))
        made = loaded(tf.constant(x[0]))
        moved = loaded(tf.constant(x[0]), training=True)
        sess.run(tf.global_variables_initializer())
        found, other = sess.run([made, moved])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert np.abs(other - found).max() > 1e-3  # batches have moments of their own


def test_a_class_that_is_not_there_is_made_of_the_model(keras, tmp_path) -> None:
    class Net(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.rest = keras.layers.Dense(4), [keras.layers.Dense(2)]

        def call(self, x: Any) -> Any:
            return self.rest[0](tf.nn.relu(self.first(x)))

    x = np.random.RandomState(0).rand(6, 3).astype("f")
    model = Net()
    model.compile("sgd", "mse")
    model.fit(x, np.ones((6, 2)), verbose=0)
    model.save(str(tmp_path / "m"), save_format="tf")
    again = keras.models.load_model(str(tmp_path / "m"))
    assert not isinstance(again, Net)
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    before = again.test_on_batch(x, np.ones((6, 2)))
    for _ in range(5):
        again.train_on_batch(x, np.ones((6, 2)))
    assert again.test_on_batch(x, np.ones((6, 2))) < before


def test_optimizers_are_written_or_left_out(keras, tmp_path) -> None:
    model = several_ends(keras)
    trained(model)
    for name, with_optimizer in (("with", True), ("without", False)):
        place = str(tmp_path / name)
        model.save(place, save_format="tf", include_optimizer=with_optimizer)
        nodes = parse_saved_model(place).meta_graphs[0].object_graph_def.nodes
        kinds = [n.user_object.identifier for n in nodes if n.HasField("user_object")]
        assert ("optimizer" in kinds) == with_optimizer
    assert keras.models.load_model(str(tmp_path / "with")).optimizer is not None
    assert keras.models.load_model(str(tmp_path / "without")).optimizer is None


def test_what_a_wrapper_copies_is_not_saved_with_it(keras, tmp_path) -> None:
    model = sequences(keras)
    trained(model)
    model.save_weights(str(tmp_path / "w"), save_format="tf")
    names = [name for name, _ in tf.train.list_variables(str(tmp_path / "w"))]
    assert not [n for n in names if "/layer/" in n]
    assert [n for n in names if "forward_layer/cell/kernel" in n]


def test_a_model_without_inputs_is_told_so(keras, tmp_path) -> None:
    model = keras.Sequential([keras.layers.Dense(2)])
    with pytest.raises(ValueError, match="cannot be saved"):
        model.save(str(tmp_path / "m"), save_format="tf")
    assert not Path(tmp_path / "m" / "saved_model.pb").exists()
