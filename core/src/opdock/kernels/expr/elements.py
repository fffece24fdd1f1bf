"""Buffers kept by runtime objects (lists, tensor arrays): each remembers where it lives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from opdock.dtypes import DType, string
from opdock.kernels.select.signature import NodeSig


class Element(NamedTuple):
    """A buffer, or any other value of a slot, and the device that holds it."""

    value: Any
    device: Any

    def on(self, device: Any) -> Any:
        """The buffer where `device` can use it, copied if it lives elsewhere."""
        if self.device is device or not hasattr(self.value, "shape"):
            return self.value
        from_host, to_host = _is_host(self.device), _is_host(device)
        if from_host and to_host:
            return self.value
        host = self.value if from_host else self.device.download(self.value)
        return host if to_host else device.upload(np.asarray(host))


def _is_host(device: Any) -> bool:
    return device is None or bool(device.is_host)


def element(value: Any, sig: NodeSig) -> Element:
    """A kernel's argument as an element."""
    return Element(value, sig.device)


def unwrap(handle: Any) -> Any:
    """The object behind a handle that came from another device."""
    return getattr(handle, "home", handle)


def zeros(sig: NodeSig, shape: tuple[int, ...], dtype: DType) -> Any:
    """Zeros, or empty strings, on the kernel's device, without an array to take it from."""
    if dtype is string:
        return np.full(shape, b"", object)
    host = np.zeros(shape, dtype.np)
    return host if _is_host(sig.device) else sig.device.upload(host)


def take_rows(xp: Any, value: Any, start: int, stop: int) -> Any:
    """Consecutive rows, possibly as a view."""
    # A namespace over buffers that take no subscripts brings a function for them.
    take = getattr(xp, "rows", None)
    return value[start:stop, ...] if take is None else take(value, start, stop)


def rows_of(xp: Any, value: Any) -> list[Any]:
    """All rows, each without the first dimension, possibly as views."""
    if getattr(xp, "rows", None) is None:
        return [value[i, ...] for i in range(value.shape[0])]
    rest = value.shape[1:]
    rows = (take_rows(xp, value, i, i + 1) for i in range(value.shape[0]))
    return [xp.reshape(row, rest) for row in rows]


def join(xp: Any, joiner: Callable[..., Any], parts: Sequence[Any], dtype: DType) -> Any:
    """Buffers along the first dimension, by `xp.concat` or `xp.stack`."""
    if dtype is string:
        parts = [np.asarray(p, object) for p in parts]
    # NumPy's scalars are no arrays.
    arrays = [np.asarray(p) if isinstance(p, np.generic) else p for p in parts]
    return joiner(arrays, axis=0)
