"""Arithmetic on quantized tensors: products, sums, concatenation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, checks, dtypes
from opdock_cpu import ranges
from opdock_cpu.int8 import BYTES, INT32, Factors, Outputs, centred, wrapped
from opdock_cpu.ranges import F32, integers, invalid, scalar, storage

__all__ = ["multiplied", "table"]

Array = npt.NDArray[Any]

table = KernelTable()


def _broadcast(x: Array, y: Array) -> None:
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        raise invalid(f"Incompatible shapes: {list(x.shape)} vs. {list(y.shape)}") from None


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
        _broadcast(x, y)
        left, right = centred(storage(x), storage(y), product.zeros, 1)
        return product.result(wrapped(left * right), dtype)

    return run


# ---------------------------------------------------------------- sums
def _addends(x: Array, low: np.float32, high: np.float32, spread: np.float32, alone: bool) -> Array:
    """Bytes as 32-bit integers of a symmetric range, through the steps that TensorFlow takes.

    It works out the integers of 0 and 1 and goes on from there by multiplication, but for one byte
    that is added to all others.
    """
    byte, ends = integers(np.uint8), (F32(-spread), spread, INT32)
    if alone:
        only = ranges.number(x.reshape(-1)[0], low, high, byte)
        return np.full(x.shape, ranges.clamped(only, *ends), np.int32)
    first, second = (ranges.unclamped(ranges.number(i, low, high, byte), *ends) for i in (0, 1))
    every = first + np.arange(256, dtype=np.int64) * (second - first)
    return np.clip(every, INT32.lowest, INT32.highest).astype(np.int32)[x]


@table.binder("QuantizedAdd", T1=dtypes.quint8, T2=dtypes.quint8, Toutput=dtypes.qint32)
def _add(sig: NodeSig) -> Callable[..., Outputs]:
    dtype = sig.out_dtypes[0].np

    def run(x: Array, y: Array, *ends: Array) -> Outputs:
        low_x, high_x, low_y, high_y = (
            scalar(e, f"`{n}`") for e, n in zip(ends, ("min_x", "max_x", "min_y", "max_y"))
        )
        _broadcast(x, y)
        for name, low, high in (("x", low_x, high_x), ("y", low_y, high_y)):
            if not high > low:
                raise invalid(f"max_{name} must be larger than min_{name}.")
        biggest = max(abs(min(low_x, low_y)), abs(max(high_x, high_y)))
        spread = F32(biggest * F32(1 << 14))
        out = _addends(storage(x), low_x, high_x, spread, x.size == 1)
        out = out + _addends(storage(y), low_y, high_y, spread, y.size == 1 and x.size != 1)
        return out.view(dtype), np.asarray(F32(-spread)), np.asarray(spread)

    return run


def _in_range(x: Array, low: np.float32, high: np.float32, spread: np.float32) -> Array:
    """8-bit integers as 32-bit ones of a symmetric range."""
    kind = integers(x.dtype)
    every = np.arange(kind.lowest, kind.highest + 1, dtype=np.int64).astype(x.dtype)
    numbers = ranges.dequantized(every, low, high, kind)
    # Indexed from the lowest, which a signed type counts from the end.
    found = ranges.quantized(numbers, F32(-spread), spread, INT32)
    return np.roll(found, kind.lowest)[x]


def _bias_when(sig: NodeSig) -> bool | str:
    return sig.in_dtypes[0] == sig.in_dtypes[1] or "the types of input and bias differ"


@table.binder("QuantizedBiasAdd", T1=BYTES, T2=BYTES, out_type=dtypes.qint32, when=_bias_when)
def _bias_add(sig: NodeSig) -> Callable[..., Outputs]:
    dtype = sig.out_dtypes[0].np
    names = ("min_input", "max_input", "min_bias", "max_bias")

    def run(x: Array, bias: Array, *ends: Array) -> Outputs:
        low, high, low_bias, high_bias = (scalar(e, n) for e, n in zip(ends, names))
        _check_bias(x, bias)
        biggest = max(high, -low, high_bias, -low_bias)
        spread = F32(biggest * F32(1 << 17))
        zero = ranges.clamped(F32(0), F32(-spread), spread, INT32)
        summand = _in_range(storage(bias), low_bias, high_bias, spread) + np.int32(zero)
        out = _in_range(storage(x), low, high, spread)
        out += summand
        return out.view(dtype), np.asarray(F32(-spread)), np.asarray(spread)

    return run


def _check_bias(x: Array, bias: Array) -> None:
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
            storage(v) if source == target else ranges.requantized(storage(v), source, target, kind)
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
