"""Numbers in sequence: `sequence_numeric_column`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from opdock import dtypes
from opdock.dtypes import DType
from opdock.feature_column.base import (
    FeatureTransformationCache,
    SequenceAndLengths,
    SequenceDenseColumn,
    StateManager,
)
from opdock.feature_column.dense import checked_number, checked_shape
from opdock.feature_column.embedding import sequence_lengths
from opdock.ops.array import reshape, shape
from opdock.ops.composed.example_features import VarLenFeature
from opdock.ops.composed.sparse import sparse_tensor_to_dense
from opdock.ops.joining import concat
from opdock.shapes import TensorShape


class _Fields(NamedTuple):
    key: str
    shape: tuple[int, ...]
    default_value: Any
    dtype: DType
    normalizer_fn: Callable[[Any], Any] | None


class SequenceNumericColumn(SequenceDenseColumn, _Fields):
    """Numbers of each step; see `sequence_numeric_column`."""

    @property
    def name(self) -> str:
        return self.key

    @property
    def parents(self) -> list[Any]:
        return [self.key]

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: VarLenFeature(self.dtype)}

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape(self.shape)

    def transform_feature(
        self, transformation_cache: FeatureTransformationCache, state_manager: StateManager | None
    ) -> Any:
        tensor = transformation_cache.get(self.key, state_manager)
        return tensor if self.normalizer_fn is None else self.normalizer_fn(tensor)

    def get_sequence_dense_tensor(
        self, transformation_cache: FeatureTransformationCache, state_manager: StateManager | None
    ) -> SequenceAndLengths:
        entries = transformation_cache.get(self, state_manager)
        dense = sparse_tensor_to_dense(entries, default_value=self.default_value)
        full = concat([shape(dense)[:1], [-1], self.shape], axis=0)
        # A feature of rank 2 has all numbers of a step in its one line; of rank 3, a line a step.
        in_line = entries.shape.ndims == 2
        elements = math.prod(self.shape) if in_line else 1
        return SequenceAndLengths(reshape(dense, full), sequence_lengths(entries, elements))


def sequence_numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: float = 0.0,
    dtype: Any = dtypes.float32,
    normalizer_fn: Callable[[Any], Any] | None = None,
) -> SequenceNumericColumn:
    """Real numbers of each step of a sequence.

    Args:
        key: the feature's key.
        shape: the shape of one step.
        default_value: fills up short sequences.
        dtype: the feature's type.
        normalizer_fn: applied to the SparseTensor of the feature.

    Raises:
        ValueError: the type is no number, or a dimension is not positive.
        TypeError: a dimension is no integer, or the normalizer cannot be called.
    """
    dimensions = checked_shape(shape, key)
    checked_number(dtype, normalizer_fn, key)
    return SequenceNumericColumn(key, dimensions, default_value, dtype, normalizer_fn)
