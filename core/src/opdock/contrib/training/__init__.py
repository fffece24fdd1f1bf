"""`tf.contrib.training`: hyperparameters. Loops and train ops are tf_slim's, where installed."""

from __future__ import annotations

from opdock.contrib.training.hparam import HParams, parse_values

__all__ = ["HParams", "parse_values"]
