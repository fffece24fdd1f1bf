"""NumPy as the array API has it, with what core's portable kernels ask of a namespace beyond."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

import array_api_compat.numpy as xp

from opdock_cpu.blas import unshared
from opdock_cpu.folds import fold_rows

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


linalg: Any = ModuleType("opdock_cpu.namespace.linalg")
vars(linalg).update(vars(xp.linalg))
for _name in ("cholesky", "det", "eigh", "eigvalsh", "inv", "qr", "slogdet", "solve", "svd"):
    setattr(linalg, _name, _factored(getattr(xp.linalg, _name)))

namespace: Any = ModuleType("opdock_cpu.namespace.namespace")
# Attributes of its own: to pass each look-up on would cost more than many a kernel.
vars(namespace).update(
    vars(xp), fold_rows=fold_rows, linalg=linalg, matmul=_factored(vars(xp)["matmul"])
)
