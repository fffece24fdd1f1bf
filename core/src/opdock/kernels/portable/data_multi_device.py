"""Kernels of iterators whose elements are dealt out to several devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import shapes
from opdock.kernels.data.base import check_fits, declared, invalid, scalar_int, unwrap
from opdock.kernels.data.binding import Make, boxed, hosted, listed, resources_of, scalar_text
from opdock.kernels.data.dealing import DealtIterator
from opdock.kernels.data.memory import dataset_of
from opdock.kernels.select.signature import NodeSig

__all__: list[str] = []

_KIND = "multi_device_iterator"
_HANDLES = "multi_device_iterator_handle"


def _dealt(handle: Any) -> DealtIterator:
    found = unwrap(handle)
    if not isinstance(found, DealtIterator):
        raise invalid(f"The handle is not one of a MultiDeviceIterator: {type(found).__name__}")
    return found


@hosted("MultiDeviceIterator")
def multi_device_iterator(sig: NodeSig) -> Make:
    """The iterator of a name: the node's own, or the one that it shares."""
    attrs, resources = sig.attrs, resources_of(sig)
    types, element_shapes = declared(sig)
    name = attrs["shared_name"] or sig.name
    shards = len(attrs["devices"])
    find = resources.get_or_create if attrs["shared_name"] else resources.get_or_create_own
    return lambda: find(
        _KIND, attrs["container"], name,
        lambda: DealtIterator(name, shards, types, element_shapes, resources),
    )  # fmt: skip


@hosted(
    "MultiDeviceIteratorToStringHandle", inputs="multi_device_iterator", outputs="string_handle"
)
def to_string_handle(sig: NodeSig) -> Make:
    """The handle as a text."""
    resources = resources_of(sig)

    def run(handle: Any) -> Any:
        found = _dealt(handle)
        resources.get_or_create(_HANDLES, "", found.handle.decode(), lambda: found)
        return boxed(found.handle)

    return run


@hosted(
    "MultiDeviceIteratorFromStringHandle", inputs="string_handle", outputs="multi_device_iterator"
)
def from_string_handle(sig: NodeSig) -> Make:
    """The iterator behind a text."""
    types = [t.base_dtype for t in sig.attrs["output_types"]]
    element_shapes = [shapes.as_shape(s) for s in sig.attrs["output_shapes"]]
    resources = resources_of(sig)

    def run(handle: Any) -> DealtIterator:
        text = scalar_text(handle, "string_handle")
        found: DealtIterator | None = resources.get(_HANDLES, "", text)
        if found is None:
            raise invalid(f"The string handle {text!r} is not one of a MultiDeviceIterator here")
        if types:
            check_fits(types, element_shapes, found.types, found.shapes)
        return found

    return run


@hosted(
    "MultiDeviceIteratorInit", inputs="dataset multi_device_iterator max_buffer_size",
    outputs="incarnation_id",
)  # fmt: skip
def begin(sig: NodeSig) -> Make:
    """Begins to deal out a dataset."""

    def run(dataset: Any, handle: Any, limit: Any) -> Any:
        number = _dealt(handle).begin(dataset_of(dataset), scalar_int(limit, "max_buffer_size"))
        return np.array(number, np.int64)

    return run


@hosted(
    "MultiDeviceIteratorGetNextFromShard", inputs="multi_device_iterator shard_num incarnation_id",
    outputs="components",
)  # fmt: skip
def get_next_from_shard(sig: NodeSig) -> Make:
    """The next element of a shard."""
    return lambda handle, shard, incarnation: listed(
        _dealt(handle).next(scalar_int(shard, "shard_num"), int(incarnation))
    )
