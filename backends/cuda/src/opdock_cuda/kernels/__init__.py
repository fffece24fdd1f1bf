"""The kernels of a GPU: NVIDIA's libraries first, then the C that every backend shares."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Callable
from typing import Any, Final

import array_api_compat.cupy as xp

from opdock.plugin import Kernel, KernelTable, mount
from opdock_ckernels import families

__all__ = ["LIBRARIES", "table_for"]

LIBRARIES: Final = ("linalg", "conv", "norm")
"""The modules here, each a table of kernels that call cuBLAS or cuDNN."""


def table_for(device: Any) -> KernelTable:
    """All kernels that the GPU can run."""
    found = KernelTable()
    for name in LIBRARIES:
        for kernel in importlib.import_module(f"opdock_cuda.kernels.{name}").table:
            found.add(kernel)
    for kernel in families.table_for(device):
        found.add(kernel)
    if device.alone:
        return found
    # CuPy's operators work on the current GPU, so with several each kernel makes its own current.
    every = [*found, *mount(xp, device.dtypes)]
    return KernelTable(_placed(kernel, device) for kernel in every)


def _placed(kernel: Kernel, device: Any) -> Kernel:
    return dataclasses.replace(
        kernel,
        bind=kernel.bind and _bound_there(kernel.bind, device),
        fn=kernel.fn and _there(kernel.fn, device),
    )


def _bound_there(bind: Callable[..., Any], device: Any) -> Callable[..., Any]:
    @functools.wraps(bind)
    def bound(sig: Any) -> Callable[..., Any]:
        with device.cuda:
            return _there(bind(sig), device)

    return bound


def _there(call: Callable[..., Any], device: Any) -> Callable[..., Any]:
    def run(*inputs: Any) -> Any:
        with device.cuda:
            return call(*inputs)

    return run
