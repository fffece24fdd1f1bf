"""The iterator of programs whose operations run as they are made: Python's, over a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from opdock import errors
from opdock.data.iterators import Iterator
from opdock.data.util import structure
from opdock.graph.variables.trackable import Trackable
from opdock.ops.data_iterators import iterator_get_next_op, iterator_v2_op, make_iterator_op

if TYPE_CHECKING:
    from opdock.data.dataset import DatasetV2

__all__ = ["EagerIterator"]


class EagerIterator(Iterator, Trackable):
    """A walk through a dataset, whose elements are values.

    Args:
        dataset: the dataset.
    """

    def __init__(self, dataset: DatasetV2) -> None:
        self._element_spec = dataset.element_spec
        self._flat = dataset._flat_structure
        self._iterator_resource = iterator_v2_op(container="", shared_name="", **self._flat)
        self._initializer = None
        make_iterator_op(dataset._apply_options()._variant_tensor, self._iterator_resource)

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
