"""Samples of the string ops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import Sample, Sampler, samples


def _words(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, object)


def _scalar(value: bytes) -> np.ndarray[Any, Any]:
    return np.array(value, object)


@samples("StringJoin")
def joins(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """One and several inputs, scalars among them, separators, nothing."""
    yield Sample([[_words(b"a", b"b"), _words(b"c", b"")]], {"separator": "-"}, "plain")
    yield Sample([[_words(b"x", b"yy")]], {}, "one")
    yield Sample([[_scalar(b"pre"), _words(b"a", b"b"), _scalar(b"post")]], {}, "scalars-spread")
    yield Sample([[_scalar(b"a"), _scalar(b"b")]], {"separator": ", "}, "scalar")
    yield Sample([[_words([b"a"], [b"b"]), _words([b"\xff"], [b"d"])]], {}, "matrix")
    yield Sample([[np.empty((0,), object), np.empty((0,), object)]], {}, "empty")


_PATTERNS = ("a+", "[a-c]*\\d?", "", "a|bc")


@samples("RegexFullMatch")
def matches(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Whole matches only; patterns with classes, repeats and alternatives."""
    values = _words(b"a", b"aa", b"abc7", b"", b"bc", b"xa")
    for i, pattern in enumerate(_PATTERNS):
        yield Sample([values, _scalar(pattern.encode())], {}, f"pattern{i}")
    yield Sample([_scalar(b"aa"), _scalar(b"a+")], {}, "scalar")
    yield Sample([np.empty((0, 2), object), _scalar(b"a")], {}, "empty")


@samples("StaticRegexFullMatch")
def static_matches(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same with the pattern as an attribute."""
    values = _words([b"a", b"aa", b"abc7"], [b"", b"bc", b"xa"])
    for i, pattern in enumerate(_PATTERNS):
        yield Sample([values], {"pattern": pattern}, f"pattern{i}")
