"""`IndexedSlicesSpec` and `SparseTensorSpec`: the specs of values made of several tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.nodes.composite import (
    IndexedSlices,
    IndexedSlicesValue,
    SparseTensor,
    SparseTensorValue,
)
from opdock.graph.nodes.constant_value import known_shape
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.typespec import (
    BatchableTypeSpec,
    TensorSpec,
    TypeSpec,
)
from opdock.graph.nodes.typespec_names import register
from opdock.shapes import TensorShape


class IndexedSlicesSpec(TypeSpec):
    """What is known of a `tf.IndexedSlices`.

    Args:
        shape: the dense shape.
        dtype: the type of the values.
        indices_dtype: int32 or int64.
        dense_shape_dtype: int32 or int64; None where there is no `dense_shape`.
        indices_shape: the shape of the indices, [number of slices].
    """

    __slots__ = ("_dense_shape_dtype", "_indices_dtype", "_indices_shape", "_shape",
                 "_values_dtype")  # fmt: skip

    def __init__(
        self, shape: Any = None, dtype: Any = dtypes.float32, indices_dtype: Any = dtypes.int64,
        dense_shape_dtype: Any = None, indices_shape: Any = None,
    ) -> None:  # fmt: skip
        self._shape = TensorShape(shape)
        self._values_dtype = dtypes.as_dtype(dtype)
        self._indices_dtype = dtypes.as_dtype(indices_dtype)
        self._dense_shape_dtype: DType | None = None
        if dense_shape_dtype is not None:
            self._dense_shape_dtype = dtypes.as_dtype(dense_shape_dtype)
        self._indices_shape = TensorShape(indices_shape).with_rank(1)

    @property
    def value_type(self) -> type:
        """`tf.IndexedSlices`."""
        return IndexedSlices

    def _serialize(self) -> tuple[Any, ...]:
        return (
            self._shape, self._values_dtype, self._indices_dtype, self._dense_shape_dtype,
            self._indices_shape,
        )  # fmt: skip

    @property
    def _component_specs(self) -> tuple[TensorSpec, ...]:
        values = TensorSpec(self._indices_shape.concatenate(self._shape[1:]), self._values_dtype)
        indices = TensorSpec(self._indices_shape, self._indices_dtype)
        if self._dense_shape_dtype is None:
            return values, indices
        return values, indices, TensorSpec([self._shape.ndims], self._dense_shape_dtype)

    def _to_components(self, value: Any) -> tuple[Any, ...]:
        parts = value.values, value.indices
        return parts if value.dense_shape is None else (*parts, value.dense_shape)

    def _from_components(self, components: Any) -> Any:
        values, indices, *dense_shape = components
        of_arrays = all(isinstance(c, np.ndarray) for c in components)
        made: type[Any] = IndexedSlicesValue if of_arrays else IndexedSlices
        return made(values, indices, dense_shape[0] if dense_shape else None)


@register("tf.SparseTensorSpec")
class SparseTensorSpec(BatchableTypeSpec):
    """What is known of a `tf.SparseTensor`.

    Args:
        shape: the dense shape.
        dtype: the type of the values.
    """

    __slots__ = ("_dtype", "_shape")

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32) -> None:
        self._shape = TensorShape(shape)
        self._dtype = dtypes.as_dtype(dtype)

    @classmethod
    def from_value(cls, value: Any) -> SparseTensorSpec:
        """The spec of a SparseTensor or a SparseTensorValue; TypeError for anything else."""
        if isinstance(value, SparseTensor):
            return cls(value.shape, value.dtype)
        if not isinstance(value, SparseTensorValue):
            raise TypeError("Expected SparseTensor or SparseTensorValue")
        if isinstance(value.values, np.ndarray):
            return cls(value.dense_shape, value.values.dtype)
        return cls.from_value(SparseTensor.from_value(value))

    @property
    def value_type(self) -> type:
        """`tf.SparseTensor`."""
        return SparseTensor

    @property
    def dtype(self) -> DType:
        """The type of the values."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """The dense shape."""
        return self._shape

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype

    @property
    def _component_specs(self) -> list[TensorSpec]:
        rank = self._shape.ndims
        return [
            TensorSpec([None, rank], dtypes.int64),
            TensorSpec([None], self._dtype),
            TensorSpec([rank], dtypes.int64),
        ]

    def _to_components(self, value: Any) -> list[Any]:
        if isinstance(value, SparseTensorValue):
            value = SparseTensor.from_value(value)
        return [value.indices, value.values, value.dense_shape]

    def _from_components(self, components: Any) -> Any:
        of_arrays = all(isinstance(c, np.ndarray) for c in components)
        made: type[Any] = SparseTensorValue if of_arrays else SparseTensor
        return made(*components)

    # As an element of a dataset a sparse tensor is one tensor of three variants, and a batch of
    # them is one of such rows, so that it can be stacked and taken apart.
    @property
    def _flat_tensor_specs(self) -> list[Any]:
        return [TensorSpec(None, dtypes.variant)]

    def _to_tensor_list(self, value: Any) -> list[Tensor]:
        return [self._serialized(value, "SerializeSparse")]

    def _to_batched_tensor_list(self, value: Any) -> list[Tensor]:
        dense_shape = known_shape(SparseTensor.from_value(value).dense_shape)
        if self._shape.merge_with(dense_shape).ndims == 0:
            raise ValueError("Unbatching a sparse tensor is only supported for rank >= 1")
        return [self._serialized(value, "SerializeManySparse")]

    def _serialized(self, value: Any, op: str) -> Tensor:
        parts = self._to_components(SparseTensor.from_value(value))
        found: Tensor = get(op)(*parts, out_type=dtypes.variant)
        return found

    def _from_compatible_tensor_list(self, tensor_list: list[Tensor]) -> SparseTensor:
        parts = get("DeserializeSparse")(tensor_list[0], dtype=self._dtype)
        result = SparseTensor(*parts)
        rank = self._shape.ndims
        result.indices.set_shape([None, rank])
        result.dense_shape.set_shape([rank])
        result._promise(self._shape.raw)
        return result

    def _batch(self, batch_size: int | None) -> SparseTensorSpec:
        return SparseTensorSpec(TensorShape([batch_size]).concatenate(self._shape), self._dtype)

    def _unbatch(self) -> SparseTensorSpec:
        if self._shape.ndims == 0:
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        return SparseTensorSpec(self._shape[1:], self._dtype)

    def _to_legacy_output_types(self) -> DType:
        return self._dtype

    def _to_legacy_output_shapes(self) -> TensorShape:
        return self._shape


def spec_of_slices(value: IndexedSlices) -> IndexedSlicesSpec:
    """The spec of slices that a graph has."""
    rows = value.values.shape[1:]
    shape, kind = TensorShape([None]).concatenate(rows), None
    if value.dense_shape is not None:
        shape, kind = shape.merge_with(known_shape(value.dense_shape)), value.dense_shape.dtype
    indices_shape = value.values.shape[:1].merge_with(value.indices.shape[:1])
    return IndexedSlicesSpec(shape, value.dtype, value.indices.dtype, kind, indices_shape)


__all__ = ["IndexedSlicesSpec", "SparseTensorSpec", "spec_of_slices"]
