"""`tf.contrib.opt`: optimizers beyond those of `tf.train`."""

from __future__ import annotations

from opdock.contrib.opt.adam_variants import (
    AdaMaxOptimizer,
    AdamGSOptimizer,
    LazyAdamGSOptimizer,
    LazyAdamOptimizer,
    NadamOptimizer,
)
from opdock.contrib.opt.averaging import MovingAverageOptimizer
from opdock.contrib.opt.external import ExternalOptimizerInterface, ScipyOptimizerInterface
from opdock.contrib.opt.lars import LARSOptimizer, RegAdagradOptimizer
from opdock.contrib.opt.weight_decay import (
    AdamWOptimizer,
    DecoupledWeightDecayExtension,
    MomentumWOptimizer,
    extend_with_decoupled_weight_decay,
)
from opdock.contrib.opt.wrappers import (
    DropStaleGradientOptimizer,
    MultitaskOptimizerWrapper,
    VariableClippingOptimizer,
    clip_gradients_by_global_norm,
)

__all__ = [
    "AdaMaxOptimizer", "AdamGSOptimizer", "AdamWOptimizer", "DecoupledWeightDecayExtension",
    "DropStaleGradientOptimizer", "ExternalOptimizerInterface", "LARSOptimizer",
    "LazyAdamGSOptimizer", "LazyAdamOptimizer", "MomentumWOptimizer", "MovingAverageOptimizer",
    "MultitaskOptimizerWrapper", "NadamOptimizer", "RegAdagradOptimizer",
    "ScipyOptimizerInterface", "VariableClippingOptimizer", "clip_gradients_by_global_norm",
    "extend_with_decoupled_weight_decay",
]  # fmt: skip
