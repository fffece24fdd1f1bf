"""Kernels from text: compiled once by NVRTC, kept in memory here and on disk by CuPy."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import cupy

from opdock_cuda.dialect import CUDA_C, OPTIONS

__all__ = ["Programs", "translation_unit"]


def translation_unit(source: str, macros: Mapping[str, object]) -> str:
    """A kernel's source behind the dialect's prelude, and macros between them.

    Were they options of the compiler, a macro `T` would reach into what stands before the source.
    """
    body = source.removeprefix(CUDA_C.prelude)
    defined = "".join(f"#define {name} {value}\n" for name, value in macros.items())
    return f"{CUDA_C.prelude}\n{defined}{body}"


class Programs:
    """The compiled kernels of one device.

    CuPy's cache (`CUPY_CACHE_DIR`, by default `~/.cupy/kernel_cache`) holds the machine code by
    source, options and architecture, so a second process compiles nothing.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._modules: dict[tuple[object, ...], Any] = {}
        self._kernels: dict[tuple[object, ...], Any] = {}

    def kernel(self, source: str, name: str, macros: Mapping[str, object]) -> Any:
        """A kernel of a program, with macros defined first."""
        key = (source, name, *macros.items())
        found = self._kernels.get(key)
        if found is None:
            with self._lock:
                module = self._module(source, macros)
                found = self._kernels[key] = module.get_function(name)
        return found

    def _module(self, source: str, macros: Mapping[str, object]) -> Any:
        key = (source, *macros.items())
        if key not in self._modules:
            text = translation_unit(source, macros)
            self._modules[key] = cupy.RawModule(code=text, options=OPTIONS, backend="nvrtc")
        return self._modules[key]

    def clear(self) -> None:
        """Forgets everything; what is on disk stays."""
        with self._lock:
            self._kernels.clear()
            self._modules.clear()
