"""Columns of ids: integers as they are, hashes, places in a vocabulary; with weights or without."""

from __future__ import annotations

from typing import Any, NamedTuple

from opdock import dtypes
from opdock.api import logging
from opdock.contrib.layers.feature_column.base import (
    Get,
    IdColumn,
    reshape_dense,
    with_values,
)
from opdock.contrib.layers.sparse_ops import dense_to_sparse_tensor
from opdock.contrib.lookup import index_table_from_file, index_table_from_tensor
from opdock.dtypes import DType
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.operation import Tensor
from opdock.ops.arithmetic import floormod
from opdock.ops.cast import cast
from opdock.ops.composed.example_features import VarLenFeature
from opdock.ops.composed.sparse import sparse_concat
from opdock.ops.encoding import as_string
from opdock.ops.hashing import string_to_hash_bucket_fast, string_to_hash_bucket_strong


class SparseIdLookupConfig(NamedTuple):
    """Where a vocabulary is, and what is done with what it has not."""

    vocabulary_file: str | None = None
    keys: tuple[Any, ...] | None = None
    num_oov_buckets: int = 0
    vocab_size: int | None = None
    default_value: int = -1


class _SparseFields(NamedTuple):
    column_name: str
    is_integerized: bool = False
    bucket_size: int | None = None
    lookup_config: SparseIdLookupConfig | None = None
    combiner: str = "sum"
    dtype: DType = dtypes.string


class SparseColumn(IdColumn, _SparseFields):
    """A feature whose values become ids; one class a way."""

    kind = "SparseColumn"

    @property
    def name(self) -> str:
        return self.column_name

    @property
    def length(self) -> int:
        if self.bucket_size is not None:
            return self.bucket_size
        found = self.lookup_config or SparseIdLookupConfig()
        return (found.vocab_size or 0) + found.num_oov_buckets

    @property
    def config(self) -> dict[str, Any]:
        return {self.column_name: VarLenFeature(self.dtype)}

    def joined_by(self) -> str:
        return self.combiner

    def transformed(self, get: Get) -> SparseTensor:
        tensor = get(self.name)
        if not isinstance(tensor, SparseTensor):
            # No integer feature has -1, so that 0 counts as one.
            missing = "" if tensor.dtype.base_dtype is dtypes.string else -1
            tensor = dense_to_sparse_tensor(reshape_dense(tensor, 2, self.name), missing)
        return self._ids(tensor)

    def _ids(self, tensor: SparseTensor) -> SparseTensor:
        """The feature with ids in place of its values."""
        raise NotImplementedError

    def _texts(self, tensor: SparseTensor) -> Tensor:
        return as_string(tensor.values) if self.dtype.is_integer else tensor.values

    def is_compatible(self, other_column: Any) -> bool:
        """Whether the ids of both columns can share embeddings."""
        if self.lookup_config and other_column.lookup_config:
            return bool(self.lookup_config == other_column.lookup_config)
        alike = self.dtype == other_column.dtype or (
            self.dtype.is_integer and other_column.dtype.is_integer
        )
        compatible = self.length == other_column.length and alike
        if compatible:
            logging.warning(
                "Column %s and %s may not have the same vocabulary.", self.name, other_column.name
            )
        return bool(compatible)


class SparseColumnIntegerized(SparseColumn):
    """Integers as ids; see `sparse_column_with_integerized_feature`."""

    def _ids(self, tensor: SparseTensor) -> SparseTensor:
        ids = floormod(tensor.values, self.bucket_size, name="mod")
        return with_values(tensor, ids)


class SparseColumnHashed(SparseColumn):
    """Hashes as ids; see `sparse_column_with_hash_bucket`."""

    hash_keys: list[list[int]] | None = None

    def _ids(self, tensor: SparseTensor) -> SparseTensor:
        texts, size = self._texts(tensor), self.length
        if not self.hash_keys:
            ids = [string_to_hash_bucket_fast(texts, size, name="lookup")]
        else:
            ids = [string_to_hash_bucket_strong(texts, size, key) for key in self.hash_keys]
        found = [with_values(tensor, i) for i in ids]
        if not self.hash_keys:
            return found[0]
        return sparse_concat(axis=1, sp_inputs=found, name="lookup")


