"""Columns of numbers, and the buckets that they fall into."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

from opdock import dtypes
from opdock.contrib.layers.feature_column.base import (
    FeatureColumn,
    Get,
    IdColumn,
    VectorColumn,
    reshape_dense,
    with_values,
)
from opdock.dtypes import DType
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.registry import get as op
from opdock.ops.array import expand_dims, reshape, shape
from opdock.ops.cast import cast
from opdock.ops.composed.example_features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    VarLenFeature,
)
from opdock.ops.fill import range as range_
from opdock.ops.fill import zeros
from opdock.ops.joining import stack
from opdock.ops.select import one_hot
from opdock.ops.tiling import tile
from opdock.shapes import TensorShape

Normalizer = Callable[[Any], Any]


class _Numbers(FeatureColumn):
    """A column of a feature's numbers."""

    column_name: str
    normalizer: Normalizer | None

    @property
    def name(self) -> str:
        return self.column_name

    @property
    def key(self) -> str:
        return self._key_without("normalizer")

    @property
    def normalizer_fn(self) -> Normalizer | None:
        """What numbers go through."""
        return self.normalizer

    def transformed(self, get: Get) -> Any:
        tensor = get(self.name)
        return cast(tensor if self.normalizer is None else self._normal(tensor), dtypes.float32)

    def _normal(self, tensor: Any) -> Any:
        assert self.normalizer is not None
        return self.normalizer(tensor)

    def for_network(self, made: Any, output_rank: int) -> Tensor:
        numbers = cast(self._to_dense_tensor(made), dtypes.float32)
        return reshape_dense(numbers, output_rank, self.name)

    def _to_dense_tensor(self, input_tensor: Any) -> Tensor:
        dense: Tensor = input_tensor
        return dense


class _VarLenFields(NamedTuple):
    column_name: str
    default_value: Any
    dtype: DType
    normalizer: Normalizer | None
    is_sparse: bool


class RealValuedVarLenColumn(_Numbers, _VarLenFields):
    """Any number of numbers an example; see `real_valued_var_len_column`."""

    @property
    def config(self) -> dict[str, Any]:
        if self.is_sparse:
            return {self.column_name: VarLenFeature(self.dtype)}
        return {
            self.column_name: FixedLenSequenceFeature(
                [], self.dtype, allow_missing=True, default_value=self.default_value
            )
        }

    def _normal(self, tensor: Any) -> Any:
        if not self.is_sparse:
            return super()._normal(tensor)
        return with_values(tensor, super()._normal(tensor.values))

    def _to_dense_tensor(self, input_tensor: Any) -> Tensor:
        if self.is_sparse:
            raise ValueError(
                f"Set is_sparse to False if you want a dense Tensor for column_name: {self.name}"
            )
        return super()._to_dense_tensor(input_tensor)


def real_valued_var_len_column(
    column_name: str,
    default_value: Any = None,
    dtype: Any = dtypes.float32,
    normalizer: Normalizer | None = None,
    is_sparse: bool = False,
) -> RealValuedVarLenColumn:
    """A column of numbers, as many as an example has.

    Args:
        column_name: the feature's key.
        default_value: what fills the shorter examples of a batch.
        dtype: the feature's type, a number.
        normalizer: a function that the numbers go through.
        is_sparse: whether the feature is read as a SparseTensor.

    Raises:
        TypeError: the type is no number.
        ValueError: the default is missing, or no scalar.
    """
    dtype = dtypes.as_dtype(dtype)
    if not (dtype.is_integer or dtype.is_floating):
        raise TypeError(
            f"dtype must be convertible to float. dtype: {dtype}, column_name: {column_name}"
        )
    if default_value is None and not is_sparse:
        raise ValueError(
            "default_value must be provided when is_sparse=False to parse a padded Tensor. "
            f"column_name: {column_name}"
        )
    if isinstance(default_value, list):
        raise ValueError(
            f"Only scalar default value. default_value: {default_value}, column_name: {column_name}"
        )
    if default_value is not None:
        default_value = int(default_value) if dtype.is_integer else float(default_value)
    return RealValuedVarLenColumn(column_name, default_value, dtype, normalizer, is_sparse)


class _RealValuedFields(NamedTuple):
    column_name: str
    dimension: int
    default_value: tuple[Any, ...] | None
    dtype: DType
    normalizer: Normalizer | None


class RealValuedColumn(_Numbers, VectorColumn, _RealValuedFields):
    """A vector of numbers; see `real_valued_column`."""

    @property
    def config(self) -> dict[str, Any]:
        default = None if self.default_value is None else list(self.default_value)
        return {self.column_name: FixedLenFeature([self.dimension], self.dtype, default)}

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([self.dimension])

    def vectors(self, made: Any) -> Tensor:
        return self._to_dense_tensor(made)


