"""Numbers in text, read and printed by generated loops where whole numbers say them exactly.

They say what they leave out, for instance numbers of more digits; `numbers.py` does the rest.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from opdock_cpu.jit import strings
from opdock_cpu.jit.looped import Array, Looped, double
from opdock_cpu.text.packed import WHITE, Packed

__all__ = ["printed", "read"]

_POWERS: Final = 10.0 ** np.arange(23)
"""Those of ten that are numbers of double precision; what is multiplied by one is rounded once."""
_EXACT: Final = 1 << 53
"""Whole numbers up to this one are numbers of double precision."""
_LONGEST: Final = 31
_SLOT: Final = 24
"""Bytes in which any printed number has room."""
_PLACES: Final = 11
"""Digits behind the point: ten to this, times a mantissa of single precision, is an int64."""
_WIDE_PLACES: Final = 10
"""Ten to this, times either half of a mantissa of double precision, is an int64."""
_LOW: Final = 27
"""Bits of the lower half of a mantissa of double precision."""


def read(
    whole: Packed, starts: Array, ends: Array, dtype: np.dtype[Any]
) -> tuple[Array, Array] | None:
    """The numbers that pieces of strings spell, in double precision or int64.

    Returns:
        The numbers, and the indices of those that were left out; None if there is no code.
    """
    out = np.zeros(starts.size, np.float64 if dtype.kind == "f" else np.int64)
    left = np.zeros(starts.size, np.bool_)
    arrays = (out, left, whole.data, starts, ends, WHITE)
    steps = whole.data.size + starts.size
    if dtype.kind == "f":
        done = _REAL(starts.size, steps, *arrays, _POWERS)
    else:
        info = np.iinfo(dtype)
        done = _WHOLE(starts.size, steps, *arrays, int(info.min), min(int(info.max), 2**63 - 1))
    return (out, np.flatnonzero(left)) if done else None


def _digit(byte: int) -> bool:
    return byte >= 48 and byte <= 57


def _real(
    begin: int, end: int, out: Array, left: Array, data: Array, starts: Array, ends: Array,
    white: Array, powers: Array,
) -> None:  # fmt: skip
    for i in range(begin, end):
        at, last = starts[i], ends[i]
        fine = last - at <= _LONGEST
        while at < last and white[data[at]]:
            at += 1
        while at < last and white[data[last - 1]]:
            last -= 1
        minus = at < last and data[at] == 45
        if at < last and (data[at] == 45 or data[at] == 43):
            at += 1
        digits, behind, value = 0, 0, 0
        point = False
        while at < last and (_digit(data[at]) or (data[at] == 46 and not point)):
            if data[at] == 46:
                point = True
            else:
                digits += 1
                behind += 1 if point else 0
                value = value * 10 + (data[at] - 48) if value < _EXACT else value
                fine = fine and value < _EXACT
            at += 1
        power = 0
        if at < last and (data[at] == 101 or data[at] == 69):
            at += 1
            down = at < last and data[at] == 45
            if at < last and (data[at] == 45 or data[at] == 43):
                at += 1
            fine = fine and at < last
            while at < last and _digit(data[at]):
                power = power * 10 + (data[at] - 48)
                at += 1
            power = -power if down else power
        power -= behind
        if fine and at == last and digits > 0 and abs(power) <= 22:
            number = double(value)
            number = number / powers[-power] if power < 0 else number * powers[power]
            out[i] = -number if minus else number
        else:
            left[i] = True


def _whole(
    begin: int, end: int, out: Array, left: Array, data: Array, starts: Array, ends: Array,
    white: Array, least: int, most: int,
) -> None:  # fmt: skip
    for i in range(begin, end):
        at, last = starts[i], ends[i]
        while at < last and white[data[at]]:
            at += 1
        while at < last and white[data[last - 1]]:
            last -= 1
        minus = at < last and data[at] == 45
        if minus:
            at += 1
        fine = at < last and last - at <= 18
        value = 0
        while fine and at < last:
            fine = _digit(data[at])
            value = value * 10 + (data[at] - 48)
            at += 1
        value = -value if minus else value
        if fine and least <= value and value <= most:
            out[i] = value
        else:
            left[i] = True


_REAL: Final = Looped(_real)
_WHOLE: Final = Looped(_whole)


def printed(x: Array, places: int) -> Array | None:
    """Numbers as text, as `%d` and `%.{places}f` give them.

    Args:
        x: whole numbers, or real ones of double precision or less.
        places: digits behind the point; none, and no point, for whole numbers.

    Returns:
        The strings; None if there is no code, or none for such numbers.
    """
    out, starts = np.empty((x.size, _SLOT), np.uint8), np.empty(x.size, np.int64)
    if x.dtype.kind == "f":
        wide = x.dtype == np.float64
        values = np.ascontiguousarray(x if wide else x.astype(np.float32)).reshape(-1)
        # One comparison, which what is no number fails too.
        if not np.abs(values).max(initial=0) * 10.0**places < 2.0**62:
            return None
        if places > (_WIDE_PLACES if wide else _PLACES):
            return None
        number = (values.view(np.int64 if wide else np.int32), 10**places, places)
        done = (_FIXED_WIDE if wide else _FIXED)(x.size, x.size * _SLOT, out, starts, *number)
    else:
        if x.dtype == np.uint64 and x.size and x.max() > np.iinfo(np.int64).max:
            return None
        done = _DECIMAL(x.size, x.size * _SLOT, out, starts, x.astype(np.int64).reshape(-1))
    ends = np.arange(1, x.size + 1) * _SLOT
    return strings.made(out, starts, ends, x.shape) if done else None


def _digits(out: Array, at: int, value: int, fewest: int) -> int:
    """Writes a number in front of a place; where it begins."""
    have = at + 0
    rest = value + 0
    # Down from zero: the least of all whole numbers has no negative.
    while rest != 0 or at - have < fewest:
        have -= 1
        tens = (rest + 9) // 10
        out[have] = 48 + tens * 10 - rest
        rest = tens
    return have


def _decimal(begin: int, end: int, out: Array, starts: Array, x: Array) -> None:
    for i in range(begin, end):
        at = _digits(out, (i + 1) * _SLOT, x[i] if x[i] < 0 else -x[i], 1)
        if x[i] < 0:
            at -= 1
            out[at] = 45
        starts[i] = at


def _fixed(
    begin: int, end: int, out: Array, starts: Array, bits: Array, scale: int, places: int
) -> None:
    for i in range(begin, end):
        word = bits[i]
        exponent = (word >> 23) & 255
        mantissa = word & 8388607
        down = 150 - exponent if exponent > 0 else 149
        value = (mantissa + 8388608 if exponent > 0 else mantissa) * scale
        if down <= 0:
            value = value << (-down)
        elif down > 62:
            value = 0
        else:
            rest = value & ((1 << down) - 1)
            half = 1 << (down - 1)
            value = value >> down
            if rest > half or (rest == half and (value & 1) == 1):
                value += 1
        front = value // scale
        starts[i] = _parts(out, (i + 1) * _SLOT, front, value - front * scale, places, word < 0)


def _parts(out: Array, end: int, front: int, behind: int, places: int, minus: bool) -> int:
    """Writes what stands in front of the point and behind it up to a place; where it begins."""
    at = end + 0
    if places > 0:
        at = _digits(out, at, -behind, places) - 1
        out[at] = 46
    at = _digits(out, at, -front, 1)
    if minus:
        at -= 1
        out[at] = 45
    return at


def _fixed_wide(
    begin: int, end: int, out: Array, starts: Array, bits: Array, scale: int, places: int
) -> None:
    """A mantissa times the scale has more bits than an int64: its halves are multiplied."""
    for i in range(begin, end):
        word = bits[i]
        exponent = (word >> 52) & 2047
        mantissa = word & 4503599627370495
        mantissa = mantissa + 4503599627370496 if exponent > 0 else mantissa
        down = 1075 - exponent if exponent > 0 else 1074
        front, rest = 0, mantissa
        if down <= 0:
            front, rest, down = mantissa << (-down), 0, 53
        elif down < 53:
            front = mantissa >> down
            rest = (mantissa & ((1 << down) - 1)) << (53 - down)
            down = 53
        # What is behind the point is `rest` over two to the power of `down`.
        low = (rest & ((1 << _LOW) - 1)) * scale
        high = (rest >> _LOW) * scale + (low >> _LOW)
        low = low & ((1 << _LOW) - 1)
        behind, down = 0, down - _LOW
        if down <= 62:
            left = high & ((1 << down) - 1)
            half = 1 << (down - 1)
            behind = high >> down
            if left > half or (left == half and (low > 0 or (front * scale + behind) & 1 == 1)):
                behind += 1
        if behind == scale:
            front, behind = front + 1, 0
        starts[i] = _parts(out, (i + 1) * _SLOT, front, behind, places, word < 0)


_DECIMAL: Final = Looped(_decimal)
_FIXED: Final = Looped(_fixed)
_FIXED_WIDE: Final = Looped(_fixed_wide)
