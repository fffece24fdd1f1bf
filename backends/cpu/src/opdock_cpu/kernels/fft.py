"""Fourier transforms by SciPy: several times as quick as NumPy's at lengths of large factors."""

from __future__ import annotations

import importlib
from typing import Any, Final

from opdock.plugin import COMPLEX, FLOATS, KernelTable, NodeSig, NumpyNamespace, codegen

__all__ = ["table"]


# SciPy takes long to import, and most programs transform nothing.
_NAMESPACE: Final = NumpyNamespace(
    f"{__name__}.namespace", {"fft": lambda: importlib.import_module("scipy.fft")}
)


def _namespace(sig: NodeSig) -> Any:
    return _NAMESPACE


table = KernelTable(codegen.portable_family("fft", _namespace, FLOATS | COMPLEX))
