"""`tf.contrib.feature_column`: the columns of sequences, and the function that joins them."""

from __future__ import annotations

from opdock.feature_column import (
    sequence_categorical_column_with_hash_bucket,
    sequence_categorical_column_with_identity,
    sequence_categorical_column_with_vocabulary_file,
    sequence_categorical_column_with_vocabulary_list,
    sequence_numeric_column,
)
from opdock.feature_column.functional import sequence_input_layer
from opdock.feature_column.layers import concatenate_context_input

__all__ = [
    "concatenate_context_input", "sequence_categorical_column_with_hash_bucket",
    "sequence_categorical_column_with_identity",
    "sequence_categorical_column_with_vocabulary_file",
    "sequence_categorical_column_with_vocabulary_list", "sequence_input_layer",
    "sequence_numeric_column",
]  # fmt: skip
