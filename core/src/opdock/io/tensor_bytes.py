"""One tensor as the bytes of a TensorProto, and back; the bytes may come from anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import errors
from opdock.dtypes import DType
from opdock.io import protos
from opdock.io.tensor_proto import encode_array, make_ndarray

__all__ = ["tensor_from_bytes", "tensor_to_bytes"]


def tensor_to_bytes(array: np.ndarray[Any, Any], dtype: DType | None = None) -> bytes:
    """The bytes of a TensorProto with the values of `array`."""
    data: bytes = encode_array(np.asarray(array), dtype).SerializeToString()
    return data


def tensor_from_bytes(data: bytes) -> np.ndarray[Any, Any]:
    """The array that the bytes of a TensorProto hold.

    Raises:
        InvalidArgumentError: they are no TensorProto, or its content does not fit its shape.
    """
    from google.protobuf.message import DecodeError

    proto = protos.TensorProto()
    try:
        proto.ParseFromString(data)
    except (DecodeError, TypeError):
        raise errors.InvalidArgumentError(None, None, "Could not parse serialized proto") from None
    try:
        return make_ndarray(proto)
    except (TypeError, ValueError) as e:
        raise errors.InvalidArgumentError(
            None, None, f"Could not construct tensor from proto: {e}"
        ) from None
