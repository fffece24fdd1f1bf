"""Products of 8-bit integers, added up in 32 bits: what quantized ops are made of.

A quantized integer stands for its distance from the integer that stands for 0. oneDNN could take
these zeros itself, but carries them through float32, where sums beyond 2**24 are not exact. So it
multiplies the integers as they are, and what the zeros add is taken off after:

    sum (a - p) (b - q)  =  sum a b  -  p sum b  -  q sum a  +  n p q

oneDNN multiplies unsigned by signed integers. Unsigned weights become signed by subtracting 128,
from them and from their zero.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from opdock.plugin import errors, windows
from opdock_cpu.onednn.conv import ConvShape, forward
from opdock_cpu.onednn.declarations import Type
from opdock_cpu.onednn.library import reason
from opdock_cpu.onednn.matmul import matrices, product
from opdock_cpu.onednn.memory import dense
from opdock_cpu.onednn.packing import Call
from opdock_cpu.sums32 import Rest, Sums32
from opdock_cpu.windowed_sums import window_sums
from opdock_cpu.windows import pad

__all__ = ["ConvolutionS32", "ProductS32", "Weights", "exact"]

Array = npt.NDArray[Any]
_HALF: Final = 128


class Weights(NamedTuple):
    """Weights as a primitive wants them.

    Attributes:
        packed: the laid out integers.
        sums: for each output, the sum of its integers.
    """

    packed: Array
    sums: Array


def _signed(weights: Array) -> Array:
    """8-bit weights as signed integers: of unsigned ones the highest bit flipped is 128 less."""
    if weights.dtype == np.int8:
        return weights
    return (weights ^ np.uint8(_HALF)).view(np.int8)


def _rest(sums: Array, terms: int, zeros: tuple[int, int]) -> Array:
    """What the zeros add to each output whatever `a` is; it wraps around like all sums."""
    p, q = zeros
    return (terms * p * q - p * sums).astype(np.int32)


def _fits(zeros: tuple[int, int], terms: int) -> bool:
    """Whether sums fit into 32 bits on the way, as they come and with what their zeros add.

    Args:
        zeros: p, and q of signed weights.
        terms: how many products are added up.
    """
    p, q = zeros
    return max(abs(p), abs(255 - p), 255) * (_HALF + abs(q)) * terms < 1 << 31


class ProductS32:
    """(a - p) @ (b - q) of 8-bit integers [m, k] and [k, n], exact, as int32 [m, n].

    Args:
        a: the shape [m, k]; `a` is uint8.
        b: the shape in which `b` comes.
        transpose_b: whether `b` comes as [n, k].
        unsigned: whether `b` is uint8, else int8.
        count: the number of threads, None for all.
    """

    def __init__(
        self, a: tuple[int, ...], b: tuple[int, ...], transpose_b: bool = False,
        unsigned: bool = False, count: int | None = None,
    ) -> None:  # fmt: skip
        left, right = dense(a, Type.U8), matrices(b, transpose_b, Type.S8)
        self._shape, self._terms = (left.dims[0], right.dims[1]), left.dims[1]
        out = dense(self._shape, Type.S32)
        call = Call(product(left, right, out, count=count, packed=True), [left, right, out], [2])
        self._pack, self._run = call.keep(1), call.bind()
        self._summed, self._shift = int(transpose_b), _HALF * unsigned

    def pack(self, b: Array) -> Weights:
        """Lays out `b`; once does for as many products."""
        b = _signed(b)
        return Weights(self._pack(b), b.sum(axis=self._summed, dtype=np.int64))

    def __call__(self, a: Array, b: Weights, zeros: tuple[int, int] = (0, 0)) -> Array:
        """The product; shapes and types are as promised.

        Args:
            a: an array, which is copied if it is not contiguous: as the transpose of one, oneDNN
                would carry it through float32 too.
            b: what `pack` gave.
            zeros: p and q.
        """
        return self.sums(a, b, zeros).whole()

    def sums(self, a: Array, b: Weights, zeros: tuple[int, int] = (0, 0)) -> Sums32:
        """The same; what the zeros add may be left to the next who reads the sums."""
        p, q = zeros[0], zeros[1] - self._shift
        out = np.empty(self._shape, np.int32)
        self._run(a, b.packed, out)
        if not p and not q:
            return Sums32(out)
        counts = a.sum(axis=1, dtype=np.int32) if q else None
        return _lacking(out, Rest(_rest(b.sums, self._terms, (p, q)), counts, q), p, self._terms)


class ConvolutionS32:
    """Convolution of (x - p) with (w - q), 8-bit integers, exact, as int32.

    Args:
        shape: the geometry, channels last and in one group; its `kind` is `Type.U8`.
        padded: whether images are padded with p, 0 to 255, before; else p must be 0 where `shape`
            pads.
        unsigned: whether the weights are uint8, else int8.
        counted: whether q may be another integer than the middle of the weights' type: then what
            the images' integers in each window add up to counts.
    """

    def __init__(
        self, shape: ConvShape, padded: bool = False, unsigned: bool = False, counted: bool = False
    ) -> None:
        self._given, self._padded, self._counted = shape.where, padded, counted
        self._terms = math.prod(shape.where.window) * shape.channels
        self._shift = _HALF * unsigned
        self._where = _without_padding(shape.where) if padded else shape.where
        call = forward(
            dataclasses.replace(shape, where=self._where), shape.weights(Type.S8), sums=Type.S32
        )
        self._pack, self._run = call.keep(1), call.bind()
        self._target = (shape.batch, *shape.where.out, shape.outputs)

    def pack(self, weights: Array) -> Weights:
        """Lays out weights [*window, inputs, outputs]; once does for as many convolutions."""
        weights = _signed(weights)
        sums = weights.sum(axis=tuple(range(weights.ndim - 1)), dtype=np.int64)
        return Weights(self._pack(weights), sums)

    def __call__(self, x: Array, weights: Weights, zeros: tuple[int, int] = (0, 0)) -> Array:
        """The convolution; shapes and types are as promised.

        Args:
            x: an array, channels last.
            weights: what `pack` gave.
            zeros: p and q.
        """
        return self.sums(x, weights, zeros).whole()

    def sums(self, x: Array, weights: Weights, zeros: tuple[int, int] = (0, 0)) -> Sums32:
        """The same; what the zeros add may be left to the next who reads the sums."""
        p, q = zeros[0], zeros[1] - self._shift
        out = np.empty(self._target, np.int32)
        x = pad(x, self._given, p) if self._padded else np.ascontiguousarray(x)
        self._run(x, weights.packed, out)
        if not p and not (q and self._counted):
            return Sums32(out)
        counts = window_sums(x, self._where) if self._counted and q else None
        rest = Rest(_rest(weights.sums, self._terms, (p, q)), counts, q)
        return _lacking(out, rest, p, self._terms)


def _lacking(out: Array, rest: Rest, p: int, terms: int) -> Sums32:
    sums = Sums32(out, rest)
    return sums if _fits((p, rest.times), terms) else Sums32(sums.whole())


def _without_padding(where: windows.Window) -> windows.Window:
    """The same windows on images that are padded already."""
    return dataclasses.replace(where, size=where.padded, pads=((0, 0),) * len(where.pads))


@functools.cache
def exact() -> str:
    """Why products are not exact on this processor; empty when they are.

    Without instructions of their own for them, pairs of products are added up in 16 bits first,
    and may not fit.
    """
    if reason():
        return reason()
    try:
        multiply = ProductS32((16, 64), (64, 16))
    except errors.UnimplementedError as e:
        return str(e)
    a, b = np.full((16, 64), 255, np.uint8), np.full((64, 16), 127, np.int8)
    if (multiply(a, multiply.pack(b)) != 255 * 127 * 64).any():
        return "this processor adds up products of 8-bit integers in 16 bits, which overflow"
    return ""
