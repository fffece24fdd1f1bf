"""`tf.contrib.metrics`: accuracy and F1. The rest is tf_slim's, and in `tf.metrics`."""

from __future__ import annotations

from opdock.contrib.metrics.classification import accuracy, f1_score

__all__ = ["accuracy", "f1_score"]
