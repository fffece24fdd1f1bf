"""Where iterators stand, as what a checkpoint can hold.

A state is nested dictionaries, lists, integers, texts, None and arrays. It is saved as the text of
its structure, in JSON, in which arrays are numbered, and the arrays beside it: TF's
VariantTensorData. Nothing in it is code.
"""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np

from opdock import dtypes, errors
from opdock.kernels.data.base import State
from opdock.kernels.data.batching import ElementsDataset

__all__ = ["SavedState", "load", "save"]

_TYPE: Final = "tensorflow::Iterator"


class SavedState(bytes):
    """A state that nothing changes any more: a serialized VariantTensorDataProto, as checkpoints
    hold it.
    """


def save(state: State) -> SavedState:
    """A state as bytes.

    Raises:
        UnimplementedError: an element that waits in a buffer is a dataset.
    """
    from opdock.io import protos
    from opdock.io.tensor_proto import encode_array

    arrays: list[Any] = []
    text = json.dumps(_pack(state, arrays))
    proto = protos.VariantTensorDataProto(type_name=_TYPE, metadata=text.encode())
    for array in arrays:
        proto.tensors.append(encode_array(array, dtypes.as_dtype(array.dtype)))
    return SavedState(proto.SerializeToString())


def load(saved: Any) -> State:
    """The state of what `save` made, or the bytes of it.

    Raises:
        InvalidArgumentError: it is nothing of the kind.
        DataLossError: it is damaged.
    """
    from google.protobuf.message import DecodeError

    from opdock.io import protos
    from opdock.io.tensor_proto import decode_array

    if not isinstance(saved, bytes):
        raise errors.InvalidArgumentError(
            None, None, f"DeserializeIterator needs a saved iterator, got {type(saved).__name__}"
        )
    proto = protos.VariantTensorDataProto()
    try:
        proto.ParseFromString(saved)
        if proto.type_name != _TYPE:
            raise ValueError(f"a variant of type {proto.type_name!r}")
        arrays = [decode_array(t) for t in proto.tensors]
        state = _unpack(json.loads(proto.metadata), arrays)
    except (DecodeError, ValueError, TypeError, KeyError, IndexError, RecursionError) as e:
        raise errors.DataLossError(None, None, f"A saved iterator is damaged: {e}") from e
    if not isinstance(state, dict):
        raise errors.DataLossError(None, None, "A saved iterator is damaged: it is no state")
    return state


def _pack(value: Any, arrays: list[Any]) -> Any:
    """A value as JSON: arrays, tuples and big integers are marked lists."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, dict):
        return {k: _pack(v, arrays) for k, v in value.items()}
    if isinstance(value, list):
        return ["list", *(_pack(v, arrays) for v in value)]
    if isinstance(value, tuple):
        return ["tuple", *(_pack(v, arrays) for v in value)]
    if isinstance(value, np.ndarray):
        if value.dtype == object and any(isinstance(v, np.ndarray) for v in value.reshape(-1)):
            flat = [_pack(v, arrays) for v in value.reshape(-1)]
            return ["variants", list(value.shape), *flat]
        if value.dtype != object or all(isinstance(v, (bytes, str)) for v in value.reshape(-1)):
            arrays.append(value)
            return ["array", len(arrays) - 1]
    if isinstance(value, ElementsDataset):
        types = [int(t.as_datatype_enum) for t in value.types]
        shapes = [None if s is None else list(s) for s in value.shapes]
        return ["window", _pack(value.elements, arrays), types, shapes]
    raise errors.UnimplementedError(
        None, None,
        f"An iterator cannot be saved while it holds a {type(value).__name__} in a buffer",
    )  # fmt: skip


def _unpack(value: Any, arrays: list[Any]) -> Any:
    if isinstance(value, dict):
        return {k: _unpack(v, arrays) for k, v in value.items()}
    if not isinstance(value, list):
        return value
    kind, *rest = value
    if kind == "array":
        return arrays[rest[0]]
    if kind == "variants":
        out = np.empty(len(rest) - 1, object)
        for i, item in enumerate(rest[1:]):
            out[i] = _unpack(item, arrays)
        return out.reshape([int(d) for d in rest[0]])
    if kind == "window":
        elements, types, shapes = rest
        return ElementsDataset(
            _unpack(elements, arrays), [dtypes.as_dtype(t) for t in types],
            [None if s is None else tuple(s) for s in shapes],
        )  # fmt: skip
    items = [_unpack(v, arrays) for v in rest]
    return tuple(items) if kind == "tuple" else items
