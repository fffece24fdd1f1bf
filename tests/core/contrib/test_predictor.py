"""`tf.contrib.predictor`: SavedModels and estimators as functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.contrib import predictor


@pytest.fixture
def exported(tmp_path: Path) -> str:
    """A SavedModel of y = 3 x + b, where b is 1 if it is not fed."""
    folder = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None], name="x")
        b = tf.placeholder_with_default(1.0, [], name="b")
        w = tf.Variable(3.0)
        y = tf.add(w * x, b, name="y")
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, folder, {"x": x, "b": b}, {"y": y})
    return folder


def test_from_a_saved_model(exported: str) -> None:
    predict = tf.contrib.predictor.from_saved_model(exported)
    assert predict({"x": [1.0, 2.0]})["y"].tolist() == [4, 7]
    assert predict({"x": [1.0], "b": 0.0})["y"].tolist() == [3]
    assert predict({"x": [1.0], "b": None})["y"].tolist() == [4]
    assert predict.feed_tensors["x"].graph is predict.graph is predict.session.graph
    assert list(predict.fetch_tensors) == ["y"]
    with pytest.raises(ValueError, match="unexpected keys in input_dict: {'z'}"):
        predict({"z": 1})


def test_by_names_and_signatures(exported: str) -> None:
    by_name = predictor.from_saved_model(
        exported, input_names={"in": "x:0"}, output_names={"out": "y:0"}
    )
    assert by_name({"in": [2.0]})["out"].tolist() == [7]
    key = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    assert predictor.from_saved_model(exported, key, tags="serve")({"x": [0.0]})["y"] == [1]
    with pytest.raises(ValueError, match=r'"other". Available signatures are \[.serving_default'):
        predictor.from_saved_model(exported, "other")
    with pytest.raises(ValueError, match="at most one of signature_def_key"):
        predictor.from_saved_model(exported, key, input_names={"x": "x:0"}, output_names={})


def test_from_an_estimator(tmp_path: Path) -> None:
    def model(features: Any, labels: Any, mode: str) -> Any:
        w = tf.get_variable("w", initializer=1.0)
        y = features["x"] * w
        step = tf.train.get_or_create_global_step()
        train = tf.group(tf.assign_add(w, 1.0), tf.assign_add(step, 1))
        outputs = {"twice": tf.estimator.export.PredictOutput({"y": 2 * y})}
        return tf.estimator.EstimatorSpec(
            mode, predictions=y, loss=tf.reduce_mean(y), train_op=train, export_outputs=outputs
        )

    estimator = tf.estimator.Estimator(model, str(tmp_path))
    estimator.train(lambda: ({"x": tf.ones([1])}, tf.ones([1])), steps=2)

    def receiver() -> Any:
        x = tf.placeholder(tf.float32, [None])
        return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})

    predict = predictor.from_estimator(estimator, receiver, "twice")
    np.testing.assert_array_equal(predict({"x": [1.0, 2.0]})["y"], [6, 12])
    with pytest.raises(KeyError, match=r"output_key must be one of \['serving_default', 'twice'\]"):
        predictor.from_estimator(estimator, receiver, "thrice")


def test_each_kind_of_estimator_has_its_own_function(tmp_path: Path) -> None:
    of_learn = tf.contrib.learn.Estimator(lambda features, labels: None, model_dir=str(tmp_path))
    with pytest.raises(TypeError, match="from_contrib_estimator"):
        predictor.from_estimator(of_learn, lambda: None)
    with pytest.raises(TypeError, match="`from_estimator`"):
        predictor.from_contrib_estimator(object(), lambda: None)


def test_a_predictor_has_the_class_of_what_it_was_made_of(exported: str) -> None:
    made = predictor.from_saved_model(exported)
    assert type(made) is predictor.SavedModelPredictor and isinstance(made, predictor.Predictor)
