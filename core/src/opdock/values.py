"""Python values as arrays of tensor types, by TensorFlow's rules for constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from opdock import dtypes
from opdock.dtypes import DType

__all__ = ["MOST_AXES", "holds", "is_array_like", "to_array"]

_MOST: Final = 2**59
"""Elements that no array of any type has."""
MOST_AXES: Final = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32
"""Dimensions of NumPy's arrays, at the most."""


def holds(dims: Sequence[int]) -> bool:
    """Whether an array may have a shape: what stands beside a 0 counts as well for NumPy."""
    return len(dims) <= MOST_AXES and math.prod(d for d in dims if d) < _MOST


def to_array(value: Any, dtype: DType | None) -> np.ndarray[Any, Any]:
    """`value` as an array of a tensor type, by TF's rules.

    Raises:
        TypeError: an element does not fit `dtype` ("Expected int32, got 1.5 of type 'float'").
        ValueError: `value` is None or ragged, or an array of text that is no number.
    """
    if value is None:
        raise ValueError("None values not supported.")
    if is_array_like(value):
        return _from_numpy(np.asarray(value), dtype)
    if dtype is not None:
        dtype = dtype.base_dtype
        _check_elements(value, dtype)
        if dtype is dtypes.string:
            return _string_array(value)
        if dtype.is_quantized:
            return _quantized(value, dtype)
        try:
            return np.array(value, dtype.np)
        except (ValueError, TypeError) as e:
            raise _conversion_error(value, dtype, e) from None
        except OverflowError:
            return _wrapped(value, dtype)
    return _inferred(value)


def _is_tensor(value: Any) -> bool:
    return getattr(value, "_is_tensor_like", False) or hasattr(value, "graph")


def is_array_like(value: Any) -> bool:
    """Whether `value` is an array, or can be read as one with a type of its own.

    A tensor is not: it has `__array__` to say that it has no values yet.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        return True
    if _is_tensor(value) or isinstance(value, (str, bytes, list, tuple)):
        return False
    return callable(getattr(value, "__array__", None)) or isinstance(
        getattr(value, "__array_interface__", None), dict
    )


def _wrapped(value: Any, dtype: DType) -> np.ndarray[Any, Any]:
    """Integers whose upper bits `dtype` has no room for lose them, as in TF and in NumPy 1."""
    wide = np.array(value)
    if wide.dtype.kind not in "iu":
        raise TypeError(f"Expected {dtype.name}, got {value!r} which is out of range.")
    return wide.astype(dtype.np)


def _from_numpy(array: np.ndarray[Any, Any], dtype: DType | None) -> np.ndarray[Any, Any]:
    if array.dtype.kind in "SU" or array.dtype == object:
        if dtype is not None and dtype.base_dtype is not dtypes.string:
            if array.dtype == object:
                return to_array(array.tolist(), dtype)
            if dtype.base_dtype.np.hasobject:
                raise TypeError(f"Expected {dtype.name}, got an array of strings.")
            return array.astype(dtype.base_dtype.np)  # NumPy reads the numbers
        # What NumPy makes of its own kind of strings is bytes, at which nobody need look.
        return array.astype(object) if array.dtype.kind == "S" else _string_array(array)
    if dtype is None:
        return _native(array)
    target = dtype.base_dtype
    if target.np.hasobject:
        raise TypeError(f"Expected {target.name}, got an array of {array.dtype.name}.")
    if target.is_quantized:
        return array.astype(target.np[0]).view(target.np) if array.dtype != target.np else array
    if array.dtype == target.np:
        return array
    with np.errstate(all="ignore"):
        return array.astype(target.np)


def _inferred(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, bool):
        return np.array(value)
    if isinstance(value, float):
        return np.array(value, np.float32)
    if isinstance(value, int):
        return _int_array(np.array(value), value)
    if isinstance(value, (str, bytes)):
        return _string_array(value)
    try:
        array = np.array(value)
    except NotImplementedError:  # What Tensor.__array__ raises.
        raise TypeError("List of Tensors when single Tensor expected") from None
    except UnicodeError:
        # Text beside bytes that are no ASCII.
        return _object_array(value, np.array(value, object))
    except ValueError:
        raise _ragged(value) from None
    if array.dtype.kind in "SU":
        return _string_array(value)
    if array.dtype == object:
        return _object_array(value, array)
    typed = _typed_leaf(value)
    if array.dtype == np.float64 and not typed:
        return array.astype(np.float32)
    if array.dtype == np.int64 and not typed:
        return _int_array(array, value)
    if array.dtype.kind == "c" and not typed:
        return array
    return _native(array)


def _native(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array in this machine's byte order, in which devices get it; TypeError for no type."""
    return array.astype(dtypes.as_dtype(array.dtype).np, copy=False)


