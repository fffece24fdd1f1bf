"""Samples of the string ops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples


def _words(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, object)


def _scalar(value: bytes) -> np.ndarray[Any, Any]:
    return np.array(value, object)


def _ints(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.int32)


_EMPTY = np.empty((0, 2), object)


@samples("StringJoin")
def joins(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """One and several inputs, scalars among them, separators, nothing."""
    yield Sample([[_words(b"a", b"b"), _words(b"c", b"")]], {"separator": "-"}, "plain")
    yield Sample([[_words(b"x", b"yy")]], {}, "one")
    yield Sample([[_scalar(b"pre"), _words(b"a", b"b"), _scalar(b"post")]], {}, "scalars-spread")
    yield Sample([[_scalar(b"a"), _scalar(b"b")]], {"separator": ", "}, "scalar")
    yield Sample([[_words([b"a"], [b"b"]), _words([b"\xff"], [b"d"])]], {}, "matrix")
    yield Sample([[np.empty((0,), object), np.empty((0,), object)]], {}, "empty")


@samples("StringSplit")
def splits(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """A delimiter, several, none; empty parts kept or not; no strings at all."""
    values = _words(b"a b", b"", b" c  d ", b"e,f g")
    for mark in (b" ", b" ,", b"", b"|"):
        yield Sample([values, _scalar(mark)], {}, f"mark{mark!r}")
        yield Sample([values, _scalar(mark)], {"skip_empty": False}, f"keep{mark!r}")
    yield Sample([np.empty(0, object), _scalar(b" ")], {}, "empty")


@samples("StringSplitV2")
def splits_as_python(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """White space, a separator of two characters, a limit."""
    values = _words(b"a  b\tc", b"", b"<>d<><>e", b"\n")
    for mark in (b"", b"<>", b" "):
        for limit in (-1, 0, 1, 2):
            yield Sample([values, _scalar(mark)], {"maxsplit": limit}, f"{mark!r}-{limit}")
    yield Sample([np.empty(0, object), _scalar(b"")], {}, "empty")


@samples("StringStrip")
def strips(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """All kinds of white space, at both ends and inside."""
    yield Sample([_words([b" a ", b"\t\n b c\r"], [b"", b"\v\f"])], {}, "matrix")
    yield Sample([_scalar(b" x")], {}, "scalar")
    yield Sample([_EMPTY], {}, "empty")


@samples("StringLower", "StringUpper")
def cases(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """ASCII alone, and all of Unicode."""
    values = _words(b"aBc1", "Äß Σ".encode(), b"")
    for encoding in ("", "utf-8"):
        yield Sample([values], {"encoding": encoding}, encoding or "ascii")
    yield Sample([_words(b"a\xffB")], {}, "bytes")
    yield Sample([_EMPTY], {}, "empty")


@error_samples("StringLower")
def unknown_encoding() -> Iterable[ErrorSample]:
    """TF knows two."""
    yield ErrorSample(
        [_words(b"a")], {"encoding": "latin1"}, match="only utf-8 or '' .* received latin1",
        tag="encoding",
    )  # fmt: skip


@samples("StringLength")
def lengths(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Bytes and characters."""
    values = _words([b"abc", "日本".encode()], [b"", "é😀".encode()])
    for unit in ("BYTE", "UTF8_CHAR"):
        yield Sample([values], {"unit": unit}, unit)
    yield Sample([_EMPTY], {}, "empty")


@samples("Substr")
def parts(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Positions from both ends, one for all strings and one for each, in both units."""
    values = _words(b"hello", "日本語!".encode(), b"abcd")
    for unit in ("BYTE", "UTF8_CHAR"):
        attrs = {"unit": unit}
        yield Sample([values, _ints(1)[0], _ints(2)[0]], attrs, f"scalar-{unit}")
        yield Sample([values, _ints(-3)[0], _ints(9)[0]], attrs, f"end-{unit}")
        yield Sample([values, _ints(0, 1, -2), _ints(2, 0, 1)], attrs, f"each-{unit}")
    column = _ints([0], [2])
    yield Sample([values, column, np.ones_like(column)], {}, "broadcast")
    yield Sample([_EMPTY, _ints(0)[0], _ints(1)[0]], {}, "empty")


@error_samples("Substr")
def no_part() -> Iterable[ErrorSample]:
    """Positions outside, shapes that differ."""
    yield ErrorSample(
        [_words(b"ab"), _ints(3)[0], _ints(1)[0]], match=r"pos 3 out of range for string b'ab'",
        tag="range",
    )  # fmt: skip
    yield ErrorSample(
        [_words(b"ab"), _ints(0, 1), _ints(1)], exception="ValueError", phase="build",
        match="pos and len shapes must match", tag="shapes",
    )  # fmt: skip


@samples("ReduceJoin")
def joined_along(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """One axis, several in both orders, none, kept ones, empty dimensions."""
    values = _words([b"a", b"b", b"c"], [b"d", b"", b"f"])
    for axes in ([0], [1], [-1], [0, 1], [1, 0], []):
        yield Sample([values, np.array(axes, np.int32)], {"separator": "-"}, f"axes{axes}")
    yield Sample([values, _ints(1)], {"keep_dims": True}, "kept")
    yield Sample([np.empty((2, 0), object), _ints(1)], {}, "no-columns")
    yield Sample([np.empty((0, 2), object), _ints(1)], {}, "no-rows")


@error_samples("ReduceJoin")
def no_axis() -> Iterable[ErrorSample]:
    """An axis that is not there, or there twice."""
    values = _words([b"a"], [b"b"])
    yield ErrorSample(
        [values, _ints(2)], exception="OutOfRangeError", match="Invalid reduction dimension 2",
        tag="range",
    )  # fmt: skip
    yield ErrorSample([values, _ints(0, 0)], match="Duplicate reduction dimension 0", tag="twice")


@samples("UnsortedSegmentJoin")
def joined_by_segment(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Segments of strings and of rows, an empty one, empty strings in front."""
    values = _words(b"", b"a", b"b", b"", b"c")
    ids = _ints(0, 0, 2, 2, 2)
    yield Sample([values, ids, _ints(4)[0]], {"separator": ":"}, "vector")
    rows = _words([b"a", b"b"], [b"c", b"d"], [b"e", b"f"])
    yield Sample([rows, _ints(1, 0, 1), _ints(2)[0]], {}, "rows")
    yield Sample([rows, _ints([0, 1], [1, 1], [0, 0]), _ints(2)[0]], {"separator": ","}, "matrix")


@error_samples("UnsortedSegmentJoin")
def no_segment() -> Iterable[ErrorSample]:
    """Segments out of range."""
    for bad in (-1, 2):
        yield ErrorSample(
            [_words(b"a", b"b"), _ints(0, bad), _ints(2)[0]],
            match="segment_ids are not allowed to exceed num_segments", tag=f"id{bad}",
        )  # fmt: skip
