"""Heads of `tf.contrib.learn` beside one another, and that of a support vector machine."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

learn = tf.contrib.learn
LABELS = np.array([[1], [0], [1]])
LOGITS = np.array([[0.5], [-2.0], [-1.0]], np.float32)


def ran(what):
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        return session.run(what)


def test_the_hinge_loss_is_what_a_margin_lacks():
    with tf.Graph().as_default():
        head = learn.binary_svm_head(weight_column_name="w", head_name="svm")
        features = {"w": tf.constant([1.0, 5.0, 3.0])}
        made = head.create_model_fn_ops(
            features, learn.ModeKeys.EVAL, tf.constant(LABELS), logits=LOGITS
        )
        losses, weights = np.array([0.5, 0.0, 2.0]), np.array([1.0, 5.0, 3.0])
        loss, classes, metrics = ran([
            made.loss, made.predictions["classes"],
            {key: update for key, (_, update) in made.eval_metric_ops.items()},
        ])  # fmt: skip
        assert loss == pytest.approx(np.mean(losses * weights))
        assert classes.tolist() == [1, 0, 0]
        # Weights of 1 and 5 are right, of 9.
        assert metrics["loss/svm"] == pytest.approx(np.sum(losses * weights) / 9)
        assert metrics["accuracy/svm"] == pytest.approx(6 / 9)


def joint(weights=None):
    """Two problems and a loss of none: 1 + 1 + 0 logits."""
    return learn.multi_head(
        [
            learn.binary_svm_head(label_name="a", head_name="first"),
            learn.regression_head(label_name="b", head_name="second"),
            learn.loss_only_head(lambda: [tf.constant(2.0), tf.constant(3.0)], "third"),
        ],
        weights,
    )


def labels():
    return {"a": tf.constant(LABELS), "b": tf.constant([[0.0], [0.0], [2.0]])}


HINGE = 2.5 / 3
SQUARES = (1.0 + 4.0 + 1.0) / 3
SIDE_BY_SIDE = np.concatenate([LOGITS, [[1.0], [2.0], [1.0]]], 1).astype(np.float32)


def test_losses_of_heads_are_added_by_their_weights():
    with tf.Graph().as_default():
        plain, weighted = (
            joint(weights).create_model_fn_ops(
                {}, learn.ModeKeys.EVAL, labels(), logits=tf.constant(SIDE_BY_SIDE)
            )
            for weights in (None, [1.0, 0.5, 0.25])
        )
        found = ran([plain.loss, weighted.loss])
        np.testing.assert_allclose(found, [HINGE + SQUARES + 5, HINGE + SQUARES / 2 + 1.25])
        assert {"loss/first", "accuracy/first", "loss/second"} <= set(plain.eval_metric_ops)
        assert ("second", "scores") in plain.predictions


def test_a_joint_head_trains_once_and_its_logits_come_in_three_ways():
    head = joint()
    assert head.logits_dimension == 2
    split = {"first": SIDE_BY_SIDE[:, :1], "second": SIDE_BY_SIDE[:, 1:]}
    for given in ({"logits": SIDE_BY_SIDE}, {"logits": split}, {"logits_input": SIDE_BY_SIDE}):
        with tf.Graph().as_default():
            counted = tf.Variable(0.0)
            made = head.create_model_fn_ops(
                {}, learn.ModeKeys.TRAIN, labels(), counted.assign_add, **given
            )
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                loss = session.run([made.loss, made.train_op])[0]
                assert session.run(counted) == pytest.approx(loss)
                if "logits" in given:
                    assert loss == pytest.approx(HINGE + SQUARES + 5)


def test_each_head_of_several_is_served_under_its_name():
    with tf.Graph().as_default():
        made = joint().create_model_fn_ops({}, learn.ModeKeys.INFER, logits=SIDE_BY_SIDE)
        assert set(made.output_alternatives) == {"first", "second"}
        found = ran({f"{head}/{key}": value for (head, key), value in made.predictions.items()})
        np.testing.assert_allclose(found["second/scores"], SIDE_BY_SIDE[:, 1])
        np.testing.assert_allclose(found["first/logits"], LOGITS)


def test_what_no_heads_can_be_joined_of():
    named = learn.regression_head(head_name="a")
    with pytest.raises(ValueError, match="must have names"):
        learn.multi_head([named, learn.regression_head()])
    with pytest.raises(ValueError, match="same size"):
        learn.multi_head([named], [1.0, 2.0])
    for head in (learn.multi_head([named]), learn.loss_only_head(lambda: tf.constant(1.0))):
        with tf.Graph().as_default(), pytest.raises(ValueError, match="train_op_fn"):
            head.create_model_fn_ops({}, learn.ModeKeys.TRAIN, LABELS, logits=LOGITS)
        with tf.Graph().as_default(), pytest.raises(ValueError, match="mode"):
            head.create_model_fn_ops({}, "asleep", LABELS, logits=LOGITS)


def test_classes_are_served_by_name_beside_their_probabilities():
    keys = ["ant", "bee", "cat"]
    for head, logits, names in (
        (learn.multi_class_head(2), LOGITS, ["0", "1"]),
        (learn.multi_class_head(3, label_keys=keys), np.eye(3, dtype=np.float32), keys),
        (learn.multi_label_head(3), np.eye(3, dtype=np.float32), ["0", "1", "2"]),
    ):
        with tf.Graph().as_default():
            made = head.create_model_fn_ops({}, learn.ModeKeys.INFER, logits=logits)
            _, served = made.output_alternatives[None]
            found = ran(served)
            assert found["classes"].tolist() == [[name.encode() for name in names]] * 3
            assert found["probabilities"].shape == found["classes"].shape


def test_sparse_labels_are_for_heads_of_several_classes_at_once():
    sparse = tf.SparseTensorValue([[0, 0], [1, 0], [1, 1]], [1, 0, 2], [2, 2])
    logits = np.array([[0.5, -1.0, 2.0], [1.0, -2.0, 3.0]], np.float32)
    dense = np.array([[0, 1, 0], [1, 0, 1]])
    head = learn.multi_label_head(3, metric_class_ids=[1])
    with tf.Graph().as_default():
        first, second = (
            head.create_model_fn_ops({}, learn.ModeKeys.EVAL, labels, logits=logits)
            for labels in (sparse, dense)
        )
        losses = ran([first.loss, second.loss])
        assert losses[0] == pytest.approx(losses[1])
        found = ran({key: update for key, (_, update) in first.eval_metric_ops.items()})
    assert found["labels/actual_label_mean/class1"] == pytest.approx(0.5)
    assert found["labels/prediction_mean/class1"] == 0
    assert found["labels/logits_mean/class1"] == pytest.approx(-1.5)
    assert found["labels/probability_mean/class1"] == pytest.approx(
        np.mean(1 / (1 + np.exp([1.0, 2.0])))
    )
    for other in (learn.multi_class_head(2), learn.regression_head()):
        with tf.Graph().as_default(), pytest.raises(ValueError, match="SparseTensor"):
            other.create_model_fn_ops({}, learn.ModeKeys.EVAL, sparse, logits=LOGITS)
    with pytest.raises(ValueError, match=r"not in \[0, 3\)"):
        learn.multi_label_head(3, metric_class_ids=[3])


def test_a_head_of_distributions_is_trained_by_likelihood():
    def made(logits):
        return tf.distributions.Normal(logits[..., 0], tf.exp(logits[..., 1]))

    with tf.Graph().as_default():
        head = tf.contrib.distributions.estimator_head_distribution_regression(
            made, logits_dimension=2
        )
        logits = tf.constant([[0.0, -1.0], [1.0, 0.5], [-1.0, 1.0]])
        given = ({}, learn.ModeKeys.TRAIN, tf.constant([[-1.0], [0.0], [1.0]]))
        ops = head.create_model_fn_ops(*given, learn.no_op_train_fn, logits=logits)
        loss, mean = ran([ops.loss, ops.predictions["scores"]])
        z = np.array([-1.0, -1.0, 2.0]) / np.exp([-1.0, 0.5, 1.0])
        losses = 0.5 * (z**2 + np.log(2 * np.pi)) + np.array([-1.0, 0.5, 1.0])
        assert loss == pytest.approx(np.mean(losses), rel=1e-5)
        assert mean.tolist() == [0, 1, -1] and len(head.distributions) == 1
        assert ran(head.distribution(logits).stddev())[0] == pytest.approx(np.exp(-1))
        with pytest.raises(TypeError, match="callable"):
            tf.contrib.distributions.estimator_head_distribution_regression(None)
