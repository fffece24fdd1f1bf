"""Fourier transforms by SciPy: several times as quick as NumPy's at lengths of large factors.

Those of many rows are shared out over threads while that gains; each row is computed on one, so
results are the same for any number of threads. One long transform is made of many shorter ones.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Sequence
from time import perf_counter
from types import ModuleType
from typing import Any, Final

import numpy as np

from opdock.plugin import COMPLEX, FLOATS, KernelTable, NodeSig, NumpyNamespace, codegen
from opdock_cpu.sharing import Site
from opdock_cpu.threads import threads

__all__ = ["table"]

Array = np.ndarray[Any, Any]
Transform = Callable[..., Array]

_MANY: Final = 1 << 15
"""Elements from which a second thread may gain."""
_LONG: Final = 1 << 17
"""Elements of a row that the nearest caches have no room for."""
_PRIME: Final = 256
"""Primes of which SciPy makes longer transforms."""
_SOME: Final = 1 << 13
"""Elements of a row that is worth the calls."""
_LEAST: Final = 16
"""The least factor of a length that is worth a pass over memory."""
_KEPT: Final = 64


# ---------------------------------------------------------------- on several threads
@functools.lru_cache(maxsize=_KEPT)
def _site(*work: Any) -> Site:
    """The place of all calls that do the same work."""
    return Site()


def _shared(transform: Transform) -> Transform:
    """A function of SciPy's on as many threads as gain, of those that an op may use."""

    @functools.wraps(transform)
    def run(
        x: Array, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
        overwrite_x: bool = False,
    ) -> Array:  # fmt: skip
        count = threads()
        if count == 1 or x.size < _MANY:
            return transform(x, s, axes, overwrite_x=overwrite_x)
        site = _site(transform, x.shape, x.dtype, s, axes)
        several = site.shared()
        begin = perf_counter()
        found = transform(x, s, axes, overwrite_x=overwrite_x, workers=count if several else 1)
        site.tell(several, perf_counter() - begin)
        return found

    return run


# ---------------------------------------------------------------- long rows
def _divided(length: int) -> int:
    """A factor of a length, into so many rows of which it is divided; 1 if that does not pay.

    It is near the length's root, or what a large prime leaves: SciPy makes transforms of twice the
    length, and more, where there is one, and here they are those of the prime alone.
    """
    near = math.isqrt(length)
    if length >= _LONG:
        return next((n for n in range(near, _LEAST - 1, -1) if length % n == 0), 1)
    rest, factor = length, 2
    while factor * factor <= rest:
        if rest % factor:
            factor += 1
        else:
            rest //= factor
    return length // rest if rest >= _PRIME and length // rest >= _LEAST else 1


@functools.lru_cache(maxsize=2)
def _turns(rows: int, columns: int, kind: Any, inverse: bool) -> Array:
    """What the numbers between both passes are turned by: roots of one."""
    places = np.arange(rows)[:, None] * np.arange(columns)
    step = (2j if inverse else -2j) * np.pi / (rows * columns)
    turned: Array = np.exp(step * places).astype(kind)
    turned.flags.writeable = False
    return turned


def _of_rows(transform: Transform, inverse: bool) -> Transform:
    """A function of SciPy's, which computes single long rows by rows and columns of matrices.

    With the row as a matrix these are transforms of its columns, a turn of each number, and
    transforms of the rows; the result lies column by column.
    """

    @functools.wraps(transform)
    def run(x: Array, s: Sequence[int] | None = None, axes: Sequence[int] | None = None) -> Array:
        length = x.shape[-1]
        alone = axes is not None and len(axes) == 1 and x.size == length >= _SOME
        rows = _divided(length) if alone and s is None and x.dtype.kind == "c" else 1
        if rows == 1:
            return transform(x, s, axes)
        matrix = transform(x.reshape(rows, -1), axes=(0,))
        np.multiply(matrix, _turns(rows, length // rows, x.dtype, inverse), matrix)
        found = transform(matrix, axes=(1,), overwrite_x=True)
        return np.ascontiguousarray(found.T).reshape(x.shape)

    return run


# ---------------------------------------------------------------- the namespace
def _transforms() -> ModuleType:
    # SciPy takes long to import, and most programs transform nothing.
    plain = importlib.import_module("scipy.fft")
    made = ModuleType(f"{__name__}.transforms")
    vars(made).update(vars(plain))
    for name in ("rfftn", "irfftn"):
        setattr(made, name, _shared(getattr(plain, name)))
    for name in ("fftn", "ifftn"):
        setattr(made, name, _of_rows(_shared(getattr(plain, name)), inverse=name == "ifftn"))
    return made


_NAMESPACE: Final = NumpyNamespace(f"{__name__}.namespace", {"fft": _transforms})


def _namespace(sig: NodeSig) -> Any:
    return _NAMESPACE


table = KernelTable(codegen.portable_family("fft", _namespace, FLOATS | COMPLEX))
