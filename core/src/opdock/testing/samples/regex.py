"""Samples of regular expressions, of the kinds that every engine reads alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples


def _words(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, object)


def _scalar(value: bytes) -> np.ndarray[Any, Any]:
    return np.array(value, object)


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


_REWRITES = (("a+", "x"), ("(b)(c)?", r"<\1\2\0\\>"), ("x*", "-"), ("[0-9]", ""))


@samples("RegexReplace")
def replaces(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Groups, empty matches, all and the first."""
    values = _words([b"aabca", b"b"], [b"", b"12x3"])
    for i, (pattern, rewrite) in enumerate(_REWRITES):
        inputs = [values, _scalar(pattern.encode()), _scalar(rewrite.encode())]
        yield Sample(inputs, {}, f"all{i}")
        yield Sample(inputs, {"replace_global": False}, f"first{i}")


@samples("StaticRegexReplace")
def static_replaces(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same with the texts as attributes."""
    values = _words(b"aabca", b"b", b"", b"12x3")
    for i, (pattern, rewrite) in enumerate(_REWRITES):
        yield Sample([values], {"pattern": pattern, "rewrite": rewrite}, f"all{i}")


@error_samples("RegexReplace")
def malformed() -> Iterable[ErrorSample]:
    """A group that is not closed."""
    yield ErrorSample(
        [_words(b"a"), _scalar(b"(a"), _scalar(b"")], match=r"Invalid pattern: \(a, error: ",
        tag="group",
    )  # fmt: skip


@error_samples("RegexFullMatch")
def malformed_match() -> Iterable[ErrorSample]:
    """A class that is not closed."""
    yield ErrorSample([_words(b"a"), _scalar(b"[a")], match="Invalid pattern", tag="class")


@error_samples("StaticRegexFullMatch")
def malformed_static_match() -> Iterable[ErrorSample]:
    """A class that is not closed, known while the graph is built."""
    yield ErrorSample([_words(b"a")], {"pattern": "[a"}, match="Invalid pattern", tag="class")


@error_samples("StaticRegexReplace")
def malformed_static() -> Iterable[ErrorSample]:
    """A group that is not closed, known while the graph is built."""
    yield ErrorSample(
        [_words(b"a")], {"pattern": "(a", "rewrite": ""}, match="Invalid pattern", tag="group"
    )
