"""`tf.contrib.mixed_precision`: losses scaled so that gradients do not vanish in 16 bits."""

from __future__ import annotations

from opdock.contrib.mixed_precision.loss_scale_manager import (
    ExponentialUpdateLossScaleManager,
    FixedLossScaleManager,
    LossScaleManager,
)
from opdock.contrib.mixed_precision.loss_scale_optimizer import LossScaleOptimizer

__all__ = [
    "ExponentialUpdateLossScaleManager",
    "FixedLossScaleManager",
    "LossScaleManager",
    "LossScaleOptimizer",
]
