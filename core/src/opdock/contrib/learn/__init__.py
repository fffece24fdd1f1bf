"""`tf.contrib.learn`: estimators of TensorFlow's first years, and texts and data sets for them."""

from __future__ import annotations

from opdock.contrib.learn import datasets, graph_actions, learn_runner, monitors, preprocessing
from opdock.contrib.learn.canned import (
    SVM,
    DNNClassifier,
    DNNEstimator,
    DNNLinearCombinedClassifier,
    DNNLinearCombinedEstimator,
    DNNLinearCombinedRegressor,
    DNNRegressor,
    LinearClassifier,
    LinearEstimator,
    LinearRegressor,
)
from opdock.contrib.learn.contracts import Evaluable, Trainable
from opdock.contrib.learn.dynamic_rnn import DynamicRnnEstimator
from opdock.contrib.learn.estimator import (
    BaseEstimator,
    Estimator,
    NotFittedError,
    infer_real_valued_columns_from_input,
    infer_real_valued_columns_from_input_fn,
)
from opdock.contrib.learn.experiment import Experiment
from opdock.contrib.learn.exporting import (
    ExportStrategy,
    InputFnOps,
    build_parsing_serving_input_fn,
    make_export_strategy,
)
from opdock.contrib.learn.frames import (
    extract_pandas_data,
    extract_pandas_labels,
    extract_pandas_matrix,
)
from opdock.contrib.learn.graph_actions import evaluate, infer, run_feeds, run_n, train
from opdock.contrib.learn.head import (
    Head,
    multi_class_head,
    no_op_train_fn,
    poisson_regression_head,
    regression_head,
)
from opdock.contrib.learn.hinge_head import binary_svm_head
from opdock.contrib.learn.io import (
    read_batch_examples,
    read_batch_features,
    read_batch_record_features,
    read_keyed_batch_examples,
    read_keyed_batch_examples_shared_queue,
    read_keyed_batch_features,
    read_keyed_batch_features_shared_queue,
)
from opdock.contrib.learn.joint_heads import loss_only_head, multi_head
from opdock.contrib.learn.keys import MetricKey, PredictionKey, ProblemType
from opdock.contrib.learn.kmeans import (
    KMeansClustering,
)
from opdock.contrib.learn.label_heads import multi_label_head
from opdock.contrib.learn.logistic import (
    LogisticRegressor,
)
from opdock.contrib.learn.metric_spec import MetricSpec
from opdock.contrib.learn.model_fn import ModeKeys, ModelFnOps
from opdock.contrib.learn.run_config import RunConfig, TaskType
from opdock.contrib.learn.sk_compat import (
    SKCompat,
)
from opdock.train.loops.hooks import NanLossDuringTrainingError

__all__ = [
    "SVM", "BaseEstimator", "DNNClassifier", "DNNEstimator", "DNNLinearCombinedClassifier",
    "DNNLinearCombinedEstimator", "DNNLinearCombinedRegressor", "DNNRegressor",
    "DynamicRnnEstimator", "Estimator", "Evaluable", "Experiment", "ExportStrategy", "Head",
    "InputFnOps", "KMeansClustering", "LinearClassifier", "LinearEstimator", "LinearRegressor",
    "LogisticRegressor", "MetricKey", "MetricSpec", "ModeKeys", "ModelFnOps",
    "NanLossDuringTrainingError", "NotFittedError", "PredictionKey", "ProblemType", "RunConfig",
    "SKCompat", "TaskType", "Trainable", "binary_svm_head", "build_parsing_serving_input_fn",
    "datasets", "evaluate", "extract_pandas_data", "extract_pandas_labels", "extract_pandas_matrix",
    "graph_actions", "infer", "infer_real_valued_columns_from_input",
    "infer_real_valued_columns_from_input_fn", "io", "learn_runner", "loss_only_head",
    "make_export_strategy", "monitors", "multi_class_head", "multi_head", "multi_label_head",
    "no_op_train_fn", "poisson_regression_head", "preprocessing", "read_batch_examples",
    "read_batch_features", "read_batch_record_features", "read_keyed_batch_examples",
    "read_keyed_batch_examples_shared_queue", "read_keyed_batch_features",
    "read_keyed_batch_features_shared_queue", "regression_head", "run_feeds", "run_n", "train",
]  # fmt: skip
