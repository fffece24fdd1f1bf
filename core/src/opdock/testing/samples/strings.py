"""Samples of the strings family."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.sample import ErrorSample, Sample, Sampler, error_samples, samples


def _one(text: bytes) -> Any:
    out = np.empty((), object)
    out[()] = text
    return out


@samples("StringJoin")
def string_join(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Scalars beside tensors, with and without a separator."""
    a, b = rng.normal((2, 3)), rng.normal((2, 3))
    yield Sample([[a, b]], tag="plain")
    yield Sample([[a, _one(b"/"), b]], {"separator": "-"}, "scalar-between")
    yield Sample([[_one(b"x"), _one(b""), _one(b"\xff\x00")]], {"separator": ", "}, "scalars")
    yield Sample([[rng.normal((3,))]], {"separator": "unused"}, "single")
    yield Sample([[rng.normal((0, 2)), _one(b"x")]], tag="empty")
    yield Sample([[rng.normal((1, 2, 1, 2, 1)), rng.normal((1, 2, 1, 2, 1))]], tag="high-rank")


@samples("StaticRegexFullMatch")
def static_regex_full_match(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Expressions that match all, some and none."""
    for tag, pattern in (("some", "s[0-4].*"), ("all", ".*"), ("none", "s"), ("either", "s1|s2.")):
        yield Sample([rng.normal((4, 5))], {"pattern": pattern}, tag)
    yield Sample([_one(b"s3://bucket")], {"pattern": "^s3://.*"}, "scalar")
    yield Sample([rng.normal((0,))], {"pattern": "a"}, "empty")


@samples("RegexFullMatch")
def regex_full_match(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The expression as a tensor."""
    for tag, pattern in (("some", b"s[0-4].*"), ("bytes", b"s\\d+")):
        yield Sample([rng.normal((4, 5)), _one(pattern)], tag=tag)
    yield Sample([rng.normal((0, 2)), _one(b"a")], tag="empty")


@error_samples("StringJoin")
def join_shapes() -> Iterable[ErrorSample]:
    """Tensors that are no scalars have one shape."""
    a, b = np.full(2, b"a", object), np.full(3, b"b", object)
    yield ErrorSample(
        [[a, b]], exception="ValueError", match="must be equal, but are 2 and 3", phase="build",
        tag="build",
    )  # fmt: skip
    yield ErrorSample([[a, b]], match="must be equal|do not match", phase="run", tag="run")


@error_samples("RegexFullMatch")
def bad_pattern() -> Iterable[ErrorSample]:
    """An expression must be one."""
    yield ErrorSample([np.full(2, b"a", object), _one(b"(")], match="Invalid pattern", tag="open")
