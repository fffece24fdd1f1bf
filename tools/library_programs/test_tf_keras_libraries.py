"""Libraries on tf.keras, none of which brings tests in its package: each does what it is for."""

import numpy as np
import pytest
import tensorflow as tf

keras = tf.keras
RNG = np.random.RandomState(0)


@pytest.fixture(autouse=True)
def fresh():
    keras.backend.clear_session()


def test_deepctr_learns_from_features():
    from deepctr.inputs import DenseFeat, SparseFeat
    from deepctr.models import DeepFM

    columns = [
        SparseFeat("a", vocabulary_size=5, embedding_dim=4),
        SparseFeat("b", vocabulary_size=3, embedding_dim=4),
        DenseFeat("x", 1),
    ]
    given = {"a": RNG.randint(5, size=64), "b": RNG.randint(3, size=64), "x": RNG.rand(64)}
    model = DeepFM(columns, columns, task="binary")
    model.compile("adam", "binary_crossentropy")
    loss = model.fit(given, (given["a"] > 2) * 1.0, epochs=5, verbose=0).history["loss"]
    assert loss[-1] < loss[0]


def test_neural_structured_learning_trains_against_an_adversary():
    import neural_structured_learning as nsl

    layers = keras.layers
    base = keras.Sequential(
        [
            keras.Input((3,), name="feature"),
            layers.Dense(4, activation="relu"),
            layers.Dense(2, activation="softmax"),
        ]
    )
    config = nsl.configs.make_adv_reg_config(multiplier=0.2, adv_step_size=0.05)
    model = nsl.keras.AdversarialRegularization(base, adv_config=config)
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    x = RNG.rand(32, 3).astype("f")
    given = {"feature": x, "label": (x[:, 0] > 0.5).astype("int64")}
    found = model.fit(given, batch_size=8, epochs=5, verbose=0).history
    assert found["loss"][-1] < found["loss"][0]
    assert found["adversarial_loss"][0] > found["sparse_categorical_crossentropy"][0]


def test_model_optimization_prunes():
    from tensorflow_model_optimization.sparsity import keras as sparsity

    model = keras.Sequential([keras.layers.Dense(8, input_shape=(3,)), keras.layers.Dense(1)])
    schedule = sparsity.ConstantSparsity(0.5, 0, frequency=1)
    pruned = sparsity.prune_low_magnitude(model, pruning_schedule=schedule)
    pruned.compile("adam", "mse")
    x = RNG.rand(32, 3)
    pruned.fit(x, x[:, :1], epochs=2, verbose=0, callbacks=[sparsity.UpdatePruningStep()])
    kernels = sparsity.strip_pruning(pruned).get_weights()[::2]
    assert [np.mean(kernel == 0) for kernel in kernels] == [0.5, 0.5]


def test_efficientnet_classifies():
    import efficientnet.tfkeras as efficientnet

    model = efficientnet.EfficientNetB0(weights=None, input_shape=(64, 64, 3), classes=3)
    found = model.predict(RNG.rand(1, 64, 64, 3))
    np.testing.assert_allclose(found.sum(), 1.0, rtol=1e-5)


def test_segmentation_models_train(monkeypatch):
    monkeypatch.setenv("SM_FRAMEWORK", "tf.keras")
    import segmentation_models as segmentation

    model = segmentation.Unet("resnet18", encoder_weights=None, input_shape=(64, 64, 3))
    model.compile("adam", segmentation.losses.bce_jaccard_loss, [segmentation.metrics.iou_score])
    x, y = RNG.rand(1, 64, 64, 3), np.ones((1, 64, 64, 1))
    losses = [model.train_on_batch(x, y)[0] for _ in range(5)]
    assert losses[-1] < losses[0]
