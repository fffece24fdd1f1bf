"""Which OpenCL devices there are, and what is missing to use them.

`OPDOCK_OPENCL_PARTS=n` divides each device that can be divided into n equal ones, as a program for
several devices wants them on a machine that has one.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from opdock.plugin import DeviceAttributes, Probe, kept
from opdock_opencl import driver
from opdock_opencl.signals import left_alone

__all__ = ["device_of", "probe", "usable_devices"]

_VERSION = (1, 2)
_PARTS = "OPDOCK_OPENCL_PARTS"
_TRIED = "opencl-compilers"
_ABOUT = ("name", "vendor", "version", "driver_version", "extensions")
_DRIVERS = ("OCL_", "POCL_", "LP_", "RUSTICL_")
"""How the variables begin by which loaders and drivers are told what to do."""
_TRIAL = "__kernel void trial(__global float* x) { x[get_global_id(0)] *= 2; }"


def probe() -> Probe:
    """The devices of all platforms, or the reason why there is none: PyOpenCL or a driver."""
    package = importlib.util.find_spec("pyopencl")
    if package is None:
        return Probe(reason="PyOpenCL is not installed")
    if (parts := os.environ.get(_PARTS, "")) and not parts.isdecimal():
        return Probe(reason=f"{_PARTS} takes a number, got {parts!r}", installable=False)
    if not parts and "pyopencl" not in sys.modules and package.origin:
        loader = driver.loader(Path(package.origin).parent)
        with suppress(driver.Error):  # then PyOpenCL says why not
            if loader is not None:
                return _found(loader)
    import pyopencl as cl

    try:
        return _found(cl)
    except cl.Error as e:
        return Probe(reason=f"no OpenCL driver is installed ({e})")


def _found(cl: Any) -> Probe:
    found, broken = usable_devices(cl)
    devices = tuple(_attributes(cl, i, d) for i, d in enumerate(found))
    reason = "; ".join(broken)
    if not devices and not broken:
        reason = "the installed OpenCL drivers find no device"
    return Probe(devices=devices, reason=reason, installable=False)


def device_of(cl: Any, attributes: DeviceAttributes) -> Any:
    """The device that the probe has told of.

    Raises:
        RuntimeError: it is not there any more.
    """
    found, broken = usable_devices(cl)
    there = dict(enumerate(found)).get(attributes.index)
    if there is None or _description(there) != attributes.description:
        listed = [*map(_description, found), *broken]
        raise RuntimeError(
            f"device {attributes.index} is not {attributes.description} any more; there are: "
            f"{'; '.join(listed) or 'none'}"
        )
    return there


def usable_devices(cl: Any) -> tuple[list[Any], list[str]]:
    """The devices that can compute, in the drivers' order, and why others cannot.

    A driver may list a processor that its compiler does not know, so each compiles one line; where
    one did, that is kept on disk until the driver is another one.
    """
    good, bad = [], []
    with left_alone():
        listed = [d for p in cl.get_platforms() for d in p.get_devices()]
    for device in listed:
        problem = _problem(cl, device)
        parts = [] if problem else _parts(cl, device)
        if parts:
            good += parts
        elif problem:
            bad.append(f"{device.name.strip()} ({str(device.version).strip()}): {problem}")
        else:
            good.append(device)
    return good, bad


def _parts(cl: Any, device: Any) -> list[Any]:
    """Equal parts of a device, if the environment asks for them and the device can be divided."""
    count = int(os.environ.get(_PARTS, "") or 1)
    if count < 2:
        return []
    equally = cl.device_partition_property.EQUALLY
    if equally not in device.partition_properties:
        return []
    units = device.max_compute_units // count
    return list(device.create_sub_devices([equally, units])[:count]) if units else []


def _problem(cl: Any, device: Any) -> str:
    words = str(device.version).split()
    try:
        version = tuple(int(n) for n in words[1].split("."))
    except (IndexError, ValueError):
        version = (0,)
    if version < _VERSION or not device.compiler_available:
        return "it lacks OpenCL 1.2 or a compiler"
    name = _name(device)
    if kept.read(_TRIED, name) is not None:
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some drivers' compilers talk even when all is well
            cl.Program(cl.Context([device]), _TRIAL).build()
    except Exception as e:  # drivers raise what they like; the device is left out either way
        lines = [line for line in str(e).splitlines() if "error" in line.lower()]
        return f"its compiler fails: {(lines or [str(e)])[-1].strip()}"
    kept.write(_TRIED, name, b"compiles")
    return ""


def _name(device: Any) -> str:
    """Under which name it is kept that a compiler works: of all that this may depend on."""
    import hashlib

    told = [_TRIAL, platform.machine()]
    about = (device, getattr(device, "platform", None))
    told += [str(getattr(one, name, "")) for one in about for name in _ABOUT]
    told += [f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith(_DRIVERS)]
    return hashlib.sha256("\0".join(told).encode()).hexdigest()


def _attributes(cl: Any, index: int, device: Any) -> DeviceAttributes:
    extensions = set(str(device.extensions).split())
    features = {"opencl"}
    features |= {"float64"} if "cl_khr_fp64" in extensions else set()
    features |= {"float16"} if "cl_khr_fp16" in extensions else set()
    return DeviceAttributes(
        index=index,
        description=_description(device),
        physical_id=_bus(device, extensions),
        memory_bytes=int(device.global_mem_size),
        features=frozenset(features),
        kind=_kind(cl, device),
    )


def _description(device: Any) -> str:
    return f"{device.name.strip()}, {str(device.version).strip()}"


def _kind(cl: Any, device: Any) -> str:
    for kind in ("CPU", "GPU", "ACCELERATOR"):
        if device.type & getattr(cl.device_type, kind):
            return kind.lower()
    return ""


def _bus(device: Any, extensions: set[str]) -> str:
    """The PCI bus id in the form that NVIDIA's tools use, where the driver tells it."""
    try:
        if "cl_khr_pci_bus_info" in extensions:
            at = device.pci_bus_info_khr
            return f"{at.pci_domain:04x}:{at.pci_bus:02x}:{at.pci_device:02x}.{at.pci_function}"
        if "cl_nv_device_attribute_query" in extensions:
            slot = int(device.pci_slot_id_nv)
            domain = int(getattr(device, "pci_domain_id_nv", 0))
            return f"{domain:04x}:{int(device.pci_bus_id_nv):02x}:{slot >> 3:02x}.{slot & 7}"
    except Exception:  # drivers differ in what they answer; without an id nothing is merged
        return ""
    return ""
