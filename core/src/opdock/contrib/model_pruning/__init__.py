"""`tf.contrib.model_pruning`: networks whose small weights become 0 while they are trained.

A layer computes with the product of its weights and a mask, and while a network is trained the
masks are made anew, with more and more zeros, by the size of the weights.
"""

from opdock.contrib.model_pruning.cells import MaskedBasicLSTMCell, MaskedLSTMCell
from opdock.contrib.model_pruning.layers import (
    masked_conv2d,
    masked_convolution,
    masked_fully_connected,
)
from opdock.contrib.model_pruning.learning import train
from opdock.contrib.model_pruning.masks import (
    apply_mask,
    get_masked_weights,
    get_masks,
    get_thresholds,
    get_weight_sparsity,
    get_weights,
)
from opdock.contrib.model_pruning.pruning import Pruning, get_pruning_hparams
from opdock.contrib.model_pruning.stripping import graph_def_from_checkpoint, strip_pruning_vars_fn

__all__ = [
    "MaskedBasicLSTMCell", "MaskedLSTMCell", "Pruning", "apply_mask", "get_masked_weights",
    "get_masks", "get_pruning_hparams", "get_thresholds", "get_weight_sparsity", "get_weights",
    "graph_def_from_checkpoint", "masked_conv2d", "masked_convolution", "masked_fully_connected",
    "strip_pruning_vars_fn", "train",
]  # fmt: skip
