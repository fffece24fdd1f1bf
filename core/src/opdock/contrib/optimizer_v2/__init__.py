"""`tf.contrib.optimizer_v2`: optimizers whose methods are told the state that is theirs."""

from __future__ import annotations

from opdock.contrib.optimizer_v2.adam import AdamOptimizer
from opdock.contrib.optimizer_v2.base import OptimizerV2
from opdock.contrib.optimizer_v2.one_op import (
    AdadeltaOptimizer,
    AdagradOptimizer,
    GradientDescentOptimizer,
    MomentumOptimizer,
    RMSPropOptimizer,
)

__all__ = [
    "AdadeltaOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "GradientDescentOptimizer",
    "MomentumOptimizer",
    "OptimizerV2",
    "RMSPropOptimizer",
]
