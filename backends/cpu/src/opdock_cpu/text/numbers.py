"""Numbers in text, as TF reads and prints them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from opdock_cpu.text import number_loops
from opdock_cpu.text.arrays import Array, array_of, flat
from opdock_cpu.text.packed import Packed

_INTEGER: Final = re.compile(rb"\s*-?[0-9]+\s*")
_FLOAT: Final = re.compile(
    rb"\s*([+-]?)(?:([0-9]+\.?[0-9]*(?:e[+-]?[0-9]+)?|\.[0-9]+(?:e[+-]?[0-9]+)?|inf|nan)"
    rb"|0x([0-9a-f]+))\s*",
    re.IGNORECASE,
)
# TF copies what it reads into a buffer of this size.
_LONGEST: Final = 31
_DIGITS: Final = 19
"""Of the longest integers."""
_MANY: Final = 1 << 8
"""Numbers that are printed by generated code, where there is some."""


def integer(text: bytes, low: int, high: int) -> int | None:
    """The integer that a string spells, or None if it is none of the range."""
    if _INTEGER.fullmatch(text) is None:
        return None
    # Beyond this many digits no leading zeros help, and Python's conversion takes quadratic time.
    digits = text.strip().lstrip(b"-").lstrip(b"0")
    if len(digits) > 19:
        return None
    value = int(digits or b"0")
    value = -value if text.strip().startswith(b"-") else value
    return value if low <= value <= high else None


def floating(text: bytes) -> float | None:
    """The number that a string spells, or None."""
    if len(text) > _LONGEST:
        return None
    found = _FLOAT.fullmatch(text)
    if found is None:
        return None
    sign, decimal, hexadecimal = found.groups()
    value = float(decimal) if decimal is not None else float(int(hexadecimal, 16))
    return -value if sign == b"-" else value


def reader(dtype: np.dtype[Any]) -> Callable[[bytes], Any]:
    """The function that reads a number of that type, and gives None for what is none."""
    if dtype.kind == "f":
        return floating
    info = np.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    return lambda text: integer(text, low, high)


def read_all(texts: Sequence[bytes], dtype: np.dtype[Any]) -> list[Any]:
    """The numbers of that type that strings spell, as Python's; None for what is none."""
    return _plain(texts, dtype) or list(map(reader(dtype), texts))


def read_array(texts: Sequence[bytes], dtype: np.dtype[Any]) -> tuple[Array, int | None]:
    """The numbers that strings spell, as an array, and the index of the first that is none."""
    found = read_all(texts, dtype)
    if None in found:
        return np.empty(0, dtype), found.index(None)
    with np.errstate(over="ignore"):
        # Reals are read in double precision, whatever they become.
        return np.array(found, np.float64 if dtype.kind == "f" else dtype).astype(dtype), None


def read_pieces(
    whole: Packed, starts: Array, ends: Array, dtype: np.dtype[Any]
) -> tuple[Array, int | None]:
    """The same of what lies at places of packed strings."""
    found = number_loops.read(whole, starts, ends, dtype)
    if found is None:
        return read_array(flat(whole.pieces(starts, ends, starts.shape)), dtype)
    values, left = found
    if left.size:
        pieces = flat(whole.pieces(starts[left], ends[left], left.shape))
        rest, bad = read_array(pieces, values.dtype if dtype.kind == "f" else dtype)
        if bad is not None:
            return values, int(left[bad])
        values = values if values.dtype.kind == "f" else values.astype(dtype)
        values[left] = rest
    with np.errstate(over="ignore"):
        return values.astype(dtype), None


def _plain(texts: Sequence[bytes], dtype: np.dtype[Any]) -> list[Any] | None:
    """The same by Python alone, where it takes these texts as TF does; else None.

    Of texts of these letters it takes those that TF takes.
    """
    real = dtype.kind == "f"
    if max(map(len, texts), default=0) > (_LONGEST if real else _DIGITS):
        return None
    if b"".join(texts).translate(None, b"0123456789+-.eE" if real else b"0123456789-"):
        return None
    try:
        if real:
            return list(map(float, texts))
        found = list(map(int, texts))
    except ValueError:
        return None
    info = np.iinfo(dtype)
    return found if found and info.min <= min(found) and max(found) <= info.max else None


def printer(
    dtype: np.dtype[Any], precision: int, scientific: bool, shortest: bool, width: int, fill: str
) -> Callable[[Array], Array]:
    """The function that writes numbers of that type as printf does."""
    kind = "d" if dtype.kind in "iu" else "g" if shortest else "e" if scientific else "f"
    size = ("" if width < 0 else str(width)) + ("" if precision < 0 else f".{precision}")
    if fill == "0" and kind == "d" and precision >= 0:
        fill = ""
    format, plain = (f"%{f}{size}{kind}".encode() for f in (fill, fill if fill != "0" else ""))

    def real(x: Array) -> list[bytes]:
        values = x.reshape(-1).tolist()
        if kind == "d" or format == plain or np.isfinite(x).all():
            return list(map(format.__mod__, values))
        # No zeros in front of what is no number.
        return [(format if math.isfinite(v) else plain) % v for v in values]

    if dtype.kind == "c":
        form = b"(%b,%b)".__mod__
        return lambda x: array_of(map(form, zip(real(x.real), real(x.imag), strict=True)), x.shape)
    if kind not in "df" or width >= 0 or fill or dtype.kind not in "iuf":
        return lambda x: array_of(real(x), x.shape)
    places = 6 if precision < 0 else precision

    def write(x: Array) -> Array:
        found = number_loops.printed(x, places) if x.size >= _MANY else None
        return array_of(real(x), x.shape) if found is None else found

    return write
