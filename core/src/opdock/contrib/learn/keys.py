"""The names of metrics and predictions of `tf.contrib.learn`, and the kinds of problems."""

from __future__ import annotations

from typing import Final

from opdock.contrib.layers.target_column import ProblemType

__all__ = ["MetricKey", "PredictionKey", "ProblemType"]

COLLECTION_DEF_KEY_FOR_INPUT_FEATURE_KEYS: Final = "input_feature_keys"


class MetricKey:
    """What evaluation calls its metrics."""

    LOSS: Final = "loss"
    AUC: Final = "auc"
    AUC_PR: Final = "auc_precision_recall"
    CLASS_AUC: Final = "auc/class%d"
    CLASS_AUC_PR: Final = "auc_precision_recall/class%d"
    PREDICTION_MEAN: Final = "labels/prediction_mean"
    CLASS_PREDICTION_MEAN: Final = "labels/prediction_mean/class%d"
    CLASS_LOGITS_MEAN: Final = "labels/logits_mean/class%d"
    CLASS_PROBABILITY_MEAN: Final = "labels/probability_mean/class%d"
    LABEL_MEAN: Final = "labels/actual_label_mean"
    CLASS_LABEL_MEAN: Final = "labels/actual_label_mean/class%d"
    ACCURACY: Final = "accuracy"
    ACCURACY_BASELINE: Final = "accuracy/baseline_label_mean"
    ACCURACY_MEAN: Final = "accuracy/threshold_%f_mean"
    PRECISION_MEAN: Final = "precision/positive_threshold_%f_mean"
    RECALL_MEAN: Final = "recall/positive_threshold_%f_mean"


class PredictionKey:
    """What heads call their predictions."""

    CLASSES: Final = "classes"
    PROBABILITIES: Final = "probabilities"
    LOGITS: Final = "logits"
    LOGISTIC: Final = "logistic"
    SCORES: Final = "scores"
    TOP_K: Final = "top_k"
    GENERIC: Final = "output"
