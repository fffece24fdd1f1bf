"""Which GPUs there are, and what is missing to use them."""

from __future__ import annotations

import importlib.util

from opdock.plugin import DeviceAttributes, Probe
from opdock_cuda.driver import DriverError, Gpu, gpus

__all__ = ["probe"]


def probe() -> Probe:
    """The GPUs, or the reason why none can be used: driver, GPU or CuPy."""
    try:
        found = gpus()
    except DriverError as e:
        return Probe(reason=str(e), installable=False)
    if not found:
        reason = "the NVIDIA driver finds no GPU (is CUDA_VISIBLE_DEVICES empty?)"
        return Probe(reason=reason, installable=False)
    if importlib.util.find_spec("cupy") is None:
        names = ", ".join(gpu.name for gpu in found)
        return Probe(reason=f"found {names}, but CuPy is not installed")
    return Probe(devices=tuple(_attributes(i, gpu) for i, gpu in enumerate(found)))


def _attributes(index: int, gpu: Gpu) -> DeviceAttributes:
    return DeviceAttributes(
        index=index, description=gpu.name, physical_id=gpu.pci_bus_id,
        memory_bytes=gpu.memory_bytes, features=frozenset({"cuda", "float64", "float16"}),
        kind="gpu",
    )  # fmt: skip
