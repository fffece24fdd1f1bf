"""`tf.contrib.layers`: layers with `weights` and `biases`, regularizers, initializers."""

from __future__ import annotations

from opdock.contrib.layers.basic import (
    conv1d,
    conv2d,
    conv3d,
    convolution,
    convolution1d,
    convolution2d,
    convolution3d,
    dropout,
    elu,
    flatten,
    fully_connected,
    linear,
    relu,
    relu6,
)
from opdock.contrib.layers.convolutions import (
    conv2d_in_plane,
    conv2d_transpose,
    conv3d_transpose,
    convolution2d_in_plane,
    convolution2d_transpose,
    convolution3d_transpose,
    separable_conv2d,
    separable_convolution2d,
)
from opdock.contrib.layers.embedding import (
    dense_to_sparse,
    embed_sequence,
    embedding_lookup_unique,
    safe_embedding_lookup_sparse,
)
from opdock.contrib.layers.encoders import bow_encoder
from opdock.contrib.layers.feature_column import (
    bucketized_column,
    check_feature_columns,
    create_feature_spec_for_parsing,
    crossed_column,
    embedding_column,
    infer_real_valued_columns,
    input_from_feature_columns,
    joint_weighted_sum_from_feature_columns,
    make_place_holder_tensors_for_base_features,
    one_hot_column,
    parse_feature_columns_from_examples,
    parse_feature_columns_from_sequence_examples,
    real_valued_column,
    scattered_embedding_column,
    sequence_input_from_feature_columns,
    shared_embedding_columns,
    sparse_column_with_hash_bucket,
    sparse_column_with_integerized_feature,
    sparse_column_with_keys,
    sparse_column_with_vocabulary_file,
    transform_features,
    weighted_sparse_column,
    weighted_sum_from_feature_columns,
)
from opdock.contrib.layers.gdn import GDN, gdn
from opdock.contrib.layers.group_normalization import group_norm, instance_norm
from opdock.contrib.layers.initializers import (
    variance_scaling_initializer,
    xavier_initializer,
    xavier_initializer_conv2d,
)
from opdock.contrib.layers.legacy import legacy_fully_connected, legacy_linear, legacy_relu
from opdock.contrib.layers.normalization import batch_norm, layer_norm
from opdock.contrib.layers.optimizers import (
    OPTIMIZER_CLS_NAMES,
    OPTIMIZER_SUMMARIES,
    adaptive_clipping_fn,
    optimize_loss,
)
from opdock.contrib.layers.pooling import (
    avg_pool2d,
    avg_pool3d,
    max_pool2d,
    max_pool3d,
    pool,
)
from opdock.contrib.layers.regularizers import (
    apply_regularization,
    l1_l2_regularizer,
    l1_regularizer,
    l2_regularizer,
    sum_regularizer,
)
from opdock.contrib.layers.scattered import (
    embedding_lookup_sparse_with_distributed_aggregation,
    scattered_embedding_lookup,
    scattered_embedding_lookup_sparse,
)
from opdock.contrib.layers.shaping import (
    images_to_sequence,
    one_hot_encoding,
    sequence_to_images,
)
from opdock.contrib.layers.sparse_ops import (
    dense_to_sparse_tensor,
    indicators_to_sparse_ids,
    sparse_row_envelope,
)
from opdock.contrib.layers.stacking import repeat, stack
from opdock.contrib.layers.summaries import (
    summarize_activation,
    summarize_activations,
    summarize_biases,
    summarize_collection,
    summarize_tensor,
    summarize_tensors,
    summarize_variables,
    summarize_weights,
)
from opdock.contrib.layers.target_column import multi_class_target, regression_target
from opdock.contrib.layers.units import (
    bias_add,
    maxout,
    poincare_normalize,
    scale_gradient,
    softmax,
    spatial_softmax,
    unit_norm,
)
from opdock.ops.sparse_cross import (
    SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY,
    sparse_feature_cross,
)

__all__ = [
    "GDN", "OPTIMIZER_CLS_NAMES", "OPTIMIZER_SUMMARIES",
    "SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY", "adaptive_clipping_fn", "apply_regularization",
    "avg_pool2d", "avg_pool3d", "batch_norm", "bias_add", "bow_encoder", "bucketized_column",
    "check_feature_columns", "conv1d", "conv2d", "conv2d_in_plane", "conv2d_transpose",
    "conv3d", "conv3d_transpose", "convolution", "convolution1d", "convolution2d",
    "convolution2d_in_plane", "convolution2d_transpose", "convolution3d",
    "convolution3d_transpose", "create_feature_spec_for_parsing", "crossed_column",
    "dense_to_sparse", "dense_to_sparse_tensor", "dropout", "elu", "embed_sequence",
    "embedding_column", "embedding_lookup_sparse_with_distributed_aggregation",
    "embedding_lookup_unique", "flatten", "fully_connected", "gdn", "group_norm",
    "images_to_sequence", "indicators_to_sparse_ids", "infer_real_valued_columns",
    "input_from_feature_columns", "instance_norm", "joint_weighted_sum_from_feature_columns",
    "l1_l2_regularizer", "l1_regularizer", "l2_regularizer", "layer_norm",
    "legacy_fully_connected", "legacy_linear", "legacy_relu", "linear",
    "make_place_holder_tensors_for_base_features", "max_pool2d", "max_pool3d", "maxout",
    "multi_class_target", "one_hot_column", "one_hot_encoding", "optimize_loss",
    "parse_feature_columns_from_examples", "parse_feature_columns_from_sequence_examples",
    "poincare_normalize", "pool", "real_valued_column", "regression_target", "relu", "relu6",
    "repeat", "safe_embedding_lookup_sparse", "scale_gradient", "scattered_embedding_column",
    "scattered_embedding_lookup", "scattered_embedding_lookup_sparse", "separable_conv2d",
    "separable_convolution2d", "sequence_input_from_feature_columns", "sequence_to_images",
    "shared_embedding_columns", "softmax", "sparse_column_with_hash_bucket",
    "sparse_column_with_integerized_feature", "sparse_column_with_keys",
    "sparse_column_with_vocabulary_file", "sparse_feature_cross", "sparse_row_envelope",
    "spatial_softmax", "stack", "sum_regularizer", "summarize_activation",
    "summarize_activations", "summarize_biases", "summarize_collection", "summarize_tensor",
    "summarize_tensors", "summarize_variables", "summarize_weights", "transform_features",
    "unit_norm", "variance_scaling_initializer", "weighted_sparse_column",
    "weighted_sum_from_feature_columns", "xavier_initializer", "xavier_initializer_conv2d",
]  # fmt: skip
