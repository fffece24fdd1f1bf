"""One tensor as the bytes of a TensorProto, and back; the bytes may come from anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import errors
from opdock.dtypes import DType
from opdock.io import protos
from opdock.io.tensor_proto import decode_array, encode_array, writable

__all__ = ["decoded", "tensor_from_bytes", "tensor_to_bytes"]


def tensor_to_bytes(array: np.ndarray[Any, Any], dtype: DType | None = None) -> bytes:
    """The bytes of a TensorProto with the values of `array`."""
    data: bytes = encode_array(np.asarray(array), dtype).SerializeToString()
    return data


def decoded(data: bytes) -> np.ndarray[Any, Any]:
    """The array that the bytes of a TensorProto hold, which may be read only.

    Raises:
        DecodeError: they are no TensorProto.
        TypeError, ValueError: its content does not fit its type and shape, or is too large.
    """
    proto = protos.TensorProto()
    proto.ParseFromString(data)
    array = decode_array(proto)
    # A shape without the values is cheap to write: no more than a message can hold is made.
    if array.nbytes > max(len(data), 1 << 31):
        raise ValueError(f"a tensor of {array.nbytes} bytes is too large")
    return array


def tensor_from_bytes(data: bytes) -> np.ndarray[Any, Any]:
    """The array that the bytes of a TensorProto hold.

    Raises:
        InvalidArgumentError: they are no TensorProto, or its content does not fit its shape.
    """
    from google.protobuf.message import DecodeError

    try:
        return writable(decoded(data))
    except DecodeError:
        raise errors.InvalidArgumentError(None, None, "Could not parse serialized proto") from None
    except (TypeError, ValueError) as e:
        raise errors.InvalidArgumentError(
            None, None, f"Could not construct tensor from proto: {e}"
        ) from None
