"""Portable kernels of generators whose state is a variable."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock import dtypes
from opdock.kernels.array_api import dims, dtype_of, home, invalid
from opdock.kernels.binomial import Pairs, successes
from opdock.kernels.expr.elements import Element, element
from opdock.kernels.philox import RESERVED, Place, blocks, draw_shape
from opdock.kernels.portable import portable
from opdock.kernels.portable.random import (
    WORDS,
    draws_floats,
    filler,
    integers,
    interleaved,
    uniform,
)
from opdock.kernels.select.signature import NodeSig
from opdock.util import entropy

_INTS = frozenset({dtypes.int32, dtypes.int64})
_WORDS = _INTS | {dtypes.uint32, dtypes.uint64}
_NUMBERS = _INTS | {dtypes.float16, dtypes.float32, dtypes.float64}
_CHUNK = 256
_LONG, _COUNTER = (1 << 64) - 1, (1 << 128) - 1
_PHILOX = 1


def reserve_draws(sig: NodeSig, cell: Any, algorithm: Any, count: int) -> Place:
    """Where the generator of a variable stands; from now on it stands behind `count` draws.

    Raises:
        InvalidArgumentError: the variable does not hold the state of such a generator.
    """
    if int(algorithm) != _PHILOX:
        raise invalid(f"Unsupported algorithm id: {int(algorithm)}")
    with cell.lock:
        # The state is read where it can be computed with, which is not on the device.
        state = np.asarray(element(cell.read(), sig).on(None))
        if state.dtype != np.int64 or state.ndim != 1:
            raise invalid(
                f"RNG state must be a vector of int64, not {state.dtype.name}{dims(state.shape)}"
            )
        if len(state) < 3:
            raise invalid(
                f"For the Philox algorithm, the size of state must be at least 3; got {len(state)}"
            )
        low, high, key = (v & _LONG for v in state[:3].tolist())
        counter = low | high << 64
        after = (counter + count * RESERVED) & _COUNTER
        fresh = state.copy()
        fresh[:2] = [_as_signed(after & _LONG), _as_signed(after >> 64)]
        cell.write(Element(fresh, None).on(sig.device))
    return key, counter


def _as_signed(word: int) -> int:
    """Two's complement of 64 bits."""
    return word - (word >> 63 << 64)


@draws_floats(
    "StatefulUniform", "StatefulStandardNormalV2", "StatefulTruncatedNormal",
    host_inputs=("algorithm", "shape"), keeps=(),
)  # fmt: skip
def floats(xp: Any, sig: NodeSig) -> Callable[[Any, Any, Any], Any]:
    """The next stretch of the generator's stream."""
    fill = filler(xp, sig)

    def run(cell: Any, algorithm: Any, shape: Any) -> Any:
        wanted = draw_shape(shape)
        return fill(reserve_draws(sig, cell, algorithm, math.prod(wanted)), wanted)

    return run


