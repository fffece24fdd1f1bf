"""Models of tf.keras exported as TensorFlow 1.13 to 1.15 did: a graph each for what is done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf

# The library advises its users to move to TensorFlow 2.
pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning")


def compiled(keras: Any) -> Any:
    layers = keras.layers
    model = keras.Sequential([
        layers.Dense(4, input_shape=(3,), activation="relu"), layers.BatchNormalization(),
        layers.Dense(2),
    ])  # fmt: skip
    model.compile(keras.optimizers.Adam(0.05), "mse", metrics=["mae"])
    return model


def data() -> tuple[Any, Any]:
    return np.random.RandomState(0).rand(16, 3).astype("f"), np.ones((16, 2), "f")


def run(folder: str, tags: list[str], key: str, **given: Any) -> Any:
    """The results of a signature by name; of the last of some steps where there is a train op."""
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        meta = tf.saved_model.load(sess, tags, folder)
        signature = meta.signature_def[key]
        feeds = {signature.inputs[name].name: value for name, value in given.items()}
        wanted = {name: info.name for name, info in signature.outputs.items()}
        train = meta.signature_def["__saved_model_train_op"].outputs["__saved_model_train_op"].name
        losses = []
        for _ in range(20 if train else 1):
            step = [wanted, graph.as_graph_element(train)] if train else [wanted]
            found, *_ = sess.run(step, feeds)
            losses.append(found.get("loss"))
        return found, losses


def test_a_compiled_model_has_three_graphs(keras, tmp_path) -> None:
    x, y = data()
    model = compiled(keras)
    model.fit(x, y, verbose=0)
    expected, loss = model.predict(x), model.evaluate(x, y, verbose=0)[0]
    folder = str(tmp_path / "m")
    keras.experimental.export_saved_model(model, folder)
    found, _ = run(folder, ["serve"], "serving_default", dense_input=x)
    np.testing.assert_allclose(found["dense_1"], expected, rtol=1e-5, atol=1e-6)
    found, losses = run(folder, ["eval"], "eval", dense_input=x, dense_1_target=y)
    np.testing.assert_allclose(found["predictions/dense_1"], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(losses[0], loss, rtol=1e-5)
    assert {"metrics/mean_absolute_error/value", "metrics/mean_absolute_error/update_op"} <= {
        *found
    }
    _, losses = run(folder, ["train"], "train", dense_input=x, dense_1_target=y)
    assert losses[-1] < 0.5 * losses[0]


def test_the_model_is_made_again(keras, tmp_path) -> None:
    x, y = data()
    model = compiled(keras)
    model.fit(x, y, verbose=0)
    folder = str(tmp_path / "m")
    tf.contrib.saved_model.save_keras_model(model, folder, as_text=True)
    again = tf.contrib.saved_model.load_keras_model(folder)
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    assert (tmp_path / "m" / "saved_model.pbtxt").exists()


def test_a_model_without_an_optimizer_is_for_serving(keras, tmp_path) -> None:
    model = keras.Sequential([keras.layers.Dense(2, input_shape=(3,))])
    folder = str(tmp_path / "m")
    keras.experimental.export_saved_model(model, folder)
    assert tf.contrib.saved_model.python.saved_model.reader.get_saved_model_tag_sets(folder) == [
        ["serve"]
    ]
    with pytest.raises(AssertionError, match="isn't empty"):
        keras.experimental.export_saved_model(model, folder)


def test_models_that_are_classes_are_for_serving_only(keras, tmp_path) -> None:
    class Net(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(2)

        def call(self, x: Any) -> Any:
            return self.dense(x)

    x, y = data()
    model = Net()
    with pytest.raises(NotImplementedError, match="serving_only=True"):
        keras.experimental.export_saved_model(model, str(tmp_path / "no"))
    with pytest.raises(ValueError, match="shapes have not been defined"):
        unbuilt = keras.Sequential([keras.layers.Dense(2)])
        keras.experimental.export_saved_model(unbuilt, str(tmp_path / "no"))
    model.compile("sgd", "mse")
    model.fit(x, y, verbose=0)
    folder = str(tmp_path / "m")
    keras.experimental.export_saved_model(model, folder, serving_only=True)
    found, _ = run(folder, ["serve"], "serving_default", input_1=x)
    np.testing.assert_allclose(found["output_1"], model.predict(x), rtol=1e-5, atol=1e-6)
