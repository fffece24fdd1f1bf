"""What the array API leaves out and many portable kernels need: fills, integer lists, copies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock import axes, dtypes, errors
from opdock.dtypes import DType
from opdock.kernels.select.signature import NodeSig

ints = axes.ints


def fetched(xp: Any, integers: Any) -> npt.NDArray[np.int64]:
    """An array of integers on the host, read one by one: for what an error is to say."""
    flat = xp.reshape(integers, (-1,))
    found = [int(flat[i]) for i in range(flat.shape[0])]
    return np.array(found, np.int64).reshape(integers.shape)


def dtype_of(xp: Any, dtype: DType) -> Any:
    """The namespace's element type for a tensor type."""
    name = dtype.base_dtype.name
    found = getattr(xp, name, None)
    return dtype.base_dtype.np if found is None else found


def full(xp: Any, shape: Any, value: Any, dtype: DType, like: Any = None) -> Any:
    """An array of one value, on the device of `like`."""
    device = None if like is None else getattr(like, "device", None)
    element = dtype_of(xp, dtype) if like is None or like.dtype is None else like.dtype
    if dtype.base_dtype is dtypes.string:
        return xp.full(shape, b"" if value == 0 else value, dtype=element)
    if dtype.base_dtype.is_quantized:
        return np.full(shape, value, element[0]).view(element)
    if dtype.base_dtype is dtypes.bool:
        value = bool(value)
    elif isinstance(value, np.number):
        value = value.item()  # the standard takes numbers of Python alone
    return xp.full(shape, value, dtype=element, device=device)


def zeros(xp: Any, shape: Any, like: Any, dtype: DType) -> Any:
    """Zeros (False, empty strings) of the type and on the device of `like`."""
    return full(xp, shape, 0, dtype, like)


def copy(xp: Any, value: Any) -> Any:
    """A copy with memory of its own."""
    return xp.asarray(value, copy=True)


def turned(xp: Any, x: Any, order: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """`x` with its dimensions in another order, and then in another shape.

    A namespace that has a quicker way than a view and its copy brings it as `turned(x, order)`,
    which gives what lies in the new order.
    """
    own = getattr(xp, "turned", None)
    return xp.reshape(xp.permute_dims(x, order) if own is None else own(x, order), shape)


def is_writable(x: Any) -> bool:
    """Whether an array can be written to; of any other a write makes a new one."""
    return not hasattr(x, "at") and hasattr(type(x), "__setitem__")


def put(xp: Any, x: Any, index: Any, value: Any, *, add: bool = False) -> Any:
    """`x` with `value` at an index of integers, slices and an ellipsis, or added to what is there.

    The one place where portable kernels write. An array that can be written to is, so it must be
    the caller's own; of any other there is a new one.
    """
    at = getattr(x, "at", None)
    if at is not None:
        return at[index].add(value) if add else at[index].set(value)
    if is_writable(x):
        if add:
            x[index] += value
        else:
            x[_whole(index) if getattr(value, "shape", None) == () else index] = value
        return x
    # No way to write: every element of the result is picked from the old ones and the new.
    value = x[index] + value if add else value
    size = math.prod(x.shape)
    source = np.arange(size).reshape(x.shape)
    place = source[index].shape
    value = xp.broadcast_to(xp.asarray(value, dtype=x.dtype), place)
    source[index] = size + np.arange(math.prod(place)).reshape(place)
    every = xp.concat([xp.reshape(x, (-1,)), xp.reshape(value, (-1,))])
    return xp.reshape(xp.take(every, device_ints(xp, source.reshape(-1), x)), x.shape)


def put_at(x: Any, places: Any, values: Any) -> bool:
    """Writes values to different places of a vector of the caller's own, which the device knows.

    Returns:
        Whether that was done: the standard lets nobody write by arrays of places, most do.
    """
    if not is_writable(x):
        return False
    try:
        x[places] = values
    except IndexError:
        return False
    return True


def _whole(index: Any) -> tuple[Any, ...]:
    """The index with an ellipsis: NumPy then stores a scalar's object, not the array around it."""
    parts = index if isinstance(index, tuple) else (index,)
    return parts if Ellipsis in parts else (*parts, ...)


def fails(xp: Any, condition: Any) -> bool:
    """Whether a check of values fails; what an error needs is looked up only after that.

    A namespace that is tracing has no values. It takes the condition along for whoever runs what it
    traces (`xp.defer`), and the kernel goes on as if the check had passed.
    """
    return bool(condition) if _has_values(xp, condition) else xp.defer(condition)


def opaque(xp: Any, x: Any) -> Any:
    """`x` as a number that nobody knows before, where the last bit decides about what follows.

    A namespace that compiles whole programs may otherwise multiply by the reciprocal of a constant
    where it should divide (`xp.opaque`).
    """
    hidden = getattr(xp, "opaque", None)
    return x if hidden is None else hidden(x)


def is_traced(xp: Any, *arrays: Any) -> bool:
    """Whether one of the arrays has no values, because a function is being traced."""
    return not all(_has_values(xp, array) for array in arrays)


def is_sure(xp: Any, condition: Any) -> bool:
    """Whether a condition that only saves work is known to hold: never while tracing."""
    return _has_values(xp, condition) and bool(condition)


def _has_values(xp: Any, array: Any) -> bool:
    is_traced = getattr(xp, "is_traced", None)
    return is_traced is None or not is_traced(array)


def index_type(xp: Any) -> Any:
    """The element type of places in arrays: int64, or int32 where a namespace has no wider one."""
    return xp.int64 if hasattr(xp, "int64") else xp.int32


def device_ints(xp: Any, values: Any, like: Any) -> Any:
    """Integers as an index array on the device of `like`."""
    return xp.asarray(values, dtype=index_type(xp), device=getattr(like, "device", None))


def taken(xp: Any, rows: Any, places: npt.NDArray[Any]) -> Any:
    """Rows of a device's array at places that the host knows."""
    return xp.take(rows, device_ints(xp, places, rows), axis=0)


def home(sig: NodeSig) -> Any:
    """Where the namespace should make an array that has no input to follow."""
    return None if sig.device is None else sig.device.namespace_device


def invalid(message: str) -> errors.InvalidArgumentError:
    """The error of a kernel whose arguments do not fit; the runtime adds the node."""
    return errors.InvalidArgumentError(None, None, message)


def dims(shape: Any) -> str:
    """A shape as TF writes it in messages, "[2,3]"."""
    return "[" + ",".join(str(d) for d in shape) + "]"