def real_valued_column(
    column_name: str,
    dimension: int = 1,
    default_value: Any = None,
    dtype: Any = dtypes.float32,
    normalizer: Normalizer | None = None,
) -> RealValuedColumn:
    """A column of a vector of numbers.

    Args:
        column_name: the feature's key.
        dimension: the length of the vector.
        default_value: what an example without the feature has: a number, or a list of them.
        dtype: the feature's type, a number.
        normalizer: a function that the numbers go through.

    Raises:
        TypeError: the dimension is no integer, or the default does not fit the type.
        ValueError: the dimension is not positive, the type is no number, or the default has
            another length.
    """
    dtype = dtypes.as_dtype(dtype)
    told = f"dimension: {dimension}, column_name: {column_name}"
    if dimension is None:
        raise TypeError(
            "dimension must be an integer. Use the _real_valued_var_len_column for variable length "
            f"features. {told}"
        )
    if not isinstance(dimension, int):
        raise TypeError(f"dimension must be an integer. {told}")
    if dimension < 1:
        raise ValueError(f"dimension must be greater than 0. {told}")
    if not (dtype.is_integer or dtype.is_floating):
        raise ValueError(
            f"dtype must be convertible to float. dtype: {dtype}, column_name: {column_name}"
        )
    if default_value is not None:
        default_value = _defaults(default_value, dimension, dtype, column_name)
    return RealValuedColumn(column_name, dimension, default_value, dtype, normalizer)


def _defaults(given: Any, dimension: int, dtype: DType, column_name: str) -> tuple[Any, ...]:
    values = given if isinstance(given, list) else [given] * dimension
    if len(values) != dimension:
        raise ValueError(
            "The length of default_value must be equal to dimension. "
            f"default_value: {given}, dimension: {dimension}, column_name: {column_name}"
        )
    if all(isinstance(v, int) for v in values) and dtype.is_integer:
        return tuple(values)
    if all(isinstance(v, (int, float)) for v in values) and dtype.is_floating:
        return tuple(float(v) for v in values)
    raise TypeError(
        "default_value must be compatible with dtype. "
        f"default_value: {given}, dtype: {dtype}, column_name: {column_name}"
    )


class _BucketizedFields(NamedTuple):
    source_column: RealValuedColumn
    boundaries: tuple[Any, ...]


class BucketizedColumn(VectorColumn, IdColumn, _BucketizedFields):
    """The buckets that numbers fall into; see `bucketized_column`."""

    @property
    def name(self) -> str:
        return f"{self.source_column.name}_bucketized"

    @property
    def length(self) -> int:
        """The number of buckets of one number."""
        return len(self.boundaries) + 1

    @property
    def config(self) -> dict[str, Any]:
        return self.source_column.config

    @property
    def num_buckets(self) -> int:
        return self.length * self.source_column.dimension

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([self.num_buckets])

    def transformed(self, get: Get) -> Tensor:
        numbers = get(self.source_column)
        buckets: Tensor = op("Bucketize")(
            numbers, boundaries=list(self.boundaries), name="bucketize"
        )
        return buckets

    def for_network(self, made: Any, output_rank: int) -> Tensor:
        if output_rank != 2:
            raise ValueError("BucketizedColumn currently only supports output_rank=2")
        hot = one_hot(cast(made, dtypes.int64), self.length, 1.0, 0.0, name="one_hot")
        return reshape(hot, [-1, self.num_buckets], name="reshape")

    def to_sparse_tensor(self, input_tensor: Any) -> SparseTensor:
        """The buckets as ids; each number of the vector has its own."""
        width = self.source_column.dimension
        batch = shape(input_tensor, name="shape")[0]
        ids = reshape(input_tensor, [-1], name="reshape")
        lines = range_(0, batch)
        if width > 1:
            lines = reshape(tile(expand_dims(lines, 1), [1, width]), [-1])
            places = tile(range_(0, width), expand_dims(batch, 0))
            ids = ids + self.length * places
        else:
            places = zeros(expand_dims(batch, 0), dtypes.int32)
        indices = cast(stack([lines, places], axis=1), dtypes.int64)
        return SparseTensor(indices, ids, cast(stack([batch, width]), dtypes.int64))

    def id_tensor(self, input_tensor: Any) -> SparseTensor:
        return self.to_sparse_tensor(input_tensor)


def bucketized_column(source_column: Any, boundaries: Any) -> BucketizedColumn:
    """A column of the buckets between boundaries that numbers fall into.

    Args:
        source_column: a `real_valued_column`.
        boundaries: a sorted list or tuple of numbers; what is there twice counts once.

    Raises:
        TypeError: the source is another column.
        ValueError: there are no boundaries, or they are not sorted.
    """
    if not isinstance(source_column, RealValuedColumn):
        raise TypeError(
            "source_column must be an instance of _RealValuedColumn. "
            f"source_column: {source_column}"
        )
    if not isinstance(boundaries, (list, tuple)) or not boundaries:
        raise ValueError(f"boundaries must be a non-empty list or tuple. boundaries: {boundaries}")
    if any(a > b for a, b in itertools.pairwise(boundaries)):
        raise ValueError(f"boundaries must be a sorted list. boundaries: {boundaries}")
    return BucketizedColumn(source_column, tuple(dict.fromkeys(boundaries)))