def _object_array(value: Any, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    leaves = list(array.reshape(-1))
    if all(isinstance(v, (str, bytes)) for v in leaves):
        return _string_array(value)
    if any(isinstance(v, (list, tuple, np.ndarray)) for v in leaves):
        raise _ragged(value)
    raise _unsupported(value)


def _ragged(value: Any) -> ValueError:
    """In the words of both ways: as graphs say it, and as eager programs do."""
    return ValueError(
        f"Argument must be a dense tensor: {value!r}. Can't convert non-rectangular Python "
        "sequence to Tensor."
    )


def _unsupported(value: Any) -> TypeError:
    return TypeError(
        f"Failed to convert object of type {type(value)} to Tensor. Contents: {value!r}. "
        "Consider casting elements to a supported type."
    )


def _int_array(array: np.ndarray[Any, Any], value: Any) -> np.ndarray[Any, Any]:
    if array.size == 0:
        return array.astype(np.int32)
    if array.dtype == object:  # Not even 64 bits have room for it.
        raise _unsupported(value)
    low, high = array.min(), array.max()
    if low >= -(2**31) and high < 2**31:
        return array.astype(np.int32)
    return array  # int64; uint64 where that alone has room


def _typed_leaf(value: Any) -> bool:
    """Whether the elements are arrays, whose type counts; TF takes scalars alone for its defaults.

    So `[numpy.float64(1)]` is float32 as `[1.0]` is, and an index that NumPy made is int32.
    """
    while isinstance(value, (list, tuple)):
        if not value:
            return False
        value = value[0]
    return isinstance(value, np.ndarray) and value.ndim > 0


def _string_array(value: Any) -> np.ndarray[Any, Any]:
    # As of numbers, an array of what it should be is handed on as it is.
    source = np.asarray(value, dtype=object)
    items = source.reshape(-1).tolist()
    if list(map(type, items)).count(bytes) == len(items):  # half as long as a set takes
        return source
    out = np.empty(source.shape, object)
    flat_out = out.reshape(-1)
    for i, item in enumerate(items):
        if isinstance(item, str):
            flat_out[i] = item.encode()
        elif isinstance(item, bytes):
            flat_out[i] = bytes(item)
        else:
            raise TypeError(
                f"Expected string, got {item!r} of type '{type(item).__name__}' instead."
            )
    return out


def _quantized(value: Any, dtype: DType) -> np.ndarray[Any, Any]:
    try:
        return np.array(value, dtype.np)  # an element may be a tuple of one number
    except (ValueError, TypeError):
        return np.array(value, dtype.np[0]).view(dtype.np)


def _check_elements(value: Any, dtype: DType) -> None:
    """TypeError on the first leaf whose Python type does not fit `dtype`."""
    if isinstance(value, (list, tuple)):
        for item in value:
            _check_elements(item, dtype)
        return
    ok = value is not None and not _is_tensor(value)
    if isinstance(value, (str, bytes)):
        ok = dtype is dtypes.string
    elif dtype is dtypes.string:
        ok = isinstance(value, np.ndarray)
    elif isinstance(value, bool):
        ok = True  # A number to Python, and so to TF.
    elif isinstance(value, float):
        ok = dtype.is_floating or dtype.is_complex
    elif isinstance(value, complex):
        ok = dtype.is_complex
    elif isinstance(value, int):
        ok = not dtype.is_bool
    if not ok:
        raise TypeError(
            f"Expected {dtype.name}, got {value!r} of type '{type(value).__name__}' instead."
        )


def _conversion_error(value: Any, dtype: DType, error: Exception) -> Exception:
    if "inhomogeneous" in str(error) or "sequence" in str(error):
        return _ragged(value)
    return TypeError(
        f"Failed to convert object of type {type(value)} to Tensor of type {dtype.name}. "
        f"Contents: {value!r}. ({error})"
    )
