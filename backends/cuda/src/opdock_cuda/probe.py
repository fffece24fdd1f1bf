"""Which GPUs there are, and what is missing to use them."""

from __future__ import annotations

import importlib.util

from opdock.plugin import Probe
from opdock_cuda.driver import DriverError, gpus


def probe() -> Probe:
    """The reason why no GPU can be used yet: driver, GPU, CuPy, or the kernels of this release."""
    try:
        found = gpus()
    except DriverError as e:
        return Probe(reason=str(e), installable=False)
    if not found:
        reason = "the NVIDIA driver finds no GPU (is CUDA_VISIBLE_DEVICES empty?)"
        return Probe(reason=reason, installable=False)
    names = ", ".join(gpu.name for gpu in found)
    if importlib.util.find_spec("cupy") is None:
        return Probe(reason=f"found {names}, but CuPy is not installed")
    reason = f"found {names}, but this release of opdock-cuda has no kernels"
    return Probe(reason=reason, installable=False)
