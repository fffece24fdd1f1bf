"""`tf.contrib.learn`: SavedModels of estimators, clusters, and models of probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.contrib import learn
from opdock.contrib.learn import exporting
from opdock.contrib.learn.keys import ProblemType


def _data() -> Any:
    return {"x": tf.constant([[1.0], [2.0], [3.0]])}, tf.constant([[2.0], [4.0], [6.0]])


def _trained(folder: Path) -> Any:
    columns = [tf.contrib.layers.real_valued_column("x")]
    estimator = learn.LinearRegressor(columns, model_dir=str(folder / "model"))
    estimator.fit(input_fn=_data, steps=2)
    return estimator


_serving = learn.build_parsing_serving_input_fn({"x": tf.FixedLenFeature([1], tf.float32)})


def _example(x: float) -> bytes:
    example = tf.train.Example()
    example.features.feature["x"].float_list.value.append(x)
    return example.SerializeToString()  # type: ignore[no-any-return]


def test_an_estimator_is_exported_and_predicts_the_same(tmp_path: Path) -> None:
    estimator = _trained(tmp_path)
    beside = tmp_path / "words.txt"
    beside.write_text("one\n")
    strategy = learn.make_export_strategy(_serving, assets_extra={"a/words": str(beside)})
    assert strategy.name == "Servo"
    written = strategy.export(estimator, str(tmp_path / "served")).decode()
    assert (Path(written) / "assets.extra" / "a" / "words").read_text() == "one\n"
    newest = exporting.get_most_recent_export(str(tmp_path / "served"))
    assert newest is not None
    assert newest.path == written
    wanted = list(estimator.predict_scores(input_fn=lambda: (_data()[0], None)))
    with tf.Graph().as_default(), tf.Session() as sess:
        loaded = tf.saved_model.load(sess, ["serve"], written)
        signature = loaded.signature_def["serving_default"]
        assert signature.method_name == "tensorflow/serving/regress"
        (fed,), (out,) = signature.inputs.values(), signature.outputs.values()
        found = sess.run(out.name, {fed.name: [_example(x) for x in (1.0, 2.0, 3.0)]})
    np.testing.assert_allclose(np.ravel(found), np.ravel(wanted), rtol=1e-6)


def test_a_predictor_of_an_estimator(tmp_path: Path) -> None:
    estimator = _trained(tmp_path)
    ask = tf.contrib.predictor.from_contrib_estimator(estimator, _serving)
    wanted = list(estimator.predict_scores(input_fn=lambda: (_data()[0], None)))
    (found,) = ask({"examples": [_example(x) for x in (1.0, 2.0, 3.0)]}).values()
    np.testing.assert_allclose(np.ravel(found), np.ravel(wanted), rtol=1e-6)
    with pytest.raises(TypeError, match="`from_estimator`"):
        tf.contrib.predictor.from_contrib_estimator(object(), _serving)


def test_what_cannot_be_exported(tmp_path: Path) -> None:
    columns = [tf.contrib.layers.real_valued_column("x")]
    estimator = learn.LinearRegressor(columns, model_dir=str(tmp_path))
    with pytest.raises(ValueError, match="serving_input_fn must be defined"):
        estimator.export_savedmodel(str(tmp_path), None)
    with pytest.raises(ValueError, match="Couldn't find trained model"):
        estimator.export_savedmodel(str(tmp_path), _serving)
    again = (*exporting.SERVED, exporting.GraphRewriteSpec(("serve", "small"), ("strip",)))
    trained = _trained(tmp_path)
    with pytest.raises(tf.errors.UnimplementedError, match="writes the graph as it is"):
        trained.export_savedmodel(str(tmp_path), _serving, graph_rewrite_specs=again)
    strategy = learn.ExportStrategy("any", lambda estimator, path, eval_result: None)
    with pytest.raises(ValueError, match="must also accept checkpoint_path"):
        strategy.export(None, "path")


def test_signatures_by_kinds_of_problems() -> None:
    with tf.Graph().as_default():
        asked = {"x": tf.placeholder(tf.string, name="asked")}
        number, word = tf.constant([0.5]), tf.constant(["cat"])
        for kind, outputs, method in (
            (ProblemType.CLASSIFICATION, {"classes": word, "probabilities": number}, "classify"),
            (ProblemType.LOGISTIC_REGRESSION, {"anything": number}, "classify"),
            (ProblemType.LINEAR_REGRESSION, {"scores": number}, "regress"),
            (ProblemType.LINEAR_REGRESSION, {"scores": number, "more": number}, "predict"),
            (ProblemType.UNSPECIFIED, {"classes": word}, "predict"),
        ):
            made = exporting.build_standardized_signature_def(asked, outputs, kind)
            assert made.method_name == f"tensorflow/serving/{method}"
        heads = {"one": (kind, {"a": number}), "two": (kind, {"b": word})}
        made = learn.ModelFnOps("infer", {"p": number}, output_alternatives=heads)
        with pytest.raises(ValueError, match="Please specify a default_output_alternative"):
            exporting.get_output_alternatives(made)
        with pytest.raises(ValueError, match="available output_alternatives are"):
            exporting.get_output_alternatives(made, "three")
        found, default = exporting.get_output_alternatives(made, "two")
        signatures = exporting.build_all_signature_defs(
            {exporting.DEFAULT_INPUT_ALTERNATIVE_KEY: asked}, found, default
        )
        assert sorted(signatures) == [
            "default_input_alternative:one", "default_input_alternative:two", "serving_default",
        ]  # fmt: skip
        with pytest.raises(ValueError, match="A default input_alternative must be provided"):
            exporting.build_all_signature_defs({}, found, default)


def test_old_exports_go(tmp_path: Path) -> None:
    for name in ("1500000001", "1500000003", "1500000002", "temp-1500000004", "notes"):
        (tmp_path / name).mkdir()
    exporting.garbage_collect_exports(str(tmp_path), None)
    exporting.garbage_collect_exports(str(tmp_path), 2)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "1500000002", "1500000003", "notes", "temp-1500000004",
    ]  # fmt: skip


def test_clusters(tmp_path: Path) -> None:
    points = np.array([[0.0, 0.1], [0.1, 0.0], [9.0, 9.1], [9.1, 9.0]], np.float32)
    model = learn.KMeansClustering(
        2, str(tmp_path), initial_clusters=points[[0, 2]], use_mini_batch=False,
        relative_tolerance=1e-3,
    )  # fmt: skip

    def input_fn() -> Any:
        return tf.constant(points), None

    model.fit(input_fn=input_fn, steps=50)
    assert tf.train.load_variable(str(tmp_path), "global_step") < 50
    np.testing.assert_allclose(model.clusters(), [[0.05, 0.05], [9.05, 9.05]], rtol=1e-5)
    assert model.score(input_fn=input_fn, steps=1) == pytest.approx(0.02, rel=1e-2)


def test_models_of_probabilities(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        weight = tf.get_variable("w", initializer=1.0)
        predictions = tf.sigmoid(weight * features["x"])
        if labels is None:
            return predictions, None, None
        loss = tf.losses.log_loss(labels, predictions)
        step = tf.train.get_global_step()
        return predictions, loss, tf.train.AdamOptimizer(0.1).minimize(loss, step)

    def input_fn() -> Any:
        return {"x": tf.constant([-2.0, -1.0, 1.0, 2.0])}, tf.constant([0.0, 0.0, 1.0, 1.0])

    model = learn.LogisticRegressor(model_fn, [0.5, 0.9999], str(tmp_path))
    model.fit(input_fn=input_fn, steps=5)
    found = model.evaluate(input_fn=input_fn, steps=1)
    assert found["auc"] == pytest.approx(1.0)
    assert found["labels/actual_label_mean"] == 0.5
    assert found["accuracy/threshold_0.500000_mean"] == 1.0
    assert found["recall/positive_threshold_0.999900_mean"] == 0.0
