"""`tf.contrib.losses`: the losses before `tf.losses`, and metric learning."""

from __future__ import annotations

from opdock.contrib.losses import metric_learning
from opdock.contrib.losses.loss_ops import (
    absolute_difference,
    add_loss,
    compute_weighted_loss,
    cosine_distance,
    get_losses,
    get_regularization_losses,
    get_total_loss,
    hinge_loss,
    log_loss,
    mean_pairwise_squared_error,
    mean_squared_error,
    sigmoid_cross_entropy,
    softmax_cross_entropy,
    sparse_softmax_cross_entropy,
)
from opdock.contrib.losses.metric_learning import (
    contrastive_loss,
    lifted_struct_loss,
    npairs_loss,
    npairs_loss_multilabel,
    pairwise_distance,
    triplet_semihard_loss,
)

__all__ = [
    "absolute_difference", "add_loss", "compute_weighted_loss", "contrastive_loss",
    "cosine_distance", "get_losses", "get_regularization_losses", "get_total_loss",
    "hinge_loss", "lifted_struct_loss", "log_loss", "mean_pairwise_squared_error",
    "mean_squared_error", "metric_learning", "npairs_loss", "npairs_loss_multilabel",
    "pairwise_distance", "sigmoid_cross_entropy", "softmax_cross_entropy",
    "sparse_softmax_cross_entropy", "triplet_semihard_loss",
]  # fmt: skip
