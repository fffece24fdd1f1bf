"""Quotients and remainders of whole numbers as loops in which processors divide vectors of doubles.

Processors divide whole numbers one by one. Those of up to 53 bits are doubles, whose quotient, cut
off, is at most one too far from zero, which the remainder's sign tells.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from opdock_cpu.jit.looped import Array, Looped, double

__all__ = ["divide_rows", "divided"]

_BLOCK: Final = 1 << 10
"""Elements that are looked at before they are divided."""
_EXACT: Final = 1 << 52
_MANY: Final = 1 << 10
_STEPS: Final = 4
_REMAINDER: Final = 1


def _by_doubles(a: int, b: int) -> Any:
    """The quotient, cut off, and the remainder of numbers that doubles hold."""
    q = int(double(a) / double(b))
    r = a - q * b
    over = (r != 0) & ((r ^ a) < 0)
    away, back = q + 1, r - b
    nearer, more = q - 1, r + b
    same = (a ^ b) >= 0
    fixed = nearer if same else away
    rest = more if same else back
    q = fixed if over else q
    r = rest if over else r
    return q, r


def _whole(a: int, b: int) -> Any:
    """The same of any numbers; minus one is no divisor here, by which the least has no quotient."""
    q = a // b
    r = a - q * b
    away, back = q + 1, r - b
    over = (r != 0) & ((a ^ b) < 0)
    q = away if over else q
    r = back if over else r
    return q, r


def _lower(q: int, r: int, b: int, floored: int) -> Any:
    """Both rounded down, if that is what is asked for."""
    down = (floored == 1) & (r != 0) & ((r ^ b) < 0)
    nearer, more = q - 1, r + b
    q = nearer if down else q
    r = more if down else r
    return q, r


def _divide(
    begin: int, end: int, out: Array, zeros: Array, x: Array, y: Array,
    size: int, wide: int, wanted: int, floored: int,
) -> None:  # fmt: skip
    """A turn is a block, of which `zeros` says how many divisors are none."""
    for t in range(begin, end):
        first, last = t * _BLOCK, min(t * _BLOCK + _BLOCK, size)
        large, none = 0, 0
        if wide == 1:
            for i in range(first, last):
                a, b = x[i], y[i]
                high = (a >= _EXACT) | (a <= -_EXACT) | (b >= _EXACT) | (b <= -_EXACT)
                large += int(high)
        if large == 0:
            for i in range(first, last):
                a, b = x[i], y[i]
                none += int(b == 0)
                b = 1 if b == 0 else b
                q, r = _by_doubles(a, b)
                q, r = _lower(q, r, b, floored)
                out[i] = r if wanted == _REMAINDER else q
        else:
            for i in range(first, last):
                a, b = x[i], y[i]
                none += int(b == 0)
                minus = b == -1
                b = 1 if (b == 0) | minus else b
                q, r = _whole(a, b)
                q, r = _lower(q, r, b, floored)
                opposite = -q
                q = opposite if minus else q
                out[i] = r if wanted == _REMAINDER else q
        zeros[t] = none


_DIVIDE: Final = Looped(_divide, ("wide", "wanted", "floored"))


def divided(
    x: Any, y: Any, out: Array | None, remainder: bool, floored: bool
) -> tuple[Array, bool] | None:
    """The quotients or remainders, and whether some divisor is zero; None where NumPy is as good.

    Args:
        x, y: arrays of one type of whole numbers, whose shapes broadcast.
        out: where to, or None.
        remainder: whether remainders are wanted.
        floored: whether quotients are rounded down, not cut off.
    """
    if max(np.size(x), np.size(y)) < _MANY:
        return None
    try:
        x, y = np.broadcast_arrays(x, y)
    except ValueError:
        return None  # which NumPy says
    if out is not None and not (out.flags.c_contiguous and out.shape == x.shape):
        return None
    found = np.empty(x.shape, x.dtype) if out is None else out
    turns = -(-x.size // _BLOCK)
    zeros = np.empty(turns, np.int32)
    numbers = (x.size, int(x.dtype.itemsize > 4), int(remainder), int(floored))
    if not _DIVIDE(turns, _STEPS * x.size, found, zeros, x, y, *numbers):
        return None
    return found, bool(zeros.any())


def _divide_rows(
    begin: int, end: int, target: Array, at: Array, rows: Array, count: int, width: int, wide: int
) -> None:
    """A turn is a block of columns: one row after the other, as the same may come again."""
    for block in range(begin, end):
        first, last = block * _BLOCK, min((block + 1) * _BLOCK, width)
        for k in range(count):
            i, r, large = at[k] * width, k * width, 0
            if wide == 1:
                for c in range(first, last):
                    a, b = target[i + c], rows[r + c]
                    high = (a >= _EXACT) | (a <= -_EXACT) | (b >= _EXACT) | (b <= -_EXACT)
                    large += int(high)
            if large == 0:
                for c in range(first, last):
                    q, _rest = _by_doubles(target[i + c], rows[r + c])
                    target[i + c] = q
            else:
                for c in range(first, last):
                    a, b = target[i + c], rows[r + c]
                    opposite = -a
                    minus = b == -1
                    b = 1 if minus else b
                    q, _rest = _whole(a, b)
                    target[i + c] = opposite if minus else q


_DIVIDE_ROWS: Final = Looped(_divide_rows, ("wide",))


def divide_rows(target: Array, at: Array, rows: Array) -> bool:
    """Divides rows of a matrix of whole numbers, the quotients cut off; False without code.

    Args:
        target: the matrix, which is written.
        at: for each of `rows` which row of it that divides.
        rows: the divisors, none of which is zero.
    """
    width = target.shape[1]
    numbers = (len(at), width, int(target.dtype.itemsize > 4))
    turns = -(-width // _BLOCK)
    return bool(rows.size) and _DIVIDE_ROWS(turns, _STEPS * rows.size, target, at, rows, *numbers)
