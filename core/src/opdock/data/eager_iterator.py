"""The iterator of programs whose operations run as they are made: Python's, over a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from opdock import dtypes, errors
from opdock.data.iterators import Iterator
from opdock.data.util import structure
from opdock.graph.nodes.composite import CompositeTensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.typespec import TensorSpec, TypeSpec
from opdock.graph.variables.trackable import Trackable
from opdock.ops.data_iterators import iterator_get_next_op, iterator_v2_op, make_iterator_op

if TYPE_CHECKING:
    from opdock.data.dataset import DatasetV2

__all__ = ["EagerIterator", "IteratorSpec"]


class EagerIterator(Iterator, Trackable, CompositeTensor):
    """A walk through a dataset, whose elements are values.

    Args:
        dataset: the dataset.
    """

    def __init__(self, dataset: DatasetV2) -> None:
        flat = dataset._flat_structure
        handle = iterator_v2_op(container="", shared_name="", **flat)
        self._hold(handle, dataset.element_spec)
        make_iterator_op(dataset._apply_options()._variant_tensor, self._iterator_resource)

    def _hold(self, handle: Any, element_spec: Any) -> None:
        self._iterator_resource, self._element_spec = handle, element_spec
        self._flat = structure.flat_structure(element_spec)
        self._initializer = None

    @classmethod
    def of_handle(cls, handle: Any, element_spec: Any) -> Self:
        """The iterator behind a handle, as a function has it of which it is an argument."""
        found = cls.__new__(cls)
        found._hold(handle, element_spec)
        return found

    @property
    def _type_spec(self) -> IteratorSpec:
        return IteratorSpec(self._element_spec)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        try:
            return self.get_next()
        except errors.OutOfRangeError:
            raise StopIteration from None

    next = __next__

    def get_next(self, name: str | None = None) -> Any:
        """The next element, as a nested structure of tensors.

        Raises:
            OutOfRangeError: there is no other.
        """
        flat = iterator_get_next_op(self._iterator_resource, name=name, **self._flat)
        return structure.from_tensor_list(self._element_spec, flat)


class IteratorSpec(TypeSpec):
    """What is known of an iterator of eager programs.

    Args:
        element_spec: the structure of specs of its elements.
    """

    __slots__ = ("_element_spec",)

    def __init__(self, element_spec: Any) -> None:
        self._element_spec = element_spec

    @property
    def value_type(self) -> type:
        """The class of such iterators."""
        return EagerIterator

    def _serialize(self) -> tuple[Any, ...]:
        return (self._element_spec,)

    @property
    def _component_specs(self) -> TensorSpec:
        return TensorSpec((), dtypes.resource)

    def _to_components(self, value: Any) -> Tensor:
        found: Tensor = value._iterator_resource
        return found

    def _from_components(self, components: Any) -> Any:
        return EagerIterator.of_handle(components, self._element_spec)
