"""`tf.RaggedTensorSpec`: what is known of a ragged tensor, and how datasets carry one."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.typespec import (
    BatchableTypeSpec,
    TensorSpec,
    register_type_spec_from_value_converter,
)
from opdock.graph.nodes.typespec_names import register
from opdock.ops.composed.ragged_tensor import RaggedTensor
from opdock.ops.composed.ragged_value import RaggedTensorValue
from opdock.ops.ragged import from_variant_op
from opdock.shapes import TensorShape

__all__: list[str] = []


@register("tf.RaggedTensorSpec")
class RaggedTensorSpec(BatchableTypeSpec):
    """What is known of a `tf.RaggedTensor`.

    Args:
        shape: its shape, None for ragged dimensions; None for any.
        dtype: the type of the values.
        ragged_rank: the number of ragged dimensions; all but the last one by default.
        row_splits_dtype: int32 or int64.

    Raises:
        ValueError: neither says how many dimensions are ragged, or there are too many.
        TypeError: `ragged_rank` is no integer.
    """

    __slots__ = ("_dtype", "_ragged_rank", "_row_splits_dtype", "_shape")

    def __init__(
        self, shape: Any = None, dtype: Any = dtypes.float32, ragged_rank: int | None = None,
        row_splits_dtype: Any = dtypes.int64,
    ) -> None:  # fmt: skip
        self._shape = TensorShape(shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._row_splits_dtype = dtypes.as_dtype(row_splits_dtype)
        rank = self._shape.ndims
        if ragged_rank is None:
            if rank is None:
                raise ValueError("Must specify ragged_rank or a shape with a known rank.")
            ragged_rank = rank - 1
        if not isinstance(ragged_rank, int):
            raise TypeError("ragged_rank must be an int")
        if rank is not None and ragged_rank >= rank:
            raise ValueError("ragged_rank must be less than rank.")
        self._ragged_rank = ragged_rank

    @classmethod
    def from_value(cls, value: Any) -> RaggedTensorSpec:
        """The spec of a RaggedTensor or a RaggedTensorValue."""
        splits = dtypes.as_dtype(value.row_splits.dtype)
        return cls(value.shape, dtypes.as_dtype(value.dtype), value.ragged_rank, splits)

    @property
    def value_type(self) -> type:
        """`tf.RaggedTensor`; `tf.Tensor` where no dimension is ragged."""
        return RaggedTensor if self._ragged_rank > 0 else Tensor

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype, self._ragged_rank, self._row_splits_dtype

    @property
    def _component_specs(self) -> list[TensorSpec]:
        if not self._ragged_rank:
            return [TensorSpec(self._shape, self._dtype)]
        rows = None if self._shape.ndims is None else self._shape.as_list()[0]
        splits = [None if rows is None else rows + 1, *[None] * (self._ragged_rank - 1)]
        return [
            TensorSpec(self._flat_shape(), self._dtype),
            *(TensorSpec([n], self._row_splits_dtype) for n in splits),
        ]

    def _flat_shape(self) -> TensorShape:
        return TensorShape([None]).concatenate(self._shape[self._ragged_rank + 1 :])

    def _to_components(self, value: Any) -> list[Any]:
        if isinstance(value, (RaggedTensor, RaggedTensorValue)):
            return [value.flat_values, *value.nested_row_splits]
        return [value]

    def _from_components(self, components: Any) -> Any:
        found, *splits = components
        of_arrays = all(isinstance(c, np.ndarray) for c in components)
        for part in reversed(splits):
            if of_arrays:
                found = RaggedTensorValue(found, part)
            else:
                found = RaggedTensor.from_row_splits(found, part, validate=False)
        return found

    # As an element of a dataset a ragged tensor is one variant, and a batch of them is a vector of
    # variants, one for each row.
    @property
    def _flat_tensor_specs(self) -> list[Any]:
        return [TensorSpec(None, dtypes.variant)]

    def _to_tensor_list(self, value: Any) -> list[Tensor]:
        return [self._boxed(value, batched=False)]

    def _to_batched_tensor_list(self, value: Any) -> list[Tensor]:
        return [self._boxed(value, batched=True)]

    def _boxed(self, value: Any, batched: bool) -> Tensor:
        if isinstance(value, RaggedTensorValue):
            value = tensor_of(value)
        found: Tensor = value._to_variant(batched_input=batched)
        return found

    def _from_compatible_tensor_list(self, tensor_list: list[Tensor]) -> Any:
        if self._ragged_rank <= 0:
            raise ValueError(f"ragged_rank must be non-negative; got {self._ragged_rank}.")
        splits, values = from_variant_op(
            tensor_list[0], input_ragged_rank=-1, output_ragged_rank=self._ragged_rank,
            Tvalues=self._dtype, Tsplits=self._row_splits_dtype,
        )  # fmt: skip
        if self._shape.ndims is not None:
            values.set_shape(self._flat_shape())
            rows = self._shape.as_list()[0]
            splits[0].set_shape([None if rows is None else rows + 1])
        return self._from_components([values, *splits])

    def _batch(self, batch_size: int | None) -> RaggedTensorSpec:
        shape = TensorShape([batch_size]).concatenate(self._shape)
        return RaggedTensorSpec(shape, self._dtype, self._ragged_rank + 1, self._row_splits_dtype)

    def _unbatch(self) -> RaggedTensorSpec:
        # What is no ragged tensor any more may be batched again: who takes it says whether it is.
        return RaggedTensorSpec(
            self._shape[1:], self._dtype, self._ragged_rank - 1, self._row_splits_dtype
        )

    def _to_legacy_output_types(self) -> DType:
        return self._dtype

    def _to_legacy_output_shapes(self) -> TensorShape:
        return self._shape

    def _to_legacy_output_classes(self) -> Any:
        return self


def tensor_of(value: RaggedTensorValue) -> RaggedTensor:
    """A constant ragged tensor."""
    found: Any = constant(value.flat_values)
    for splits in reversed(value.nested_row_splits):
        found = RaggedTensor.from_row_splits(found, constant(splits), validate=False)
    made: RaggedTensor = found
    return made


RaggedTensor._type_spec = property(RaggedTensorSpec.from_value)  # type: ignore[assignment]
for _type in (RaggedTensor, RaggedTensorValue):
    register_type_spec_from_value_converter(_type, RaggedTensorSpec.from_value)
