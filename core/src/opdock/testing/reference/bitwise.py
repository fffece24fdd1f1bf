"""What the operations on bits give, on Python's integers of any width."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


def _binary(op: str, fn: Callable[[int, int, int], int]) -> None:
    """Registers `fn(x, y, bits)` as the oracle of a binary op."""

    def apply(attrs: Attrs, x: Array, y: Array) -> Array:
        bits = 8 * np.dtype(attrs["T"]).itemsize
        xs, ys = np.broadcast_arrays(x, y)
        pairs = zip(xs.ravel().tolist(), ys.ravel().tolist(), strict=True)
        wrapped = [_wrap(fn(a, b, bits)) for a, b in pairs]
        return np.array(wrapped, np.int64).reshape(xs.shape)

    reference(op)(apply)


def _wrap(value: int) -> int:
    """The low 64 bits as a signed number."""
    value &= 2**64 - 1
    return value - 2**64 if value >= 2**63 else value


def _clamp(y: int, bits: int) -> int:
    return max(0, min(y, bits - 1))


_binary("BitwiseAnd", lambda x, y, bits: x & y)
_binary("BitwiseOr", lambda x, y, bits: x | y)
_binary("BitwiseXor", lambda x, y, bits: x ^ y)
_binary("LeftShift", lambda x, y, bits: x << _clamp(y, bits))
_binary("RightShift", lambda x, y, bits: x >> _clamp(y, bits))


@reference("Invert")
def invert(attrs: Attrs, x: Array) -> Array:
    """Every bit flipped: -1 - x in two's complement."""
    return -1 - x


@reference("PopulationCount")
def population_count(attrs: Attrs, x: Array) -> Array:
    """The ones in the binary form."""
    mask = 2 ** (8 * np.dtype(attrs["T"]).itemsize) - 1
    counts = [(int(v) & mask).bit_count() for v in x.ravel()]
    return np.array(counts, np.int64).reshape(x.shape)
