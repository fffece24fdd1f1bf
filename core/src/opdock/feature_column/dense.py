"""Columns of numbers: numeric, and numeric cut into buckets."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

from opdock import dtypes
from opdock.dtypes import DType
from opdock.feature_column.base import (
    CategoricalColumn,
    DenseColumn,
    FeatureTransformationCache,
    IdsAndWeights,
    StateManager,
    check_key,
)
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.registry import get
from opdock.ops.array import expand_dims, reshape, shape
from opdock.ops.cast import cast
from opdock.ops.composed.example_features import FixedLenFeature
from opdock.ops.fill import range as range_of
from opdock.ops.joining import stack
from opdock.ops.select import one_hot
from opdock.ops.tiling import tile
from opdock.shapes import TensorShape
from opdock.util import nest


class _NumericFields(NamedTuple):
    key: str
    shape: tuple[int, ...]
    default_value: Any
    dtype: DType
    normalizer_fn: Callable[[Any], Any] | None


class NumericColumn(DenseColumn, _NumericFields):
    """Numbers as they are; see `numeric_column`."""

    @property
    def name(self) -> str:
        return self.key

    @property
    def parents(self) -> list[Any]:
        return [self.key]

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: FixedLenFeature(self.shape, self.dtype, self.default_value)}

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape(self.shape)

    def transform_feature(
        self, transformation_cache: FeatureTransformationCache, state_manager: StateManager | None
    ) -> Tensor:
        tensor = transformation_cache.get(self.key, state_manager)
        if isinstance(tensor, SparseTensor):
            raise ValueError(
                "The corresponding Tensor of numerical column must be a Tensor. SparseTensor is "
                f"not supported. key: {self.key}"
            )
        if self.normalizer_fn is not None:
            tensor = self.normalizer_fn(tensor)
        numbers: Tensor = cast(tensor, dtypes.float32)
        return numbers

    def get_dense_tensor(
        self, transformation_cache: FeatureTransformationCache, state_manager: StateManager | None
    ) -> Tensor:
        numbers: Tensor = transformation_cache.get(self, state_manager)
        return numbers


class _BucketizedFields(NamedTuple):
    source_column: NumericColumn
    boundaries: tuple[float, ...]


class BucketizedColumn(DenseColumn, CategoricalColumn, _BucketizedFields):
    """The number of the bucket that a number falls into; see `bucketized_column`."""

    @property
    def name(self) -> str:
        return f"{self.source_column.name}_bucketized"

    @property
    def parents(self) -> list[Any]:
        return [self.source_column]

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.source_column.parse_example_spec

    @property
    def _buckets(self) -> int:
        return len(self.boundaries) + 1

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape((*self.source_column.shape, self._buckets))

    @property
    def num_buckets(self) -> int:
        return self._buckets * self.source_column.shape[0]

    def transform_feature(
        self, transformation_cache: FeatureTransformationCache, state_manager: StateManager | None
    ) -> Tensor:
        source = transformation_cache.get(self.source_column, state_manager)
        buckets: Tensor = get("Bucketize")(source, boundaries=list(self.boundaries))
        return buckets

    def get_dense_tensor(
        self, transformation_cache: FeatureTransformationCache, state_manager: StateManager | None
    ) -> Tensor:
        buckets = cast(transformation_cache.get(self, state_manager), dtypes.int64)
        return one_hot(buckets, depth=self._buckets, on_value=1.0, off_value=0.0)

    def get_sparse_tensors(
        self, transformation_cache: FeatureTransformationCache, state_manager: StateManager | None
    ) -> IdsAndWeights:
        buckets = transformation_cache.get(self, state_manager)
        batch, width = shape(buckets)[0], self.source_column.shape[0]
        lines = reshape(tile(expand_dims(range_of(0, batch), 1), [1, width]), (-1,))
        places = tile(range_of(0, width), expand_dims(batch, 0))
        ids = reshape(buckets, (-1,)) + self._buckets * places
        indices = cast(stack([lines, places], axis=1), dtypes.int64)
        full = cast(stack([batch, width]), dtypes.int64)
        return IdsAndWeights(SparseTensor(indices, ids, full), None)


def numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: Any = None,
    dtype: Any = dtypes.float32,
    normalizer_fn: Callable[[Any], Any] | None = None,
) -> NumericColumn:
    """Real numbers.

    Args:
        key: the feature's key.
        shape: the feature's shape without the batch: a dimension or several.
        default_value: for examples without the feature: a number, or an array of `shape`.
        dtype: the feature's type; the column gives float32.
        normalizer_fn: applied to the tensor, before it becomes float32.

    Raises:
        ValueError: the type is no number, a dimension or the default's shape does not fit.
        TypeError: the default's type does not fit, or the normalizer cannot be called.
    """
    dimensions = checked_shape(shape, key)
    checked_number(dtype, normalizer_fn, key)
    default_value = _checked_default(dimensions, default_value, dtype, key)
    check_key(key)
    return NumericColumn(key, dimensions, default_value, dtype, normalizer_fn)


def bucketized_column(source_column: Any, boundaries: Any) -> BucketizedColumn:
    """Numbers cut at `boundaries`: bucket i holds boundaries[i - 1] <= x < boundaries[i].

    Args:
        source_column: a numeric column of one dimension.
        boundaries: a list or tuple that increases strictly.

    Raises:
        ValueError: the source or the boundaries do not fit.
    """
    if not isinstance(source_column, NumericColumn):
        raise ValueError(
            "source_column must be a column generated with numeric_column(). "
            f"Given: {source_column}"
        )
    if len(source_column.shape) > 1:
        raise ValueError(f"source_column must be one-dimensional column. Given: {source_column}")
    if not boundaries:
        raise ValueError("boundaries must not be empty.")
    rising = isinstance(boundaries, list | tuple) and all(
        low < high for low, high in itertools.pairwise(boundaries)
    )
    if not rising:
        raise ValueError("boundaries must be a sorted list.")
    return BucketizedColumn(source_column, tuple(boundaries))


def checked_number(dtype: DType, normalizer_fn: Any, key: str) -> None:
    """Raises ValueError unless a type is a number, TypeError unless a normalizer can be called."""
    if not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"dtype must be convertible to float. dtype: {dtype}, key: {key}")
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise TypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn}")


def checked_shape(shape: Any, key: str) -> tuple[int, ...]:
    """A shape of positive integers, from a dimension or several."""
    dimensions = tuple(shape) if nest.is_sequence(shape) else (shape,)
    for dimension in dimensions:
        if not isinstance(dimension, int):
            raise TypeError(f"shape dimensions must be integer. shape: {dimensions}, key: {key}")
        if dimension < 1:
            raise ValueError(
                f"shape dimensions must be greater than 0. shape: {dimensions}, key: {key}"
            )
    return dimensions


def _checked_default(shape: tuple[int, ...], value: Any, dtype: DType, key: str) -> Any:
    """The default as nested tuples of `shape`, or None."""
    if value is None:
        return None
    if callable(getattr(value, "tolist", None)):
        value = value.tolist()
    listed = nest.is_sequence(value)
    if listed and not _has_shape(value, shape):
        raise ValueError(
            "The shape of default_value must be equal to given shape. "
            f"default_value: {value}, shape: {shape}, key: {key}"
        )
    flat = nest.flatten(value)
    whole = all(isinstance(v, int) for v in flat)
    real = any(isinstance(v, float) for v in flat) and dtype.is_floating
    if not (whole or real):
        raise TypeError(
            "default_value must be compatible with dtype. "
            f"default_value: {value}, dtype: {dtype}, key: {key}"
        )
    return _as_tuples(value) if listed else _filled(shape, value)


def _has_shape(value: Any, shape: tuple[int, ...]) -> bool:
    if not shape or not nest.is_sequence(value):
        return not shape and not nest.is_sequence(value)
    return len(value) == shape[0] and all(_has_shape(v, shape[1:]) for v in value)


def _filled(shape: tuple[int, ...], value: Any) -> Any:
    return (_filled(shape[1:], value),) * shape[0] if shape else value


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if nest.is_sequence(value) else value
