"""Arithmetic on quantized tensors: products, sums, concatenation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, checks, dtypes
from opdock_cpu import ranges
from opdock_cpu.int8 import BYTES, INT32, Factors, Outputs, centred, wrapped
from opdock_cpu.narrowing import requantized
from opdock_cpu.ranges import F32, integers, invalid, scalar, storage

__all__ = ["Addends", "BiasSummands", "bias_summands", "check_bias", "multiplied", "table"]

Array = npt.NDArray[Any]

table = KernelTable()


# ---------------------------------------------------------------- products
def multiplied(a: Array, b: Array, zeros: tuple[int, int]) -> Array:
    """The sums of a product of matrices of plain integers, as 32-bit ones."""
    return wrapped(np.dot(*centred(a, b, zeros, a.shape[1])))


@table.binder("QuantizedMatMul", T1=dtypes.quint8, T2=BYTES, Toutput=dtypes.qint32)
def _matmul(sig: NodeSig) -> Callable[..., Outputs]:
    ta, tb, dtype = sig.attrs["transpose_a"], sig.attrs["transpose_b"], sig.out_dtypes[0].np
    factors = Factors(sig, ("a", "b"))

    def run(a: Array, b: Array, *ends: Array) -> Outputs:
        product = factors(ends)
        checks.check_matmul(a, b, ta, tb)
        left, right = storage(a), storage(b)
        sums = multiplied(left.T if ta else left, right.T if tb else right, product.zeros)
        return product.result(sums, dtype)

    return run


@table.binder("QuantizedMul", T1=dtypes.quint8, T2=dtypes.quint8, Toutput=dtypes.qint32)
def _mul(sig: NodeSig) -> Callable[..., Outputs]:
    factors, dtype = Factors(sig, ("x", "y")), sig.out_dtypes[0].np

    def run(x: Array, y: Array, *ends: Array) -> Outputs:
        product = factors(ends)
        checks.broadcast_shapes(x.shape, y.shape)
        left, right = centred(storage(x), storage(y), product.zeros, 1)
        return product.result(wrapped(left * right), dtype)

    return run


# ---------------------------------------------------------------- sums
def _addends(x: Array, low: np.float32, high: np.float32, spread: np.float32, alone: bool) -> Array:
    """Bytes as 32-bit integers of a symmetric range, through the steps that TensorFlow takes."""
    if alone:
        only = ranges.number(x.reshape(-1)[0], low, high, integers(np.uint8))
        return np.full(x.shape, ranges.clamped(only, F32(-spread), spread, INT32), np.int32)
    return _stepped(low, high, spread)[x]


@functools.lru_cache(maxsize=256)
def _stepped(low: np.float32, high: np.float32, spread: np.float32) -> Array:
    """All bytes as 32-bit integers of a symmetric range.

    TensorFlow works out the integers of 0 and 1 and goes on from there by multiplication, but for
    one byte that is added to all others.
    """
    first, second = (
        ranges.unclamped(
            ranges.number(i, low, high, integers(np.uint8)), F32(-spread), spread, INT32
        )
        for i in (0, 1)
    )
    every = first + np.arange(256, dtype=np.int64) * (second - first)
    return _shared(np.clip(every, INT32.lowest, INT32.highest).astype(np.int32))


def _shared(table: Array) -> Array:
    """A table that is kept for the next call with the same range."""
    table.flags.writeable = False
    return table


class Addends(NamedTuple):
    """The ranges of a sum of two quantized tensors.

    Attributes:
        x, y: theirs.
        spread: what the highest 32-bit integer of the sum stands for.
    """

    x: ranges.Range
    y: ranges.Range
    spread: np.float32

    @classmethod
    def read(cls, ends: Sequence[Array]) -> Addends:
        """From (min, max) of either.

        Raises:
            InvalidArgumentError: an end is no scalar, or a range is empty.
        """
        names = ("min_x", "max_x", "min_y", "max_y")
        low_x, high_x, low_y, high_y = (
            scalar(e, f"`{n}`") for e, n in zip(ends, names, strict=True)
        )
        for name, low, high in (("x", low_x, high_x), ("y", low_y, high_y)):
            if not high > low:
                raise invalid(f"max_{name} must be larger than min_{name}.")
        biggest = max(abs(min(low_x, low_y)), abs(max(high_x, high_y)))
        return cls((low_x, high_x), (low_y, high_y), F32(biggest * F32(1 << 14)))

    def every(self) -> tuple[Array, Array]:
        """Of each byte of x, and of y, the 32-bit integer."""
        return _stepped(*self.x, self.spread), _stepped(*self.y, self.spread)


@table.binder("QuantizedAdd", T1=dtypes.quint8, T2=dtypes.quint8, Toutput=dtypes.qint32)
def _add(sig: NodeSig) -> Callable[..., Outputs]:
    dtype = sig.out_dtypes[0].np

    def run(x: Array, y: Array, *ends: Array) -> Outputs:
        checks.broadcast_shapes(x.shape, y.shape)
        found = Addends.read(ends)
        spread = found.spread
        out = _addends(storage(x), *found.x, spread, x.size == 1)
        out = out + _addends(storage(y), *found.y, spread, y.size == 1 and x.size != 1)
        return out.view(dtype), np.asarray(F32(-spread)), np.asarray(spread)

    return run


@functools.lru_cache(maxsize=256)
def _every(low: np.float32, high: np.float32, spread: np.float32, kind: Any) -> Array:
    """All 8-bit integers as 32-bit ones of a symmetric range, in the order of their bits."""
    known = integers(kind)
    every = np.arange(known.lowest, known.highest + 1, dtype=np.int64).astype(kind)
    numbers = ranges.dequantized(every, low, high, known)
    # A signed type counts its negative integers from the end.
    return _shared(np.roll(ranges.quantized(numbers, F32(-spread), spread, INT32), known.lowest))


class BiasSummands(NamedTuple):
    """What a bias addition adds up.

    Attributes:
        every: of each 8-bit integer of the input the 32-bit one.
        bias: the integers that are added.
        spread: what the highest 32-bit integer stands for.
    """

    every: Array
    bias: Array
    spread: np.float32


def bias_summands(kind: Any, bias: Array, ends: Sequence[Array]) -> BiasSummands:
    """Input and bias as 32-bit integers of one range.

    Args:
        kind: the NumPy type of both.
        bias: plain integers.
        ends: (min, max) of the input, then of the bias.

    Raises:
        InvalidArgumentError: an end is no scalar.
    """
    names = ("min_input", "max_input", "min_bias", "max_bias")
    low, high, low_bias, high_bias = (scalar(e, n) for e, n in zip(ends, names, strict=True))
    spread = F32(max(high, -low, high_bias, -low_bias) * F32(1 << 17))
    zero = ranges.clamped(F32(0), F32(-spread), spread, INT32)
    summand = _every(low_bias, high_bias, spread, kind)[bias] + np.int32(zero)
    return BiasSummands(_every(low, high, spread, kind), summand, spread)


def _bias_when(sig: NodeSig) -> bool | str:
    return sig.in_dtypes[0] == sig.in_dtypes[1] or "the types of input and bias differ"


@table.binder("QuantizedBiasAdd", T1=BYTES, T2=BYTES, out_type=dtypes.qint32, when=_bias_when)
def _bias_add(sig: NodeSig) -> Callable[..., Outputs]:
    dtype, kind = sig.out_dtypes[0].np, sig.in_dtypes[0].np[0]

    def run(x: Array, bias: Array, *ends: Array) -> Outputs:
        check_bias(x, bias)
        every, summand, spread = bias_summands(kind, storage(bias), ends)
        out = every[storage(x)]
        out += summand
        return out.view(dtype), np.asarray(F32(-spread)), np.asarray(spread)

    return run


def check_bias(x: Array, bias: Array) -> None:
    """Raises InvalidArgumentError where a bias does not fit."""
    shape = "[" + ",".join(map(str, x.shape)) + "]"
    if x.ndim < 2:
        raise invalid(f"Input tensor must be at least 2D: {shape}")
    if bias.ndim != 1:
        raise invalid(f"Biases must be 1D: {list(bias.shape)}")
    if bias.shape[0] != x.shape[-1]:
        raise invalid(
            "Must provide as many biases as the last dimension of the input tensor: "
            f"[{bias.shape[0]}] vs. {shape}"
        )


# ---------------------------------------------------------------- concatenation
def _joint_range(lows: list[Any], highs: list[Any], signed: bool) -> ranges.Range:
    """The range that holds all, and no number above 0 at its start; symmetric if signed."""
    low, high = min(F32(0), *lows), max(highs)
    if not signed:
        return low, high
    largest = max(abs(low), abs(high))
    return F32(-largest), largest


@table.binder("QuantizedConcat", T={dtypes.quint8, dtypes.qint32}, host_inputs=("concat_dim",))
def _concat(sig: NodeSig) -> Callable[..., Outputs]:
    count, dtype = sig.attrs["N"], sig.out_dtypes[0].np
    kind = dtype[0]

    def run(concat_dim: Array, *args: Array) -> Outputs:
        values, ends = args[:count], args[count:]
        lows = [scalar(e, "input_mins") for e in ends[:count]]
        highs = [scalar(e, "input_maxes") for e in ends[count:]]
        axis = _axis(values, int(concat_dim))
        target = _joint_range(lows, highs, kind.kind == "i")
        parts = [
            storage(v) if source == target else requantized(storage(v), source, target, kind)
            for v, source in zip(values, zip(lows, highs))
        ]
        out = np.concatenate(parts, axis=axis)
        return out.view(dtype), np.asarray(target[0]), np.asarray(target[1])

    return run


def _axis(values: tuple[Array, ...], axis: int) -> int:
    """The axis; InvalidArgumentError when the inputs do not fit along it."""
    first = values[0].shape
    if not 0 <= axis < len(first):
        raise invalid(
            "ConcatOp : Expected concatenating dimensions in the range [0, "
            f"{len(first)}), but got {axis}"
        )
    for i, value in enumerate(values):
        shape = value.shape
        if len(shape) != len(first):
            raise invalid(
                "ConcatOp : Ranks of all input tensors should match: shape[0] = "
                f"{list(first)} vs. shape[{i}] = {list(shape)}"
            )
        if (shape[:axis], shape[axis + 1 :]) != (first[:axis], first[axis + 1 :]):
            raise invalid(
                "ConcatOp : Dimensions of inputs should match: shape[0] = "
                f"{list(first)} vs. shape[{i}] = {list(shape)}"
            )
    return axis
