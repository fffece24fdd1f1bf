"""`tf.nn`: activations, convolutions, pooling, normalization, losses and their kin."""

from __future__ import annotations

import importlib
from typing import Any, Final

from opdock.ops.bias import bias_add, relu_layer, xw_plus_b
from opdock.ops.candidate_sampling import (
    all_candidate_sampler,
    compute_accidental_hits,
    fixed_unigram_candidate_sampler,
    learned_unigram_candidate_sampler,
    log_uniform_candidate_sampler,
    uniform_candidate_sampler,
)
from opdock.ops.composed.average_loss import (
    compute_average_loss,
    scale_regularization_loss,
)  # fmt: skip
from opdock.ops.composed.conv_transpose import conv_transpose
from opdock.ops.composed.ctc_labels import collapse_repeated, ctc_loss_v2, ctc_unique_labels
from opdock.ops.composed.dilated import (
    atrous_conv2d,
    atrous_conv2d_transpose,
    convolution,
    with_space_to_batch,
)  # fmt: skip
from opdock.ops.composed.dropout import dropout
from opdock.ops.composed.embedding import (
    embedding_lookup,
    embedding_lookup_sparse,
    safe_embedding_lookup_sparse,
)
from opdock.ops.composed.moments import (
    l2_normalize,
    moments,
    normalize_moments,
    sufficient_statistics,
    weighted_moments,
    zero_fraction,
)  # fmt: skip
from opdock.ops.composed.pooling import (
    avg_pool,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    avg_pool_v2,
    max_pool,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    max_pool_v2,
    pool,
)  # fmt: skip
from opdock.ops.composed.sampled_losses import nce_loss, sampled_softmax_loss
from opdock.ops.conv import (
    conv1d,
    conv1d_transpose,
    conv2d,
    conv2d_backprop_filter,
    conv2d_backprop_input,
    conv2d_transpose,
)  # fmt: skip
from opdock.ops.conv3d import (
    conv3d,
    conv3d_backprop_filter,
    conv3d_backprop_filter_v2,
    conv3d_transpose,
)  # fmt: skip
from opdock.ops.ctc import (
    ctc_beam_search_decoder,
    ctc_beam_search_decoder_v2,
    ctc_greedy_decoder,
    ctc_loss,
)
from opdock.ops.depthwise import (
    depthwise_conv2d,
    depthwise_conv2d_backprop_filter,
    depthwise_conv2d_backprop_input,
    depthwise_conv2d_native,
    depthwise_conv2d_native_backprop_filter,
    depthwise_conv2d_native_backprop_input,
    separable_conv2d,
)  # fmt: skip
from opdock.ops.elementary import log_sigmoid, sigmoid, tanh
from opdock.ops.fractional_pool import fractional_avg_pool, fractional_max_pool
from opdock.ops.loss import (
    in_top_k,
    l2_loss,
    log_poisson_loss,
    sigmoid_cross_entropy_with_logits,
    weighted_cross_entropy_with_logits,
)  # fmt: skip
from opdock.ops.lrn import local_response_normalization, lrn
from opdock.ops.morphology import dilation2d, erosion2d
from opdock.ops.nn import crelu, elu, leaky_relu, relu, relu6, selu, softplus, softsign, swish
from opdock.ops.norm import (
    batch_norm_with_global_normalization,
    batch_normalization,
    fused_batch_norm,
)  # fmt: skip
from opdock.ops.pool import max_pool_with_argmax
from opdock.ops.quantized_nn import (
    quantized_avg_pool,
    quantized_conv2d,
    quantized_max_pool,
    quantized_relu_x,
)  # fmt: skip
from opdock.ops.sorting import top_k
from opdock.ops.spacebatch import depth_to_space, space_to_batch, space_to_depth
from opdock.ops.xent import (
    log_softmax,
    softmax,
    softmax_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits,
)  # fmt: skip

__all__ = [
    "all_candidate_sampler",
    "atrous_conv2d",
    "atrous_conv2d_transpose",
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "avg_pool_v2",
    "batch_norm_with_global_normalization",
    "batch_normalization",
    "bias_add",
    "collapse_repeated",
    "compute_accidental_hits",
    "compute_average_loss",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_backprop_filter",
    "conv2d_backprop_input",
    "conv2d_transpose",
    "conv3d",
    "conv3d_backprop_filter",
    "conv3d_backprop_filter_v2",
    "conv3d_transpose",
    "conv_transpose",
    "convolution",
    "crelu",
    "ctc_beam_search_decoder",
    "ctc_beam_search_decoder_v2",
    "ctc_greedy_decoder",
    "ctc_loss",
    "ctc_loss_v2",
    "ctc_unique_labels",
    "depth_to_space",
    "depthwise_conv2d",
    "depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_backprop_input",
    "depthwise_conv2d_native",
    "depthwise_conv2d_native_backprop_filter",
    "depthwise_conv2d_native_backprop_input",
    "dilation2d",
    "dropout",
    "elu",
    "embedding_lookup",
    "embedding_lookup_sparse",
    "erosion2d",
    "fixed_unigram_candidate_sampler",
    "fractional_avg_pool",
    "fractional_max_pool",
    "fused_batch_norm",
    "in_top_k",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "learned_unigram_candidate_sampler",
    "local_response_normalization",
    "log_poisson_loss",
    "log_sigmoid",
    "log_softmax",
    "log_uniform_candidate_sampler",
    "lrn",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_pool_v2",
    "max_pool_with_argmax",
    "moments",
    "nce_loss",
    "normalize_moments",
    "pool",
    "quantized_avg_pool",
    "quantized_conv2d",
    "quantized_max_pool",
    "quantized_relu_x",
    "relu",
    "relu6",
    "relu_layer",
    "safe_embedding_lookup_sparse",
    "sampled_softmax_loss",
    "scale_regularization_loss",
    "selu",
    "separable_conv2d",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits_v2",
    "softplus",
    "softsign",
    "space_to_batch",
    "space_to_depth",
    "sparse_softmax_cross_entropy_with_logits",
    "sufficient_statistics",
    "swish",
    "tanh",
    "top_k",
    "uniform_candidate_sampler",
    "weighted_cross_entropy_with_logits",
    "weighted_moments",
    "with_space_to_batch",
    "xw_plus_b",
    "zero_fraction",
]  # fmt: skip


_RNN: Final = {
    "bidirectional_dynamic_rnn": "rnn_directions", "dynamic_rnn": "rnn", "raw_rnn": "rnn_raw",
    "static_bidirectional_rnn": "rnn_directions", "static_rnn": "rnn",
    "static_state_saving_rnn": "rnn_directions",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    # Recurrent networks are layers, which stand above the ops.
    where = _RNN.get(name)
    if where is not None:
        return getattr(importlib.import_module(f"opdock.layers.{where}"), name)
    if name == "rnn_cell":
        return importlib.import_module("opdock.layers.rnn_cell")
    raise AttributeError(f"module 'opdock.nn' has no attribute {name!r}")
