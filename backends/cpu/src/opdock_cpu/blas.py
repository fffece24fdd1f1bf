"""How many threads BLAS takes: as many as a session allows, or none of its own.

OpenBLAS shares even a short product out over its own threads, and these then spin for some 100 ms
in case another comes. Where OpenMP's threads do the heavy work, that is a core taken from them:
measured, convolutions take twice as long after one row times a matrix
(`benchmarks/onednn_choices.py`).
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
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


def _calls(library: Any) -> tuple[Callable[[], int], Callable[[int], Any]]:
    """What says the number of threads of a threadpoolctl's library, and what sets it.

    Its own method heeds one thread of the process alone, that which was the first to call it. Here
    whoever leaves last puts back what was before, so OpenBLAS itself is asked; by the shortest way,
    since a session that computes on one thread asks in each step.
    """
    if library.internal_api == "openblas":
        loaded = ctypes.CDLL(library.filepath)
        for before, behind in itertools.product(("scipy_", ""), ("64_", "_64", "")):
            names = (f"{before}openblas_{what}_num_threads{behind}" for what in ("get", "set"))
            get, put = (getattr(loaded, name, None) for name in names)
            if get is not None and put is not None:
                get.argtypes, get.restype = [], ctypes.c_int
                put.argtypes, put.restype = [ctypes.c_int], None
                return get, put
    return library.get_num_threads, library.set_num_threads


class _Limit:
    """As few threads for a BLAS as anybody wants who is inside; then what it had before."""

    def __init__(self, library: Any) -> None:
        self._get, self._put = _calls(library)
        self._lock = threading.RLock()
        self._wanted: list[int] = []
        self._before = self._now = 0

    def enter(self, count: int) -> None:
        with self._lock:
            if not self._wanted:
                self._before = self._now = self._get()
            self._wanted.append(count)
            self._set(min(count, self._now))

    def leave(self, count: int) -> None:
        with self._lock:
            self._wanted.remove(count)
            self._set(min(self._before, *self._wanted) if self._wanted else self._before)

    def _set(self, count: int) -> None:
        if count != self._now:
            self._now = count
            self._put(count)


_limits: Final[dict[str, _Limit]] = {}
"""By the file of the library: there is one for each, whoever finds it."""


def at_most(count: int) -> AbstractContextManager[None]:
    """Every BLAS of the process on so many threads, for as long as this lasts."""
    return _Within(count)


class _Within(AbstractContextManager[None]):
    """A class, not a generator, which takes twice as long: steps are within one."""

    __slots__ = ("_count", "_entered")

    def __init__(self, count: int) -> None:
        self._count = count
        self._entered: list[_Limit] = []

    def __enter__(self) -> None:
        self._entered = [limit for limit, _ in _libraries()]
        for limit in self._entered:
            limit.enter(self._count)

    def __exit__(self, *error: object) -> None:
        for limit in self._entered:
            limit.leave(self._count)


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
    """BLAS's solution of triangular systems for an element type's letter."""
    from scipy.linalg import blas

    return unshared(getattr(blas, f"{kind}trsm"), "scipy")


def solve_triangle(triangle: Any, rhs: Any, lower: bool, adjoint: bool = False) -> Any:
    """Solves one system of which the matrix is a triangle, or its conjugate transpose.

    Args:
        triangle: [n, n], real or complex in single or double precision; no zero on the diagonal.
        rhs: [n, m] of the same type.
        lower: which of its triangles counts.
        adjoint: whether the conjugate transpose is the matrix.
    """
    kind = {"f": "s", "d": "d", "F": "c", "D": "z"}[triangle.dtype.char]
    # BLAS counts along columns, so what it sees are the transposes, of the result too: then the
    # matrix stands on its other side, and nothing is turned round in memory.
    solved = _triangles(kind)(
        1.0, triangle.T, rhs.T, side=1, lower=not lower, trans_a=2 if adjoint else 0
    )
    return solved.T
