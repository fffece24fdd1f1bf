"""The feature columns of `tf.contrib.layers`, which came before those of `tf.feature_column`.

`sparse.py`, `numeric.py`, `embedded.py` and `crossed.py` have the kinds of columns; `parsing.py`
says how their features are read, `inputs.py` makes the input of a network of them and `linear.py`
a linear model.
"""

from __future__ import annotations

from opdock.contrib.layers.feature_column.crossed import crossed_column
from opdock.contrib.layers.feature_column.embedded import (
    embedding_column,
    one_hot_column,
    scattered_embedding_column,
    shared_embedding_columns,
)
from opdock.contrib.layers.feature_column.inputs import (
    infer_real_valued_columns,
    input_from_feature_columns,
    parse_feature_columns_from_examples,
    parse_feature_columns_from_sequence_examples,
    sequence_input_from_feature_columns,
    transform_features,
)
from opdock.contrib.layers.feature_column.linear import (
    joint_weighted_sum_from_feature_columns,
    weighted_sum_from_feature_columns,
)
from opdock.contrib.layers.feature_column.numeric import bucketized_column, real_valued_column
from opdock.contrib.layers.feature_column.parsing import (
    check_feature_columns,
    create_feature_spec_for_parsing,
    make_place_holder_tensors_for_base_features,
)
from opdock.contrib.layers.feature_column.sparse import (
    sparse_column_with_hash_bucket,
    sparse_column_with_integerized_feature,
    sparse_column_with_keys,
    sparse_column_with_vocabulary_file,
    weighted_sparse_column,
)

__all__ = [
    "bucketized_column", "check_feature_columns", "create_feature_spec_for_parsing",
    "crossed_column", "embedding_column", "infer_real_valued_columns",
    "input_from_feature_columns", "joint_weighted_sum_from_feature_columns",
    "make_place_holder_tensors_for_base_features", "one_hot_column",
    "parse_feature_columns_from_examples", "parse_feature_columns_from_sequence_examples",
    "real_valued_column", "scattered_embedding_column", "sequence_input_from_feature_columns",
    "shared_embedding_columns", "sparse_column_with_hash_bucket",
    "sparse_column_with_integerized_feature", "sparse_column_with_keys",
    "sparse_column_with_vocabulary_file", "transform_features", "weighted_sparse_column",
    "weighted_sum_from_feature_columns",
]  # fmt: skip