class SparseColumnKeys(SparseColumn):
    """Places in a list as ids; see `sparse_column_with_keys`."""

    def _ids(self, tensor: SparseTensor) -> SparseTensor:
        known = self.lookup_config or SparseIdLookupConfig()
        table = index_table_from_tensor(
            known.keys, default_value=known.default_value, dtype=self.dtype, name="lookup"
        )
        ids: SparseTensor = table.lookup(tensor)
        return ids


class SparseColumnVocabulary(SparseColumn):
    """Lines of a file as ids; see `sparse_column_with_vocabulary_file`."""

    def _ids(self, tensor: SparseTensor) -> SparseTensor:
        known = self.lookup_config or SparseIdLookupConfig()
        table = index_table_from_file(
            vocabulary_file=known.vocabulary_file,
            num_oov_buckets=known.num_oov_buckets,
            vocab_size=known.vocab_size,
            default_value=known.default_value,
            name=f"{self.name}_lookup",
        )
        ids: SparseTensor = table.lookup(with_values(tensor, self._texts(tensor)))
        return ids


def _checked(column: SparseColumn) -> None:
    """Raises ValueError or TypeError where a column's fields do not fit together."""
    told = f"column_name: {column.column_name}"
    size, known, dtype = column.bucket_size, column.lookup_config, column.dtype
    if column.is_integerized and size is None:
        raise ValueError(f"bucket_size must be set if is_integerized is True. {told}")
    if column.is_integerized and not dtype.is_integer:
        raise ValueError(
            f"dtype must be an integer if is_integerized is True. dtype: {dtype}, {told}."
        )
    if dtype != dtypes.string and not dtype.is_integer:
        raise ValueError(f"dtype must be string or integer. dtype: {dtype}, {told}")
    if size is None and known is None:
        raise ValueError(f"one of bucket_size or lookup_config must be set. {told}")
    if size is not None and size < 1:
        raise ValueError(f"bucket_size must be at least 1. bucket_size: {size}, {told}")
    if known and known.vocabulary_file and known.vocab_size is None:
        raise ValueError(f"vocab_size must be defined. {told}")


def sparse_column_with_integerized_feature(
    column_name: str, bucket_size: int, combiner: str = "sum", dtype: Any = dtypes.int64
) -> SparseColumn:
    """A column of integers that are ids, modulo `bucket_size`.

    Args:
        column_name: the feature's key.
        bucket_size: the number of ids.
        combiner: how a linear model joins the weights of one example: "sum", "mean" or "sqrtn".
        dtype: the feature's integer type.

    Raises:
        ValueError: there is no id, or the type is no integer.
    """
    column = SparseColumnIntegerized(
        column_name, True, bucket_size, None, combiner, dtypes.as_dtype(dtype)
    )
    _checked(column)
    return column


def sparse_column_with_hash_bucket(
    column_name: str,
    hash_bucket_size: int,
    combiner: str = "sum",
    dtype: Any = dtypes.string,
    hash_keys: Any = None,
) -> SparseColumn:
    """A column of strings or integers whose ids are hashes.

    Args:
        column_name: the feature's key.
        hash_bucket_size: the number of ids.
        combiner: how a linear model joins the weights of one example: "sum", "mean" or "sqrtn".
        dtype: the feature's type.
        hash_keys: a list of pairs of integers, each for a hash of its own; so a value has several
            ids, and seldom shares all of them.

    Raises:
        ValueError: a size, the type or a key is none.
    """
    if hash_keys is not None:
        if not isinstance(hash_keys, list) or not hash_keys:
            raise ValueError("hash_keys must be a non-empty list.")
        for pair in hash_keys:
            whole = isinstance(pair, list) and all(isinstance(key, int) for key in pair)
            if not whole or len(pair) != 2:
                raise ValueError("Each element of hash_keys must be a pair of integers.")
    column = SparseColumnHashed(
        column_name, False, hash_bucket_size, None, combiner, dtypes.as_dtype(dtype)
    )
    column.hash_keys = hash_keys
    _checked(column)
    return column


