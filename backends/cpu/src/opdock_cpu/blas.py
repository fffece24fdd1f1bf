"""How many threads BLAS takes: as many as a session allows, or none of its own.

OpenBLAS shares even a short product out over its own threads, and these then spin for some 100 ms
in case another comes. Where OpenMP's threads do the heavy work, that is a core taken from them:
measured, convolutions take twice as long after one row times a matrix
(`benchmarks/onednn_choices.py`).
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

__all__ = ["at_most", "only_one", "shares", "solve_triangle", "unshared"]

Result = TypeVar("Result")

_VECTOR: Final = 9216
"""Multiply-adds from which OpenBLAS shares a matrix times a vector out."""
_MATRICES: Final = 1 << 18
"""The same for a product of matrices."""


def shares(rows: int, inner: int, columns: int) -> bool:
    """Whether OpenBLAS would compute a product of this size on several threads."""
    return rows * inner * columns >= (_VECTOR if min(rows, columns) < 2 else _MATRICES)


def _setter(library: Any) -> Callable[[int], None]:
    """What sets the number of threads of a threadpoolctl's library.

    Its own method heeds one thread of the process alone, that which was the first to call it. Here
    whoever leaves last puts back what was before, so OpenBLAS itself is asked.
    """
    if library.internal_api == "openblas":
        loaded = ctypes.CDLL(library.filepath)
        for before, behind in itertools.product(("scipy_", ""), ("64_", "_64", "")):
            found = getattr(loaded, f"{before}openblas_set_num_threads{behind}", None)
            if found is not None:
                found.argtypes, found.restype = [ctypes.c_int], None
                return found  # type: ignore[no-any-return]
    return library.set_num_threads  # type: ignore[no-any-return]


class _Limit:
    """As few threads for a BLAS as anybody wants who is inside; then what it had before."""

    def __init__(self, library: Any) -> None:
        self._get: Callable[[], int] = library.get_num_threads
        self._put: Callable[[int], None] = _setter(library)
        self._lock = threading.Lock()
        self._wanted: list[int] = []
        self._before = 0

    def enter(self, count: int) -> None:
        with self._lock:
            if not self._wanted:
                self._before = self._get()
            self._wanted.append(count)
            self._put(min(self._before, *self._wanted))

    def leave(self, count: int) -> None:
        with self._lock:
            self._wanted.remove(count)
            self._put(min([self._before, *self._wanted]))


_limits: Final[dict[str, _Limit]] = {}
"""By the file of the library: there is one for each, whoever finds it."""


@contextlib.contextmanager
def at_most(count: int) -> Iterator[None]:
    """Every BLAS of the process on so many threads, for as long as this lasts."""
    entered = [limit for limit, _ in _libraries()]
    for limit in entered:
        limit.enter(count)
    try:
        yield
    finally:
        for limit in entered:
            limit.leave(count)


@functools.cache
def only_one() -> None:
    """Every BLAS that is loaded has one thread from now on.

    In which order it adds up depends on how many it has.
    """
    for limit, _ in _libraries():
        limit.enter(1)


def unshared(call: Callable[..., Result], library: str = "numpy") -> Callable[..., Result]:
    """`call` with BLAS on the calling thread alone; `call` itself where BLAS is no OpenBLAS.

    Args:
        call: any function.
        library: whose BLAS it calls, "numpy" or "scipy"; that is imported.
    """
    limit = _limit_of(library)
    if limit is None:
        return call

    def alone(*args: Any, **words: Any) -> Result:
        limit.enter(1)
        try:
            return call(*args, **words)
        finally:
            limit.leave(1)

    return alone


@functools.cache
def _loaded(with_scipy: bool) -> list[tuple[_Limit, Any]]:
    import numpy  # noqa: F401, ICN001 - its BLAS must be there to be found
    import threadpoolctl

    found = threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers
    return [(_limits.setdefault(str(c.filepath), _Limit(c)), c) for c in found]


def _libraries() -> list[tuple[_Limit, Any]]:
    """Each BLAS that is loaded, with its limit: NumPy's, and SciPy's once that is imported."""
    return _loaded("scipy.linalg" in sys.modules)


def _limit_of(library: str) -> _Limit | None:
    """The limit of a library's OpenBLAS; None without one, or where several could be it.

    NumPy's wheels bring their own, and SciPy's another; distributions have one for all.
    """
    found = [
        (limit, c) for limit, c in _libraries()
        if c.internal_api == "openblas" and c.threading_layer == "pthreads"
    ]  # fmt: skip
    ours = [limit for limit, c in found if _belongs(c.filepath or "", library)]
    ours = ours or [limit for limit, _ in found]
    return ours[0] if len(ours) == 1 else None


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
