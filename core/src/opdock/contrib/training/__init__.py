"""`tf.contrib.training`: hyperparameters and buckets. Loops and train ops are tf_slim's."""

from __future__ import annotations

from opdock.contrib.training.bucketing import bucket, bucket_by_sequence_length
from opdock.contrib.training.hparam import HParams, parse_values

__all__ = ["HParams", "bucket", "bucket_by_sequence_length", "parse_values"]
