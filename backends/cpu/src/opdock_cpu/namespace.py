"""NumPy as the array API has it, with what core's portable kernels ask of a namespace beyond."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

import numpy as np

from opdock.plugin import NumpyNamespace
from opdock_cpu.blas import unshared

__all__ = ["namespace"]

_SHARED: Final = range(48, 768)
"""Matrices of so many columns are shared out over threads of BLAS, and lose by it: LAPACK's loops
wait for each other at every block of columns, on a busy machine for a time slice each."""


def _factored(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of matrices, on the calling thread where they are not large."""

    @functools.wraps(function)
    def run(x: Any, *args: Any, **words: Any) -> Any:
        if x.ndim > 1 and x.shape[-1] in _SHARED:
            return unshared(function)(x, *args, **words)
        return function(x, *args, **words)

    return run


def _products() -> Callable[..., Any]:
    """The function of matrices' products, of which large ones are shared out."""
    small = _factored(np.matmul)
    product = importlib.import_module("opdock_cpu.multiplying").product

    def matmul(a: Any, b: Any) -> Any:
        found = product(a, b)
        return small(a, b) if found is None else found

    return matmul


def _linalg() -> ModuleType:
    plain: Any = NumpyNamespace(__name__).linalg
    made = ModuleType(f"{__name__}.linalg")
    vars(made).update(vars(plain))
    for name in ("cholesky", "det", "eigh", "eigvalsh", "inv", "qr", "slogdet", "solve", "svd"):
        setattr(made, name, _factored(getattr(plain, name)))
    return made


namespace: Any = NumpyNamespace(
    f"{__name__}.namespace",
    {
        "astype": lambda: importlib.import_module("opdock_cpu.halves").astype,
        "fold_rows": lambda: importlib.import_module("opdock_cpu.folds").fold_rows,
        "fold_runs": lambda: importlib.import_module("opdock_cpu.folds").fold_runs,
        "linalg": _linalg,
        "on_grid": lambda: importlib.import_module("opdock_cpu.stepping").on_grid,
        "resampled": lambda: importlib.import_module("opdock_cpu.resizing").resampled,
        "matmul": _products,
        "turned": lambda: importlib.import_module("opdock_cpu.turning").turned,
    },
)
