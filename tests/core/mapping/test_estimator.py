"""tf.estimator is the library tensorflow-estimator: programs with it, each in a process.

Importing it here would make `tensorflow` mean opdock in the process of all tests.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """
import os, sys
import numpy as np
import tensorflow as tf
x = np.random.RandomState(0).randn(200, 2).astype(np.float32)
y = (x[:, 0] > x[:, 1]).astype(np.int32)
def evaluated():
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).batch(100)
trained = tf.estimator.inputs.numpy_input_fn(
    {"x": x}, y, batch_size=50, shuffle=False, num_epochs=None)
columns = [tf.feature_column.numeric_column("x", shape=2)]
config = tf.estimator.RunConfig("model", tf_random_seed=1, save_checkpoints_steps=20)
"""
OWN = """
def model_fn(features, labels, mode, params):
    classes = tf.argmax(logits := tf.layers.dense(features["x"], 2), 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, {"class": classes})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = tf.train.GradientDescentOptimizer(params["rate"])
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=optimizer.minimize(loss, tf.train.get_global_step()),
        eval_metric_ops={"accuracy": tf.metrics.accuracy(labels, classes)},
    )
estimator = tf.estimator.Estimator(model_fn, config=config, params={"rate": 0.5})
estimator.train(trained, steps=40)
result = estimator.evaluate(evaluated)
predicted = np.array([found["class"] for found in estimator.predict(evaluated)])
assert result["global_step"] == 40 and result["accuracy"] > 0.9, result
np.testing.assert_allclose(np.mean(predicted == y), result["accuracy"])
assert estimator.get_variable_names() == ["dense/bias", "dense/kernel", "global_step"]
estimator.train(trained, max_steps=50)  # goes on from the checkpoint
assert estimator.get_variable_value("global_step") == 50

receiver = tf.estimator.export.build_raw_serving_input_receiver_fn(
    {"x": tf.placeholder(tf.float32, [None, 2])})
predicted = np.array([found["class"] for found in estimator.predict(evaluated)])
path = estimator.export_saved_model("saved", receiver)
with tf.Session(graph=tf.Graph()) as sess:
    signature = tf.saved_model.loader.load(sess, ["serve"], path).signature_def["serving_default"]
    served = sess.run(signature.outputs["class"].name, {signature.inputs["x"].name: x})
assert (served == predicted).all()
"""
CANNED = """
receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(
    tf.feature_column.make_parse_example_spec(columns))
exporters = [tf.estimator.BestExporter(serving_input_receiver_fn=receiver),
             tf.estimator.LatestExporter("latest", receiver)]
estimator = tf.estimator.DNNLinearCombinedClassifier(
    linear_feature_columns=columns, linear_optimizer=tf.train.FtrlOptimizer(0.5), config=config,
    dnn_feature_columns=columns, dnn_hidden_units=[8], dnn_optimizer=tf.train.AdamOptimizer(0.05))
result, exported = tf.estimator.train_and_evaluate(
    estimator, tf.estimator.TrainSpec(trained, max_steps=40),
    tf.estimator.EvalSpec(evaluated, steps=None, exporters=exporters, throttle_secs=1))
assert result["global_step"] == 40 and result["accuracy"] > 0.8, result
assert len(exported) == 2 and len(os.listdir("model/export/latest")) == 2
dnn = tf.estimator.DNNClassifier([8], columns, "dnn").train(trained, steps=1)
slots = {n for n in dnn.get_variable_names() if n.startswith("dnn/logits") and "Ada" in n}
assert slots == {f"dnn/logits/{n}/t_0/Adagrad" for n in ("bias", "kernel")}, slots  # as in 1.15
example = tf.train.Example()
example.features.feature["x"].float_list.value.extend([3.0, -3.0])
with tf.Session(graph=tf.Graph()) as sess:
    signature = tf.saved_model.loader.load(sess, ["serve"], exported[-1]).signature_def["predict"]
    found = sess.run(signature.outputs["class_ids"].name,
                     {signature.inputs["examples"].name: [example.SerializeToString()]})
assert found == [[1]]
"""
TPU = """
def model_fn(features, labels, mode, params):
    out = tf.layers.dense(features["x"], 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        served = {"serving_default": tf.estimator.export.PredictOutput({"out": out})}
        return tf.estimator.tpu.TPUEstimatorSpec(mode, {"out": out}, export_outputs=served)
    loss = tf.losses.mean_squared_error(labels[:, None], out)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train)
