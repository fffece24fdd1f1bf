"""`DatasetSpec`: what is known of a dataset that is an element, an argument or a result."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.typespec import BatchableTypeSpec, TensorSpec
from opdock.shapes import TensorShape

__all__ = ["DatasetSpec"]


class DatasetSpec(BatchableTypeSpec):
    """What is known of a dataset.

    Args:
        element_spec: the structure of specs of its elements.
        dataset_shape: the shape of a tensor of such datasets; a scalar for one.
    """

    __slots__ = ("_dataset_shape", "_element_spec")

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        self._element_spec = element_spec
        self._dataset_shape = TensorShape(dataset_shape)

    @property
    def value_type(self) -> type:
        """The class of values: variants that are datasets."""
        # Datasets say their specs, and specs make datasets.
        from opdock.data.dataset import VariantDataset

        return VariantDataset

    def _serialize(self) -> tuple[Any, ...]:
        return self._element_spec, self._dataset_shape

    @property
    def _component_specs(self) -> TensorSpec:
        return TensorSpec(self._dataset_shape, dtypes.variant)

    def _to_components(self, value: Any) -> Tensor:
        found: Tensor = value._variant_tensor
        return found

    def _from_components(self, components: Any) -> Any:
        from opdock.data.dataset import NestedVariant, VariantDataset

        if self._dataset_shape.ndims == 0:
            return VariantDataset(components, self._element_spec)
        return NestedVariant(components, self._element_spec, self._dataset_shape)

    def _to_tensor_list(self, value: Any) -> list[Tensor]:
        return [value._variant_tensor]

    @staticmethod
    def from_value(value: Any) -> DatasetSpec:
        """The spec of a dataset."""
        return DatasetSpec(value.element_spec)

    def _batch(self, batch_size: int | None) -> DatasetSpec:
        shape = TensorShape([batch_size]).concatenate(self._dataset_shape)
        return DatasetSpec(self._element_spec, shape)

    def _unbatch(self) -> DatasetSpec:
        if self._dataset_shape.ndims == 0:
            raise ValueError("Unbatching a dataset is only supported for rank >= 1")
        return DatasetSpec(self._element_spec, self._dataset_shape[1:])

    def _to_batched_tensor_list(self, value: Any) -> list[Tensor]:
        if self._dataset_shape.ndims == 0:
            raise ValueError("Unbatching a dataset is only supported for rank >= 1")
        return self._to_tensor_list(value)

    def _to_legacy_output_types(self) -> Any:
        return self

    def _to_legacy_output_shapes(self) -> Any:
        return self

    def _to_legacy_output_classes(self) -> Any:
        return self
