"""Columns of ids: hashed, from vocabularies, given, weighted, crossed, and in sequence."""

from __future__ import annotations

from typing import Any, NamedTuple

from opdock import dtypes
from opdock.dtypes import DType
from opdock.feature_column.base import (
    CategoricalColumn,
    FeatureColumn,
    FeatureTransformationCache,
    IdsAndWeights,
    StateManager,
    check_string_or_int,
    to_sparse,
)
from opdock.graph.nodes.composite import SparseTensor, convert_to_tensor_or_sparse_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.lookup.vocabulary import index_table_from_file, index_table_from_tensor
from opdock.ops.array import shape
from opdock.ops.cast import cast
from opdock.ops.check import assert_greater_equal, assert_less
from opdock.ops.compare import logical_or
from opdock.ops.composed.example_features import VarLenFeature
from opdock.ops.composed.sparse import sparse_reshape
from opdock.ops.encoding import as_string
from opdock.ops.fill import fill
from opdock.ops.hashing import string_to_hash_bucket_fast
from opdock.ops.identity import identity
from opdock.ops.joining import stack
from opdock.ops.reduce import reduce_prod
from opdock.ops.select import where_v2
from opdock.ops.sparse_cross import sparse_cross_hashed


class _OfOneKey(CategoricalColumn):
    """Ids computed from one feature."""

    key: str
    dtype: DType

    @property
    def name(self) -> str:
        return self.key

    @property
    def parents(self) -> list[Any]:
        return [self.key]

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: VarLenFeature(self.dtype)}

    def transform_feature(
        self, transformation_cache: FeatureTransformationCache, state_manager: StateManager | None
    ) -> Any:
        return self._ids(
            to_sparse(transformation_cache.get(self.key, state_manager)), state_manager
        )

    def _ids(self, tensor: SparseTensor, state_manager: StateManager | None) -> SparseTensor:
        """The feature with ids in place of its values."""
        raise NotImplementedError

    def _check_dtype(self, tensor: SparseTensor) -> None:
        check_string_or_int(tensor.dtype, f"column_name: {self.key} input_tensor")
        if self.dtype.is_integer != tensor.dtype.is_integer:
            raise ValueError(
                "Column dtype and SparseTensors dtype must be compatible. "
                f"key: {self.key}, column dtype: {self.dtype}, tensor dtype: {tensor.dtype}"
            )


class _HashedFields(NamedTuple):
    key: str
    hash_bucket_size: int
    dtype: DType


class HashedCategoricalColumn(_OfOneKey, _HashedFields):
    """Ids by hashing; see `categorical_column_with_hash_bucket`."""

    @property
    def num_buckets(self) -> int:
        return self.hash_bucket_size

    def _ids(self, tensor: SparseTensor, state_manager: StateManager | None) -> SparseTensor:
        self._check_dtype(tensor)
        words = tensor.values if self.dtype == dtypes.string else as_string(tensor.values)
        ids = string_to_hash_bucket_fast(words, self.hash_bucket_size, name="lookup")
        return SparseTensor(tensor.indices, ids, tensor.dense_shape)


class _FromVocabulary(_OfOneKey):
    """Ids looked up in a table."""

    def _ids(self, tensor: SparseTensor, state_manager: StateManager | None) -> SparseTensor:
        self._check_dtype(tensor)
        key_dtype = self.dtype
        if tensor.dtype.is_integer:
            key_dtype = dtypes.int64
            tensor = cast(tensor, dtypes.int64)
        name = f"{self.key}_lookup"
        table = self._table(key_dtype, name)
        if state_manager is not None:
            state_manager.add_resource(self, name, table)
        ids: SparseTensor = table.lookup(tensor)
        return ids

    def _table(self, key_dtype: DType, name: str) -> Any:
        raise NotImplementedError


class _FileFields(NamedTuple):
    key: str
    vocabulary_file: Any
    vocabulary_size: int
    num_oov_buckets: int
    dtype: DType
    default_value: int


