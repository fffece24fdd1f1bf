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
from opdock.contrib.layers.scattered import (
    embedding_lookup_sparse_with_distributed_aggregation,
    scattered_embedding_lookup,
    scattered_embedding_lookup_sparse,
)
from opdock.contrib.layers.sparse_ops import (
    dense_to_sparse_tensor,
    indicators_to_sparse_ids,
    sparse_row_envelope,
)
from opdock.contrib.layers.target_column import multi_class_target, regression_target
from opdock.ops.sparse_cross import (
    SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY,
    sparse_feature_cross,
)

__all__ = [
    "SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY", "apply_regularization", "avg_pool2d", "batch_norm",
    "bow_encoder", "bucketized_column", "check_feature_columns", "conv1d", "conv2d", "conv3d",
    "convolution", "convolution1d", "convolution2d", "convolution3d",
    "create_feature_spec_for_parsing", "crossed_column", "dense_to_sparse",
    "dense_to_sparse_tensor", "dropout", "embed_sequence", "embedding_column",
    "embedding_lookup_sparse_with_distributed_aggregation", "embedding_lookup_unique", "flatten",
    "fully_connected", "indicators_to_sparse_ids", "infer_real_valued_columns",
    "input_from_feature_columns", "joint_weighted_sum_from_feature_columns", "l1_l2_regularizer",
    "l1_regularizer", "l2_regularizer", "layer_norm", "make_place_holder_tensors_for_base_features",
    "max_pool2d", "multi_class_target", "one_hot_column", "parse_feature_columns_from_examples",
    "parse_feature_columns_from_sequence_examples", "real_valued_column", "regression_target",
    "safe_embedding_lookup_sparse", "scattered_embedding_column", "scattered_embedding_lookup",
    "scattered_embedding_lookup_sparse", "sequence_input_from_feature_columns",
    "shared_embedding_columns", "sparse_column_with_hash_bucket",
    "sparse_column_with_integerized_feature", "sparse_column_with_keys",
    "sparse_column_with_vocabulary_file", "sparse_feature_cross", "sparse_row_envelope",
    "sum_regularizer", "transform_features", "variance_scaling_initializer",
    "weighted_sparse_column", "weighted_sum_from_feature_columns", "xavier_initializer",
    "xavier_initializer_conv2d",
]  # fmt: skip
