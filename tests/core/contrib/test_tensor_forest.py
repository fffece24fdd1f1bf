"""`tf.contrib.tensor_forest`: estimators of forests train, are evaluated and predict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf

forest = tf.contrib.tensor_forest.python.tensor_forest
random_forest = tf.contrib.tensor_forest.client.random_forest
eval_metrics = tf.contrib.tensor_forest.client.eval_metrics

Y = np.arange(90, dtype=np.int32) % 3
X = (np.eye(3)[Y] + np.random.RandomState(0).rand(90, 3) / 4).astype(np.float32)


def params(**given: Any) -> Any:
    known = {"num_classes": 3, "num_features": 3, "num_trees": 3, "split_after_samples": 20}
    return forest.ForestHParams(**{**known, "base_random_seed": 3, **given})


def inputs(labels: Any, features: Any = None) -> Any:
    """An input function."""
    given = {"x": X} if features is None else features
    return lambda: ({k: tf.constant(v) for k, v in given.items()}, tf.constant(labels))


def test_an_estimator_of_classes(tmp_path: Path) -> None:
    with_keys = {"x": X, "keys": np.arange(90)[:, None]}
    estimator = random_forest.TensorForestEstimator(
        params(inference_tree_paths=True), model_dir=str(tmp_path), keys_column="keys"
    )
    estimator.fit(input_fn=inputs(Y, with_keys), steps=10)
    metric = tf.contrib.learn.MetricSpec(
        eval_metrics.get_metric("accuracy"), eval_metrics.get_prediction_key("accuracy")
    )
    found = estimator.evaluate(input_fn=inputs(Y, with_keys), steps=1, metrics={"mine": metric})
    assert found["accuracy"] == found["mine"] > 0.9
    assert 0 < found["loss"] < 1
    first = next(iter(estimator.predict(input_fn=inputs(Y, with_keys), as_iterable=True)))
    assert first["classes"] == Y[0]
    assert first["keys"] == [0]
    assert len(first["tree_paths"]) == 3
    assert first["prediction_variance"].shape == (3,)


def test_training_ends_when_trees_no_longer_better_it(tmp_path: Path) -> None:
    estimator = random_forest.TensorForestEstimator(
        params(), model_dir=str(tmp_path), early_stopping_rounds=2,
        early_stopping_loss_threshold=0.9,
    )  # fmt: skip
    estimator.fit(input_fn=inputs(Y), steps=50)
    assert estimator.get_variable_value("global_step") < 10


@pytest.mark.parametrize("classes", [2, 3])
def test_the_core_estimator_of_classes(tmp_path: Path, classes: int) -> None:
    labels = np.minimum(Y, classes - 1)
    estimator = random_forest.CoreTensorForestEstimator(
        params(num_classes=classes), model_dir=str(tmp_path), report_feature_importances=True
    )
    estimator.train(inputs(labels[:, None]), steps=10)
    assert estimator.evaluate(inputs(labels[:, None]), steps=1)["accuracy"] > 0.9
    predicted = next(iter(estimator.predict(inputs(labels[:, None]))))
    assert predicted["class_ids"] == labels[0]


def test_the_core_estimator_of_numbers_with_columns(tmp_path: Path) -> None:
    targets = Y.astype(np.float32)[:, None]
    columns = [tf.feature_column.numeric_column("x", shape=[3])]
    estimator = random_forest.CoreTensorForestEstimator(
        params(num_classes=1, regression=True), model_dir=str(tmp_path), feature_columns=columns
    )
    estimator.train(inputs(targets), steps=10)
    assert estimator.evaluate(inputs(targets), steps=1)["average_loss"] < 0.1


def test_several_forests(tmp_path: Path) -> None:
    labels = np.stack([Y, (Y + 1) % 3], 1)
    estimator = random_forest.MultiForestMultiHeadEstimator(
        [params(), params()], model_dir=str(tmp_path)
    )
    estimator.fit(input_fn=inputs(labels), steps=10)
    predicted = list(estimator.predict(input_fn=inputs(labels), as_iterable=True))
    assert ([each["classes"] for each in predicted] == labels).mean() > 0.9
    assert predicted[0]["probabilities"].shape == (6,)


@pytest.mark.parametrize(
    "name", ["auc", "softmax_entropy", "sigmoid_entropy", "precision", "recall", "top_5", "r2",
             "classification_log_loss", "precision_at_thresholds", "recall_at_thresholds"],
)  # fmt: skip
def test_metrics_by_name(name: str) -> None:
    of_classes = eval_metrics.get_prediction_key(name) == "classes"
    predictions = (
        Y % 2 if of_classes else np.repeat(np.eye(2, 6, dtype=np.float32), 45, 0) * 0.8 + 0.02
    )
    labels = Y % 2 if of_classes else np.repeat([0, 1], 45)[:, None].astype(np.int32)
    if name == "r2":
        predictions, labels = X[:, :1], X[:, :1]
    value, update = eval_metrics.get_metric(name)(tf.constant(predictions), tf.constant(labels))
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        sess.run(update)
        found = np.max(sess.run(value))
    assert found == pytest.approx(1, abs=2e-3) or name.endswith(("entropy", "loss"))
    assert 0 < found < 3
