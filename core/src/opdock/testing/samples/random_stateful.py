"""Samples of generators with a state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.dtypes import float16, float32, float64, int32, int64, uint32, uint64
from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_INTS = (int32, int64)
_PHILOX = np.array(1, np.int64)
_STATES = {
    "fresh": np.array([0, 0, 7], np.int64),
    "carries": np.array([-3, 5, -9], np.int64),
    "wraps": np.array([-1, -1, 2**62], np.int64),
}


def _slack(dtype: np.dtype[Any]) -> dict[str, Any]:
    reason = "logarithm and sine in single precision"
    return {"tol": (1e-5, 1e-5), "tol_reason": reason} if dtype.itemsize == 4 else {}


def _longs(*values: int) -> Any:
    return np.array(values, np.int64)


@samples("StatefulUniform", "StatefulStandardNormalV2", "StatefulTruncatedNormal", vary="dtype")
def floats(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """States whose counters carry, and shapes that leave a block unfinished."""
    for tag, state in _STATES.items():
        yield Sample([state, _PHILOX, _longs(3, 3)], {"dtype": dtype}, tag, **_slack(dtype))
    yield Sample([_STATES["fresh"], _PHILOX, _longs(0, 3)], {"dtype": dtype}, "empty")


@samples("StatefulUniformFullInt", vary="dtype", types=(*_INTS, uint32, uint64))
def words(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The whole range of each type."""
    for tag, state in _STATES.items():
        yield Sample([state, _PHILOX, _longs(7)], {"dtype": dtype}, tag)


@samples("StatefulUniformInt", vary="dtype", types=_INTS)
def integers(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Around zero, and the widest range."""
    info = np.iinfo(dtype)
    for low, high in ((-5, 100), (info.min, info.max)):
        bounds = [np.array(low, dtype), np.array(high, dtype)]
        yield Sample([_STATES["carries"], _PHILOX, _longs(3, 3), *bounds], {}, f"{low}")


@samples("StatefulRandomBinomial", vary="T", types=(float16, float32, float64, *_INTS))
def binomials(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Few successes and many, chances on both sides of a half, certain ones; every output type."""
    whole = dtype.kind == "i"
    counts = np.array([30, 7, 40, 60, 0, 5, 5]).astype(dtype)
    probs = np.array([0, 1, 1, 0, 1, 1, 0] if whole else [0.1, 0.75, 0.5, 0.7, 0.5, 0, 1], dtype)
    for output in (np.float16, np.float32, np.float64, np.int32, np.int64):
        attrs = {"dtype": np.dtype(output)}
        place = [_STATES["carries"], _PHILOX, _longs(7, 3)]
        yield Sample([*place, counts, probs], attrs, f"rows-{output.__name__}")
    attrs = {"dtype": np.dtype(np.int64)}
    for tag, size in (("alike", (150,)), ("empty", (0, 3))):
        place = [_STATES["wraps"], _PHILOX, _longs(*size)]
        yield Sample([*place, counts[:1], probs[0]], attrs, tag)


@error_samples("StatefulRandomBinomial")
def bad_binomials() -> Iterable[ErrorSample]:
    """Neither one parameter nor one for each row."""
    place, three = [_STATES["fresh"], _PHILOX, _longs(2)], np.full(3, 0.5)
    yield ErrorSample([*place, three, three[0]], match="counts should have length 1 or shape.0.")
    yield ErrorSample([*place, three[0], three], match="probs should have length 1 or shape.0.")


@samples("RngSkip")
def skips(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Short and long."""
    for tag, state in _STATES.items():
        yield Sample([state, _PHILOX, np.array(5, np.int64)], {}, tag)
    yield Sample([_STATES["fresh"], _PHILOX, np.array(2**60, np.int64)], {}, "far")


@samples("NonDeterministicInts", vary="dtype", types=(*_INTS, uint32, uint64))
def chance(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Nobody knows the values."""
    yield Sample([_longs(2, 3)], {"dtype": dtype}, "plain", shape_only=True)


@error_samples("RngSkip")
def bad_states() -> Iterable[ErrorSample]:
    """Another algorithm; a state that is none."""
    one = np.array(1, np.int64)
    state = _STATES["fresh"]
    yield ErrorSample([state, one * 2, one], match="Unsupported algorithm id: 2")
    yield ErrorSample([state[:2], one, one], match="size of state must be at least 3; got 2")
    yield ErrorSample([state.astype(np.int32), one, one], match="vector of int64, not int32")
