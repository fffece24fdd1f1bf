"""How many threads BLAS takes: as many as a session allows, or none of its own.

OpenBLAS shares even a short product out over its own threads, and these then spin for some 100 ms
in case another comes. Where OpenMP's threads do the heavy work, that is a core taken from them:
measured, convolutions take twice as long after one row times a matrix
(`benchmarks/onednn_choices.py`).
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

__all__ = ["at_most", "shares", "unshared"]

Result = TypeVar("Result")

_VECTOR: Final = 9216
"""Multiply-adds from which OpenBLAS shares a matrix times a vector out."""
_MATRICES: Final = 1 << 18
"""The same for a product of matrices."""


def shares(rows: int, inner: int, columns: int) -> bool:
    """Whether OpenBLAS would compute a product of this size on several threads."""
    return rows * inner * columns >= (_VECTOR if min(rows, columns) < 2 else _MATRICES)


class _Limit:
    """As few threads for a BLAS as anybody wants who is inside; then what it had before."""

    def __init__(self, library: Any) -> None:
        self._get: Callable[[], int] = library.get_num_threads
        self._put: Callable[[int], None] = library.set_num_threads
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


def unshared(call: Callable[..., Result]) -> Callable[..., Result]:
    """`call` with BLAS on the calling thread alone; `call` itself where BLAS is no OpenBLAS."""
    limit = _numpys()
    if limit is None:
        return call

    def alone(*args: Any) -> Result:
        limit.enter(1)
        try:
            return call(*args)
        finally:
            limit.leave(1)

    return alone


@functools.cache
def _libraries() -> list[tuple[_Limit, Any]]:
    """Each BLAS that is loaded with its limit: NumPy's, which is there first, and maybe SciPy's."""
    import numpy  # noqa: F401, ICN001 - its BLAS must be there to be found
    import threadpoolctl

    found = threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers
    return [(_Limit(library), library) for library in found]


def _numpys() -> _Limit | None:
    """The limit of NumPy's OpenBLAS; None without one, or where several libraries could be it.

    NumPy's wheels bring their own, and SciPy's another; distributions have one for all.
    """
    found = [
        (limit, library) for limit, library in _libraries()
        if library.internal_api == "openblas" and library.threading_layer == "pthreads"
    ]  # fmt: skip
    ours = [limit for limit, library in found if "numpy" in (library.filepath or "")]
    ours = ours or [limit for limit, _ in found]
    return ours[0] if len(ours) == 1 else None
