"""Portable random kernels: TF's bits for TF's seeds, from Philox blocks computed on the device.

Keys and counters are Python integers; only the numbers of the blocks are an array. Words of 32 bits
stand in int64 arrays, as many devices have no unsigned types.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from opdock import dtypes
from opdock.dtypes import FLOATS, DType
from opdock.kernels.array_api import copy, device_ints, dtype_of, home
from opdock.kernels.philox import (
    RESERVED,
    Place,
    blocks,
    draw_shape,
    int_range,
    shuffled,
    stateless_place,
)
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.select.streams import random_stream

_F = TypeVar("_F", bound=Callable[..., Any])
Array = Any
Draw = Callable[..., list[Array]]
"""What some blocks give: an array for each output that a block fills."""

_INTS: Final = frozenset({dtypes.int32, dtypes.int64})
WORDS: Final = frozenset({dtypes.int64})
"""What random bits are arrays of."""
_BITS: Final = {dtypes.float16: 10, dtypes.bfloat16: 7}
_HALVES: Final = frozenset(_BITS)
_TURN: Final = divmod(int(2.0 * math.pi * 2.0**50), 1 << 13)
"""A full turn in units of 2**-37, and the rest in units of 2**-50: times 23 bits int64 has room."""


def draws_floats(*ops: str, **options: Any) -> Callable[[_F], _F]:
    """`portable` for ops that draw floating-point numbers: halves come from single precision."""

    def attach(function: _F) -> _F:
        halves = portable(*ops, dtype=_HALVES, computes_in=WORDS | {dtypes.float32}, **options)
        return portable(*ops, dtype=FLOATS - _HALVES, computes_in=WORDS, **options)(
            halves(function)
        )

    return attach


# ---------------------------------------------------------------- from words to floats
def _unit(xp: Any, word: Array, bits: int = 23) -> Array:
    """Uniform float32 in [0, 1) from the low bits."""
    return xp.astype(word & (1 << bits) - 1, xp.float32) * 2.0**-bits


def _unit64(xp: Any, high: Array, low: Array) -> Array:
    """Uniform float64 in [0, 1) from 20 bits and 32."""
    return xp.astype(((high & 0xFFFFF) << 32) + low, xp.float64) * 2.0**-52


def uniform(xp: Any, dtype: DType) -> Draw:
    """Uniform in [0, 1), as many as a block's words give."""
    if dtype is dtypes.float64:
        return lambda a, b, c, d: [_unit64(xp, a, b), _unit64(xp, c, d)]
    bits = _BITS.get(dtype, 23)
    return lambda *words: [_unit(xp, word, bits) for word in words]


def _box_muller(xp: Any, unit: Array, angle: Array) -> list[Array]:
    """Two independent normals from a uniform and an angle."""
    radius = xp.sqrt(xp.log(xp.clip(unit, 1e-7, None)) * -2.0)
    return [xp.sin(angle) * radius, xp.cos(angle) * radius]


def _angle(xp: Any, word: Array) -> Array:
    """Uniform float32 in [0, 2 pi), rounded once.

    Near its zeros the sine shows every error of the angle, which a product of rounded floats has;
    integers multiply exactly.
    """
    bits = word & 0x7FFFFF
    return xp.astype(bits * _TURN[0] + (bits * _TURN[1] >> 13), xp.float32) * 2.0**-60


def _normal(xp: Any, dtype: DType) -> Draw:
    if dtype is dtypes.float64:
        return lambda a, b, c, d: _box_muller(
            xp, _unit64(xp, a, b), _unit64(xp, c, d) * (2.0 * math.pi)
        )
    return lambda a, b, c, d: [
        *_box_muller(xp, _unit(xp, a), _angle(xp, b)),
        *_box_muller(xp, _unit(xp, c), _angle(xp, d)),
    ]


