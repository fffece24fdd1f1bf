"""One tensor as the bytes of a TensorProto, and back; the bytes may come from anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes, errors
from opdock.dtypes import DType
from opdock.io import protos
from opdock.io.tensor_proto import decode_array, encode_array, writable

__all__ = ["decoded", "tensor_from_bytes", "tensor_to_bytes", "variants_from_bytes"]


def tensor_to_bytes(array: np.ndarray[Any, Any], dtype: DType | None = None) -> bytes:
    """The bytes of a TensorProto with the values of `array`.

    Raises:
        UnimplementedError: it holds a variant that cannot be saved.
    """
    if dtype is dtypes.variant:
        return _variants_to_bytes(np.asarray(array, object))
    data: bytes = encode_array(np.asarray(array), dtype).SerializeToString()
    return data


def _variants_to_bytes(array: np.ndarray[Any, Any]) -> bytes:
    proto = protos.TensorProto(dtype=dtypes.variant.as_datatype_enum)
    proto.tensor_shape.SetInParent()
    for size in array.shape:
        proto.tensor_shape.dim.add(size=size)
    for item in array.reshape(-1):
        if not isinstance(item, bytes):
            raise errors.UnimplementedError(
                None, None, f"A variant of type {type(item).__name__} cannot be saved"
            )
        proto.variant_val.add().ParseFromString(item)
    data: bytes = proto.SerializeToString()
    return data


def variants_from_bytes(data: bytes) -> np.ndarray[Any, Any]:
    """Variants, each as a serialized VariantTensorDataProto, from the bytes of a TensorProto.

    Raises:
        DecodeError: they are no TensorProto.
        TypeError, ValueError: it holds no variants, or their number does not fit its shape.
    """
    proto = protos.TensorProto()
    proto.ParseFromString(data)
    if proto.dtype != dtypes.variant.as_datatype_enum:
        raise TypeError(f"variants are expected, not type number {proto.dtype}")
    out = np.empty(len(proto.variant_val), object)
    out[:] = [v.SerializeToString() for v in proto.variant_val]
    return out.reshape([d.size for d in proto.tensor_shape.dim])


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
