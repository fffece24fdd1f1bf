"""`tf.contrib.slim`: its layers are `tf.contrib.layers`'; loops and data sets are in tf_slim."""

from __future__ import annotations

from opdock.contrib.slim import model_analyzer, summaries

__all__ = ["model_analyzer", "summaries"]
