"""Samples of Unicode text: all widths of characters, malformed parts, three policies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_TEXTS = ("", "aé日😀", "x\x01y", "Ω≈ç")


def _words(*values: bytes) -> np.ndarray[Any, Any]:
    return np.array(values, object)


def _utf8() -> np.ndarray[Any, Any]:
    return _words(*(t.encode() for t in _TEXTS), b"a\xffb\xe2\x82", b"\xed\xa0\x80\xc0\xafz")


_POLICIES: tuple[dict[str, Any], ...] = (
    {}, {"errors": "ignore"}, {"errors": "replace", "replacement_char": 33},
    {"replace_control_characters": True}, {"errors": "ignore", "replace_control_characters": True},
)  # fmt: skip


@samples("UnicodeDecode", "UnicodeDecodeWithOffsets")
def decodes(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """UTF-8 with every policy, UTF-16, a code page, nothing."""
    for i, policy in enumerate(_POLICIES):
        yield Sample([_utf8()], {"input_encoding": "UTF-8", **policy}, f"policy{i}")
    wide = _words(*(t.encode("utf-16-be") for t in _TEXTS))
    yield Sample([wide], {"input_encoding": "UTF-16BE"}, "utf-16")
    yield Sample([_words(b"a\xe9\xa4")], {"input_encoding": "ISO-8859-15"}, "latin-9")
    yield Sample([_utf8()], {"input_encoding": "UTF-8", "Tsplits": np.dtype(np.int32)}, "int32")
    yield Sample([np.empty(0, object)], {"input_encoding": "UTF-8"}, "empty")


@samples("UnicodeTranscode")
def transcodes(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Into each encoding that there is."""
    for output in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
        for i, policy in enumerate(_POLICIES):
            attrs = {"input_encoding": "UTF-8", "output_encoding": output, **policy}
            yield Sample([_utf8().reshape(2, 3)], attrs, f"{output}-{i}")


_POINTS = np.array([97, 233, 0x65E5, 0x1F600, -1, 0x110000, 98], np.int32)


@samples("UnicodeEncode")
def encodes(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Rows of points, an empty one, numbers that are none."""
    splits = np.array([0, 2, 2, 6, 7], np.int64)
    for output in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
        for errors in ("replace", "ignore"):
            attrs = {"output_encoding": output, "errors": errors}
            yield Sample([_POINTS, splits], attrs, f"{output}-{errors}")


_SPLITS = {"Tsplits": np.dtype(np.int64)}


@error_samples("UnicodeDecode")
def malformed() -> Iterable[ErrorSample]:
    """Malformed strings where they may not be, an encoding that nobody knows."""
    yield ErrorSample(
        [_utf8()], {**_SPLITS, "input_encoding": "UTF-8", "errors": "strict"},
        match="Invalid formatting on input string", tag="strict",
    )  # fmt: skip
    yield ErrorSample(
        [_utf8()], {**_SPLITS, "input_encoding": "no such thing"},
        match="Could not create converter for input encoding: no such thing", tag="encoding",
    )  # fmt: skip
    yield ErrorSample(
        [_utf8()], {**_SPLITS, "input_encoding": "UTF-8", "replacement_char": 0x110000},
        match="replacement_char out of unicode codepoint range", tag="replacement",
    )  # fmt: skip


@error_samples("UnicodeDecodeWithOffsets")
def malformed_with_offsets() -> Iterable[ErrorSample]:
    """An encoding that nobody knows."""
    yield ErrorSample(
        [_utf8()], {**_SPLITS, "input_encoding": "no such thing"},
        match="Could not create converter for input encoding: no such thing", tag="encoding",
    )  # fmt: skip


@error_samples("UnicodeTranscode")
def malformed_transcoding() -> Iterable[ErrorSample]:
    """Encodings that nobody knows, malformed strings where they may not be."""
    attrs = {"input_encoding": "UTF-8", "output_encoding": "UTF-8"}
    yield ErrorSample(
        [_utf8()], {**attrs, "input_encoding": "no such thing"},
        match="Could not create converter for input encoding", tag="encoding",
    )  # fmt: skip
    yield ErrorSample(
        [_utf8()], {**attrs, "errors": "strict"}, match="Invalid formatting on input string",
        tag="strict",
    )  # fmt: skip


@error_samples("UnicodeEncode")
def no_points() -> Iterable[ErrorSample]:
    """Numbers that are no code points, splits that go beyond the values."""
    attrs = {"output_encoding": "UTF-8", "errors": "strict"}
    splits = np.array([0, 7], np.int64)
    yield ErrorSample(
        [_POINTS, splits], attrs, match="Code point value out of valid Unicode range", tag="strict"
    )
    yield ErrorSample([_POINTS, splits + 1], attrs, match="Invalid input_splits", tag="splits")


@samples("UnicodeScript")
def scripts(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Letters of several scripts, signs that belong to none, numbers that are no code points."""
    points = [[0x41, 0x3B1, 0x416], [0x5D0, 0x627, 0x905], [0x65E5, 0xAC00, 0x31],
              [0x300, -1, 0x110000]]  # fmt: skip
    yield Sample([np.array(points, np.int32)], {}, "scripts")
