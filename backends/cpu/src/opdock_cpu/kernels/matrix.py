"""Transposition, of large matrices piece by piece; bands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import NUMBERS, KernelTable, NodeSig, axes, checks, dtypes
from opdock_cpu.jit.looped import Looped
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()
# Beyond these sizes a column of the source does not stay in the cache until its neighbour is read;
# from the smaller one on a call of generated code gains more than it takes.
_LARGE, _MEDIUM = 1 << 20, 1 << 18
_LONG, _ROWS, _COLS = 256, 16, 64
_BITS: Final = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
_HIGH, _WIDE = 32, 16
"""Rows of a turn, and elements of a piece of each."""


def _moved(
    out: Array, x: Array, first: int, high: int, left: int, wide: int, rows: int, columns: int
) -> None:
    """A piece of so many rows of what comes out, and so many of their elements."""
    for r in range(high):
        for c in range(wide):
            out[(first + r) * columns + left + c] = x[(left + c) * rows + first + r]


def _turned(begin: int, end: int, out: Array, x: Array, rows: int, columns: int) -> None:
    """A turn is a band of rows of what comes out: they lie side by side in the lines that are read.

    It goes piece by piece, of so few lines that these are still there for the band's next row, also
    where they lie a power of two apart. Of whole pieces the code says how large they are.
    """
    for turn in range(begin, end):
        first, whole = turn * _HIGH, columns // _WIDE * _WIDE
        if first + _HIGH <= rows:
            for piece in range(columns // _WIDE):
                _moved(out, x, first, _HIGH, piece * _WIDE, _WIDE, rows, columns)
            _moved(out, x, first, _HIGH, whole, columns - whole, rows, columns)
        else:
            _moved(out, x, first, rows - first, 0, columns, rows, columns)


_TURNED: Final = Looped(_turned)


def _turned_at_once(out: Array, view: Array) -> bool:
    """Copies a transposed matrix in generated code, if there is some."""
    source, bits = view.T, _BITS.get(view.itemsize)
    whole = source.flags.c_contiguous and out.flags.c_contiguous
    if bits is None or view.dtype.hasobject or not whole:
        return False
    rows, columns = out.shape
    turns = -(-rows // _HIGH)
    return _TURNED(turns, out.size, out.view(bits), source.view(bits), rows, columns)


def copy_turned(out: Array, view: Array) -> None:
    """`out[...] = view` for a transposed view; large matrices go block by block."""
    turned = view.ndim > 1 and view.strides[-1] != view.itemsize and min(view.shape[-2:]) >= _LONG
    if not turned or view.nbytes < _MEDIUM:
        out[...] = view
    elif view.ndim > 2:
        for part, source in zip(out, view, strict=True):
            copy_turned(part, source)
    elif not _turned_at_once(out, view):
        _copy_blocks(out, view)


def _copy_blocks(out: Array, view: Array) -> None:
    if view.nbytes < _LARGE:
        out[...] = view
        return
    for i in range(0, view.shape[0], _ROWS):
        for j in range(0, view.shape[1], _COLS):
            out[i : i + _ROWS, j : j + _COLS] = view[i : i + _ROWS, j : j + _COLS]


@table.binder("Transpose", "ConjugateTranspose", out=True, host_inputs=("perm",))
def transpose(sig: NodeSig) -> Callable[..., Array]:
    """The dimensions in another order."""
    conjugate = sig.op == "ConjugateTranspose" and sig.in_dtypes[0].is_complex
    const, shape = sig.const(1), sig.in_shapes[0]
    fixed = None
    if const is not None and shape is not None:
        fixed = axes.permutation(const, len(shape))

    def run(x: Any, perm: Any, out: Array | None) -> Array:
        view = x.transpose(axes.permutation(perm, x.ndim) if fixed is None else fixed)
        if out is None:
            out = np.empty(view.shape, view.dtype)
        if conjugate:
            np.conjugate(view, out)
        else:
            copy_turned(out, view)
        return out

    return run


def _banded(
    begin: int, end: int, out: Array, x: Array, rows: int, columns: int, lower: int, upper: int
) -> None:
    """A turn is a row: what is at most so far below or above the diagonal stays."""
    for r in range(begin, end):
        first = min(max(r % rows - lower, 0), columns)
        last = max(min(r % rows + upper + 1, columns), first)
        for c in range(first):
            out[r * columns + c] = 0
        for c in range(first, last):
            out[r * columns + c] = x[r * columns + c]
        for c in range(last, columns):
            out[r * columns + c] = 0


_BANDED: Final = Looped(_banded)


@table.binder(
    "MatrixBandPart", T=NUMBERS | {dtypes.bool}, host_inputs=("num_lower", "num_upper"), out=True
)
def matrix_band_part(sig: NodeSig) -> Callable[..., Array]:
    """Zeros outside a band."""
    plain: Callable[..., Array] = portable_kernel(sig)

    def run(x: Array, num_lower: Array, num_upper: Array, out: Array | None = None) -> Array:
        out = np.empty(x.shape, x.dtype) if out is None else out
        band = checks.band_of(x.shape, num_lower, num_upper)
        if x.size:
            rows, columns = x.shape[-2:]
            if _BANDED(x.size // columns, x.size, out, x, rows, columns, *band):
                return out
        out[...] = plain(x, num_lower, num_upper)
        return out

    return run
