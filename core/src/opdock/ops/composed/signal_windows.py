"""Windows and cosine transforms (`tf.signal.hann_window`, `tf.signal.dct` and relatives)."""

from __future__ import annotations

import math
from typing import Any

from opdock import dtypes
from opdock.docstrings import explained
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.arithmetic import floormod, maximum
from opdock.ops.array import reshape, shape
from opdock.ops.cast import cast
from opdock.ops.compare import equal
from opdock.ops.complex import complex as complex_
from opdock.ops.complex import real
from opdock.ops.elementary import exp, rsqrt, sqrt
from opdock.ops.fft import _fit, irfft, rfft
from opdock.ops.fill import fill, ones, ones_like
from opdock.ops.fill import range as range_
from opdock.ops.joining import concat
from opdock.ops.select import where
from opdock.ops.trig import cos

__all__: list[str] = []


# ---------------------------------------------------------------- windows
_WORDS = {
    "window_length": "the number of points, a scalar int32.",
    "dtype": "a floating-point type.",
    "name": "a name for the operation.",
    "returns": "A vector of `window_length` numbers.",
    "raises": "ValueError: `dtype` is not a floating-point type.",
    "input": "a float32 tensor.",
    "axis": "must be -1.",
}
"""What the functions here take."""


@extensible
@explained(
    _WORDS,
    periodic="whether the window continues periodically (for spectra), else it is symmetric (for"
    " filters).",
)
def hann_window(
    window_length: Any, periodic: Any = True, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """A Hann window: one period of a raised cosine."""
    return _raised_cosine(name, "hann_window", window_length, periodic, dtype, 0.5, 0.5)


@extensible
@explained(_WORDS, periodic="whether the window continues periodically, else it is symmetric.")
def hamming_window(
    window_length: Any, periodic: Any = True, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """A Hamming window: a raised cosine that does not reach zero."""
    return _raised_cosine(name, "hamming_window", window_length, periodic, dtype, 0.54, 0.46)


def _raised_cosine(
    name: str | None, default: str, window_length: Any, periodic: Any, dtype: Any,
    a: float, b: float,
) -> Tensor:  # fmt: skip
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError(f"dtype must be a floating point type. Found {dtype}")
    with name_scope(name, default, [window_length, periodic]):
        length = convert_to_tensor(window_length, dtypes.int32, "window_length")
        known = constant_value(length)
        if known is not None and int(known) == 1:
            return ones([1], dtype=dtype)
        periodic = cast(convert_to_tensor(periodic, dtypes.bool, "periodic"), dtypes.int32)
        even = 1 - floormod(length, 2)
        span = cast(maximum(length + periodic * even - 1, 1), dtype)
        angle = 2.0 * math.pi * cast(range_(length), dtype) / span
        window = a - b * cos(angle)
        if known is not None:
            return window
        return where(equal(length * ones_like(range_(length)), 1), ones_like(window), window)


# ---------------------------------------------------------------- cosine transforms
@extensible
@explained(
    _WORDS,
    type="the type of transform: 1, 2 or 3.",
    n="the length of the transform; the input is cropped or padded with zeros to it.",
    norm='None, or "ortho" to make the transform orthogonal.',
    returns="A float32 tensor.",
    raises="ValueError: `type`, `n` or `norm` is none of these, or does not go with the others.\n"
    "NotImplementedError: `axis` is not -1.",
)
def dct(
    input: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The discrete cosine transform over the last dimension."""
    with name_scope(name, "dct", [input]):
        x = convert_to_tensor(input, dtypes.float32, "input")
        _check_dct(x, type, n, axis, norm)
        if n is not None:
            x = _resized(x, n)
        if type == 1:
            mirrored = concat([x, x[..., -2:0:-1]], axis=-1)
            return real(rfft(mirrored))
        return _dct2(x, norm) if type == 2 else _dct3(x, norm)


@extensible
@explained(
    _WORDS,
    type="the type of the transform to invert: 1, 2 or 3.",
    n="the length of the transform.",
    norm='None, or "ortho".',
    returns="A float32 tensor.",
    raises="",
)
def idct(
    input: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The inverse discrete cosine transform of the last dimension, up to a factor without norm."""
    inverse = {1: 1, 2: 3, 3: 2}.get(type, type)
    return dct(input, type=inverse, n=n, axis=axis, norm=norm, name=name)


def _check_dct(x: Tensor, type: int, n: int | None, axis: int, norm: str | None) -> None:
    if axis != -1:
        raise NotImplementedError(f"axis must be -1. Got: {axis}")
    if n is not None and n < 1:
        raise ValueError("n should be a positive integer or None")
    if type not in (1, 2, 3):
        raise ValueError("Only Types I, II and III (I)DCT are supported.")
    if norm not in (None, "ortho"):
        raise ValueError(f"Unknown normalization. Expected None or 'ortho', got: {norm}")
    if type == 1:
        if norm == "ortho":
            raise ValueError("Normalization is not supported for the Type-I DCT.")
        length = None if x.raw_shape is None else x.raw_shape[-1]
        if length is not None and length < 2:
            raise ValueError("Type-I DCT requires the dimension to be greater than one.")


def _resized(x: Tensor, n: int) -> Tensor:
    return _fit(x, concat([shape(x)[:-1], [n]], 0), 1)


def _length(x: Tensor) -> Any:
    """The last dimension: a number where it is known, else a scalar tensor."""
    known = None if x.raw_shape is None else x.raw_shape[-1]
    return known if known is not None else shape(x)[-1]


def _turns(length: Any, sign: float) -> Tensor:
    """2 exp(sign i pi k / (2 length)) for every k."""
    size = cast(length, dtypes.float32)
    angle = cast(range_(length), dtypes.float32) * (sign * math.pi * 0.5) / size
    return 2.0 * exp(complex_(0.0 * angle, angle))


def _first_and_rest(length: Any, first: Any, rest: Any) -> Tensor:
    """The vector [first, rest, rest, ...]."""
    return concat([reshape(first, [1]), fill(reshape(length - 1, [1]), rest)], 0)


def _dct2(x: Tensor, norm: str | None) -> Tensor:
    length = _length(x)
    spectrum = rfft(x, fft_length=reshape(2 * length, [1]))[..., :length]
    out = real(spectrum * _turns(length, -1.0))
    if norm == "ortho":
        first = 0.5 * rsqrt(cast(length, dtypes.float32))
        out = out * _first_and_rest(length, first, first * math.sqrt(2.0))
    return out


def _dct3(x: Tensor, norm: str | None) -> Tensor:
    length = _length(x)
    size = cast(length, dtypes.float32)
    if norm == "ortho":
        first = sqrt(size)
        x = x * _first_and_rest(length, first, first * math.sqrt(0.5))
    else:
        x = x * size
    spectrum = _turns(length, 1.0) * complex_(x, 0.0 * x)
    return irfft(spectrum, fft_length=reshape(2 * length, [1]))[..., :length]