@portable(
    "StatefulUniformInt", dtype=_INTS, host_inputs=("algorithm", "shape", "minval", "maxval"),
    computes_in=WORDS, keeps=(),
)  # fmt: skip
def ranged(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Integers of a range."""
    fill = integers(xp, sig)

    def run(cell: Any, algorithm: Any, shape: Any, low: Any, high: Any) -> Any:
        wanted = draw_shape(shape)
        if int(low) >= int(high):
            raise invalid(f"Need minval < maxval, got {int(low)} >= {int(high)}")
        return fill(reserve_draws(sig, cell, algorithm, math.prod(wanted)), wanted, low, high)

    return run


@portable(
    "StatefulUniformFullInt", dtype=_WORDS, host_inputs=("algorithm", "shape"), computes_in=WORDS,
    keeps=(),
)  # fmt: skip
def whole_words(xp: Any, sig: NodeSig) -> Callable[[Any, Any, Any], Any]:
    """Integers of a type's whole range."""
    dtype = sig.out_dtypes[0].base_dtype
    wide, signed = dtype.size == 8, dtype in _INTS
    target = dtype_of(xp, dtype)

    def run(cell: Any, algorithm: Any, shape: Any) -> Any:
        wanted = draw_shape(shape)
        count = math.prod(wanted)
        place = reserve_draws(sig, cell, algorithm, count)
        groups = xp.arange(-(-count // (2 if wide else 4)), dtype=xp.int64, device=home(sig))
        words = blocks(place, groups, groups.shape[0])
        if wide:
            # Two's complement: what is above the sign bit counts below zero.
            columns = [_signed(xp, high) * (1 << 32) + low for low, high in
                       ((words[0], words[1]), (words[2], words[3]))]  # fmt: skip
        else:
            columns = [_signed(xp, word) for word in words] if signed else list(words)
        flat = interleaved(xp, columns, count) if count else groups[:0]
        return xp.astype(xp.reshape(flat, wanted), target, copy=False)

    return run


def _signed(xp: Any, word: Any) -> Any:
    return xp.where(word >= 1 << 31, word - (1 << 32), word)


@portable(
    "StatefulRandomBinomial", T=_NUMBERS, dtype=_NUMBERS,
    host_inputs=("algorithm", "shape", "counts", "probs"), keeps=(),
)  # fmt: skip
def binomial(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """How many trials succeed."""
    target = sig.out_dtypes[0].base_dtype.np

    def run(cell: Any, algorithm: Any, shape: Any, counts: Any, probs: Any) -> Any:
        wanted = draw_shape(shape)
        rows, each = (wanted[0] if wanted else 1), math.prod(wanted[1:])
        counts, probs = (
            batch_parameter(name, np.asarray(value), rows)
            for name, value in (("counts", counts), ("probs", probs))
        )
        # TF moves the state as far as its threads might have gone.
        alike = len(counts) == len(probs) == 1
        batches, size = (-(-rows * each // 100), 100) if alike else (rows, each)
        place = reserve_draws(sig, cell, algorithm, batches * 200 * (size + 3) // 4)
        pairs = _uniform_pairs(place)
        out = np.empty((rows, each), target)
        for row in range(rows):
            count = counts[row if len(counts) > 1 else 0]
            out[row] = successes(count, probs[row if len(probs) > 1 else 0], each, pairs, target)
        return Element(out.reshape(wanted), None).on(sig.device)

    return run


def batch_parameter(name: str, value: npt.NDArray[Any], rows: int) -> npt.NDArray[Any]:
    """A parameter of a distribution, which is one for all batches or one for each.

    Raises:
        InvalidArgumentError: it is neither.
    """
    if value.ndim > 1:
        raise invalid(f"Input {name} should be a scalar or vector, got shape: {dims(value.shape)}")
    if value.ndim and len(value) not in (1, rows):
        raise invalid(
            f"Input {name} should have length 1 or shape[0], got shape: {dims(value.shape)}"
        )
    return value.reshape(-1)


def _uniform_pairs(place: Place) -> Pairs:
    """The two uniforms of each block, the second one first, as TF takes them."""
    draw, start = uniform(np, dtypes.float64), 0
    while True:
        index = np.arange(start, start + _CHUNK)
        second, first = draw(*blocks(place, index, start + _CHUNK))
        yield from zip(first.tolist(), second.tolist(), strict=True)
        start += _CHUNK


@portable("RngSkip", host_inputs=("algorithm", "delta"), keeps=())
def skip(xp: Any, sig: NodeSig) -> Callable[[Any, Any, Any], None]:
    """Leaves out as much as so many draws would take."""

    def run(cell: Any, algorithm: Any, delta: Any) -> None:
        reserve_draws(sig, cell, algorithm, int(delta))

    return run


@portable("NonDeterministicInts", dtype=_WORDS, host_inputs=("shape",))
def chance(xp: Any, sig: NodeSig) -> Callable[[Any], Any]:
    """Integers that nobody can tell before."""
    dtype = sig.out_dtypes[0].base_dtype

    def run(shape: Any) -> Any:
        wanted = draw_shape(shape)
        drawn = np.frombuffer(entropy.drawn(math.prod(wanted) * dtype.size), dtype.np)
        return Element(drawn.reshape(wanted).copy(), None).on(sig.device)

    return run
