"""Philox4x32-10, counted in blocks of 128 bits, many blocks at a time.

A block is a pure function of a 64-bit key and a 128-bit counter, so any part of a stream can be
computed on its own: kernels ask for the blocks they need by index.  TensorFlow's seeds fill the key
(``seed``) and the high half of the counter (``seed2``); drawing advances the low half.
"""

from __future__ import annotations

import math
import struct
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import RandomStream, philox
from opdock_cpu.jit.draws import drawn

__all__ = [
    "FEW", "Philox", "PhiloxState", "box_muller", "box_muller64", "unit_bfloat16", "unit_float16",
    "unit_float32", "unit_float64",
]  # fmt: skip

Array = npt.NDArray[Any]
Words = npt.NDArray[np.uint32]

_MASK64 = (1 << 64) - 1
_MASK128 = (1 << 128) - 1
_HALF = np.uint64(32)
FEW: Final = 4
"""Blocks whose normals Python computes before NumPy's twenty calls for them are made."""
_CHUNK = 1 << 13  # blocks per pass: the temporaries stay in the second-level cache


class Philox:
    """A place in a Philox stream.

    Args:
      key: 64-bit key.
      counter: 128-bit counter of the first block.
    """

    __slots__ = ("counter", "key")

    def __init__(self, key: int, counter: int = 0) -> None:
        self.key = key & _MASK64
        self.counter = counter & _MASK128

    @classmethod
    def from_seeds(cls, seed: int, seed2: int) -> Philox:
        """The stream of a stateful op with TF's pair of seeds."""
        return cls(seed, (seed2 & _MASK64) << 64)

    def skip(self, blocks: int) -> Philox:
        """The place ``blocks`` blocks further on."""
        return Philox(self.key, self.counter + blocks)

    def blocks(self, count: int) -> Words:
        """The next ``count`` blocks, shape ``[count, 4]``."""
        found = drawn("words", self.key, self.counter, count)
        if found is not None:
            return found
        out = np.empty((count, 4), np.uint32)
        for start in range(0, count, _CHUNK):
            stop = min(start + _CHUNK, count)
            self._fill(np.arange(start, stop, dtype=np.int64), stop, out[start:stop])
        return out

    def blocks_at(self, index: npt.NDArray[np.int64]) -> Words:
        """The blocks at the given offsets from here, shape ``[len(index), 4]``."""
        found = drawn("words", self.key, self.counter, index)
        if found is not None:
            return found
        out = np.empty((len(index), 4), np.uint32)
        for start in range(0, len(index), _CHUNK):
            part = slice(start, start + _CHUNK)
            self._fill(index[part], int(index[part].max()), out[part])
        return out

    def units(self, count: int) -> Array:
        """``count`` uniform float32 in [0, 1), from as many words."""
        blocks = -(-count // 4)
        found = drawn("unit", self.key, self.counter, blocks)
        if found is None:
            found = unit_float32(self.blocks(blocks))
        return found.reshape(-1)[:count]

    def units64(self, count: int) -> Array:
        """``count`` uniform float64 in [0, 1), each from two words."""
        blocks = -(-count // 2)
        found = drawn("unit64", self.key, self.counter, blocks)
        if found is None:
            words = self.blocks(blocks).reshape(-1, 2)
            found = unit_float64(words[:, 0], words[:, 1])
        return found.reshape(-1)[:count]

    def normals(self, blocks: int | npt.NDArray[np.int64]) -> Array:
        """Four float32 normals from each block: the next ones, or those at offsets from here.

        Args:
          blocks: how many, or the offsets.

        Returns:
          An array ``[blocks, 4]``.
        """
        count = blocks if isinstance(blocks, int) else len(blocks)
        if count <= FEW:
            index = range(count) if isinstance(blocks, int) else blocks.tolist()
            few = [self.four_normals(i) for i in index]
            return np.array(few, np.float32).reshape(count, 4)
        found = drawn("normal", self.key, self.counter, blocks)
        if found is not None:
            return found
        words = self.blocks(blocks) if isinstance(blocks, int) else self.blocks_at(blocks)
        return box_muller(words)

    def four_normals(self, index: int) -> tuple[float, float, float, float]:
        """The float32 normals of one block."""
        a, b, c, d = philox.blocks((self.key, self.counter), index, index)
        return *_normal_pair(a, b), *_normal_pair(c, d)

    def _fill(self, index: npt.NDArray[np.int64], last: int, out: Words) -> None:
        words = philox.blocks((self.key, self.counter), index, last)
        for i, word in enumerate(words):
            out[:, i] = word


class PhiloxState:
    """A stateful op's stream in one session, as places to draw blocks from."""

    __slots__ = ("_stream",)

    def __init__(self, stream: RandomStream) -> None:
        self._stream = stream

    def reserve(self, blocks: int) -> Philox:
        """Returns the current place and moves on by ``blocks``."""
        return Philox(*self._stream.reserve(blocks))


def unit_float32(words: Words) -> npt.NDArray[np.float32]:
    """Uniform float32 in [0, 1): the low 23 bits become the mantissa of a number in [1, 2)."""
    bits = (words & np.uint32(0x7FFFFF)) | np.uint32(0x3F800000)
    out = bits.view(np.float32)
    out -= np.float32(1)
    return out


def unit_float64(high: Words, low: Words) -> npt.NDArray[np.float64]:
    """Uniform float64 in [0, 1) from 20 bits of ``high`` and all of ``low``."""
    bits = (high & np.uint32(0xFFFFF)).astype(np.uint64) << _HALF
    bits |= low
    bits |= np.uint64(0x3FF0000000000000)
    out = bits.view(np.float64)
    out -= 1.0
    return out


def unit_float16(words: Words) -> npt.NDArray[np.float16]:
    """Uniform float16 in [0, 1) from the low 10 bits."""
    bits = (words & np.uint32(0x3FF)).astype(np.uint16) | np.uint16(0x3C00)
    return bits.view(np.float16) - np.float16(1)


def unit_bfloat16(words: Words, dtype: np.dtype[Any]) -> Array:
    """Uniform bfloat16 in [0, 1) from the low 7 bits."""
    bits = (words & np.uint32(0x7F)).astype(np.uint16) | np.uint16(0x3F80)
    return (bits.view(dtype).astype(np.float32) - np.float32(1)).astype(dtype)


_TWO, _THREE = struct.Struct("2f"), struct.Struct("3f")
_UNIT: Final = 2.0**-23
_LEAST: Final = float(np.float32(1e-7))


def _normal_pair(first: int, second: int) -> tuple[float, float]:
    """What `box_muller` makes of a pair, in Python's numbers: for few, NumPy's calls cost more.

    What `struct` packs is rounded to float32; a square root or a product of such numbers is then
    the same as if it had been computed with them.
    """
    unit = max((first & 0x7FFFFF) * _UNIT, _LEAST)
    angle = 2.0 * math.pi * ((second & 0x7FFFFF) * _UNIT)
    angle, log = _TWO.unpack(_TWO.pack(angle, math.log(unit)))
    values = _THREE.pack(math.sin(angle), math.cos(angle), math.sqrt(-2.0 * log))
    sine, cosine, length = _THREE.unpack(values)
    x, y = _TWO.unpack(_TWO.pack(sine * length, cosine * length))
    return x, y


def box_muller(blocks: Words) -> Array:
    """Four float32 normals from each block (``[..., 4]``): a pair from each two words.

    Each step is computed in float64 and rounded to float32: that is what a correctly rounding
    single-precision math library gives, and it is the same on every processor but for the results
    that lie next to the middle between two float32, one of about 2**28.
    """
    units = unit_float32(blocks).reshape(-1, 2)
    length = np.maximum(units[:, 0], np.float32(1e-7)).astype(np.float64)
    length = np.log(length).astype(np.float32)
    length *= np.float32(-2)
    np.sqrt(length, out=length)
    angle = (2.0 * np.pi * units[:, 1].astype(np.float64)).astype(np.float32).astype(np.float64)
    out = np.empty_like(units)
    np.multiply(np.sin(angle).astype(np.float32), length, out=out[:, 0])
    np.multiply(np.cos(angle).astype(np.float32), length, out=out[:, 1])
    return out.reshape(blocks.shape)


def box_muller64(block: Words) -> tuple[Array, Array]:
    """Two independent float64 normals from each block (``[..., 4]``)."""
    u1 = np.maximum(unit_float64(block[..., 0], block[..., 1]), 1e-7)
    v1 = 2.0 * np.pi * unit_float64(block[..., 2], block[..., 3])
    u2 = np.sqrt(-2.0 * np.log(u1))
    return np.sin(v1) * u2, np.cos(v1) * u2
