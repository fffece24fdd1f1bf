"""Oracle of generators with a state: the stream from where the state says, and the state after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.testing.reference._registry import reference
from opdock.testing.reference.random import (
    LONG,
    RESERVED,
    OwnStretch,
    Stream,
    binomial_inversion,
    binomial_rejection,
    integers,
    normals,
    take,
    truncated_normals,
    uniforms,
)

Array = np.ndarray[Any, Any]


def _stream(state: Array) -> Stream:
    low, high, key = (int(v) & LONG for v in state)
    return Stream(key, low | high << 64)


def _after(state: Array, count: int) -> Array:
    number = _stream(state).counter + RESERVED * count
    words = [number & LONG, number >> 64 & LONG, int(state[2]) & LONG]
    return np.array(words, np.uint64).astype(np.int64)


def _drawing(draw: Callable[..., Any]) -> Any:
    def run(attrs: Any, state: Array, algorithm: Array, shape: Array) -> tuple[Array, Array]:
        out = take(draw(_stream(state), np.dtype(attrs["dtype"])), shape)
        return _after(state, out.size), out

    return run


reference("StatefulUniform")(_drawing(uniforms))
reference("StatefulStandardNormalV2")(_drawing(normals))
reference("StatefulTruncatedNormal")(_drawing(truncated_normals))


@reference("StatefulUniformInt")
def uniform_int(
    attrs: Any, state: Array, algorithm: Array, shape: Array, low: Array, high: Array
) -> tuple[Array, Array]:
    """Integers of a range."""
    out = integers(_stream(state), attrs["dtype"], shape, low, high)
    return _after(state, out.size), out


@reference("StatefulUniformFullInt")
def full_int(attrs: Any, state: Array, algorithm: Array, shape: Array) -> tuple[Array, Array]:
    """The words as they are, one or two for each."""
    dtype = np.dtype(attrs["dtype"])
    count, words = int(np.prod(shape)), _stream(state).words()
    bits = [next(words) | (next(words) << 32 if dtype.itemsize == 8 else 0) for _ in range(count)]
    drawn = np.array(bits, np.uint64).astype(dtype).reshape([int(d) for d in shape])
    return _after(state, count), drawn


@reference("StatefulRandomBinomial")
def binomial(
    attrs: Any, state: Array, algorithm: Array, shape: Array, counts: Array, probs: Array
) -> tuple[Array, Array]:
    """One stream for all draws, each of which begins with a block of its own."""
    dims = [int(d) for d in shape]
    own, out = OwnStretch(_stream(state), 0), np.zeros(dims)
    rows = out.reshape(dims[0], -1) if out.size else out.reshape(0, 0)
    for row, line in enumerate(rows):
        count, prob = (v.reshape(-1)[row if v.size > 1 else 0] for v in (counts, probs))
        for i in range(len(line)):
            own.left["uniform"] = []
            line[i] = _successes(count, prob, own)
    alike = counts.size == probs.size == 1
    batches, each = (-(-out.size // 100), 100) if alike else (dims[0], int(np.prod(dims[1:])))
    return _after(state, batches * 200 * (each + 3) // 4), out.astype(attrs["dtype"])


def _successes(count: Any, prob: Any, own: OwnStretch) -> float:
    if count <= 0 or prob <= 0 or prob >= 1:
        return float(count) if count > 0 and prob >= 1 else 0.0
    few = prob <= 0.5
    rare = prob if few else type(prob)(1) - prob
    draw = binomial_rejection if count * rare >= 10 else binomial_inversion
    found = draw(float(count), float(rare), own)
    return found if few else float(count) - found


@reference("RngSkip")
def skip(attrs: Any, state: Array, algorithm: Array, delta: Array) -> Array:
    """As if so many had been drawn."""
    return _after(state, int(delta))


@reference("NonDeterministicInts")
def chance(attrs: Any, shape: Array) -> Array:
    """Of the values only the shape is known."""
    return np.zeros([int(d) for d in shape], np.int64)
