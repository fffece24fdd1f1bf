"""`tf.contrib.nn`: losses over drawn classes, activations, and derivatives forwards."""

from __future__ import annotations

from opdock.contrib.nn.activations import alpha_dropout, scaled_softplus
from opdock.contrib.nn.forward import fwd_gradients
from opdock.contrib.nn.losses import (
    deprecated_flipped_sigmoid_cross_entropy_with_logits,
    deprecated_flipped_softmax_cross_entropy_with_logits,
    deprecated_flipped_sparse_softmax_cross_entropy_with_logits,
    rank_sampled_softmax_loss,
)
from opdock.ops.composed.sampled_losses import sampled_sparse_softmax_loss

__all__ = [
    "alpha_dropout",
    "deprecated_flipped_sigmoid_cross_entropy_with_logits",
    "deprecated_flipped_softmax_cross_entropy_with_logits",
    "deprecated_flipped_sparse_softmax_cross_entropy_with_logits",
    "fwd_gradients",
    "rank_sampled_softmax_loss",
    "sampled_sparse_softmax_loss",
    "scaled_softplus",
]