# ---------------------------------------------------------------- fills
def filler(xp: Any, sig: NodeSig) -> Callable[[Place, tuple[int, ...]], Array]:
    """Fills a shape with the node's distribution from a place on."""
    dtype = sig.out_dtypes[0].base_dtype
    draw = (uniform if "Uniform" in sig.op else _normal)(xp, dtype)
    size = 2 if dtype is dtypes.float64 else 4
    fill = _truncated if "Truncated" in sig.op else _plain
    element = dtype_of(xp, dtype)

    def run(place: Place, shape: tuple[int, ...]) -> Array:
        count = math.prod(shape)
        groups = xp.arange(-(-count // size), dtype=xp.int64, device=home(sig))
        flat = interleaved(xp, fill(xp, place, groups, draw, size), count)
        return xp.astype(xp.reshape(flat, shape), element, copy=False)

    return run


def interleaved(xp: Any, columns: Sequence[Array], count: int) -> Array:
    """The first outputs in the order of their blocks, from a column for each place in a block."""
    return xp.reshape(xp.stack(columns, axis=1), (-1,))[:count]


def _plain(xp: Any, place: Place, groups: Array, draw: Draw, size: int) -> list[Array]:
    """A group of outputs for each block."""
    return draw(*blocks(place, groups, groups.shape[0]))


def _truncated(xp: Any, place: Place, groups: Array, draw: Draw, size: int) -> list[Array]:
    """Normals redrawn until they are within two deviations.

    A group of outputs has a stretch of the stream of its own and keeps drawing until it is full;
    all groups that still lack values draw together, and in a namespace with a loop all groups.
    """
    stretch = size * RESERVED // 4
    ends = groups.shape[0] * stretch

    def drawn(
        starts: Array, slots: list[Array], have: Array, step: Any, last: int
    ) -> tuple[list[Array], Array]:
        for value in draw(*blocks(place, starts + step, last)):
            keep = xp.abs(value) < 2
            slots = [xp.where(keep & (have == i), value, slot) for i, slot in enumerate(slots)]
            have = have + xp.astype(keep, xp.int64)
        return slots, have

    def filled(starts: Array, slots: list[Array], have: Array, step: int) -> list[Array]:
        slots, have = drawn(starts, slots, have, step, ends + step)
        lacks = have < size
        (which,) = xp.nonzero(lacks)
        if which.shape[0] == 0:
            return slots
        rest = filled(*_rows(xp, which, starts, slots, have), step + 1)
        # The n-th group that lacks values is the n-th of the rest.
        order = xp.clip(xp.cumulative_sum(xp.astype(lacks, xp.int64)) - 1, 0, None)
        return [
            xp.where(lacks, xp.take(new, order, axis=0), old)
            for new, old in zip(rest, slots, strict=True)
        ]

    element = xp.float64 if size == 2 else xp.float32
    empty = xp.astype(xp.zeros_like(groups), element)
    starts, none = groups * stretch, xp.zeros_like(groups)
    loop = xp.while_loop if hasattr(xp, "defer") else None  # libraries have such a name, too
    if loop is None:
        return filled(starts, [empty] * size, none, 0)

    def once(state: tuple[list[Array], Array, Any]) -> tuple[list[Array], Array, Any]:
        slots, have, step = state
        return *drawn(starts, slots, have, step, ends + stretch), step + 1

    slots: list[Array] = loop(lambda s: xp.any(s[1] < size), once, ([empty] * size, none, 0))[0]
    return slots


def _rows(
    xp: Any, which: Array, starts: Array, slots: list[Array], have: Array
) -> tuple[Array, list[Array], Array]:
    starts, have, *rest = (xp.take(x, which, axis=0) for x in (starts, have, *slots))
    return starts, rest, have


@draws_floats("RandomUniform", "RandomStandardNormal", "TruncatedNormal", host_inputs=("shape",))
def stateful(xp: Any, sig: NodeSig) -> Callable[[Any], Array]:
    """The next stretch of the node's stream."""
    fill, stream = filler(xp, sig), random_stream(sig)

    def run(shape: Any) -> Array:
        wanted = draw_shape(shape)
        return fill(stream.reserve(math.prod(wanted) * RESERVED), wanted)

    return run


@draws_floats(
    "StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal",
    host_inputs=("shape", "seed"),
)  # fmt: skip
def stateless(xp: Any, sig: NodeSig) -> Callable[[Any, Any], Array]:
    """A function of the seed."""
    fill = filler(xp, sig)
    return lambda shape, seed: fill(stateless_place(seed), draw_shape(shape))


# ---------------------------------------------------------------- integers
def _within64(xp: Any, low: Array, high: Array, first: int, span: int) -> Array:
    """`first` plus the remainder of an unsigned number of 64 bits, given by its words, by `span`.

    The number is kept as its upper 63 bits and its last, so that all steps have room in int64.
    """
    half, bit = (high << 31) + (low >> 1), low & 1
    if span < 1 << 63:
        half = half % span
    # Now the number is below twice the span.
    above = (half > span >> 1) | ((half == span >> 1) & (bit >= span & 1))
    half = xp.where(above, half - (span >> 1), half)
    bit = xp.where(above, bit - (span & 1), bit)
    return (half + first) + half + bit


def integers(xp: Any, sig: NodeSig) -> Callable[..., Array]:
    """Fills a shape with integers of a range from a place on."""
    dtype = sig.out_dtypes[0].base_dtype
    size = 2 if dtype is dtypes.int64 else 4
    element = dtype_of(xp, dtype)

    def run(place: Place, shape: tuple[int, ...], low: Any, high: Any) -> Array:
        count = math.prod(shape)
        first, span = int_range(low, high, count)
        if count == 0:
            return xp.zeros(shape, dtype=element, device=home(sig))
        groups = xp.arange(-(-count // size), dtype=xp.int64, device=home(sig))
        words = blocks(place, groups, groups.shape[0])
        if size == 2:
            pairs = (words[:2], words[2:])
            columns = [_within64(xp, *pair, first, span) for pair in pairs]
        else:
            columns = [word % span + first for word in words]
        flat = interleaved(xp, columns, count)
        return xp.astype(xp.reshape(flat, shape), element, copy=False)

    return run


@portable(
    "RandomUniformInt", Tout=_INTS, host_inputs=("shape", "minval", "maxval"), computes_in=WORDS
)
def random_uniform_int(xp: Any, sig: NodeSig) -> Callable[[Any, Any, Any], Array]:
    """Integers of the next stretch of the node's stream."""
    fill, stream = integers(xp, sig), random_stream(sig)

    def run(shape: Any, low: Any, high: Any) -> Array:
        wanted = draw_shape(shape)
        return fill(stream.reserve(math.prod(wanted) * RESERVED), wanted, low, high)

    return run


@portable(
    "StatelessRandomUniformInt", dtype=_INTS, host_inputs=("shape", "seed", "minval", "maxval"),
    computes_in=WORDS,
)  # fmt: skip
def stateless_uniform_int(xp: Any, sig: NodeSig) -> Callable[[Any, Any, Any, Any], Array]:
    """Integers that are a function of the seed."""
    fill = integers(xp, sig)
    return lambda shape, seed, low, high: fill(stateless_place(seed), draw_shape(shape), low, high)


# ---------------------------------------------------------------- shuffles
@portable("RandomShuffle", computes_in=WORDS)
def random_shuffle(xp: Any, sig: NodeSig) -> Callable[[Array], Array]:
    """The rows in another order: the order comes from the host, the rows stay on the device."""
    stream = random_stream(sig)

    def run(x: Array) -> Array:
        length = x.shape[0] if len(x.shape) else 1
        if math.prod(x.shape) <= 1 or length <= 1:
            return copy(xp, x)
        order = shuffled(stream.reserve(-(-(length - 1) // 4)), length)
        return xp.take(x, device_ints(xp, order, x), axis=0)

    return run
