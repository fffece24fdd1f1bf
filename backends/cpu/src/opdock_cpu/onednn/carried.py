"""Products of 8-bit integers carried by float32, exact all the same.

A processor without instructions for bytes (VNNI, AMX) adds up pairs of their products in 16 bits,
which overflow, and is no quicker with them than with floats. So floats multiply: a float32 holds
every whole number up to 2**24. What an output can reach at most is known once the weights are;
where that is more, the inputs are divided into shares whose sums fit, and those are added up in 32
bits.

Zeros cost nothing here: they are taken off before, and images are padded with 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from opdock_cpu.onednn import conv
from opdock_cpu.onednn.conv import ConvShape
from opdock_cpu.onednn.declarations import Type
from opdock_cpu.onednn.matmul import product
from opdock_cpu.onednn.memory import dense
from opdock_cpu.onednn.packing import Call
from opdock_cpu.onednn.parts import OPENMP_FROM

__all__ = ["CarriedConvolution", "CarriedProduct", "Shares"]

Array = npt.NDArray[Any]
_WHOLE: Final = 1 << 24
"""Up to here every whole number is a float32."""
_FARTHEST: Final = 255
"""How far a byte lies from the byte that stands for 0 at most."""


class Share(NamedTuple):
    """A part of the inputs, whose sums are whole float32 numbers.

    Attributes:
        inputs: which they are.
        weights: theirs, laid out.
        run: over (x, weights, out).
    """

    inputs: slice
    weights: Array
    run: Callable[..., None]


Shares = Sequence[Share]
"""Weights as a product takes them."""


def _divided(weights: Array) -> list[slice]:
    """Equal parts of the inputs, the last axis but one, that are small enough."""
    inputs = weights.shape[-2]
    reach = np.abs(weights).sum(axis=tuple(range(weights.ndim - 2)), dtype=np.float64) * _FARTHEST
    for count in range(1, inputs + 1):
        ends = [inputs * i // count for i in range(count + 1)]
        parts = [slice(a, b) for a, b in itertools.pairwise(ends)]
        if all(reach[part].sum(axis=0).max() < _WHOLE for part in parts):
            break
    return parts


class _Carried:
    """What products and convolutions share: weights in shares, and the sums of the shares."""

    def __init__(self, target: tuple[int, ...]) -> None:
        self._target = target
        self._calls: dict[int, tuple[Callable[[Array], Array], Callable[..., None]]] = {}

    def pack(self, weights: Array, zero: int) -> Shares:
        """Lays out weights; once does for as many products.

        Args:
            weights: 8-bit integers, the inputs on the last axis but one.
            zero: the integer that stands for 0.
        """
        centred = weights.astype(np.float32) - np.float32(zero)
        shares = []
        for part in _divided(centred):
            pack, run = self._bound(part.stop - part.start)
            shares.append(Share(part, pack(np.ascontiguousarray(centred[..., part, :])), run))
        return shares

    def _bound(self, inputs: int) -> tuple[Callable[[Array], Array], Callable[..., None]]:
        found = self._calls.get(inputs)
        if found is None:
            call = self._call(inputs)
            found = self._calls[inputs] = call.keep(1), call.bind()
        return found

    def _call(self, inputs: int) -> Call:
        raise NotImplementedError

    def __call__(self, x: Array, weights: Shares, zero: int) -> Array:
        """The sums: whole float32 numbers, or int32 where those do not hold them.

        Args:
            x: bytes, the inputs on the last axis.
            weights: what `pack` gave.
            zero: the byte that stands for 0.
        """
        total = None
        for share in weights:
            out = np.empty(self._target, np.float32)
            share.run(_centred(x[..., share.inputs], zero), share.weights, out)
            if len(weights) == 1:
                return out
            total = out.astype(np.int32) if total is None else total + out.astype(np.int32)
        assert total is not None
        return total


def _centred(x: Array, zero: int) -> Array:
    out = x.astype(np.float32, order="C")
    if zero:
        out -= np.float32(zero)
    return out


class CarriedProduct(_Carried):
    """(a - p) @ (b - q) of 8-bit integers.

    Args:
        rows, inner, columns: the sizes of the matrices [rows, inner] and [inner, columns].
    """

    def __init__(self, rows: int, inner: int, columns: int) -> None:
        super().__init__((rows, columns))

    def _call(self, inputs: int) -> Call:
        rows, columns = self._target
        left, right = dense((rows, inputs), Type.F32), dense((inputs, columns), Type.F32)
        out = dense(self._target, Type.F32)
        count = 1 if rows * columns * inputs < OPENMP_FROM else None
        return Call(product(left, right, out, count=count, packed=True), [left, right, out], [2])


class CarriedConvolution(_Carried):
    """The convolution of (x - p) with (w - q), 8-bit integers.

    Args:
        shape: the geometry, channels last and in one group; its `kind` is `Type.F32`.

    Raises:
        UnimplementedError: oneDNN has no implementation for it.
    """

    def __init__(self, shape: ConvShape) -> None:
        super().__init__((shape.batch, *shape.where.out, shape.outputs))
        self._shape = shape
        self._bound(shape.channels)

    def _call(self, inputs: int) -> Call:
        shape = replace(self._shape, channels=inputs)
        return conv.forward(shape, shape.weights())
