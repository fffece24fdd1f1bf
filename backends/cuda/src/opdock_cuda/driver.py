"""The few driver calls that count GPUs, through ctypes: CuPy need not be there to tell what is."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any


class DriverError(Exception):
    """The driver is absent or refuses; the message is meant for the user."""


@dataclass(frozen=True)
class Gpu:
    """What the driver says about one GPU."""

    name: str
    pci_bus_id: str
    memory_bytes: int


def gpus() -> list[Gpu]:
    """The GPUs that this process may use.

    Raises:
        DriverError: there is no driver, or it does not start.
    """
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise DriverError("no NVIDIA driver: libcuda.so.1 is not found") from None
    _call(cuda, "cuInit", 0)
    count = ctypes.c_int()
    _call(cuda, "cuDeviceGetCount", ctypes.byref(count))
    return [_gpu(cuda, i) for i in range(count.value)]


def _gpu(cuda: Any, index: int) -> Gpu:
    handle, memory = ctypes.c_int(), ctypes.c_size_t()
    name, bus = ctypes.create_string_buffer(256), ctypes.create_string_buffer(32)
    _call(cuda, "cuDeviceGet", ctypes.byref(handle), index)
    _call(cuda, "cuDeviceGetName", name, len(name), handle)
    _call(cuda, "cuDeviceGetPCIBusId", bus, len(bus), handle)
    _call(cuda, "cuDeviceTotalMem_v2", ctypes.byref(memory), handle)
    return Gpu(name.value.decode(), f"pci:{bus.value.decode().lower()}", memory.value)


def _call(cuda: Any, function: str, *arguments: Any) -> None:
    code = getattr(cuda, function)(*arguments)
    if code != 0:
        text = ctypes.c_char_p()
        cuda.cuGetErrorString(code, ctypes.byref(text))
        told = text.value.decode() if text.value else "unknown error"
        raise DriverError(f"the NVIDIA driver does not start: {function}: {told} ({code})")
