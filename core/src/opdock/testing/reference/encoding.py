"""Oracle of strings from and to numbers, tensors and other codes."""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = Mapping[str, Any]


def _each(fn: Callable[[Any], Any], values: Array, dtype: Any = object) -> Array:
    array = np.asarray(values)
    out = np.empty(array.shape, dtype)
    for where in np.ndindex(*array.shape):
        out[where] = fn(array[where])
    return out


@reference("AsString")
def as_string(attrs: Attrs, values: Array) -> Array:
    """The format of printf, put together from its parts."""
    kind = "d" if values.dtype.kind in "iu" else "f"
    kind = "e" if attrs["scientific"] else "g" if attrs["shortest"] else kind
    width = f"{attrs['width']}" if attrs["width"] >= 0 else ""
    width += f".{attrs['precision']}" if attrs["precision"] >= 0 else ""

    def real(x: Any) -> str:
        fill = attrs["fill"]
        if fill == "0" and not math.isfinite(x):
            fill = ""
        return str(f"%{fill}{width}{kind}" % x)

    def text(x: Any) -> bytes:
        if values.dtype.kind == "b":
            return b"true" if x else b"false"
        if values.dtype.kind == "c":
            return f"({real(float(x.real))},{real(float(x.imag))})".encode()
        return real(x.item()).encode()

    return _each(text, values)


@reference("StringToNumber")
def string_to_number(attrs: Attrs, values: Array) -> Array:
    """Python's own conversions."""
    dtype = np.dtype(attrs["out_type"])
    with np.errstate(over="ignore"):
        return _each(float if dtype.kind == "f" else int, values, np.float64
                     if dtype.kind == "f" else np.int64).astype(dtype)  # fmt: skip


@reference("EncodeBase64")
def encode_base64(attrs: Attrs, values: Array) -> Array:
    """Web-safe."""

    def encode(s: bytes) -> bytes:
        text = base64.urlsafe_b64encode(s)
        return text if attrs["pad"] else text.rstrip(b"=")

    return _each(encode, values)


@reference("DecodeBase64")
def decode_base64(attrs: Attrs, values: Array) -> Array:
    """Web-safe; Python wants the padding."""

    def decode(s: bytes) -> bytes:
        bare = s.rstrip(b"=")
        return base64.urlsafe_b64decode(bare + b"=" * (-len(bare) % 4))

    return _each(decode, values)


@reference("DecodeCompressed")
def decode_compressed(attrs: Attrs, values: Array) -> Array:
    """By zlib, which tells both formats from each other."""
    if not attrs["compression_type"]:
        return np.array(values, object)
    return _each(lambda s: zlib.decompress(s, zlib.MAX_WBITS | 32), values)


def _numbers(data: bytes, dtype: np.dtype[Any], little: bool) -> Array:
    """Byte by byte, each number of `size` bytes, each half of a complex one."""
    size = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
    if not little:
        data = b"".join(data[i : i + size][::-1] for i in range(0, len(data), size))
    return np.frombuffer(data, dtype)


@reference("DecodeRaw")
def decode_raw(attrs: Attrs, values: Array) -> Array:
    """The strings are of one length."""
    dtype = np.dtype(attrs["out_type"])
    rows = [_numbers(s, dtype, attrs["little_endian"]) for s in values.reshape(-1)]
    width = len(rows[0]) if rows else 0
    return np.array(rows, dtype).reshape(*values.shape, width)


@reference("DecodePaddedRaw")
def decode_padded_raw(attrs: Attrs, values: Array, length: Array) -> Array:
    """Cut or filled up first."""
    size = int(length)
    even = _each(lambda s: s[:size] + b"\0" * (size - len(s)), values)
    return decode_raw(attrs, even)
