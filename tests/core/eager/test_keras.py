"""tf.keras where operations run as they are made: layers, models, training, files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf

pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning")

RNG = np.random.RandomState(0)
X = RNG.randn(48, 4).astype("f")
Y = (X.sum(1) > 0).astype("int32")


def classifier() -> Any:
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Dense(8, activation="tanh", input_shape=(4,)), layers.Dense(2)]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.train.AdamOptimizer(0.05), loss, metrics=["accuracy"])
    return model


class Net(tf.keras.Model):
    """A subclassed model, as eager programs write them."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = tf.keras.layers.Conv2D(4, 3, activation=tf.nn.relu)
        self.norm = tf.keras.layers.BatchNormalization()
        self.flat = tf.keras.layers.Flatten()
        self.out = [tf.keras.layers.Dense(6), tf.keras.layers.Dense(2)]

    def call(self, x: Any, training: bool = False) -> Any:
        x = self.flat(self.norm(self.conv(x), training=training))
        for layer in self.out:
            x = layer(x)
        return x


def test_layers_compute_at_once_and_seeds_count():
    tf.set_random_seed(4)
    layer = tf.keras.layers.Dense(3)
    first = layer(tf.ones([2, 5])).numpy()
    np.testing.assert_allclose(first, np.ones([2, 5]) @ layer.get_weights()[0], 1e-5)
    tf.set_random_seed(4)
    np.testing.assert_array_equal(tf.keras.layers.Dense(3)(tf.ones([2, 5])), first)


def test_a_subclassed_model_learns_by_a_tape_and_is_saved_with_its_optimizer(tmp_path: Path):
    model, optimizer = Net(), tf.train.AdamOptimizer(0.01)
    images = RNG.randn(8, 6, 6, 1).astype("f")
    labels = np.arange(8) % 2
    step = tf.train.get_or_create_global_step()
    losses = []
    for _ in range(12):
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True), step)
        losses.append(loss.numpy())
    assert losses[-1] < losses[0] / 2 and step.numpy() == 12
    assert len(model.variables) == len(model.trainable_variables) + 2
    expected = model(images).numpy()
    saved = tf.train.Checkpoint(model=model, optimizer=optimizer).save(str(tmp_path / "net"))
    again = Net()
    again(images)
    tf.train.Checkpoint(model=again, optimizer=tf.train.AdamOptimizer(0.01)).restore(saved)
    np.testing.assert_allclose(again(images), expected, 1e-5)


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_fit_evaluate_and_predict(run_eagerly: bool):
    tf.set_random_seed(1)
    model = classifier()
    model.run_eagerly = run_eagerly
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(16)
    history = model.fit(data, epochs=8, verbose=0, validation_data=(X, Y)).history
    assert history["loss"][-1] < history["loss"][0]
    loss, accuracy = model.evaluate(X, Y, verbose=0)
    logits = model.predict(X, verbose=0)
    assert accuracy == pytest.approx(np.mean(logits.argmax(1) == Y)) and accuracy > 0.8
    exact = -np.log(np.exp(logits)[np.arange(48), Y] / np.exp(logits).sum(1))
    assert loss == pytest.approx(exact.mean(), rel=1e-4)


def test_a_model_trains_alike_in_a_graph_of_functions_and_op_by_op():
    weights = [w.copy() for w in classifier().get_weights()]
    found = []
    for eagerly in (True, False):
        model = classifier()
        model.set_weights(weights)
        model.run_eagerly = eagerly
        model.fit(X, Y, batch_size=16, epochs=2, shuffle=False, verbose=0)
        found.append(model.get_weights())
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_functions_of_symbolic_inputs_become_layers_that_are_saved():
    inputs = tf.keras.layers.Input((4,))
    hidden = tf.nn.relu(1.0 - inputs * 2.0)[:, :3]
    outputs = tf.concat([tf.expand_dims(hidden, -1), tf.ones_like(hidden)[..., None]], -1)
    model = tf.keras.Model(inputs, tf.reduce_mean(outputs, axis=[1, 2]))
    expected = np.concatenate([np.maximum(1 - X * 2, 0)[:, :3], np.ones([48, 3])], 1).mean(1)
    np.testing.assert_allclose(model(X), expected, 1e-5)
    assert "tf.nn.relu" in [layer.name for layer in model.layers]
    again = tf.keras.Model.from_config(model.get_config())
    np.testing.assert_allclose(again.predict(X, verbose=0), expected, 1e-5)


