"""NumPy's BLAS, and SciPy's, without their threads.

OpenBLAS shares even a short product out over its own threads, and these then spin for some 100 ms
in case another comes. Where OpenMP's threads do the heavy work, that is a core taken from them:
measured, convolutions take twice as long after one row times a matrix
(`benchmarks/onednn_choices.py`).
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

__all__ = ["shares", "solve_triangle", "unshared"]

Result = TypeVar("Result")

_VECTOR: Final = 9216
"""Multiply-adds from which OpenBLAS shares a matrix times a vector out."""
_MATRICES: Final = 1 << 18
"""The same for a product of matrices."""


def shares(rows: int, inner: int, columns: int) -> bool:
    """Whether OpenBLAS would compute a product of this size on several threads."""
    return rows * inner * columns >= (_VECTOR if min(rows, columns) < 2 else _MATRICES)


class _Limit:
    """One thread for BLAS while anybody wants it so; then what it was before."""

    def __init__(self, get: Callable[[], int], put: Callable[[int], None]) -> None:
        self._get = get
        self._put = put
        self._lock = threading.Lock()
        self._inside = 0
        self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before = self._get()
                self._put(1)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._put(self._before)


def unshared(call: Callable[..., Result], library: str = "numpy") -> Callable[..., Result]:
    """`call` with BLAS on the calling thread alone; `call` itself where BLAS is no OpenBLAS.

    Args:
        call: any function.
        library: whose BLAS it calls, "numpy" or "scipy"; that is imported.
    """
    limit = _limit(library)
    if limit is None:
        return call

    def alone(*args: Any, **words: Any) -> Result:
        with limit:
            return call(*args, **words)

    return alone


@functools.cache
def _limit(library: str) -> _Limit | None:
    """The limit of a library's OpenBLAS; None without one, or where several could be it.

    NumPy's wheels bring their own, and SciPy's another; distributions have one for all.
    """
    import numpy  # noqa: F401, ICN001 - its BLAS must be there to be found
    import threadpoolctl

    every = threadpoolctl.ThreadpoolController().select(internal_api="openblas").lib_controllers
    found = [c for c in every if c.threading_layer == "pthreads"]
    ours = [c for c in found if _belongs(c.filepath or "", library)] or found
    return _Limit(ours[0].get_num_threads, ours[0].set_num_threads) if len(ours) == 1 else None


def _belongs(path: str, library: str) -> bool:
    """Whether a file came with a library: it lies in "numpy.libs", or in "numpy/.dylibs"."""
    return any(part.startswith(library) for part in Path(path).parent.parts[-2:])


@functools.cache
def _triangles(kind: str) -> Callable[..., Any]:
    """LAPACK's solution of triangular systems for an element type's letter."""
    from scipy.linalg import lapack

    return unshared(getattr(lapack, f"{kind}trtrs"), "scipy")


def solve_triangle(triangle: Any, rhs: Any, lower: bool, adjoint: bool = False) -> Any:
    """Solves one system of which the matrix is a triangle, or its conjugate transpose.

    Args:
        triangle: [n, n], real or complex in single or double precision; no zero on the diagonal.
        rhs: [n, m] of the same type.
        lower: which of its triangles counts.
        adjoint: whether the conjugate transpose is the matrix.
    """
    import numpy as np

    kind = {"f": "s", "d": "d", "F": "c", "D": "z"}[triangle.dtype.char]
    # LAPACK counts along columns, so what it sees is the transpose.
    turned = adjoint and kind in "cz"
    solved, _ = _triangles(kind)(
        triangle.T, np.conj(rhs) if turned else rhs, lower=not lower, trans=0 if adjoint else 1
    )
    return np.ascontiguousarray(np.conj(solved) if turned else solved)
