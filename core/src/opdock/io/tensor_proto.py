"""TensorProto to and from NumPy arrays."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from opdock import dtypes, shapes
from opdock.dtypes import DType
from opdock.io import protos
from opdock.values import MOST_AXES, holds, is_array_like, to_array

__all__ = ["make_ndarray", "make_tensor_proto"]

# The repeated field of each type, and the NumPy type that its elements are read as.
_FIELDS: dict[DType, tuple[str, Any]] = {
    dtypes.float32: ("float_val", np.float32),
    dtypes.float64: ("double_val", np.float64),
    dtypes.int32: ("int_val", np.int32),
    dtypes.uint8: ("int_val", np.uint8),
    dtypes.int16: ("int_val", np.int16),
    dtypes.int8: ("int_val", np.int8),
    dtypes.uint16: ("int_val", np.uint16),
    dtypes.qint8: ("int_val", np.int8),
    dtypes.quint8: ("int_val", np.uint8),
    dtypes.qint16: ("int_val", np.int16),
    dtypes.quint16: ("int_val", np.uint16),
    dtypes.qint32: ("int_val", np.int32),
    dtypes.float16: ("half_val", np.float16),
    dtypes.bfloat16: ("half_val", ml_dtypes.bfloat16),
    dtypes.complex64: ("scomplex_val", np.complex64),
    dtypes.complex128: ("dcomplex_val", np.complex128),
    dtypes.int64: ("int64_val", np.int64),
    dtypes.bool: ("bool_val", np.bool_),
    dtypes.uint32: ("uint32_val", np.uint32),
    dtypes.uint64: ("uint64_val", np.uint64),
    dtypes.string: ("string_val", np.object_),
}

# The types whose elements TF's Python client writes as raw bytes when there are several.
_RAW = frozenset(_FIELDS) - {
    dtypes.float16, dtypes.bfloat16, dtypes.complex64, dtypes.complex128, dtypes.uint16,
    dtypes.bool, dtypes.string,
}  # fmt: skip
_MAX_BYTES = 2**31 - 1


def _storage(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A quantized array as its plain integers."""
    return array[array.dtype.names[0]] if array.dtype.names else array


def fill_repeated(proto: Any, dtype: DType, flat: np.ndarray[Any, Any]) -> None:
    """Writes elements into the repeated field of their type."""
    field = getattr(proto, _FIELDS[dtype][0])
    flat = _storage(flat)
    if dtype == dtypes.string:
        field.extend(_as_bytes(x) for x in flat)
    elif dtype in (dtypes.float16, dtypes.bfloat16):
        field.extend(flat.view(np.uint16).tolist())
    elif dtype in dtypes.COMPLEX:
        field.extend(np.stack([flat.real, flat.imag], axis=1).ravel().tolist())
    else:
        field.extend(flat.tolist())


def _as_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise TypeError(f"Expected bytes or str, got {value!r} of type {type(value).__name__}.")


def encode_array(array: np.ndarray[Any, Any], dtype: DType | None = None) -> Any:
    """A TensorProto of an array, in the form TF's Python client chooses.

    One element goes to the typed field, more go to `tensor_content`. An array that repeats one
    element through zero strides (see `decode_array`) stays one element on the wire.

    Args:
        array: the values; object arrays are strings.
        dtype: the tensor type; found from the array when None.
    """
    dtype = dtypes.as_dtype(array.dtype) if dtype is None else dtype.base_dtype
    if dtype not in _FIELDS:
        raise TypeError(f"Element type not supported in TensorProto: {dtype.name}")
    proto = _empty_proto(dtype, array.shape)
    if array.size == 0:
        return proto
    if array.size == 1 or not any(array.strides):
        fill_repeated(
            proto, dtype, np.atleast_1d(array)[(slice(0, 1),) * max(array.ndim, 1)].reshape(-1)
        )
    elif dtype not in _RAW:
        fill_repeated(proto, dtype, array.reshape(-1))
    else:
        if array.nbytes > _MAX_BYTES:
            raise ValueError("Cannot create a tensor proto whose content is larger than 2GB.")
        # The wire is little-endian whatever the machine is.
        little = _storage(array)
        proto.tensor_content = little.astype(little.dtype.newbyteorder("<"), copy=False).tobytes()
    return proto


