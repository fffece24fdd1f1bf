"""`tf.contrib.learn`: its estimators train, are evaluated, predict and find their checkpoints."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest

import opdock as tf

learn = tf.contrib.learn
X = np.random.RandomState(0).randn(60, 4)
CLASSES = np.argmax(X[:, :3], 1)


def of(labels):
    """An input function whose features have a key."""
    return lambda: ({"x": tf.constant(X, tf.float32)}, tf.constant(labels))


def columns():
    return [tf.contrib.layers.real_valued_column("x", dimension=4)]


def test_a_deep_classifier_of_arrays_learns_and_goes_on_from_its_checkpoint(tmp_path):
    found = learn.infer_real_valued_columns_from_input(X)

    def made():
        return learn.DNNClassifier([10, 10], found, model_dir=str(tmp_path), n_classes=3)

    made().fit(X, CLASSES, steps=60, batch_size=20)
    model = made().fit(X, CLASSES, max_steps=100)
    assert model.get_variable_value("global_step") == 100
    results = model.evaluate(X, CLASSES, batch_size=25)
    said = np.array(list(model.predict(X, batch_size=25)))
    assert results["accuracy"] == pytest.approx(np.mean(said == CLASSES)) and results["loss"] < 0.5
    assert results["global_step"] == 100
    chances = np.array(list(model.predict_proba(X)))
    np.testing.assert_allclose(chances.sum(1), 1, rtol=1e-5)
    np.testing.assert_array_equal(chances.argmax(1), said)
    assert "dnn/hiddenlayer_1/weights" in model.get_variable_names()
    assert list(tmp_path.glob("eval/events.out.tfevents.*"))


def test_a_linear_regressor_finds_the_weights(tmp_path):
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    model = learn.LinearRegressor(
        columns(), str(tmp_path), optimizer=tf.train.GradientDescentOptimizer(0.2)
    )
    model.fit(input_fn=of((X @ weights).astype(np.float32)), steps=200)
    found = model.get_variable_value("linear/x/weight")
    np.testing.assert_allclose(found[:, 0], weights, rtol=1e-3)
    scores = list(model.predict(input_fn=of(CLASSES)))
    np.testing.assert_allclose(scores, X @ weights, rtol=1e-3, atol=1e-3)


def test_both_parts_are_trained_by_their_own_optimizers(tmp_path):
    model = learn.DNNLinearCombinedClassifier(
        model_dir=str(tmp_path), linear_feature_columns=columns(), linear_optimizer="SGD",
        dnn_feature_columns=columns(), dnn_hidden_units=[5], gradient_clip_norm=1.0,
        enable_centered_bias=True,
    )  # fmt: skip
    model.fit(input_fn=of((CLASSES > 0).astype(np.int64)), steps=80)
    spec = learn.MetricSpec(tf.metrics.accuracy, prediction_key="classes")
    results = model.evaluate(
        input_fn=of((CLASSES > 0).astype(np.int64)), steps=1, metrics={"mine": spec}
    )
    assert results["mine"] == results["accuracy"] > 0.8
    assert results["global_step"] == 80 and results["auc"] > 0.9
    names = model.get_variable_names()
    # TensorFlow cuts off as many characters as the part's name has, of
    # "binary_logistic_head/dnn/hiddenlayer_0/weights/part_0/Adagrad".
    assert "dnn/hiddenlayer_0/weights/yer_0/weights/part_0/Adagrad" in names
    assert "linear/x/weight" in names and not any("x/weight/" in n for n in names)


BIASED = {
    "dnn/multi_class_head": lambda **g: learn.DNNClassifier([3], columns(), n_classes=3, **g),
    "dnn/regression_head": lambda **g: learn.DNNRegressor([3], columns(), **g),
    "linear/binary_logistic_head": lambda **g: learn.LinearClassifier(columns(), **g),
    "linear/regression_head": lambda **g: learn.LinearRegressor(columns(), **g),
    "regression_head": lambda **g: learn.DNNLinearCombinedRegressor(
        linear_feature_columns=columns(), dnn_feature_columns=columns(), dnn_hidden_units=[3], **g
    ),
}


@pytest.mark.parametrize("scope", BIASED)
def test_a_bias_of_the_whole_has_tensorflows_name(tmp_path, scope):
    model = BIASED[scope](model_dir=str(tmp_path), enable_centered_bias=True)
    model.fit(input_fn=of((CLASSES > 0).astype(np.int64)), steps=1)
    found = [n for n in model.get_variable_names() if "centered" in n]
    bias = f"{scope}/centered_bias_weight"
    assert sorted(found) == sorted([bias, f"{scope}/{bias}/Adagrad"])


@pytest.mark.parametrize("scope", [s for s in BIASED if "regression" in s])
def test_a_metric_of_a_regressor_need_not_name_the_scores(tmp_path, scope):
    model = BIASED[scope](model_dir=str(tmp_path))
    data = of(CLASSES.astype(np.float32))
    model.fit(input_fn=data, steps=1)

    def error(predictions, labels):
        return tf.metrics.mean_squared_error(tf.reshape(labels, [-1, 1]), predictions)

    spec = learn.MetricSpec(tf.metrics.mean, prediction_key="scores")
    metrics = {"mine": error, ("same", "scores"): error, "mean": spec}
    found = model.evaluate(input_fn=data, steps=1, metrics=metrics)
    assert found["mine"] == found["same"] == pytest.approx(found["loss"], rel=1e-5)
    assert "mean" in found


def test_weights_of_examples_count_as_often_as_they_say(tmp_path):
    """Of one 1 and three 0s, a model without slope says the weighted mean: 9 of 12."""
    column = tf.contrib.layers.real_valued_column("x")

    def data():
        features = {"x": tf.zeros([4, 1]), "w": tf.constant([9.0, 1.0, 1.0, 1.0])}
        return features, tf.constant([[1.0], [0.0], [0.0], [0.0]])

    model = learn.LinearRegressor(
        [column], str(tmp_path), "w", optimizer=tf.train.GradientDescentOptimizer(0.1)
    )
    model.fit(input_fn=data, steps=100)
    np.testing.assert_allclose(model.get_variable_value("linear/bias_weight"), 0.75, rtol=1e-3)
    assert model.evaluate(input_fn=data, steps=1)["loss"] == pytest.approx(0.1875, rel=1e-3)


def test_labels_may_be_strings(tmp_path):
    names = np.array(["red", "green", "blue"])
    model = learn.LinearClassifier(
        columns(), str(tmp_path), n_classes=3, label_keys=list(names)
    )  # fmt: skip
    model.fit(input_fn=of(names[CLASSES]), steps=100)
    said = [s.decode() for s in model.predict(input_fn=of(names[CLASSES]))]
    assert np.mean(said == names[CLASSES]) > 0.8


def test_a_model_function_of_ones_own(tmp_path):
    def model_fn(features, labels, mode, params):
        said = tf.layers.dense(features, 1)[:, 0]
        if mode == learn.ModeKeys.INFER:
            return learn.ModelFnOps(mode, said)
        loss = tf.losses.mean_squared_error(labels, said)
        optimizer = tf.train.GradientDescentOptimizer(params["rate"])
        return said, loss, optimizer.minimize(loss, tf.train.get_global_step())

    config = learn.RunConfig(save_checkpoints_steps=40, save_checkpoints_secs=None)
    model = learn.Estimator(model_fn, str(tmp_path), config, params={"rate": 0.1})
    model = learn.SKCompat(model).fit(X, X.sum(1), batch_size=20, steps=90)
    assert model.score(X, X.sum(1))["loss"] < 1e-6
    np.testing.assert_allclose(model.predict(X, batch_size=25), X.sum(1), rtol=1e-3, atol=1e-3)
    steps = {p.name for p in tmp_path.glob("model.ckpt-*.index")}
    assert {f"model.ckpt-{i}.index" for i in (40, 80, 90)} <= steps


def test_what_is_wrong_is_said(tmp_path):
    model = learn.Estimator(lambda features, labels: None, str(tmp_path))
    with pytest.raises(learn.NotFittedError, match="Couldn't find trained model at"):
        model.evaluate(X, CLASSES)
    with pytest.raises(ValueError, match="Can not provide both steps and max_steps"):
        model.fit(X, CLASSES, steps=1, max_steps=2)
    with pytest.raises(ValueError, match="Can not provide both input_fn and x or y"):
        model.fit(X, input_fn=of(CLASSES))
    with pytest.raises(ValueError, match="does not have a params argument"):
        learn.Estimator(lambda features, labels: None, params={"rate": 1})
    with pytest.raises(ValueError, match="with different values"):
        learn.Estimator(model_dir="a", config=learn.RunConfig(model_dir="b"))
    with pytest.raises(ValueError, match="Missing train_op"):
        learn.ModelFnOps(learn.ModeKeys.TRAIN, loss=tf.constant(1.0))
    with pytest.raises(ValueError, match="Loss must be scalar"):
        learn.ModelFnOps(learn.ModeKeys.EVAL, tf.constant(1), tf.constant([1.0, 2.0]))
    with pytest.raises(ValueError, match="n_classes must be > 1"):
        learn.multi_class_head(1)
    with pytest.raises(ValueError, match="as many examples"):
        model.fit(X, CLASSES[:5], steps=1)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, ("", True, 0, 0)),
        ({"task": {"type": "worker", "index": 1}}, ("grpc://c:3", False, 1, 2)),
        ({"task": {"type": "worker", "index": 0}}, ("grpc://b:2", True, 1, 2)),
        ({"task": {"type": "ps", "index": 0}}, ("grpc://a:1", False, 1, 2)),
    ],
)
def test_a_cluster_of_the_environment(monkeypatch, config, expected):

    if config:
        config["cluster"] = {"ps": ["a:1"], "worker": ["b:2", "c:3"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    run = learn.RunConfig()
    assert (run.master, run.is_chief, run.num_ps_replicas, run.num_worker_replicas) == expected


def test_an_experiment_trains_and_evaluates_what_a_runner_is_given(tmp_path):
    targets = X.sum(1).astype(np.float32)

    def experiment_fn(run_config, hparams):
        model = learn.LinearRegressor(columns(), config=run_config, optimizer="SGD")
        return learn.Experiment(
            model, of(targets), of(targets), train_steps=hparams.steps, eval_steps=1,
            check_interval_secs=0,
        )  # fmt: skip

    config = learn.RunConfig(model_dir=str(tmp_path), save_checkpoints_steps=10)
    settings = tf.contrib.training.HParams(steps=25)
    results, exports = learn.learn_runner.run(experiment_fn, run_config=config, hparams=settings)
    assert results["global_step"] == 25 and results["loss"] < 1e-2 and exports == []
    assert {p.name for p in tmp_path.glob("eval_*")} == {"eval_validation", "eval_one_pass"}
    with pytest.raises(ValueError, match="non-existent task fly"):
        learn.learn_runner.run(experiment_fn, schedule="fly", run_config=config, hparams=settings)
    with pytest.raises(ValueError, match="must be `HParams` instance"):
        learn.learn_runner.run(experiment_fn, run_config=config, hparams={"steps": 25})
    with pytest.raises(TypeError, match="did not return an Experiment"):
        learn.learn_runner.run(lambda output_dir: None, output_dir=str(tmp_path))


class Schedules(learn.Experiment):
    """An experiment that says which of its methods is called, and with what settings."""

    def __init__(self, config, steps=None):
        super().__init__(learn.LinearRegressor(columns(), config=config), None, None)
        self.steps = steps

    def train(self):
        return "train"

    def train_and_evaluate(self):
        return "train_and_evaluate", self.steps

    def run_std_server(self):
        return "run_std_server"


@pytest.mark.parametrize(
    ("task", "schedule"),
    [("worker", "train"), ("ps", "run_std_server"), ("odd", "No default schedule"),
     (None, "Must specify a schedule")],
)  # fmt: skip
def test_a_task_of_a_cluster_has_its_schedule(tmp_path, monkeypatch, task, schedule):
    cluster = {"ps": ["a:1"], "worker": ["b:2"], "odd": ["c:3"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": task}}))
    config = learn.RunConfig(model_dir=str(tmp_path))
    run = functools.partial(learn.learn_runner.run, lambda run_config, hparams: Schedules(config))
    if schedule.islower():
        assert run(run_config=config) == schedule
    else:
        with pytest.raises(ValueError, match=schedule):
            run(run_config=config)


def test_a_tuner_runs_its_trials(tmp_path):
    class Tuner:
        left, found = [3, 5], []

        def next_trial(self):
            return bool(self.left)

        def run_experiment(self, experiment_fn):
            settings = tf.contrib.training.HParams(steps=self.left.pop())
            config = learn.RunConfig(model_dir=str(tmp_path / str(settings.steps)))
            experiment = experiment_fn(run_config=config, hparams=settings)
            self.found.append(experiment.train_and_evaluate())
            with pytest.raises(ValueError, match="`hparams` cannot be `None`"):
                experiment_fn(run_config=config, hparams=None)

    learn.learn_runner.tune(
        lambda run_config, hparams: Schedules(run_config, hparams.steps), Tuner()
    )
    assert Tuner.found == [("train_and_evaluate", 5), ("train_and_evaluate", 3)]


def test_an_experiment_exports_by_its_strategies(tmp_path):
    def export(estimator, export_dir_base, checkpoint_path, eval_result):
        assert checkpoint_path is None and eval_result["global_step"] == 3
        return export_dir_base

    config = learn.RunConfig(model_dir=str(tmp_path))
    model = learn.LinearRegressor(columns(), config=config, optimizer="SGD")
    strategies = [learn.ExportStrategy(name, export) for name in ("one", "other")]
    given = of(X.sum(1).astype(np.float32))
    experiment = learn.Experiment(
        model, given, given, train_steps=3, eval_steps=1, min_eval_frequency=0,
        export_strategies=strategies, delay_workers_by_global_step=True,
    )  # fmt: skip
    assert experiment.train() is model
    _, exports = experiment.train_and_evaluate()
    assert exports == [str(tmp_path / "export" / name) for name in ("one", "other")]
    assert experiment.reset_export_strategies(strategies[0]) == strategies
    with pytest.raises(ValueError, match="names that differ"):
        experiment.reset_export_strategies([strategies[0]] * 2)
    with pytest.raises(ValueError, match="must be ExportStrategy objects"):
        experiment.reset_export_strategies(["one"])
    with pytest.raises(tf.errors.UnimplementedError, match="made once, at the end of training"):
        learn.Experiment(model, given, given, checkpoint_and_export=True)


def test_an_experiment_trains_and_evaluates_in_turns(tmp_path):
    paths: list[str] = []

    def export(estimator, export_dir_base, checkpoint_path, eval_result):
        paths.append(checkpoint_path)
        return eval_result["global_step"]

    config = learn.RunConfig(model_dir=str(tmp_path))
    model = learn.LinearRegressor(columns(), config=config, optimizer="SGD")
    given = of(X.sum(1).astype(np.float32))
    experiment = learn.Experiment(
        model, given, given, train_steps=20, eval_steps=1, train_steps_per_iteration=8,
        export_strategies=learn.ExportStrategy("one", export), eval_delay_secs=0,
        continuous_eval_throttle_secs=0,
    )  # fmt: skip
    results, exports = experiment.continuous_train_and_eval()
    assert results["global_step"] == 24 and exports == [24]  # whole turns, as in TensorFlow
    seen = []

    def once(results, checkpoint_path):
        seen.append((results and results["global_step"], checkpoint_path))
        return len(seen) < 2

    again = learn.Experiment(
        model, given, given, train_steps=100, eval_steps=1, export_strategies=None
    )
    results, _ = again.continuous_train_and_eval(once)  # a tenth of all steps a turn
    latest = tf.train.latest_checkpoint(str(tmp_path))
    assert results["global_step"] == 34 and seen == [(None, None), (34, latest)]
    assert experiment.continuous_eval(name="c")["global_step"] == 34 and paths[-1] == latest
    exported = len(paths)
    assert experiment.continuous_eval_on_train_data(0, 0)["global_step"] == 34
    assert len(paths) == exported
    told = iter([True, True, False])
    nothing = again.continuous_eval(0, 0, continuous_eval_predicate_fn=lambda found: next(told))
    assert nothing == {}  # its second look found no new checkpoint
    assert again.test()["global_step"] == 35
    with pytest.raises(ValueError, match="must be a callable, or None"):
        again.continuous_train_and_eval(3)


def test_a_monitor_ends_training_that_brings_nothing_better(tmp_path):
    monitor = learn.monitors.ValidationMonitor(
        input_fn=of(np.zeros(60, np.float32)), eval_steps=1, every_n_steps=5,
        early_stopping_rounds=10, check_interval_secs=0,
    )  # fmt: skip
    config = learn.RunConfig(model_dir=str(tmp_path), save_checkpoints_steps=5)
    model = learn.LinearRegressor(columns(), config=config, optimizer="SGD")
    model.fit(input_fn=of(X.sum(1).astype(np.float32)), max_steps=1000, monitors=[monitor])
    assert monitor.early_stopped and monitor.best_step == 5  # the first time that it looked
    assert model.get_variable_value("global_step") < 50


def test_heads_of_counts_and_of_several_classes_at_once():
    logits = np.array([[0.5], [-1.0]], np.float32)
    counts = np.array([[2.0], [1.0]], np.float32)
    many = np.array([[1, 0, 1], [0, 0, 1]])
    several = np.array([[2.0, -1.0, 0.5], [-3.0, 1.0, 0.25]], np.float32)
    with tf.Graph().as_default(), tf.Session() as session:

        def made(head, labels, values):
            return head.create_model_fn_ops(
                {}, learn.ModeKeys.EVAL, tf.constant(labels), logits=tf.constant(values)
            )

        poisson = made(learn.poisson_regression_head(), counts, logits)
        labels = made(learn.multi_label_head(3), many, several)
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        scores = session.run(poisson.predictions["scores"])
        loss, classes = session.run([labels.loss, labels.predictions["classes"]])
        full = counts * np.log(counts) - counts + 0.5 * np.log(2 * np.pi * counts)
        expected = np.exp(logits) - counts * logits + np.where(counts > 1, full, 0)
        np.testing.assert_allclose(session.run(poisson.loss), expected.mean(), rtol=1e-5)
    np.testing.assert_allclose(scores, np.exp(logits[:, 0]), rtol=1e-5)
    np.testing.assert_array_equal(classes, [[1, 0, 1], [0, 1, 1]])
    each = np.log1p(np.exp(several)) - many * several
    assert loss == pytest.approx(each.mean(), rel=1e-5)


def test_estimators_can_be_trained_and_evaluated():
    learn = tf.contrib.learn
    assert issubclass(learn.LinearRegressor, learn.Trainable)
    assert issubclass(learn.Estimator, learn.Evaluable)

    class Half(learn.Trainable):
        """A model that says how it is trained, and no more."""

    with pytest.raises(TypeError, match="fit"):
        Half()


def test_debugging_models_learn_how_things_are_without_looking(tmp_path):
    from opdock.contrib.learn.canned import DebugClassifier, DebugRegressor

    x = np.arange(8, dtype=np.float32).reshape(8, 1)

    def of(y):
        return lambda: ({"x": tf.constant(x)}, tf.constant(y))

    classes = DebugClassifier(str(tmp_path / "c"), n_classes=3)
    classes.fit(input_fn=of(np.array([2, 1, 2, 0, 2, 2, 1, 2])), steps=300)
    assert list(classes.predict_classes(input_fn=of(np.zeros(8, int)))) == [2] * 8
    chances = list(classes.predict_proba(input_fn=of(np.zeros(8, int))))
    np.testing.assert_allclose(chances, [[1 / 8, 2 / 8, 5 / 8]] * 8, atol=0.02)
    numbers = DebugRegressor(str(tmp_path / "r"))
    numbers.fit(input_fn=of(x[:, 0] / 4), steps=300)
    found = list(numbers.predict_scores(input_fn=of(x[:, 0])))
    np.testing.assert_allclose(found, [np.mean(x) / 4] * 8, rtol=0.02)
    with pytest.raises(ValueError, match="Features cannot be empty"):
        classes.fit(input_fn=lambda: ({}, tf.constant([1])), steps=1)


def test_session_bundles_are_refused_by_name(tmp_path):
    model = tf.contrib.learn.LinearRegressor([tf.contrib.layers.real_valued_column("x")])
    with pytest.raises(tf.errors.UnimplementedError, match="export_savedmodel"):
        model.export(str(tmp_path))
    with pytest.raises(tf.errors.UnimplementedError, match="make_export_strategy"):
        tf.contrib.learn.monitors.ExportMonitor(100, str(tmp_path))