def sparse_column_with_keys(
    column_name: str,
    keys: Any,
    default_value: int = -1,
    combiner: str = "sum",
    dtype: Any = dtypes.string,
) -> SparseColumn:
    """A column whose ids are places in a list.

    Args:
        column_name: the feature's key.
        keys: the values, in the order of their ids.
        default_value: the id of other values; -1 leaves them out.
        combiner: how a linear model joins the weights of one example: "sum", "mean" or "sqrtn".
        dtype: the feature's type, string or an integer.

    Raises:
        ValueError: the type is neither.
    """
    keys = tuple(keys)
    known = SparseIdLookupConfig(keys=keys, vocab_size=len(keys), default_value=default_value)
    column = SparseColumnKeys(column_name, False, None, known, combiner, dtypes.as_dtype(dtype))
    _checked(column)
    return column


def sparse_column_with_vocabulary_file(
    column_name: str,
    vocabulary_file: str,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    combiner: str = "sum",
    dtype: Any = dtypes.string,
) -> SparseColumn:
    """A column whose ids are lines of a file.

    Args:
        column_name: the feature's key.
        vocabulary_file: its path.
        num_oov_buckets: how many ids other values have, by their hash.
        vocab_size: the number of lines that count.
        default_value: the id of other values without such; -1 leaves them out.
        combiner: how a linear model joins the weights of one example: "sum", "mean" or "sqrtn".
        dtype: the feature's type, string or an integer.

    Raises:
        ValueError: the size is not given, or the type is neither.
    """
    if vocab_size is None:
        raise ValueError(f"vocab_size should be defined. column_name: {column_name}")
    known = SparseIdLookupConfig(vocabulary_file, None, num_oov_buckets, vocab_size, default_value)
    column = SparseColumnVocabulary(
        column_name, False, None, known, combiner, dtypes.as_dtype(dtype)
    )
    _checked(column)
    return column


class _WeightedFields(NamedTuple):
    sparse_id_column: SparseColumn
    weight_column_name: str
    dtype: DType


class WeightedSparseColumn(IdColumn, _WeightedFields):
    """Ids with weights from another feature; see `weighted_sparse_column`."""

    kind = "WeightedSparseColumn"

    @property
    def name(self) -> str:
        return f"{self.sparse_id_column.name}_weighted_by_{self.weight_column_name}"

    @property
    def length(self) -> int:
        return self.sparse_id_column.length

    @property
    def config(self) -> dict[str, Any]:
        return {
            **self.sparse_id_column.config,
            self.weight_column_name: VarLenFeature(self.dtype),
        }

    @property
    def lookup_config(self) -> SparseIdLookupConfig | None:
        """The vocabulary of the ids."""
        return self.sparse_id_column.lookup_config

    def id_tensor(self, input_tensor: Any) -> Any:
        return input_tensor[0]

    def weight_tensor(self, input_tensor: Any) -> Any:
        return input_tensor[1]

    def joined_by(self) -> str:
        return self.sparse_id_column.combiner

    def transformed(self, get: Get) -> tuple[Any, Any]:
        ids, weights = get(self.sparse_id_column), get(self.weight_column_name)
        if not isinstance(weights, SparseTensor):
            weights = dense_to_sparse_tensor(weights)
        return ids, weights if self.dtype.is_floating else cast(weights, dtypes.float32)

    def is_compatible(self, other_column: Any) -> bool:
        """Whether the ids of both columns can share embeddings."""
        if isinstance(other_column, WeightedSparseColumn):
            other_column = other_column.sparse_id_column
        return self.sparse_id_column.is_compatible(other_column)


def weighted_sparse_column(
    sparse_id_column: SparseColumn, weight_column_name: str, dtype: Any = dtypes.float32
) -> WeightedSparseColumn:
    """A column of ids with a weight each.

    Args:
        sparse_id_column: the column of the ids.
        weight_column_name: the key of a feature with the same entries.
        dtype: the type of that feature, a number.

    Raises:
        ValueError: it is no number.
    """
    dtype = dtypes.as_dtype(dtype)
    if not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"dtype is not convertible to float. Given {dtype}")
    return WeightedSparseColumn(sparse_id_column, weight_column_name, dtype)