def _empty_proto(dtype: DType, dims: Sequence[int]) -> Any:
    proto = protos.TensorProto(dtype=dtype.as_datatype_enum)
    # A scalar's shape message is empty but present.
    proto.tensor_shape.SetInParent()
    for size in dims:
        proto.tensor_shape.dim.add(size=size)
    return proto


def make_tensor_proto(
    values: Any, dtype: Any = None, shape: Any = None, verify_shape: bool = False,
    allow_broadcast: bool = False,
) -> Any:  # fmt: skip
    """Creates a TensorProto.

    Args:
        values: a number, string, nested list, NumPy array or TensorProto.
        dtype: type of the elements; inferred when None.
        shape: the dimensions; fewer values than it needs repeat the last one.
        verify_shape: require that `values` has exactly this shape.
        allow_broadcast: of fewer values, one alone may be repeated.

    Returns:
        The `TensorProto`.

    Raises:
        TypeError: `values` does not fit `dtype`, or not `shape` under `verify_shape` or
            `allow_broadcast`.
        ValueError: more values than `shape` holds, over 2 GB of content, or both flags at once.
    """
    if allow_broadcast and verify_shape:
        raise ValueError("allow_broadcast and verify_shape are not both allowed.")
    if isinstance(values, protos.TensorProto):
        return values
    dtype = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
    if dtype is not None and dtype.is_quantized and not is_array_like(values):
        _check_quantized(values, dtype)
    array = to_array(values, dtype)
    dtype = dtype or dtypes.as_dtype(array.dtype)
    if shape is None:
        return encode_array(array, dtype)
    dims = tuple(int(d) for d in _static_dims(shape))
    size = math.prod(dims)
    lacks = allow_broadcast and array.shape not in ((), (1,)) and array.size != size
    if lacks or (verify_shape and array.shape != dims):
        raise TypeError(f"Expected Tensor's shape: {dims}, got {array.shape}.")
    if size == 0 and not isinstance(values, np.ndarray):
        array = np.empty(dims, array.dtype)
    if array.size > size:
        raise ValueError(
            f"Too many elements provided. Needed at most {size}, but received {array.size}"
        )
    if array.size == size:
        return encode_array(array.reshape(dims), dtype)
    proto = _empty_proto(dtype, dims)
    fill_repeated(proto, dtype, array.reshape(-1))
    return proto


def _static_dims(shape: Any) -> Sequence[int]:
    raw = shapes.as_shape(shape)
    if raw is None or None in raw:
        raise ValueError(f"A TensorProto needs a fully defined shape, got {shapes.text(raw)}")
    return raw  # type: ignore[return-value]


def _check_quantized(values: Any, dtype: DType) -> None:
    """TypeError unless every element is a tuple, as the type's own NumPy type has it."""
    for item in values if isinstance(values, list) else (values,):
        if isinstance(item, list):
            _check_quantized(item, dtype)
        elif not isinstance(item, tuple):
            raise TypeError(
                f"Expected {dtype.name}, got {item!r} of type '{type(item).__name__}' instead."
            )


def make_ndarray(tensor: Any) -> np.ndarray[Any, Any]:
    """The array that a TensorProto holds.

    Args:
        tensor: a `TensorProto`.

    Returns:
        A writable NumPy array (object array of bytes for strings, bfloat16 from ml_dtypes).

    Raises:
        TypeError: the element type is unknown or has no values (resources, variants).
        ValueError: the content does not fit the shape.
    """
    return writable(decode_array(tensor))


