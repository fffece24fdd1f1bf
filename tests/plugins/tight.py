"""A backend that has 32 bits and no more, and as little memory as a test says."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import array_api_compat.numpy
import numpy as np

from opdock.plugin import (
    BackendSpec,
    BaseDevice,
    DeviceAttributes,
    MemoryStats,
    Probe,
    as_dtype,
    dtypes,
    errors,
    hookimpl,
    register,
    unregister,
)

DEVICE = "/device:TIGHT:0"


class Memory:
    """Bytes that there are, and that are taken; `taken` tells what was free when some were."""

    limit = 1 << 28
    in_use = 0

    def __init__(self) -> None:
        self.taken: list[tuple[int, int]] = []

    def take(self, size: int) -> None:
        self.taken.append((self.limit - self.in_use, size))
        if self.in_use + size > self.limit:
            text = f"{size} bytes on top of {self.in_use} of {self.limit}"
            raise errors.ResourceExhaustedError(None, None, text)
        self.in_use += size

    def give(self, size: int) -> None:
        self.in_use -= size


memory = Memory()


class TightArray(np.ndarray):
    """A buffer; NumPy makes results of the same class."""

    def __array_finalize__(self, source: object) -> None:
        if self.flags.owndata:
            memory.take(self.nbytes)
            weakref.finalize(self, memory.give, self.nbytes).atexit = False


_HALF = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}


def _narrowed(value: Any) -> Any:
    if isinstance(value, tuple):
        parts = map(_narrowed, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, np.ndarray | np.generic) and value.dtype.name in _HALF:
        return np.asarray(value, _HALF[value.dtype.name])
    return value


class Narrow:
    """NumPy without 64 bits: they have no name here, and no function gives or takes them."""

    def __init__(self, functions: Any) -> None:
        self._functions = functions

    def __getattr__(self, name: str) -> Any:
        if name in _HALF:
            raise AttributeError(f"there is no {name}")
        found = getattr(self._functions, name)
        if isinstance(found, ModuleType):
            return Narrow(found)
        if isinstance(found, type) or not callable(found) or name in ("finfo", "iinfo", "isdtype"):
            return found

        def call(*args: Any, **options: Any) -> Any:
            wanted = options.get("dtype", args[1] if name == "astype" else None)
            if wanted is not None and np.dtype(wanted).name in _HALF:
                raise TypeError(f"{name} cannot make {np.dtype(wanted)}")
            return _narrowed(found(*args, **options))

        return call


class TightDevice(BaseDevice):
    namespace = Narrow(array_api_compat.numpy)
    dtypes = frozenset({dtypes.float32, dtypes.int32, dtypes.complex64, dtypes.bool})

    def upload(self, array: np.ndarray[Any, Any]) -> TightArray:
        if as_dtype(array.dtype) not in self.dtypes:
            raise errors.UnimplementedError(None, None, f"tight devices hold no {array.dtype}")
        buffer = TightArray(array.shape, array.dtype)
        buffer[...] = array
        return buffer

    def download(self, buffer: TightArray) -> np.ndarray[Any, Any]:
        return np.array(buffer, order="C", subok=False)

    def memory(self) -> MemoryStats:
        return MemoryStats(in_use=memory.in_use, limit=memory.limit)


@hookimpl
def opdock_backends() -> Iterator[BackendSpec]:
    yield BackendSpec(
        name="tight",
        device_type="TIGHT",
        own_type="TIGHT",
        api=(1, 1),
        priority=-10,
        probe=f"{__name__}:probe",
        device=f"{__name__}:TightDevice",
    )


def probe() -> Probe:
    return Probe(devices=[DeviceAttributes(index=0, memory_bytes=memory.limit)])


@contextmanager
def installed(limit: int = 1 << 28) -> Iterator[None]:
    """The backend, with so many bytes."""
    gc.collect()
    memory.limit = memory.in_use + limit
    memory.taken.clear()
    register(sys.modules[__name__], "tight")
    try:
        yield
    finally:
        unregister("tight")
