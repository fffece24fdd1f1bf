"""`tf.contrib.layers`: layers with `weights` and `biases`, regularizers, initializers."""

from __future__ import annotations

from opdock.contrib.layers.basic import (
    avg_pool2d,
    conv1d,
    conv2d,
    conv3d,
    convolution,
    convolution1d,
    convolution2d,
    convolution3d,
    dropout,
    flatten,
    fully_connected,
    max_pool2d,
)
from opdock.contrib.layers.embedding import (
    dense_to_sparse,
    embed_sequence,
    embedding_lookup_unique,
    safe_embedding_lookup_sparse,
)
from opdock.contrib.layers.initializers import (
    variance_scaling_initializer,
    xavier_initializer,
    xavier_initializer_conv2d,
)
from opdock.contrib.layers.normalization import batch_norm, layer_norm
from opdock.contrib.layers.regularizers import (
    apply_regularization,
    l1_l2_regularizer,
    l1_regularizer,
    l2_regularizer,
    sum_regularizer,
)

__all__ = [
    "apply_regularization", "avg_pool2d", "batch_norm", "conv1d", "conv2d", "conv3d",
    "convolution", "convolution1d", "convolution2d", "convolution3d", "dense_to_sparse", "dropout",
    "embed_sequence", "embedding_lookup_unique", "flatten", "fully_connected", "l1_l2_regularizer",
    "l1_regularizer", "l2_regularizer", "layer_norm", "max_pool2d", "safe_embedding_lookup_sparse",
    "sum_regularizer", "variance_scaling_initializer", "xavier_initializer",
    "xavier_initializer_conv2d",
]  # fmt: skip