def writable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array itself if it has elements of its own to write to, else a copy."""
    return array if array.flags.writeable and any(array.strides) else np.array(array)


def decode_array(tensor: Any) -> np.ndarray[Any, Any]:
    """Like `make_ndarray`, but a tensor that repeats one element is a view with zero strides.

    A graph may declare gigabytes of one value in a few bytes; this keeps them a few bytes until a
    kernel wants them.
    """
    try:
        dtype = dtypes.as_dtype(tensor.dtype).base_dtype
    except TypeError:
        raise TypeError(f"Unsupported tensor type: {tensor.dtype}") from None
    if dtype not in _FIELDS:
        raise TypeError(f"Unsupported tensor type: {dtype.name}")
    dims = _wire_dims(tensor.tensor_shape)
    size = 1
    for d in dims:
        size *= d
    field, element = _FIELDS[dtype]
    if tensor.tensor_content:
        return _from_content(tensor.tensor_content, dtype, element, dims, size)
    values = getattr(tensor, field)
    count = len(values) // (2 if dtype in dtypes.COMPLEX else 1)
    if count > size:
        raise ValueError(f"Shape {list(dims)} holds {size} elements, but the tensor has {count}")
    flat = _from_values(values, dtype, element, count)
    if size == 0:
        return flat.reshape(dims) if count == size else np.empty(dims, dtype.np)
    if count == size:
        return flat.reshape(dims)
    if count <= 1:
        only = flat[0] if count else (b"" if dtype == dtypes.string else np.zeros((), dtype.np)[()])
        cell = np.empty((), dtype.np)
        cell[()] = only
        return np.broadcast_to(cell, dims)
    full = _filled_later(size, dtype)
    full[:count] = flat
    full[count:] = flat[-1]
    return full.reshape(dims)


def _wire_dims(shape: Any) -> tuple[int, ...]:
    if shape.unknown_rank or any(d.size < 0 for d in shape.dim):
        raise ValueError(f"A TensorProto needs a fully defined shape, got {shape}")
    dims = tuple(d.size for d in shape.dim)
    if not holds(dims):
        raise ValueError(
            f"A tensor of shape {list(dims[:MOST_AXES])} has too many dimensions or elements"
        )
    return dims


def _filled_later(size: int, dtype: DType) -> np.ndarray[Any, Any]:
    """Room for more elements than are written: no more than a message could have held."""
    if size * dtype.np.itemsize <= _MAX_BYTES:
        with contextlib.suppress(MemoryError):
            return np.empty(size, dtype.np)
    raise ValueError(f"A tensor of {size} elements of type {dtype.name} is too large")


def _from_content(
    content: bytes, dtype: DType, element: Any, dims: tuple[int, ...], size: int
) -> np.ndarray[Any, Any]:
    if dtype == dtypes.string:
        raise ValueError("A string tensor cannot have tensor_content")
    wire = np.dtype(element).newbyteorder("<")
    if len(content) != size * wire.itemsize:
        raise ValueError(
            f"Shape {list(dims)} of {dtype.name} needs {size * wire.itemsize} bytes, but"
            f" tensor_content has {len(content)}"
        )
    flat = np.frombuffer(content, wire).astype(element)
    return (flat.view(dtype.np) if dtype.is_quantized else flat).reshape(dims)


def _from_values(values: Any, dtype: DType, element: Any, count: int) -> np.ndarray[Any, Any]:
    if dtype == dtypes.string:
        out = np.empty(count, object)
        out[:] = list(values)
        return out
    if dtype in (dtypes.float16, dtypes.bfloat16):
        return np.array(values, np.uint16).view(element)
    if dtype in dtypes.COMPLEX:
        part = np.float32 if dtype == dtypes.complex64 else np.float64
        return np.array(values[: 2 * count], part).view(element)
    # Wrap rather than refuse: old writers sign-extended small unsigned integers.
    small = np.dtype(element).kind in "iu" and np.dtype(element).itemsize < 4
    flat = np.array(values, np.int64 if small else element).astype(element)
    return flat.view(dtype.np) if dtype.is_quantized else flat
