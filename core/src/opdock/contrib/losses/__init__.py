"""`tf.contrib.losses`: metric learning. The rest is tf_slim's, and in `tf.losses`."""

from __future__ import annotations

from opdock.contrib.losses import metric_learning
from opdock.contrib.losses.metric_learning import (
    contrastive_loss,
    lifted_struct_loss,
    npairs_loss,
    npairs_loss_multilabel,
    pairwise_distance,
    triplet_semihard_loss,
)

__all__ = [
    "contrastive_loss",
    "lifted_struct_loss",
    "metric_learning",
    "npairs_loss",
    "npairs_loss_multilabel",
    "pairwise_distance",
    "triplet_semihard_loss",
]
