"""Products of matrices inside kernels: large ones in parts that the crew shares.

BLAS on threads of its own waits for each of them at every block (`blas.py`), and on one thread it
leaves the others idle.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock_cpu.onednn.library import reason
from opdock_cpu.threads import threads

__all__ = ["product"]

Array = np.ndarray[Any, Any]

_LARGE: Final = 1 << 22
"""Multiply-adds from which there are several parts."""
_KEPT: Final = 32


def product(a: Array, b: Array) -> Array | None:
    """The product of two matrices, if it is one for this; whoever asks has another way.

    Results are the same for any number of threads.
    """
    if a.ndim != 2 or b.ndim != 2 or not a.dtype == b.dtype == np.float32:
        return None
    (rows, inner), (height, columns) = a.shape, b.shape
    if inner != height or min(rows, columns) < 2 or rows * inner * columns < _LARGE or reason():
        return None
    (left, turned), (right, other) = _as_stored(a), _as_stored(b)
    run = _parts(left.shape, turned, right.shape, other, threads())
    if run is None:
        return None
    out = np.empty((rows, columns), np.float32)
    run(left, right, out)
    return out


def _as_stored(matrix: Array) -> tuple[Array, bool]:
    """An array in one piece, and whether the matrix is its transpose."""
    if matrix.flags.c_contiguous or not matrix.flags.f_contiguous:
        return np.ascontiguousarray(matrix), False
    return matrix.T, True


@functools.lru_cache(maxsize=_KEPT)
def _parts(
    left: tuple[int, int], turned: bool, right: tuple[int, int], other: bool, most: int
) -> Callable[..., None] | None:
    """What computes the product of two stored arrays on up to `most` threads; None if not so."""
    # oneDNN takes long to load, and most programs have no product that asks for it here.
    from opdock_cpu.onednn.matmul import Factors, matrices
    from opdock_cpu.onednn.memory import dense
    from opdock_cpu.onednn.parts import Parts

    a, b = matrices(left, turned), matrices(right, other)
    parts = Factors(a, b, dense((a.dims[0], b.dims[1]))).parts()
    return Parts([part for part, _ in parts]).run if parts else None