def batches(params):
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat().batch(params["batch_size"])
config = tf.estimator.tpu.RunConfig(
    model_dir="model", cluster=tf.contrib.cluster_resolver.TPUClusterResolver(""))
estimator = tf.estimator.tpu.TPUEstimator(
    model_fn, config=config, use_tpu=False,
    train_batch_size=10, eval_batch_size=20, params={})
estimator.train(batches, steps=3)
assert estimator.evaluate(batches, steps=2)["global_step"] == 3
from tensorflow.contrib import tpu
from tensorflow.contrib.tpu.python.tpu import tpu_estimator
assert tpu.TPUEstimator is tpu_estimator.TPUEstimator is tf.estimator.tpu.TPUEstimator
assert tpu.InputPipelineConfig is tf.estimator.tpu.InputPipelineConfig
# By default a model is exported for TPUs as well; that part serves any device here.
receiver = tf.estimator.export.build_raw_serving_input_receiver_fn(
    {"x": tf.placeholder(tf.float32, [None, 2])})
path = estimator.export_saved_model("saved", receiver)
served = []
for tags in ["serve"], ["serve", "tpu"]:
    with tf.Session(graph=tf.Graph()) as sess:
        told = tf.saved_model.loader.load(sess, tags, path).signature_def["serving_default"]
        served.append(sess.run(told.outputs["out"].name, {told.inputs["x"].name: x}))
        called = [op for op in sess.graph.get_operations() if "PartitionedCall" in op.type]
        assert len(called) == ("tpu" in tags), called
