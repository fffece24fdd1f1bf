"""`tf.train.experimental`: loss scaling, mixed precision, and Python state in checkpoints."""

from __future__ import annotations

from opdock.train.experimental.loss_scale import DynamicLossScale, FixedLossScale, LossScale
from opdock.train.experimental.loss_scale_optimizer import MixedPrecisionLossScaleOptimizer
from opdock.train.experimental.mixed_precision import (
    disable_mixed_precision_graph_rewrite,
    enable_mixed_precision_graph_rewrite,
)
from opdock.train.tracking.base import PythonState

__all__ = [
    "DynamicLossScale", "FixedLossScale", "LossScale", "MixedPrecisionLossScaleOptimizer",
    "PythonState", "disable_mixed_precision_graph_rewrite", "enable_mixed_precision_graph_rewrite",
]  # fmt: skip
