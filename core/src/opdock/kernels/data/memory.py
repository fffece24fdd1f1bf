"""Elements in the memory of devices, and the datasets of variants.

Work on elements is work on host arrays. Who only hands elements on takes a dataset by
`dataset_anywhere`, wherever they lie; all others by `dataset_of`, which brings them to the host.
"""

from __future__ import annotations

from typing import Any, Final

from opdock.kernels.data.base import (
    Dataset,
    DatasetIterator,
    Element,
    FollowingIterator,
    HandedOn,
    Memory,
    invalid,
    unwrap,
)
from opdock.kernels.data.context import Context

__all__ = ["dataset_anywhere", "dataset_of", "held", "moved"]

_ON_HOST: Final = frozenset(("string", "variant", "resource"))


def dataset_anywhere(handle: Any) -> Dataset:
    """The dataset of a variant; `memory` says where its elements lie.

    Raises:
        InvalidArgumentError: it holds something else.
    """
    found = unwrap(handle)
    if not isinstance(found, Dataset):
        raise invalid(f"Input must be a dataset, got a variant of {type(found).__name__}")
    return found


def dataset_of(handle: Any) -> Dataset:
    """The dataset of a variant, its elements in the memory of the host.

    Raises:
        InvalidArgumentError: it holds something else.
    """
    found = dataset_anywhere(handle)
    return found if found.memory is None else _MovedDataset(found, None)


def held(dataset: Dataset, device: Memory | None) -> Dataset:
    """The dataset with elements in the memory of a device.

    They stay on the host if a component, such as a string, can be nowhere else.
    """
    if device is None or device.is_host:
        return dataset
    can = device.dtypes
    if any(t.name in _ON_HOST or (can is not None and t not in can) for t in dataset.types):
        return dataset
    return _MovedDataset(dataset, device)


def moved(element: Element, here: Memory | None, there: Memory | None) -> Element:
    """An element in other memory; None for the host."""
    if here is there:
        return element
    if here is not None:
        element = tuple([here.download(v) for v in element])
    return element if there is None else tuple([there.upload(v) for v in element])


class _MovedDataset(HandedOn):
    """The same elements in other memory."""

    def __init__(self, source: Dataset, memory: Memory | None) -> None:
        super().__init__(source)
        self._memory = memory

    @property
    def memory(self) -> Memory | None:
        """Where elements lie."""
        return self._memory

    @property
    def fresh(self) -> bool:
        """Whether nobody else holds an element's arrays: they are copies."""
        return True

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _MovedIterator(self, context)


class _MovedIterator(FollowingIterator):
    def __init__(self, dataset: _MovedDataset, context: Context) -> None:
        super().__init__(dataset.source, context)
        self._here, self._there = dataset.source.memory, dataset.memory

    def next(self) -> Element | None:
        element = self.source.next()
        return None if element is None else moved(element, self._here, self._there)
