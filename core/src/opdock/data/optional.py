"""`tf.data.experimental.Optional`: a value that may be missing when the graph runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from opdock import dtypes
from opdock.data.util import structure
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.nodes.typespec import TensorSpec, TypeSpec
from opdock.ops.data_iterators import (
    iterator_get_next_as_optional_op,
    optional_from_value_op,
    optional_get_value_op,
    optional_has_value_op,
    optional_none_op,
)

__all__ = ["Optional", "OptionalSpec", "OptionalValue", "optional_of_next"]


class Optional(ABC):
    """A value that may be missing when the graph runs."""

    @abstractmethod
    def has_value(self, name: str | None = None) -> Tensor:
        """Whether there is a value: a scalar bool."""

    @abstractmethod
    def get_value(self, name: str | None = None) -> Any:
        """The value; when it runs, InvalidArgumentError where there is none."""

    @property
    @abstractmethod
    def value_structure(self) -> Any:
        """The structure of specs of the value."""

    @staticmethod
    def from_value(value: Any) -> Optional:
        """An optional with a value, a nested structure of tensors."""
        with name_scope("optional") as scope:
            with name_scope("value"):
                spec = structure.type_spec_from_value(value)
                flat = structure.to_tensor_list(spec, value)
            return OptionalValue(optional_from_value_op(flat, name=scope), spec)

    @staticmethod
    def none_from_structure(value_structure: Any) -> Optional:
        """An optional without the value that it could have."""
        return OptionalValue(optional_none_op(), value_structure)


class OptionalValue(Optional):
    """An optional that a variant holds."""

    def __init__(self, variant_tensor: Tensor, value_structure: Any) -> None:
        self._variant_tensor = variant_tensor
        self._value_structure = value_structure

    def has_value(self, name: str | None = None) -> Tensor:
        """Whether there is a value: a scalar bool."""
        found: Tensor = optional_has_value_op(self._variant_tensor, name=name)
        return found

    def get_value(self, name: str | None = None) -> Any:
        """The value; when it runs, InvalidArgumentError where there is none."""
        with name_scope(name, "OptionalGetValue", [self._variant_tensor]) as scope:
            attrs = structure.flat_structure(self._value_structure)
            flat = optional_get_value_op(self._variant_tensor, name=scope, **attrs)
            return structure.from_tensor_list(self._value_structure, flat)

    @property
    def value_structure(self) -> Any:
        """The structure of specs of the value."""
        return self._value_structure

    @property
    def _type_spec(self) -> OptionalSpec:
        return OptionalSpec(self._value_structure)


class OptionalSpec(TypeSpec):
    """What is known of an optional.

    Args:
        value_structure: the structure of specs of the value that it may have.
    """

    __slots__ = ("_value_structure",)

    def __init__(self, value_structure: Any) -> None:
        self._value_structure = value_structure

    @property
    def value_type(self) -> type:
        """The class of optionals."""
        return OptionalValue

    def _serialize(self) -> tuple[Any, ...]:
        return (self._value_structure,)

    @property
    def _component_specs(self) -> tuple[TensorSpec, ...]:
        return (TensorSpec((), dtypes.variant),)

    def _to_components(self, value: Any) -> tuple[Tensor, ...]:
        return (value._variant_tensor,)

    def _from_components(self, components: Any) -> Any:
        return OptionalValue(components[0], self._value_structure)

    @staticmethod
    def from_value(value: Optional) -> OptionalSpec:
        """The spec of an optional."""
        return OptionalSpec(value.value_structure)

    def _to_legacy_output_types(self) -> Any:
        return self

    def _to_legacy_output_shapes(self) -> Any:
        return self

    def _to_legacy_output_classes(self) -> Any:
        return self


def optional_of_next(iterator: Any) -> Optional:
    """The next element of an iterator, or none at the end."""
    spec = iterator.element_spec
    attrs = structure.flat_structure(spec)
    variant = iterator_get_next_as_optional_op(iterator._iterator_resource, **attrs)
    return OptionalValue(variant, spec)
