"""Functions of one argument for which SciPy has a faster loop than NumPy's ufuncs together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from opdock.plugin import KernelTable, NodeSig, dtypes
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

Array = Any  # an ndarray, or the NumPy scalar that stands for a 0-d one
Unary = Callable[..., Array]

table = KernelTable()

# Below this size one call of a scalar loop beats several vectorized passes.
_SMALL: Final = 640


@table.binder("Sigmoid", T={dtypes.float32, dtypes.float64}, out=True)
def _sigmoid(sig: NodeSig) -> Unary:
    from scipy.special import expit

    vectorized = portable_kernel(sig, out=True)

    def run(x: Array, out: Array | None = None) -> Array:
        return expit(x, out) if x.size < _SMALL else vectorized(x, out)

    return run
