"""The functions that make columns over ids, and check what they are given."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.api import gfile, logging
from opdock.feature_column.base import CategoricalColumn, check_key, check_string_or_int
from opdock.feature_column.categorical import (
    CrossedColumn,
    HashedCategoricalColumn,
    IdentityCategoricalColumn,
    SequenceCategoricalColumn,
    VocabularyFileCategoricalColumn,
    VocabularyListCategoricalColumn,
    WeightedCategoricalColumn,
)
from opdock.feature_column.embedding import EmbeddingColumn, IndicatorColumn, SharedEmbeddingColumn
from opdock.feature_column.shared import SharedColumn, SharedTable
from opdock.graph.variables.initializers import truncated_normal_initializer


def categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: Any = dtypes.string
) -> HashedCategoricalColumn:
    """Ids by hashing the feature's text: Fingerprint64(text) % hash_bucket_size.

    Args:
        key: the feature's key.
        hash_bucket_size: how many buckets there are.
        dtype: the feature's type, string or an integer.

    Raises:
        ValueError: no or a bad number of buckets, key or type.
    """
    if hash_bucket_size is None:
        raise ValueError(f"hash_bucket_size must be set. key: {key}")
    if hash_bucket_size < 1:
        raise ValueError(
            f"hash_bucket_size must be at least 1. hash_bucket_size: {hash_bucket_size}, key: {key}"
        )
    check_key(key)
    check_string_or_int(dtype, f"column_name: {key}")
    return HashedCategoricalColumn(key, hash_bucket_size, dtype)


def categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: Any,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: Any = dtypes.string,
) -> VocabularyFileCategoricalColumn:
    """Ids that are the numbers of lines of a file.

    Args:
        key: the feature's key.
        vocabulary_file: the path.
        vocabulary_size: how many lines count; all by default.
        num_oov_buckets: buckets for words that are not in the file, by their hash.
        default_value: the id of words that are not in the file; -1 by default.
        dtype: the feature's type, string or an integer.

    Raises:
        ValueError: there is no file, or an argument is out of range or contradicts another.
    """
    if not vocabulary_file:
        raise ValueError(f"Missing vocabulary_file in {key}.")
    if vocabulary_size is None:
        vocabulary_size = _lines(vocabulary_file, key)
    if vocabulary_size < 1:
        raise ValueError(f"Invalid vocabulary_size in {key}.")
    _check_unknown(num_oov_buckets, default_value is not None, key)
    check_string_or_int(dtype, f"column_name: {key}")
    check_key(key)
    return VocabularyFileCategoricalColumn(
        key=key,
        vocabulary_file=vocabulary_file,
        vocabulary_size=vocabulary_size,
        num_oov_buckets=num_oov_buckets or 0,
        default_value=-1 if default_value is None else default_value,
        dtype=dtype,
    )


def _lines(path: Any, key: str) -> int:
    if not gfile.Exists(path):
        raise ValueError(f"vocabulary_file in {key} does not exist.")
    with gfile.GFile(path, "rb") as file:
        count = sum(1 for _ in file)
    logging.info("vocabulary_size of %s: the file %s has %d lines", key, path, count)
    return count


def _check_unknown(num_oov_buckets: int | None, has_default: bool, key: str) -> None:
    if not num_oov_buckets:
        return
    if has_default:
        raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}.")
    if num_oov_buckets < 0:
        raise ValueError(f"Invalid num_oov_buckets {num_oov_buckets} in {key}.")


def categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Sequence[Any],
    dtype: Any = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> VocabularyListCategoricalColumn:
    """Ids that are places in a list.

    Args:
        key: the feature's key.
        vocabulary_list: strings or integers, each once.
        dtype: the feature's type; by default the list's.
        default_value: the id of what is not in the list.
        num_oov_buckets: buckets for what is not in the list, by its hash.

    Raises:
        ValueError: the list is empty or repeats itself, or arguments contradict each other.
    """
    if vocabulary_list is None or len(vocabulary_list) < 1:
        raise ValueError(f"vocabulary_list {vocabulary_list} must be non-empty, column_name: {key}")
    if len(set(vocabulary_list)) != len(vocabulary_list):
        raise ValueError(f"Duplicate keys in vocabulary_list {vocabulary_list}, column_name: {key}")
    listed = dtypes.as_dtype(np.array(vocabulary_list).dtype)
    _check_unknown(num_oov_buckets, default_value != -1, key)
    check_string_or_int(listed, f"column_name: {key} vocabulary")
    if dtype is None:
        dtype = listed
    elif dtype.is_integer != listed.is_integer:
        raise ValueError(
            f"dtype {dtype} and vocabulary dtype {listed} do not match, column_name: {key}"
        )
    check_string_or_int(dtype, f"column_name: {key}")
    check_key(key)
    return VocabularyListCategoricalColumn(
        key=key,
        vocabulary_list=tuple(vocabulary_list),
        dtype=dtype,
        default_value=default_value,
        num_oov_buckets=num_oov_buckets,
    )


def categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> IdentityCategoricalColumn:
    """Ids as the feature has them.

    Args:
        key: the feature's key; its values are integers in [0, num_buckets).
        num_buckets: how many ids there are.
        default_value: the id for values out of range, which fail without one.

    Raises:
        ValueError: a number is out of range.
    """
    if num_buckets < 1:
        raise ValueError(f"num_buckets {num_buckets} < 1, column_name {key}")
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise ValueError(
            f"default_value {default_value} not in range [0, {num_buckets}), column_name {key}"
        )
    check_key(key)
    return IdentityCategoricalColumn(key, num_buckets, default_value)


def weighted_categorical_column(
    categorical_column: CategoricalColumn, weight_feature_key: str, dtype: Any = dtypes.float32
) -> WeightedCategoricalColumn:
    """Ids with weights.

    Args:
        categorical_column: the ids.
        weight_feature_key: the feature with the weights, of the ids' entries.
        dtype: its type, a number.

    Raises:
        ValueError: the type is no number.
    """
    if dtype is None or not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"dtype {dtype} is not convertible to float.")
    return WeightedCategoricalColumn(categorical_column, weight_feature_key, dtype)


def crossed_column(
    keys: Sequence[Any], hash_bucket_size: int, hash_key: int | None = None
) -> CrossedColumn:
    """Ids of combinations, by hashing.

    Args:
        keys: at least two, each a feature's key or a categorical column that is not hashed.
        hash_bucket_size: how many buckets there are.
        hash_key: seeds the hash.

    Raises:
        ValueError: too few keys, a key that cannot be crossed, or no buckets.
    """
    if not hash_bucket_size or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be > 1. hash_bucket_size: {hash_bucket_size}")
    if not keys or len(keys) < 2:
        raise ValueError(f"keys must be a list with length > 1. Given: {keys}")
    for key in keys:
        if not isinstance(key, str | CategoricalColumn):
            raise ValueError(
                "Unsupported key type. All keys must be either string, or categorical column "
                f"except HashedCategoricalColumn. Given: {key}"
            )
        if isinstance(key, HashedCategoricalColumn):
            raise ValueError(
                "categorical_column_with_hash_bucket is not supported for crossing: values that "
                "one hash has put together stay so in the second. Use the feature's name, a "
                f"string, instead. Given: {key}"
            )
    return CrossedColumn(tuple(keys), hash_bucket_size, hash_key)


def indicator_column(categorical_column: CategoricalColumn) -> IndicatorColumn:
    """A vector for each example that says how often each id occurs, or the sum of its weights.

    Args:
        categorical_column: the column of ids.
    """
    return IndicatorColumn(categorical_column)


def embedding_column(
    categorical_column: CategoricalColumn,
    dimension: int,
    combiner: str = "mean",
    initializer: Callable[..., Any] | None = None,
    ckpt_to_load_from: Any = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> EmbeddingColumn:
    """Rows of a trained table, combined for each example.

    Args:
        categorical_column: the ids.
        dimension: the length of a row.
        combiner: "sum", "mean" or "sqrtn", for examples with several ids.
        initializer: of the table; by default a truncated normal of deviation dimension ** -0.5.
        ckpt_to_load_from, tensor_name_in_ckpt: where the table's first values are, if anywhere.
        max_norm: longer rows are scaled down.
        trainable: whether optimizers update the table.

    Raises:
        ValueError: the dimension, the initializer or half a checkpoint.
    """
    label = f" Embedding of column_name: {getattr(categorical_column, 'name', categorical_column)}"
    initializer = _checked_table(
        dimension, initializer, ckpt_to_load_from, tensor_name_in_ckpt, label
    )
    return EmbeddingColumn(
        categorical_column,
        dimension,
        combiner,
        initializer,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm,
        trainable,
    )


def _checked_table(
    dimension: Any, initializer: Any, checkpoint: Any, tensor: str | None, label: str
) -> Callable[..., Any]:
    if dimension is None or dimension < 1:
        raise ValueError(f"Invalid dimension {dimension}.")
    if (checkpoint is None) != (tensor is None):
        raise ValueError(
            "Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them."
        )
    if initializer is None:
        return truncated_normal_initializer(mean=0.0, stddev=1 / math.sqrt(dimension))
    if not callable(initializer):
        raise ValueError(f"initializer must be callable if specified.{label}")
    return initializer  # type: ignore[no-any-return]


def shared_embedding_columns(
    categorical_columns: Sequence[CategoricalColumn],
    dimension: int,
    combiner: str = "mean",
    initializer: Callable[..., Any] | None = None,
    shared_embedding_collection_name: str | None = None,
    ckpt_to_load_from: Any = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> list[SharedEmbeddingColumn]:
    """Embedding columns over one table.

    Args:
        categorical_columns: columns of one type and one number of buckets.
        shared_embedding_collection_name: the graph collection that holds the table; by default
            made of the columns' names.
        dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm,
            trainable: see `embedding_column`.

    Returns:
        A column for each of `categorical_columns`, in their order.

    Raises:
        ValueError: the columns differ, or as `embedding_column`.
    """
    initializer = _checked_table(dimension, initializer, ckpt_to_load_from, tensor_name_in_ckpt, "")
    collection = _shared_name(categorical_columns, shared_embedding_collection_name)
    return [
        SharedEmbeddingColumn(
            column,
            dimension,
            combiner,
            initializer,
            collection,
            ckpt_to_load_from,
            tensor_name_in_ckpt,
            max_norm,
            trainable,
        )
        for column in categorical_columns
    ]


def shared_embeddings(
    categorical_columns: Sequence[CategoricalColumn],
    dimension: int,
    combiner: str = "mean",
    initializer: Callable[..., Any] | None = None,
    shared_embedding_collection_name: str | None = None,
    ckpt_to_load_from: Any = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> list[SharedColumn]:
    """Embedding columns over one table, which is a variable of its own in each graph.

    Args:
        categorical_columns: columns of one type and one number of buckets.
        shared_embedding_collection_name: the name of the variable; by default made of the columns'
            names.
        dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm,
            trainable: see `embedding_column`.

    Returns:
        A column for each of `categorical_columns`, in their order.

    Raises:
        ValueError: the columns differ, or as `embedding_column`.
    """
    initializer = _checked_table(dimension, initializer, ckpt_to_load_from, tensor_name_in_ckpt, "")
    name = _shared_name(categorical_columns, shared_embedding_collection_name)
    table = SharedTable(
        dimension, initializer, ckpt_to_load_from, tensor_name_in_ckpt,
        categorical_columns[0].num_buckets, trainable, name,
    )  # fmt: skip
    return [SharedColumn(column, table, combiner, max_norm) for column in categorical_columns]


def _shared_name(columns: Sequence[CategoricalColumn], name: str | None) -> str:
    """What columns share is called by their names, in one order, if nobody named it.

    Raises:
        ValueError: the columns differ.
    """
    ordered = sorted(columns, key=lambda c: c.name)
    _check_alike(ordered)
    return name or "_".join(c.name for c in ordered) + "_shared_embedding"


def _check_alike(columns: list[Any]) -> None:
    def plain(column: Any) -> Any:
        weighted = isinstance(column, WeightedCategoricalColumn)
        return column.categorical_column if weighted else column

    first = plain(columns[0])
    if not isinstance(first, CategoricalColumn):
        raise ValueError(
            "All categorical_columns must be subclasses of _CategoricalColumn. "
            f"Given: {first}, of type: {type(first)}"
        )
    for column in map(plain, columns[1:]):
        if not isinstance(column, type(first)):
            raise ValueError(
                "To use shared_embedding_column, all categorical_columns must have the same "
                "type, or be weighted_categorical_column of the same type. "
                f"Given column: {first} of type: {type(first)} does not match given column: "
                f"{column} of type: {type(column)}"
            )
        if column.num_buckets != first.num_buckets:
            raise ValueError(
                "To use shared_embedding_column, all categorical_columns must have the same "
                f"number of buckets. Given column: {first} with buckets: {first.num_buckets} "
                f"does  not match column: {column} with buckets: {column.num_buckets}"
            )


def sequence_categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: Any = dtypes.string
) -> SequenceCategoricalColumn:
    """`categorical_column_with_hash_bucket` for sequences.

    Args:
        key: the name of the feature.
        hash_bucket_size: the number of buckets, above 1.
        dtype: the type of the values, strings or integers.
    """
    return SequenceCategoricalColumn(
        categorical_column_with_hash_bucket(key, hash_bucket_size, dtype)
    )


def sequence_categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> SequenceCategoricalColumn:
    """`categorical_column_with_identity` for sequences.

    Args:
        key: the name of the feature.
        num_buckets: the number of ids.
        default_value: the id of values that are none; None has the step fail on them.
    """
    return SequenceCategoricalColumn(
        categorical_column_with_identity(key, num_buckets, default_value)
    )


def sequence_categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: Any,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: Any = dtypes.string,
) -> SequenceCategoricalColumn:
    """`categorical_column_with_vocabulary_file` for sequences.

    Args:
        key: the name of the feature.
        vocabulary_file: the file with a value a line.
        vocabulary_size: how many lines count; all by default.
        num_oov_buckets: the number of buckets for values that are not in the vocabulary.
        default_value: the id of values that are none; None has the step fail on them.
        dtype: the type of the values, strings or integers.
    """
    return SequenceCategoricalColumn(
        categorical_column_with_vocabulary_file(
            key, vocabulary_file, vocabulary_size, num_oov_buckets, default_value, dtype
        )
    )


def sequence_categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Sequence[Any],
    dtype: Any = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> SequenceCategoricalColumn:
    """`categorical_column_with_vocabulary_list` for sequences.

    Args:
        key: the name of the feature.
        vocabulary_list: the values, in the order of their ids.
        dtype: the type of the values, strings or integers.
        default_value: the id of values that are none; None has the step fail on them.
        num_oov_buckets: the number of buckets for values that are not in the vocabulary.
    """
    return SequenceCategoricalColumn(
        categorical_column_with_vocabulary_list(
            key, vocabulary_list, dtype, default_value, num_oov_buckets
        )
    )
