"""Quotients and remainders of whole numbers by generated loops.

NumPy divides by one number quickly. By as many as there are it goes on one thread, and by a short
row of them, as coordinates are divided by the sizes of blocks, it begins anew for each row.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from opdock_cpu.jit.looped import Array, Looped

__all__ = ["divided"]

_MANY: Final = 1 << 12
"""Elements from which a call of generated code takes less than NumPy."""
_COST: Final = 4
"""Steps of a division."""
_SHORT: Final = 8
"""Columns of which the code says how many they are."""
_FLOORED, _FLOORED_REST, _TRUNCATED, _TRUNCATED_REST = range(4)
"""What is computed: quotients, or remainders where the number is odd."""
_KINDS: Final = {
    "FloorDiv": _FLOORED,
    "FloorMod": _FLOORED_REST,
    "Div": _TRUNCATED,
    "TruncateDiv": _TRUNCATED,
    "Mod": _TRUNCATED_REST,
    "TruncateMod": _TRUNCATED_REST,
}


def _divide(
    begin: int, end: int, out: Array, x: Array, y: Array, columns: int, x_down: int, x_along: int,
    y_down: int, y_along: int, kind: int,
) -> None:  # fmt: skip
    """A turn is a row; no divisor is zero."""
    for r in range(begin, end):
        for c in range(columns):
            a, b = int(x[r * x_down + c * x_along]), int(y[r * y_down + c * y_along])
            whole = a
            if b == -1:
                whole = 0 - a  # processors do not divide the least number by it
            elif b != 1:
                whole = a // b
            rest = a - whole * b
            if kind >= _TRUNCATED and rest != 0 and whole < 0:
                whole = whole + 1
                rest = rest - b
            out[r * columns + c] = rest if kind % 2 == 1 else whole


def divided(op: str, x: Any, y: Any, out: Array | None) -> Array | None:
    """What an op gives of whole numbers; None without code, and for what NumPy is quick at.

    Args:
        op: the op type.
        x: what is divided.
        y: the divisors, of which none is zero.
        out: where the result goes.
    """
    if np.size(y) < 2 or np.size(x) * np.size(y) < _MANY:
        return None
    try:
        shape = np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return None
    split = _split(shape, x.shape, y.shape) if math.prod(shape) >= _MANY else None
    if split is None or (out is not None and not out.flags.c_contiguous):
        return None
    columns = math.prod(shape[split:])
    steps = [_steps(shape, a.shape, split, columns) for a in (x, y)]
    out = np.empty(shape, x.dtype) if out is None else out
    loop, numbers = _LOOPS[op], (columns, *steps[0], *steps[1], _KINDS[op])
    done = loop[columns <= _SHORT](out.size // columns, _COST * out.size, out, x, y, *numbers)
    return out if done else None


_LOOPS: Final = {
    op: (Looped(_divide, fixed=("kind",)), Looped(_divide, fixed=("columns", "kind")))
    for op in _KINDS
}


def _varies(shape: tuple[int, ...], own: tuple[int, ...]) -> list[bool]:
    """Along which dimensions of a shape an array that goes with it has more than one element."""
    missing = len(shape) - len(own)
    return [i >= missing and own[i - missing] > 1 for i in range(len(shape))]


def _split(shape: tuple[int, ...], *owns: tuple[int, ...]) -> int | None:
    """Before which dimension all are rows: each array goes with all before, or none; so behind."""
    for at in range(len(shape), -1, -1):
        halves = [
            [v for v, n in zip(part, sizes, strict=True) if n > 1]
            for own in owns
            for varies in [_varies(shape, own)]
            for part, sizes in ((varies[:at], shape[:at]), (varies[at:], shape[at:]))
        ]
        if all(all(half) or not any(half) for half in halves):
            return at
    return None


def _steps(
    shape: tuple[int, ...], own: tuple[int, ...], split: int, columns: int
) -> tuple[int, int]:
    """How many elements of an array lie between the rows, and between the columns."""
    varies = _varies(shape, own)
    along = any(varies[split:])
    down = (columns if along else 1) if any(varies[:split]) else 0
    return down, int(along)
