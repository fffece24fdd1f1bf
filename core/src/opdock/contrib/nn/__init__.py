"""`tf.contrib.nn`: losses over drawn classes that `tf.nn` does not have."""

from __future__ import annotations

from opdock.ops.composed.sampled_losses import sampled_sparse_softmax_loss

__all__ = ["sampled_sparse_softmax_loss"]
