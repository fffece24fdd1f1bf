"""`tf.TensorArraySpec`: tensor arrays as elements of datasets and as arguments of functions.

What passes through a graph is a list of the elements: an array belongs to one step.
"""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.typespec import (
    TensorSpec,
    TypeSpec,
    type_spec_from_value,
)
from opdock.ops.composed.tensor_array import Elements, ListArray, TensorArray, list_of_array
from opdock.shapes import TensorShape, as_tensor_shape

__all__ = ["TensorArraySpec"]


class TensorArraySpec(TypeSpec):
    """What is known of a tensor array.

    Args:
        element_shape: the shape of its elements.
        dtype: their type.
        dynamic_size: whether it may grow, if that is known.
        infer_shape: whether its elements have equal shapes, if that is known.
    """

    __slots__ = ("_dtype", "_dynamic_size", "_element_shape", "_infer_shape")

    def __init__(
        self, element_shape: Any = None, dtype: Any = dtypes.float32,
        dynamic_size: bool | None = False, infer_shape: bool | None = True,
    ) -> None:  # fmt: skip
        self._element_shape = as_tensor_shape(element_shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._dynamic_size, self._infer_shape = dynamic_size, infer_shape

    @property
    def value_type(self) -> type:
        """`tf.TensorArray`."""
        return TensorArray

    @staticmethod
    def from_value(value: Any) -> TensorArraySpec:
        """The spec of an array.

        Raises:
            TypeError: the value is none.
        """
        if not isinstance(value, TensorArray):
            raise TypeError(f"Expected value to be a TensorArray, but saw: {type(value)}")
        return TensorArraySpec(
            value.element_shape, value.dtype, value.dynamic_size, value._elements.infer
        )

    @staticmethod
    def _of_legacy(dtype: Any, shape: Any) -> TensorArraySpec:
        """The spec of a type and of what `_to_legacy_output_shapes` gives."""
        dynamic_size, infer_shape, *_ = as_tensor_shape(shape).as_list()
        known: Any = [None if flag is None else bool(flag) for flag in (dynamic_size, infer_shape)]
        return TensorArraySpec(shape[2:], dtype, *known)

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether some array fits both; whether shapes are inferred makes no difference."""
        other = spec_or_value
        if not isinstance(other, TypeSpec):
            other = type_spec_from_value(other)
        return (
            isinstance(other, TensorArraySpec)
            and self._dtype.is_compatible_with(other._dtype)
            and self._element_shape.is_compatible_with(other._element_shape)
            and self._dynamic_size == other._dynamic_size
        )

    def most_specific_compatible_type(self, other: TypeSpec) -> TensorArraySpec:
        """What this spec and another one have in common.

        Raises:
            ValueError: nothing.
        """
        if not isinstance(other, TensorArraySpec) or not self.is_compatible_with(other):
            raise ValueError("Types are not compatible")
        return TensorArraySpec(
            self._element_shape.most_specific_compatible_shape(other._element_shape),
            self._dtype, self._dynamic_size, self._infer_shape and other._infer_shape,
        )  # fmt: skip

    def _serialize(self) -> tuple[Any, ...]:
        return self._element_shape, self._dtype, self._dynamic_size, self._infer_shape

    @property
    def _component_specs(self) -> list[TensorSpec]:
        return [TensorSpec([], dtypes.variant)]

    def _to_components(self, value: Any) -> list[Tensor]:
        if not isinstance(value, TensorArray):
            raise TypeError(f"value must be a TensorArray, but saw: {type(value)}")
        return [list_of_array(value)]

    def _from_components(self, components: Any) -> TensorArray:
        shape = self._element_shape.raw
        elements = Elements(shape, shape is not None, bool(self._infer_shape))
        return ListArray(components[0], self._dtype, elements, bool(self._dynamic_size))

    def _to_legacy_output_types(self) -> DType:
        return self._dtype

    def _to_legacy_output_shapes(self) -> TensorShape:
        # What no shape says goes before it.
        known = (self._dynamic_size, self._infer_shape)
        flags = TensorShape([None if flag is None else int(flag) for flag in known])
        return flags.concatenate(self._element_shape)

    def _to_legacy_output_classes(self) -> type:
        return TensorArray
