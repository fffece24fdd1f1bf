"""Samples of strings from and to numbers, tensors and other codes."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples


def _words(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, object)


_FORMATS: tuple[dict[str, Any], ...] = (
    {}, {"width": 8}, {"width": 8, "fill": "0"}, {"width": 8, "fill": "-"}, {"fill": "+"},
)  # fmt: skip
_FLOAT_FORMATS: tuple[dict[str, Any], ...] = (
    {"precision": 2}, {"scientific": True}, {"shortest": True, "precision": 3},
    {"precision": 1, "width": 9, "fill": "0"},
)  # fmt: skip


@samples("AsString")
def texts(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """All formats that the type has."""
    values = rng.normal((2, 3), 10.0)
    if dtype.kind == "b":
        yield Sample([values], {}, "plain")
        return
    formats = _FORMATS + (_FLOAT_FORMATS if dtype.kind in "fc" else ())
    for i, attrs in enumerate(formats):
        yield Sample([values], attrs, f"format{i}")
    if dtype.kind == "f":
        odd = np.array([np.nan, np.inf, -np.inf, 0.0], dtype)
        yield Sample([odd], {"width": 8, "fill": "0"}, "odd")
    yield Sample([np.empty((0, 2), dtype)], {}, "empty")


@error_samples("AsString")
def no_format() -> Iterable[ErrorSample]:
    """Formats that contradict each other, or the type."""
    numbers = np.array([1], np.int32)
    yield ErrorSample([numbers], {"precision": 2}, match="precision not supported", tag="integers")
    yield ErrorSample([numbers], {"fill": "x"}, match='Fill argument not supported: "x"', tag="x")
    yield ErrorSample(
        [np.array([1.0], np.float32)], {"scientific": True, "shortest": True},
        match="Cannot select both scientific and shortest notation", tag="both",
    )  # fmt: skip


@samples("StringToNumber")
def numbers(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Signs, spaces, exponents, what is no finite number."""
    whole = _words([b"12", b" -3 "], [b"0", b"007"])
    for kind in (np.float32, np.float64, np.int32, np.int64):
        yield Sample([whole], {"out_type": np.dtype(kind)}, np.dtype(kind).name)
    real = _words(b"1.5", b"-2e3", b".25", b"1e40", b"inf", b"nan", b"3.")
    yield Sample([real], {"out_type": np.dtype(np.float32)}, "real")
    yield Sample([np.empty((0, 2), object)], {}, "empty")


@error_samples("StringToNumber")
def no_numbers() -> Iterable[ErrorSample]:
    """Text, numbers out of range, Python's underscores."""
    for text, kind in ((b"a", np.float32), (b"4294967296", np.int32), (b"1_0", np.int64)):
        yield ErrorSample(
            [_words(text)], {"out_type": np.dtype(kind)},
            match=f"could not correctly convert string: {text.decode()}", tag=text.decode(),
        )  # fmt: skip


@samples("EncodeBase64")
def encodes(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """All lengths modulo three, with padding and without."""
    values = _words([b"", b"a", b"ab"], [b"abc", b"\xff\xfe\xfd", bytes(range(100))])
    for pad in (False, True):
        yield Sample([values], {"pad": pad}, f"pad-{pad}")


@samples("DecodeBase64")
def decodes(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """With padding and without."""
    yield Sample([_words(b"", b"YQ", b"YQ==", b"YWI", b"YWI=", b"YWJj", b"__79")], {}, "plain")


@error_samples("DecodeBase64")
def no_code() -> Iterable[ErrorSample]:
    """A foreign character, a length that nothing has."""
    yield ErrorSample([_words(b"YQ+=")], match="Invalid character found in base64", tag="plus")
    yield ErrorSample([_words(b"YWJjZ")], match="cannot be 1 modulo 4", tag="length")


@samples("DecodeCompressed")
def inflates(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Both formats, and none."""
    plain = [b"", b"a" * 1000, bytes(range(256))]
    yield Sample([_words(*plain)], {}, "none")
    yield Sample([_words(*map(zlib.compress, plain))], {"compression_type": "ZLIB"}, "zlib")
    packed = [gzip.compress(p, mtime=0) for p in plain]
    yield Sample([_words(*packed)], {"compression_type": "GZIP"}, "gzip")


@error_samples("DecodeCompressed")
def damaged() -> Iterable[ErrorSample]:
    """What was never compressed."""
    yield ErrorSample(
        [_words(b"no zlib")], {"compression_type": "ZLIB"}, exception="DataLossError", tag="zlib"
    )


_RAW = ("float16", "float32", "float64", "int32", "uint16", "uint8", "int8", "int64")


@samples("DecodeRaw")
def raw(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Every type in both orders of bytes."""
    for kind in (*_RAW, "complex64", "bool"):
        # Numbers of every type, none of them NaN.
        data = np.arange(1, 5).astype(kind).tobytes()
        for little in (True, False):
            attrs = {"out_type": np.dtype(kind), "little_endian": little}
            yield Sample([_words(data, data)], attrs, f"{kind}-{little}")
    yield Sample([np.empty((0, 2), object)], {"out_type": np.dtype(np.int32)}, "empty")


@error_samples("DecodeRaw")
def no_raw() -> Iterable[ErrorSample]:
    """Lengths that differ, or do not fit the type."""
    attrs = {"out_type": np.dtype(np.int16)}
    yield ErrorSample([_words(b"ab", b"abcd")], attrs, match="all be the same size", tag="differ")
    yield ErrorSample([_words(b"abc")], attrs, match="not a multiple of 2", tag="odd")


@samples("DecodePaddedRaw")
def padded_raw(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Strings that are cut, and filled up."""
    values = _words(b"", b"abc", b"abcdefgh", b"abcdefghijkl")
    for kind in ("uint8", "int16", "int64"):
        for little in (True, False):
            attrs = {"out_type": np.dtype(kind), "little_endian": little}
            yield Sample([values, np.array(8, np.int32)], attrs, f"{kind}-{little}")


@error_samples("DecodePaddedRaw")
def no_length() -> Iterable[ErrorSample]:
    """A length that does not fit the type, and none."""
    attrs = {"out_type": np.dtype(np.int16)}
    for length, match in ((3, "must be a multiple"), (0, "must be greater than zero")):
        yield ErrorSample(
            [_words(b"ab"), np.array(length, np.int32)], attrs, match=match, tag=f"{length}"
        )
