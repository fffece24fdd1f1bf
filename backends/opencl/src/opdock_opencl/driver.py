"""The few calls of OpenCL that tell of devices and try their compilers, through ctypes.

PyOpenCL takes three times as long to import as the drivers take to say what there is, and only who
computes needs it. What it brings is asked here: the loader of drivers that its wheels for Linux
hold, so both see the same devices in the same order.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = ["Context", "Device", "DeviceType", "Error", "Loader", "Platform", "Program", "loader"]


class Error(Exception):
    """The drivers say no; PyOpenCL says it in words."""


class DeviceType:
    """What a device is, in bits."""

    CPU = 2
    GPU = 4
    ACCELERATOR = 8


_ALL: Final = 0xFFFFFFFF
_NOT_FOUND: Final = -1
_BUILD_LOG: Final = 0x1183
_PLATFORM: Final = {"version": 0x0901, "name": 0x0902, "vendor": 0x0903, "extensions": 0x0904}
_TEXTS: Final = {
    "name": 0x102B, "vendor": 0x102C, "driver_version": 0x102D, "version": 0x102F,
    "extensions": 0x1030,
}  # fmt: skip


class _Bus(ctypes.Structure):
    """`cl_device_pci_bus_info_khr`."""

    _fields_ = [
        (f"pci_{part}", ctypes.c_uint32) for part in ("domain", "bus", "device", "function")
    ]


_VALUES: Final[dict[str, tuple[int, Any]]] = {
    "type": (0x1000, ctypes.c_uint64), "global_mem_size": (0x101F, ctypes.c_uint64),
    "compiler_available": (0x1028, ctypes.c_uint32), "pci_bus_id_nv": (0x4008, ctypes.c_uint32),
    "pci_slot_id_nv": (0x4009, ctypes.c_uint32), "pci_domain_id_nv": (0x400A, ctypes.c_uint32),
    "pci_bus_info_khr": (0x410F, _Bus),
}  # fmt: skip
_PLACES: Final = (".libs", "../pyopencl.libs")
"""Where wheels hold the libraries that they bring."""


class Context:
    """What programs for one device are made in."""

    def __init__(self, devices: Sequence[Device]) -> None:
        (self.device,) = devices
        self.loader = self.device.platform.loader
        one = ctypes.byref(self.device.at)
        self.at = self.loader.made("clCreateContext", None, 1, one, None, None)

    def __del__(self) -> None:
        if hasattr(self, "at"):
            self.loader.call("clReleaseContext", self.at)


class Program:
    """A program for a context's device."""

    def __init__(self, context: Context, source: str) -> None:
        self.context = context
        text = ctypes.c_char_p(source.encode())
        self.at = context.loader.made(
            "clCreateProgramWithSource", context.at, 1, ctypes.byref(text), None
        )

    def build(self) -> None:
        """Compiles it.

        Raises:
            Error: with what the compiler says.
        """
        device, ask = self.context.device.at, self.context.loader
        try:
            ask.call("clBuildProgram", self.at, 1, ctypes.byref(device), None, None, None)
        except Error as e:
            said = ask.text("clGetProgramBuildInfo", self.at, device, _BUILD_LOG)
            raise Error(f"{e.args[0]}\n{said}", e.args[1]) from None

    def __del__(self) -> None:
        if hasattr(self, "at"):
            self.context.loader.call("clReleaseProgram", self.at)


@dataclass(frozen=True)
class Loader:
    """The library that finds drivers, as far as the probe uses PyOpenCL's module."""

    library: Any

    Context = Context
    Error = Error
    Program = Program
    device_type = DeviceType

    def get_platforms(self) -> list[Platform]:
        """One for each driver."""
        return [Platform(self, at) for at in self.listed("clGetPlatformIDs")]

    def listed(self, function: str, *arguments: Any) -> list[ctypes.c_void_p]:
        """What a function lists that is first asked how long the list is."""
        count = ctypes.c_uint32()
        self.call(function, *arguments, 0, None, ctypes.byref(count))
        room = (ctypes.c_void_p * count.value)()
        self.call(function, *arguments, count, room, None)
        return [ctypes.c_void_p(at) for at in room]

    def text(self, function: str, *of: Any) -> str:
        """A text about something."""
        size = ctypes.c_size_t()
        self.call(function, *of, ctypes.c_size_t(0), None, ctypes.byref(size))
        room = ctypes.create_string_buffer(size.value)
        self.call(function, *of, size, room, None)
        return room.value.decode(errors="replace")

    def made(self, function: str, *arguments: Any) -> ctypes.c_void_p:
        """Calls a function that makes something."""
        make, code = getattr(self.library, function), ctypes.c_int32()
        make.restype = ctypes.c_void_p
        at = make(*arguments, ctypes.byref(code))
        if code.value:
            raise Error(f"{function}: {code.value}", code.value)
        return ctypes.c_void_p(at)

    def call(self, function: str, *arguments: Any) -> None:
        """Calls a function that returns whether all went well."""
        code = getattr(self.library, function)(*arguments)
        if code:
            raise Error(f"{function}: {code}", code)


@dataclass(frozen=True)
class Platform:
    """A driver; what PyOpenCL tells of it is read where it is asked for."""

    loader: Loader
    at: ctypes.c_void_p

    def get_devices(self) -> Sequence[Device]:
        """The devices of all kinds."""
        try:
            found = self.loader.listed("clGetDeviceIDs", self.at, ctypes.c_uint64(_ALL))
        except Error as e:
            if e.args[1] == _NOT_FOUND:
                return []
            raise
        return [Device(self, at) for at in found]

    def __getattr__(self, name: str) -> Any:
        if name not in _PLATFORM:
            raise AttributeError(name)
        return self.loader.text("clGetPlatformInfo", self.at, _PLATFORM[name])


@dataclass(frozen=True)
class Device:
    """A device; what PyOpenCL tells of it is read where it is asked for."""

    platform: Platform
    at: ctypes.c_void_p

    def __getattr__(self, name: str) -> Any:
        ask = self.platform.loader
        if name in _TEXTS:
            return ask.text("clGetDeviceInfo", self.at, _TEXTS[name])
        if name not in _VALUES:
            raise AttributeError(name)
        what, kind = _VALUES[name]
        value, size = kind(), ctypes.c_size_t(ctypes.sizeof(kind))
        ask.call("clGetDeviceInfo", self.at, what, size, ctypes.byref(value), None)
        return getattr(value, "value", value)


@functools.cache
def loader(package: Path) -> Loader | None:
    """The loader in PyOpenCL's wheel; None where it brings none, and uses the system's.

    Args:
        package: PyOpenCL's folder.
    """
    found = [f for place in _PLACES for f in sorted((package / place).glob("libOpenCL*.so*"))]
    if len(found) != 1:
        return None
    # Where that loader looks for drivers that are wheels as well, as PyOpenCL has it.
    os.environ["PYOPENCL_HOME"] = str(package)
    try:
        return Loader(ctypes.CDLL(str(found[0])))
    except OSError:
        return None