weights = [estimator.get_variable_value(f"dense/{name}") for name in ("kernel", "bias")]
np.testing.assert_allclose(served[0], x @ weights[0] + weights[1], rtol=1e-5, atol=1e-6)
assert (served[0] == served[1]).all()
"""
MODEL = """
def model_fn(features, labels, mode):
    normal = tf.layers.batch_normalization(
        features["x"], momentum=0.8, training=mode == "train")
    logits = tf.layers.dense(normal, 2)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train,
        eval_metric_ops={"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))})
"""
STRATEGIES = (
    MODEL
    + """
two = ["/cpu:0", "/cpu:1"]
cpus = tf.ConfigProto(device_count={"CPU": 2})
found = {}
for name, strategy in {"mirrored": tf.distribute.MirroredStrategy(two),
                       "central": tf.distribute.experimental.CentralStorageStrategy(two),
                       "old": tf.contrib.distribute.MirroredStrategy(num_gpus=0)}.items():
    config = tf.estimator.RunConfig(name, train_distribute=strategy, eval_distribute=strategy,
                                    session_config=cpus, tf_random_seed=1)
    estimator = tf.estimator.Estimator(model_fn, config=config)
    estimator.train(lambda: evaluated().repeat(), steps=40)
    found = estimator.evaluate(evaluated)
    assert found["accuracy"] > 0.9 and found["global_step"] == 40, (name, found)
# What strategies wrote, an estimator without one reads.
plain = tf.estimator.Estimator(model_fn, "mirrored").evaluate(evaluated)
assert plain["accuracy"] > 0.9 and plain["global_step"] == 40, plain
try:
    tf.estimator.RunConfig(train_distribute=strategy, experimental_distribute=
                           tf.contrib.distribute.DistributeConfig(train_distribute=strategy))
except ValueError as e:
    assert "Either `train_distribute` or" in str(e)
else:
    raise AssertionError
"""
)
DRIVEN = (
    MODEL
    + """
def served(**jobs):
    spec = {job: [f"here:{port}" for port in ports] for job, ports in jobs.items()}
    def of(job):  # an evaluator is by itself
        return {n: spec[n] for n in spec if (n == "evaluator") == (job == "evaluator")}
    return spec, [tf.train.Server(of(job), job, i) for job in spec for i in range(len(spec[job]))]
def settings(folder, strategy, cluster, **more):
    distribute = tf.contrib.distribute.DistributeConfig(strategy, remote_cluster=cluster, **more)
    return tf.estimator.RunConfig(folder, experimental_distribute=distribute, tf_random_seed=1)
# This program calls for the workers and the evaluator of a cluster whose servers are there.
cluster, held = served(worker=[1, 2], ps=[3], evaluator=[4])
servers = tf.distribute.experimental.ParameterServerStrategy()
estimator = tf.estimator.Estimator(model_fn, config=settings("servers", servers, cluster))
train = tf.estimator.TrainSpec(lambda: evaluated().repeat(), max_steps=60)
tf.estimator.train_and_evaluate(
    estimator, train, tf.estimator.EvalSpec(evaluated, start_delay_secs=0, throttle_secs=1))
found = tf.estimator.Estimator(model_fn, "servers").evaluate(evaluated)
assert found["accuracy"] > 0.9 and found["global_step"] >= 60, found
import os
assert os.listdir("servers/eval")
try:
    estimator.train(evaluated)
except ValueError as e:
    assert "'evaluator' job is not supported" in str(e), e
else:
    raise AssertionError
# One graph of its own, in the session of the cluster's only worker.
cluster, alone = served(worker=[5])
mirrored = tf.distribute.MirroredStrategy()
estimator = tf.estimator.Estimator(model_fn, config=settings(
    "mirrored", mirrored, cluster, eval_distribute=tf.distribute.MirroredStrategy()))
found = estimator.train(lambda: evaluated().repeat(), steps=40).evaluate(evaluated)
assert found["accuracy"] > 0.9 and found["global_step"] == 40, found
os.environ["TF_CONFIG"] = '{"cluster": {"worker": ["here:5"]}}'
try:
    settings("twice", tf.distribute.MirroredStrategy(), cluster)
except ValueError as e:
    assert "Cannot set both" in str(e), e
else:
    raise AssertionError
"""
)
SDCA = """
def identified():
    features = {"x": x, "id": [str(i) for i in range(len(x))], "side": np.where(x[:, :1] > 0, 1, 0)}
    return tf.data.Dataset.from_tensors((features, y[:, None])).repeat()
side = tf.feature_column.categorical_column_with_identity("side", 2)
optimizer = tf.estimator.experimental.LinearSDCA("id", symmetric_l2_regularization=0.1)
estimator = tf.estimator.LinearClassifier([*columns, side], config=config, optimizer=optimizer)
estimator.train(identified, steps=5)
found = estimator.evaluate(identified, steps=1)
assert found["accuracy"] > 0.95 and found["global_step"] == 5, found
from tensorflow.contrib import linear_optimizer
from tensorflow.contrib.linear_optimizer.python.ops.sdca_ops import SdcaModel
assert linear_optimizer.SdcaModel is SdcaModel and SdcaModel.__name__ == "_SDCAModel"
"""
SVM = """
from tensorflow.contrib import layers, learn, linear_optimizer
def identified():
    ids = tf.constant([str(i) for i in range(len(x))])
    words = np.where(x[:, :1] > 0, "yes", "no").astype(object)
    words = tf.constant(np.concatenate([words, words], 1), tf.string)
    return {"x": tf.constant(x), "id": ids, "w": tf.ones([len(x)]), "word": words}, tf.constant(y)
def made():
    number = layers.real_valued_column("x", dimension=x.shape[1])
    word = layers.sparse_column_with_keys("word", ["no", "yes"])
    return [number, word, layers.bucketized_column(number, [0.0])]
svm = learn.SVM("id", made(), "w", "svm", l2_regularization=0.5)
svm.fit(input_fn=identified, steps=10)
found = svm.evaluate(input_fn=identified, steps=1)
assert found["accuracy"] > 0.95 and found["global_step"] == 10, found
classes = list(svm.predict_classes(input_fn=identified))
assert abs(np.mean(classes == y) - found["accuracy"]) < 1e-6, classes
assert svm.get_variable_value("linear/bias_weight").shape == (1,)
linear = learn.LinearClassifier(
    made(), "linear", optimizer=linear_optimizer.SDCAOptimizer("id"))
found = linear.fit(input_fn=identified, steps=10).evaluate(input_fn=identified, steps=1)
assert found["accuracy"] > 0.95 and found["loss"] < 0.3, found
for what, more in {"does not train": {"n_classes": 3},
                   "centered_bias": {"enable_centered_bias": True}}.items():
    try:
        learn.LinearClassifier(made(), optimizer=linear_optimizer.SDCAOptimizer("id"), **more)
    except ValueError as e:
        assert what in str(e), e
    else:
        raise AssertionError(what)
"""

CONTRIB_SETTINGS = """
from tensorflow.contrib import learn
before = learn.RunConfig(save_checkpoints_steps=20)
def model_fn(features, labels, mode):
    logits = tf.layers.dense(features["x"], 2)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)
