"""Products of quantized factors: where their zeros lie, and what range the sums have.

A product of integers that stand for numbers is a product of their distances from the integers that
stand for 0. Sums of such products are 32-bit integers, and wrap around.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from opdock.plugin import NodeSig, dtypes
from opdock_cpu.ranges import F32, Integers, integers, invalid, scalar, zero_point

__all__ = ["BYTES", "INT32", "ByEnds", "Factors", "Outputs", "Product", "centred", "wrapped"]

Array = npt.NDArray[Any]
Outputs = tuple[Array, Array, Array]
"""Integers, and the ends of their range."""

BYTES: Final = frozenset({dtypes.quint8, dtypes.qint8})
"""The types of 8 bits."""
INT32: Final = integers(np.int32)
"""The integers of sums."""


Found = TypeVar("Found")
_KEPT: Final = 32


class ByEnds(Generic[Found]):
    """What follows from the ends of ranges, which are the same numbers in most steps.

    Args:
        make: works it out, from all ends.
    """

    def __init__(self, make: Callable[[Sequence[Array]], Found]) -> None:
        self._make = make
        self._known: dict[bytes, Found] = {}

    def __call__(self, ends: Sequence[Array]) -> Found:
        """What follows from these."""
        key = b"".join([end.tobytes() for end in ends])
        if len(key) != 4 * len(ends):
            return self._make(ends)  # an end is no scalar, which is an error
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            found = self._known[key] = self._make(ends)
        return found


@dataclass(frozen=True, slots=True)
class Product:
    """What a call's ranges say.

    Attributes:
        zeros: of each factor, the integer that stands for 0.
        low, high: the range of the result as 32-bit integers.
    """

    zeros: tuple[int, int]
    low: np.float32
    high: np.float32

    def result(self, out: Array, dtype: np.dtype[Any]) -> Outputs:
        """The outputs of a node: 32-bit integers, and the ends of their range."""
        return out.view(dtype), np.asarray(self.low), np.asarray(self.high)


def _one_step(low: np.float32, high: np.float32, kind: Integers) -> np.float32:
    """What one integer more stands for; of a signed type the lowest integer is not used."""
    return F32((high - low) / F32(kind.highest - max(kind.lowest, -kind.highest)))


class Factors:
    """Reads the ranges of a node's two factors.

    An unsigned factor has its zero wherever the range says. A signed one is weights whose range is
    symmetric: its zero is 0, as in the kernels that TensorFlow has for signed weights.

    Args:
        sig: the node, its factors first.
        names: how messages name the ends, "a" giving "min_a" and "max_a".
        strict: whether an empty range is an error.
    """

    def __init__(self, sig: NodeSig, names: tuple[str, str], strict: bool = True) -> None:
        self._names, self._strict = names, strict
        self._known = ByEnds(self._read)
        self._kinds = [integers(t.np[0]) for t in sig.in_dtypes[:2]]

    def __call__(self, ends: Sequence[Array]) -> Product:
        """The zeros of the factors and the range of the result.

        Args:
            ends: (min, max) of the first factor, then of the second.

        Raises:
            InvalidArgumentError: an end is no scalar, or a range is empty.
        """
        return self._known(ends)

    def _read(self, ends: Sequence[Array]) -> Product:
        zeros, level = [], F32(1)
        for i, (name, kind) in enumerate(zip(self._names, self._kinds, strict=True)):
            low = scalar(ends[2 * i], f"min_{name}")
            high = scalar(ends[2 * i + 1], f"max_{name}")
            if self._strict and not high > low:
                raise invalid(f"max_{name} must be larger than min_{name}.")
            zero = 0 if kind.lowest else zero_point(low, high, kind)
            zeros.append(int(np.int64(zero).astype(np.int32)))
            level = F32(level * _one_step(low, high, kind))
        return Product(
            (zeros[0], zeros[1]), F32(level * F32(INT32.lowest)), F32(level * F32(INT32.highest))
        )


def _reach(x: Array, zero: int) -> int:
    """The largest distance of an integer of a type from the one that stands for 0."""
    kind = integers(x.dtype)
    return max(abs(kind.lowest - zero), abs(kind.highest - zero))


def centred(a: Array, b: Array, zeros: tuple[int, int], terms: int) -> tuple[Array, Array]:
    """Both factors as distances from their zeros, in a type in which sums are exact.

    Floats are preferred: NumPy multiplies matrices of integers without BLAS.

    Args:
        a, b: plain integers.
        zeros: the integers that stand for 0.
        terms: how many products are added up.
    """
    bound = _reach(a, zeros[0]) * _reach(b, zeros[1]) * terms
    kind: Any = np.float32 if bound < 1 << 24 else np.float64 if bound < 1 << 53 else np.int64
    return a.astype(kind) - kind(zeros[0]), b.astype(kind) - kind(zeros[1])


def wrapped(sums: Array) -> Array:
    """Exact sums as 32-bit integers that wrap around."""
    return sums.astype(np.int64).astype(np.int32)
