"""Datasets whose elements lie in the memory of a device: what makes them runs where they come from.

Such a dataset is TF's GeneratorDataset, placed on the device and marked `_held`. Its functions,
whose ops name the device of the source, make an iterator there, ask it for elements, and end it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opdock import dtypes
from opdock.data import steps
from opdock.data.dataset_v1 import make_initializable_iterator, make_one_shot_iterator
from opdock.data.iterators import Iterator, get_next_as_optional
from opdock.data.options import Options
from opdock.data.steps import DatasetLike, Made
from opdock.data.util import structure
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation
from opdock.graph.nodes.scopes import control_dependencies, device, executing_eagerly
from opdock.ops import data_iterators as iterators
from opdock.ops import data_multi_device as dealt
from opdock.ops.control import group

Fn = Callable[..., Any]

__all__ = ["MultiDeviceIterator", "copied"]


def copied(dataset: DatasetLike, target_device: str, source_device: str) -> Made:
    """The elements of a dataset on one device in the memory of another one."""
    spec = dataset.element_spec
    attrs = structure.flat_structure(spec)
    legacy = (
        structure.legacy_types(spec), structure.legacy_shapes(spec), structure.legacy_classes(spec)
    )  # fmt: skip
    wrapped = iterators.wrap_dataset_variant_op(dataset._variant_tensor)

    def begin(_: Any) -> Any:
        with device(source_device):
            source = iterators.unwrap_dataset_variant_op(wrapped)
            resource, deleter = iterators.anonymous_iterator_v2_op(**attrs)
            with control_dependencies([iterators.make_iterator_op(source, resource)]):
                return iterators.iterator_to_string_handle_op(resource), deleter

    def step(handle: Any, deleter: Any) -> Any:
        with device(source_device):
            return Iterator.from_string_handle(handle, *legacy).get_next()

    def end(handle: Any, deleter: Any) -> Any:
        with device(source_device):
            resource = iterators.iterator_from_string_handle_v2_op(handle, **attrs)
            done = iterators.delete_iterator_op(resource, deleter)
            with control_dependencies([done]):
                return convert_to_tensor(0, dtypes.int64)

    return _generator(target_device, begin, step, end)


def _generator(target_device: str, begin: Fn, step: Fn, end: Fn) -> Made:
    # A generator that just happens to be made under `tf.device` keeps its elements on the host.
    held = get_default_graph()._attr_scope({"_held": True})
    with device(None), device(target_device), held:
        return steps.generator(0, begin, step, end)


class MultiDeviceIterator:
    """An iterator whose elements several devices get in turn, each in its own memory.

    Args:
        dataset: the elements.
        devices: the names of the devices; one may have several turns.
        max_buffer_size: how many elements for each may wait on the source's device.
        prefetch_buffer_size: how many may wait on each device; at least so many wait at the source.
        source_device: where the elements are made.
    """

    def __init__(
        self, dataset: Any, devices: Sequence[str], max_buffer_size: int = 1,
        prefetch_buffer_size: int = 1, source_device: str = "/cpu:0",
    ) -> None:  # fmt: skip
        options = Options()
        options.experimental_distribute.num_devices = len(devices)
        self._dataset = dataset.with_options(options)._apply_options()
        self._devices = list(devices)
        self._source_device = source_device
        self._spec = dataset.element_spec
        attrs = structure.flat_structure(self._spec)
        with device(source_device):
            resource = dealt.multi_device_iterator_op(
                devices=self._devices, shared_name="", container="", **attrs
            )
            self._handle = dealt.multi_device_iterator_to_string_handle_op(resource)
        self._resource = resource
        self._most = max(max_buffer_size, prefetch_buffer_size)
        self._prefetch = prefetch_buffer_size
        self._deal()

    def _deal(self) -> None:
        """Makes what begins to deal out the dataset, or begins where operations run as made."""
        with device(self._source_device):
            self._incarnation = dealt.multi_device_iterator_init_op(
                self._dataset._variant_tensor, self._resource,
                steps.int64(self._most, "max_buffer_size"),
            )  # fmt: skip
        self._iterators = [self._of_device(i) for i in range(len(self._devices))]
        begins = [] if executing_eagerly() else [i.initializer for i in self._iterators]
        self._initializer = group(*begins)

    def _eager_reset(self) -> None:
        """Begins anew.

        Raises:
            ValueError: a session would have to run the initializer.
        """
        if not executing_eagerly():
            raise ValueError("Eager reset is only supported in eager mode.")
        self._deal()

    def _of_device(self, shard: int) -> Iterator:
        """The iterator of one device."""
        attrs = structure.flat_structure(self._spec)

        def begin(_: Any) -> Any:
            return self._handle, self._incarnation

        def step(handle: Any, incarnation: Any) -> Any:
            with device(self._source_device):
                resource = dealt.multi_device_iterator_from_string_handle_op(handle, **attrs)
                flat = dealt.multi_device_iterator_get_next_from_shard_op(
                    resource, convert_to_tensor(shard, dtypes.int32), incarnation, **attrs
                )
                return structure.from_tensor_list(self._spec, flat)

        def end(handle: Any, incarnation: Any) -> Any:
            return convert_to_tensor(0, dtypes.int64)

        name = self._devices[shard]
        found = self._dataset._begin(_generator(name, begin, step, end))
        with device(None), device(name):
            if self._prefetch > 0:
                found = found.prefetch(self._prefetch)
            make = make_one_shot_iterator if executing_eagerly() else make_initializable_iterator
            return make(found)

    def get_next(self, device: str | None = None) -> Any:
        """The next element of one device, or a list of those of all devices.

        Args:
            device: the name of one device.

        Raises:
            ValueError: it is none of the devices.
        """
        if device is not None:
            return self._iterators[self._devices.index(device)].get_next()
        return [self._on(i, lambda it: it.get_next()) for i in range(len(self._devices))]

    def get_next_as_optional(self) -> list[Any]:
        """The next element of each device, or none at the end, as optionals."""
        return [self._on(i, get_next_as_optional) for i in range(len(self._devices))]

    def _on(self, shard: int, use: Fn) -> Any:
        with device(self._devices[shard]):
            return use(self._iterators[shard])

    @property
    def initializer(self) -> Operation:
        """The operation that begins to deal out the dataset, anew each time."""
        return self._initializer

    @property
    def element_spec(self) -> Any:
        """The structure of specs of an element."""
        return self._spec