class VocabularyFileCategoricalColumn(_FromVocabulary, _FileFields):
    """Ids that are lines of a file; see `categorical_column_with_vocabulary_file`."""

    @property
    def num_buckets(self) -> int:
        return self.vocabulary_size + self.num_oov_buckets

    def _table(self, key_dtype: DType, name: str) -> Any:
        return index_table_from_file(
            vocabulary_file=self.vocabulary_file,
            num_oov_buckets=self.num_oov_buckets,
            vocab_size=self.vocabulary_size,
            default_value=self.default_value,
            key_dtype=key_dtype,
            name=name,
        )


class _ListFields(NamedTuple):
    key: str
    vocabulary_list: tuple[Any, ...]
    dtype: DType
    default_value: int
    num_oov_buckets: int


class VocabularyListCategoricalColumn(_FromVocabulary, _ListFields):
    """Ids that are places in a list; see `categorical_column_with_vocabulary_list`."""

    @property
    def num_buckets(self) -> int:
        return len(self.vocabulary_list) + self.num_oov_buckets

    def _table(self, key_dtype: DType, name: str) -> Any:
        return index_table_from_tensor(
            vocabulary_list=self.vocabulary_list,
            default_value=self.default_value,
            num_oov_buckets=self.num_oov_buckets,
            dtype=key_dtype,
            name=name,
        )


class _IdentityFields(NamedTuple):
    key: str
    number_buckets: int
    default_value: int | None


class IdentityCategoricalColumn(_OfOneKey, _IdentityFields):
    """Ids as they are; see `categorical_column_with_identity`."""

    dtype = dtypes.int64

    @property
    def num_buckets(self) -> int:
        return self.number_buckets

    def _ids(self, tensor: SparseTensor, state_manager: StateManager | None) -> SparseTensor:
        if not tensor.dtype.is_integer:
            raise ValueError(f"Invalid input, not integer. key: {self.key} dtype: {tensor.dtype}")
        ids = cast(tensor.values, dtypes.int64, name="values")
        bound = cast(self.num_buckets, dtypes.int64, name="num_buckets")
        zero = cast(0, dtypes.int64, name="zero")
        if self.default_value is None:
            ids = self._asserted(ids, zero, bound)
        else:
            outside = logical_or(ids < zero, ids >= bound, name="out_of_range")
            default = cast(self.default_value, dtypes.int64)
            ids = where_v2(outside, fill(shape(ids), default, name="default_values"), ids)
        return SparseTensor(tensor.indices, ids, tensor.dense_shape)

    def _asserted(self, ids: Tensor, zero: Tensor, bound: Tensor) -> Tensor:
        below = assert_less(
            ids,
            bound,
            data=(ids, bound),
            message=f'Bucket index for categorical column "{self.name}" exceeds number of buckets',
            name="assert_less_than_num_buckets",
        )
        above = assert_greater_equal(
            ids,
            zero,
            data=(ids,),
            message=f'Negative bucket index for categorical column "{self.name}"',
            name="assert_greater_or_equal_0",
        )
        with control_dependencies((below, above)):
            return identity(ids)


class _WeightedFields(NamedTuple):
    categorical_column: CategoricalColumn
    weight_feature_key: str
    dtype: DType


