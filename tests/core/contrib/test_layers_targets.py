"""`contrib.layers.python.layers.target_column`: losses, predictions and metrics of old models."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.contrib.layers import target_column as targets

LOGITS = np.array([[1.0], [1.0], [-1.0]], np.float32)
TRUTH = np.array([1, 0, 1])
WEIGHTS = np.array([1.0, 3.0, 0.0], np.float32)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def run(fetches):
    with tf.Session() as session:
        return session.run(fetches)


def updated(metrics):
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run([update for _, update in metrics.values()])
        return session.run({name: value for name, (value, _) in metrics.items()})


def losses(kind):
    given = LOGITS[:, 0].astype(np.float64)
    return {
        "regression": (given - TRUTH) ** 2,
        "classes": np.log1p(np.exp(-given)) + (1 - TRUTH) * given,
        "svm": np.maximum(0, 1 - (2 * TRUTH - 1) * given),
    }[kind]


MAKERS = {
    "regression": targets.regression_target,
    "classes": lambda **kwargs: targets.multi_class_target(2, **kwargs),
    "svm": targets.binary_svm_target,
}


@pytest.mark.parametrize("kind", MAKERS)
def test_losses_are_means_with_and_without_weights(kind):
    each = losses(kind)
    logits, labels = tf.constant(LOGITS), tf.constant(TRUTH)
    plain, weighted = MAKERS[kind](), MAKERS[kind](weight_column_name="w")
    named = MAKERS[kind](label_name="y")
    features = {"w": tf.constant(WEIGHTS[:, None])}
    got = run([
        plain.loss(logits, labels, {}), plain.training_loss(logits, labels[:, None], {}),
        named.loss(logits, {"y": labels}, {}), weighted.loss(logits, labels, features),
        weighted.training_loss(logits, labels, features),
    ])  # fmt: skip
    total = (each * WEIGHTS).sum()
    wanted = [each.mean()] * 3 + [total / WEIGHTS.sum(), total / 3]
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_several_classes_have_a_softmax():
    target = targets.multi_class_target(3)
    logits = tf.constant([[1.0, 0.0, 0.0], [0.0, 0.0, 5.0]])
    labels = tf.constant([[2], [2]])
    loss, classes, shares = run([
        target.loss(logits, labels, {}), target.logits_to_predictions(logits),
        target.logits_to_predictions(logits, proba=True),
    ])  # fmt: skip
    np.testing.assert_allclose(loss, -np.log(shares[:, 2]).mean(), rtol=1e-5)
    assert classes.tolist() == [0, 2]
    with pytest.raises(ValueError, match="should be integer"):
        target.loss(logits, tf.constant([1.0, 2.0]), {})


def test_metrics_of_two_classes():
    target = targets.multi_class_target(2)
    asked = {
        "plain": lambda said, truth: tf.metrics.mean(said),
        ("sure", "probabilities"): lambda said, truth: tf.metrics.mean(said[:, 1]),
    }
    given = ({}, tf.constant(LOGITS), tf.constant(TRUTH[:, None]))
    default, own = target.get_eval_ops(*given), target.get_eval_ops(*given, metrics=asked)
    found = updated({**default, **own})
    chances = 1 / (1 + np.exp(-LOGITS[:, 0]))
    wanted = {
        "loss": losses("classes").mean(), "labels/prediction_mean": chances.mean(),
        "labels/actual_target_mean": 2 / 3, "accuracy/baseline_target_mean": 2 / 3,
        "accuracy/threshold_0.500000_mean": 1 / 3, "accuracy": 1 / 3, "plain": 2 / 3,
        "precision/positive_threshold_0.500000_mean": 0.5, "sure": chances.mean(),
        "recall/positive_threshold_0.500000_mean": 0.5,
    }  # fmt: skip
    assert {**wanted, "auc": found["auc"]}.keys() == found.keys()
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-3, err_msg=name)


def test_metrics_of_numbers_have_weights():
    target = targets.regression_target(weight_column_name="w")
    given = ({"w": tf.constant(WEIGHTS)}, tf.constant(LOGITS), tf.constant(TRUTH))

    def mine(said, truth, weights):
        return tf.metrics.mean_squared_error(truth, said, weights)

    found = updated(target.get_eval_ops(*given, metrics={"mine": mine}))
    np.testing.assert_allclose(found["mine"], found["loss"], rtol=1e-6)
    np.testing.assert_allclose(found["loss"], 0.75, rtol=1e-6)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="n_classes must be > 1"):
        targets.multi_class_target(1)
    with pytest.raises(ValueError, match="probabilities is not supported"):
        targets.binary_svm_target().logits_to_predictions(tf.constant(LOGITS), proba=True)
    for key, told in (
        (("a", "b", "c"), "len 3, expected 2"), (("a", "b"), "either 'classes'"),
        (7, "not in the correct form"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=told):
            targets.multi_class_target(2).get_eval_ops(
                {}, tf.constant(LOGITS), tf.constant(TRUTH[:, None]), {key: None}
            )
