"""Iterators whose elements are dealt out to several devices in turn."""

from __future__ import annotations

from opdock.ops.registry import Traits, define_op
from opdock.ops.support.common_shapes import scalar
from opdock.ops.support.data import ELEMENTS, gives_elements, working_op

__all__: list[str] = []

_HANDLE = Traits(effect=False, merge=False, fold=False)

multi_device_iterator_op = define_op(
    "MultiDeviceIterator", "-> handle: resource",
    f"devices: list(string) >= 1, shared_name: string, container: string, {ELEMENTS}",
    stateful=True,
)  # fmt: skip
multi_device_iterator_from_string_handle_op = define_op(
    "MultiDeviceIteratorFromStringHandle",
    "string_handle: string -> multi_device_iterator: resource",
    "output_types: list(type) >= 0 = [], output_shapes: list(shape) >= 0 = []", stateful=True,
)  # fmt: skip
multi_device_iterator_to_string_handle_op = define_op(
    "MultiDeviceIteratorToStringHandle",
    "multi_device_iterator: resource -> string_handle: string", stateful=True,
)  # fmt: skip
for _op in (
    multi_device_iterator_op, multi_device_iterator_from_string_handle_op,
    multi_device_iterator_to_string_handle_op,
):  # fmt: skip
    _op.declare(_HANDLE).not_differentiable()
    _op.shape(scalar)

multi_device_iterator_init_op = working_op(
    "MultiDeviceIteratorInit",
    "dataset: variant, multi_device_iterator: resource, max_buffer_size: int64 "
    "-> incarnation_id: int64",
)
multi_device_iterator_init_op.shape(scalar)
multi_device_iterator_get_next_from_shard_op = working_op(
    "MultiDeviceIteratorGetNextFromShard",
    "multi_device_iterator: resource, shard_num: int32, incarnation_id: int64 "
    "-> components: output_types",
    ELEMENTS,
)
gives_elements(multi_device_iterator_get_next_from_shard_op)