@pytest.mark.parametrize("name", ["model.h5", "model"])
def test_models_are_saved_and_loaded(tmp_path: Path, name: str):
    model = classifier()
    model.fit(X, Y, epochs=1, verbose=0)
    model.save(str(tmp_path / name), save_format="h5" if "." in name else "tf")
    again = tf.keras.models.load_model(str(tmp_path / name), compile=False)
    np.testing.assert_allclose(again.predict(X, verbose=0), model.predict(X, verbose=0), 1e-5)


def test_recurrent_layers_and_callbacks(tmp_path: Path):
    layers, callbacks = tf.keras.layers, tf.keras.callbacks
    model = tf.keras.Sequential([
        layers.Embedding(20, 6, mask_zero=True), layers.Bidirectional(layers.LSTM(5)),
        layers.Dropout(0.1), layers.Dense(1, activation="sigmoid"),
    ])  # fmt: skip
    model.compile("rmsprop", "binary_crossentropy")
    text = RNG.randint(0, 20, (32, 7))
    watching = [
        callbacks.EarlyStopping("loss", patience=5), callbacks.ReduceLROnPlateau("loss"),
        callbacks.ModelCheckpoint(str(tmp_path / "best.h5"), "loss", save_best_only=True),
        callbacks.TensorBoard(str(tmp_path / "logs"), histogram_freq=1),
    ]  # fmt: skip
    history = model.fit(text, Y[:32], epochs=2, verbose=0, callbacks=watching, validation_split=0.2)
    assert len(history.history["loss"]) == 2
    assert (tmp_path / "best.h5").exists() and list((tmp_path / "logs").rglob("events*"))


def test_generators_feed_models_and_batches_train_them():
    model = classifier()

    def batches() -> Any:
        while True:
            yield X[:16], Y[:16]

    assert len(model.fit_generator(batches(), steps_per_epoch=3, verbose=0).history["loss"]) == 1
    before = model.test_on_batch(X, Y)[0]
    for _ in range(5):
        model.train_on_batch(X, Y)
    assert model.test_on_batch(X, Y)[0] < before
    backend = tf.keras.backend
    inputs = tf.keras.layers.Input((3,))
    (found,) = backend.function([inputs], [inputs * 2])([np.ones((1, 3), "f")])
    assert found.tolist() == [[2, 2, 2]] and backend.get_value(backend.variable(3.0)) == 3


# ---------------------------------------------------------------- slots of checkpoints
def _trained(folder: Path) -> tuple[str, Any]:
    """A checkpoint of a variable and Keras' Adam after two steps, and the slot "m"."""
    optimizer, v = tf.keras.optimizers.Adam(0.1), tf.Variable([1.0, 2.0])
    for _ in range(2):
        optimizer.minimize(lambda: tf.reduce_sum(v * v), [v])
    path = tf.train.Checkpoint(optimizer=optimizer, v=v).save(str(folder / "c"))
    return path, optimizer.get_slot(v, "m").numpy()


@pytest.mark.parametrize("last", ["neither", "v", "optimizer"])
def test_keras_slots_are_there_before_a_step(last: str, tmp_path: Path) -> None:
    path, m = _trained(tmp_path)
    optimizer, v = tf.keras.optimizers.Adam(0.1), tf.Variable([0.0, 0.0])
    parts = {"optimizer": optimizer, "v": v}
    late = parts.pop(last, None)
    checkpoint = tf.train.Checkpoint(**parts)
    status = checkpoint.restore(path)
    if late is not None:
        setattr(checkpoint, last, late)
    np.testing.assert_array_equal(optimizer.get_slot(v, "m").numpy(), m)
    status.assert_existing_objects_matched()
    again = checkpoint.save(str(tmp_path / "again"))
    slots = [k for k, _ in tf.train.list_variables(path) if "OPTIMIZER_SLOT" in k]
    assert len(slots) == 2 and set(slots) <= {k for k, _ in tf.train.list_variables(again)}


def test_keras_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    steps: list[Any] = []
    optimizer, v = tf.keras.optimizers.Adam(0.1), tf.Variable([1.0, 2.0])
    checkpoint = tf.train.Checkpoint(optimizer=optimizer, v=v)
    optimizer.minimize(lambda: tf.reduce_sum(v * v), [v])
    path = checkpoint.save(str(tmp_path / "c"))
    for _ in range(2):
        if steps:
            optimizer, v = tf.keras.optimizers.Adam(0.1), tf.Variable([0.0, 0.0])
            tf.train.Checkpoint(optimizer=optimizer, v=v).restore(path)
        optimizer.minimize(lambda v=v: tf.reduce_sum(v * v), [v])
        steps.append(v.numpy())
    np.testing.assert_array_equal(*steps)
