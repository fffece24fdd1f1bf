"""Fourier transforms by SciPy: several times as quick as NumPy's at lengths of large factors."""

from __future__ import annotations

import importlib
from typing import Any, Final

import array_api_compat.numpy as xp

from opdock.plugin import COMPLEX, FLOATS, KernelTable, NodeSig, codegen

__all__ = ["table"]


class _Namespace:
    """NumPy with SciPy's transforms."""

    def __getattr__(self, name: str) -> Any:
        # SciPy takes long to import, and most programs transform nothing.
        return importlib.import_module("scipy.fft") if name == "fft" else getattr(xp, name)


_NAMESPACE: Final = _Namespace()


def _namespace(sig: NodeSig) -> Any:
    return _NAMESPACE


table = KernelTable(codegen.portable_family("fft", _namespace, FLOATS | COMPLEX))