class WeightedCategoricalColumn(CategoricalColumn, _WeightedFields):
    """Ids with weights from another feature; see `weighted_categorical_column`."""

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_weighted_by_{self.weight_feature_key}"

    @property
    def parents(self) -> list[Any]:
        return [self.categorical_column, self.weight_feature_key]

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        spec = dict(self.categorical_column.parse_example_spec)
        key = self.weight_feature_key
        if key in spec:
            raise ValueError(f"Parse config {spec[key]} already exists for {key}.")
        return {**spec, key: VarLenFeature(self.dtype)}

    @property
    def num_buckets(self) -> int:
        return self.categorical_column.num_buckets

    def transform_feature(
        self, transformation_cache: FeatureTransformationCache, state_manager: StateManager | None
    ) -> Any:
        weights = self._weights(transformation_cache.get(self.weight_feature_key, state_manager))
        return transformation_cache.get(self.categorical_column, state_manager), weights

    def _weights(self, tensor: Any) -> SparseTensor:
        if tensor is None:
            raise ValueError(f"Missing weights {self.weight_feature_key}.")
        tensor = convert_to_tensor_or_sparse_tensor(tensor)
        if tensor.dtype.base_dtype != self.dtype:
            raise ValueError(f"Bad dtype, expected {self.dtype}, but got {tensor.dtype}.")
        weights = to_sparse(tensor, ignored=0.0)
        return weights if weights.dtype.is_floating else cast(weights, dtypes.float32)

    def get_sparse_tensors(
        self, transformation_cache: FeatureTransformationCache, state_manager: StateManager | None
    ) -> IdsAndWeights:
        return IdsAndWeights(*transformation_cache.get(self, state_manager))


class _CrossedFields(NamedTuple):
    keys: tuple[Any, ...]
    hash_bucket_size: int
    hash_key: int | None


class CrossedColumn(CategoricalColumn, _CrossedFields):
    """Hashed combinations of features; see `crossed_column`."""

    @property
    def name(self) -> str:
        names = (k.name if isinstance(k, FeatureColumn) else k for k in self._leaves())
        return "_X_".join(sorted(names))

    @property
    def parents(self) -> list[Any]:
        return list(self.keys)

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {}
        for key in self.keys:
            own = isinstance(key, FeatureColumn)
            spec.update(key.parse_example_spec if own else {key: VarLenFeature(dtypes.string)})
        return spec

    @property
    def num_buckets(self) -> int:
        return self.hash_bucket_size

    def _leaves(self) -> list[Any]:
        """The keys, with those of a crossed column in its place."""
        leaves: list[Any] = []
        for key in self.keys:
            leaves.extend(key._leaves() if isinstance(key, CrossedColumn) else [key])
        return leaves

    def transform_feature(
        self, transformation_cache: FeatureTransformationCache, state_manager: StateManager | None
    ) -> Any:
        inputs = []
        for key in self._leaves():
            if isinstance(key, str):
                inputs.append(transformation_cache.get(key, state_manager))
                continue
            pair = key.get_sparse_tensors(transformation_cache, state_manager)
            if pair.weight_tensor is not None:
                raise ValueError(
                    "crossed_column does not support weight_tensor, but the given column "
                    f"populates weight_tensor. Given column: {key.name}"
                )
            inputs.append(pair.id_tensor)
        return sparse_cross_hashed(inputs, self.hash_bucket_size, self.hash_key)


class _SequenceFields(NamedTuple):
    categorical_column: CategoricalColumn


class SequenceCategoricalColumn(CategoricalColumn, _SequenceFields):
    """Ids whose order counts: the second dimension is the step."""

    @property
    def name(self) -> str:
        return self.categorical_column.name

    @property
    def parents(self) -> list[Any]:
        return [self.categorical_column]

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.categorical_column.parse_example_spec

    @property
    def num_buckets(self) -> int:
        return self.categorical_column.num_buckets

    def transform_feature(
        self, transformation_cache: FeatureTransformationCache, state_manager: StateManager | None
    ) -> Any:
        return self.categorical_column.transform_feature(transformation_cache, state_manager)

    def get_sparse_tensors(
        self, transformation_cache: FeatureTransformationCache, state_manager: StateManager | None
    ) -> IdsAndWeights:
        ids, weights = self.categorical_column.get_sparse_tensors(
            transformation_cache, state_manager
        )
        full = shape(ids)
        # Entries of one step count as one more dimension, also where there is only one.
        target = stack([full[0], full[1], reduce_prod(full[2:])])
        if weights is not None:
            weights = sparse_reshape(weights, target)
        return IdsAndWeights(sparse_reshape(ids, target), weights)