def experiment(output_dir):
    settings = learn.RunConfig(model_dir=output_dir, save_checkpoints_steps=20)
    assert isinstance(settings, tf.estimator.RunConfig)
    assert settings.train_distribute is None and settings.num_worker_replicas == 0
    estimator = tf.estimator.Estimator(model_fn, config=settings)
    assert type(estimator.config) is learn.RunConfig and estimator.model_dir == output_dir
    return learn.Experiment(estimator, trained, evaluated, train_steps=40, eval_steps=1)
result, exported = learn.learn_runner.run(experiment, "contrib")
assert result["global_step"] == 40 and result["loss"] < 0.5 and exported == [], result
with tf.Graph().as_default():
    made = {learn.PredictionKey.SCORES: tf.constant([0.5]), "classes": tf.constant(["a"])}
    heads = {"one": (learn.ProblemType.CLASSIFICATION, made),
             "two": (learn.ProblemType.LINEAR_REGRESSION, made)}
    metrics = {"loss": tf.metrics.mean([1.0]), "mine": tf.metrics.mean([1.0])}
    ops = learn.ModelFnOps("infer", made, eval_metric_ops=metrics, output_alternatives=heads)
    spec = ops.estimator_spec("two")
assert spec.mode == tf.estimator.ModeKeys.PREDICT and spec.predictions == made
outputs = spec.export_outputs
assert isinstance(outputs["one"], tf.estimator.export.ClassificationOutput)
assert outputs["one"].classes is made["classes"]
assert outputs["serving_default"].value is outputs["two"].value is made["scores"]
# Those made before the library was there are its settings as well.
assert isinstance(before, tf.estimator.RunConfig)
assert tf.estimator.Estimator(model_fn, "other", before).config.save_checkpoints_steps == 20
"""


GENERATED = """
from tensorflow.contrib.learn.python.learn.learn_io import generator_io
def examples():
    for row, label in zip(x, y):
        yield {"x": row, "label": label}
given = generator_io.generator_input_fn(
    examples, target_key="label", batch_size=50, shuffle=False, num_epochs=None)
classifier = tf.estimator.LinearClassifier(columns, config=config).train(given, steps=20)
assert classifier.evaluate(evaluated)["accuracy"] > 0.9
features, labels = generator_io.generator_input_fn(examples, ["label"], 3, shuffle=False)()
with tf.train.MonitoredSession() as session:
    found = session.run([features["x"], labels])
np.testing.assert_equal(found, [x[:3], y[:3]])
for wrong, kind in ((lambda: [1], "be generator"), (3, "generator function")):
    try:
        generator_io.generator_input_fn(wrong)
    except TypeError as e:
        assert kind in str(e)
    else:
        raise AssertionError
try:
    generator_io.generator_input_fn(examples, "other")
except KeyError as e:
    assert "target_key not in yielded dict" in str(e)
else:
    raise AssertionError
"""
TREES = """
few = np.arange(300, dtype=np.float32)
def numbers():
    return tf.data.Dataset.from_tensors(({"a": few, "b": few[::-1] % 7}, few > 150)).repeat()
trees = tf.estimator.BoostedTreesClassifier(
    [tf.feature_column.numeric_column(name) for name in "ab"], 1, n_trees=2, max_depth=3,
    quantile_sketch_epsilon=0.05, config=config)  # more boundaries than buckets
assert trees.train(numbers, steps=6).evaluate(numbers, steps=1)["accuracy"] > 0.95
"""


@pytest.mark.parametrize(
    "program",
    [OWN, CANNED, TPU, STRATEGIES, DRIVEN, SDCA, SVM, CONTRIB_SETTINGS, GENERATED, TREES],
    ids=["own", "canned", "tpu", "strategies", "driven", "sdca", "svm", "contrib_settings",
         "generated", "trees"],
)  # fmt: skip
def test_a_program_with_estimators(program: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(HEAD + program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "opdock.cli.main", "run", "program.py"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
