"""Quantization kernels: QuantizeV2, Dequantize, and changes of range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import QUANTIZED, KernelTable, NodeSig, checks, dtypes, errors
from opdock_cpu import ranges
from opdock_cpu.int8 import INT32
from opdock_cpu.narrowing import requantized
from opdock_cpu.ranges import F32, Integers, Range, integers, invalid, scalar, storage

__all__ = ["requested", "table", "used"]

Array = npt.NDArray[Any]

table = KernelTable()

_MOST: Final = np.finfo(np.float32).max


class _Ends:
    """The ends of a node's range: two numbers, or a pair for each entry of an axis."""

    def __init__(self, sig: NodeSig, verb: str) -> None:
        self._axis, self._verb = int(sig.attrs["axis"]), verb
        self._whole = sig.attrs["mode"] == "MIN_FIRST"

    def __call__(self, x: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Both ends as float32, shaped to go with `x`.

        Raises:
            InvalidArgumentError: their shapes do not fit.
            UnimplementedError: the mode knows no axis.
        """
        axis = self._axis
        if axis == -1:
            ends = scalar(low, "min_range"), scalar(high, "max_range")
            return np.asarray(ends[0]), np.asarray(ends[1])
        checks.check_range_axis(axis, x)
        count = x.shape[axis]
        for name, end in (("min_range", low), ("max_range", high)):
            if end.shape != (count,):
                raise invalid(
                    f"{name} must have as many elements as input on the axis ({axis}), got "
                    f"{end.size}, expected {count}"
                )
        if self._whole and count != 1:
            raise errors.UnimplementedError(
                None, None,
                f"MIN_FIRST mode is not implemented for {self._verb} with axis != -1.",
            )  # fmt: skip
        shape = [1] * x.ndim
        shape[axis] = count
        return low.reshape(shape), high.reshape(shape)


# ---------------------------------------------------------------- QuantizeV2
def _widened(low: Array, high: Array, least: float) -> tuple[Array, Array]:
    """The range with 0 inside, and not empty.

    Raises:
        InvalidArgumentError: the ends are the wrong way round.
    """
    if np.any(high < low):
        raise invalid("input_max_range must be larger than input_min_range.")
    start = np.minimum(low, F32(0))
    apart = np.maximum(F32(1), np.maximum(np.abs(low), np.abs(high))) * F32(least)
    return start, np.maximum(F32(0), np.maximum(high, start + apart))


def _combined(x: Array, low: Array, high: Array, kind: Integers) -> Array:
    """The range shared out evenly; the integers are rounded as floats and cast."""
    scale = (kind.steps / (high - low).astype(np.float64)).astype(F32)
    out = np.clip(x, low, high)
    out -= low
    out *= scale
    if kind.lowest == 0:
        out += F32(0.5)
        return out
    out -= F32((kind.steps + 1) / 2)
    return ranges.round_away(out)


def _scale(low: Array, high: Array, kind: Integers, narrow: bool) -> tuple[Array, Array, Array]:
    """The factor of mode SCALED, and the ends of the range that it makes."""
    least, most = F32(kind.lowest + narrow), F32(kind.highest)
    with np.errstate(divide="ignore", invalid="ignore"):
        below = np.where(least * low > 0, least / low, _MOST)
        above = np.where(most * high > 0, most / high, _MOST)
    factor = np.minimum(below, above)
    return factor, least / factor, most / factor


@table.binder("QuantizeV2", T=QUANTIZED)
def quantize(sig: NodeSig) -> Callable[..., tuple[Array, Array, Array]]:
    """The integers that come nearest to numbers, and their range."""
    attrs, dtype = sig.attrs, sig.out_dtypes[0].np
    mode, narrow, least = attrs["mode"], attrs["narrow_range"], attrs["ensure_minimum_range"]
    even = attrs["round_mode"] == "HALF_TO_EVEN"
    if even and mode != "SCALED":
        raise invalid(
            f"Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is '{mode}'."
        )
    plain, kind, ends = dtype[0], integers(dtype[0]), _Ends(sig, "Quantize")
    rounded = np.rint if even else ranges.round_away

    def run(x: Array, min_range: Array, max_range: Array) -> tuple[Array, Array, Array]:
        low, high = _widened(*ends(x, min_range, max_range), least)
        if mode == "MIN_FIRST":
            start, end = F32(low.reshape(-1)[0]), F32(high.reshape(-1)[0])
            if plain == np.uint8:
                whole = ranges.quantized_bytes(x, start, end)
            else:
                whole = ranges.quantized(x, start, end, kind)
        elif mode == "MIN_COMBINED":
            whole = _combined(x, low, high, kind)
        else:
            factor, low, high = _scale(low, high, kind, narrow)
            whole = rounded(np.clip(x, low, high) * factor)
        with np.errstate(invalid="ignore"):
            out = whole.astype(plain).view(dtype)
        return out, low.reshape(min_range.shape), high.reshape(max_range.shape)

    return run


# ---------------------------------------------------------------- Dequantize
_WIDE: Final = "When output type is bfloat16, Mode string must be 'MIN_COMBINED', is"


@table.binder("Dequantize", T=QUANTIZED)
def dequantize(sig: NodeSig) -> Callable[..., Array]:
    """The numbers that integers stand for."""
    mode, narrow, target = sig.attrs["mode"], sig.attrs["narrow_range"], sig.out_dtypes[0]
    if target == dtypes.bfloat16 and mode != "MIN_COMBINED":
        raise invalid(f"{_WIDE} '{mode}'")
    kind, ends = integers(sig.in_dtypes[0].np[0]), _Ends(sig, "Dequantize")

    def run(x: Array, min_range: Array, max_range: Array) -> Array:
        low, high = ends(x, min_range, max_range)
        data = storage(x)
        if mode == "MIN_FIRST":
            first, last = F32(low.reshape(-1)[0]), F32(high.reshape(-1)[0])
            return ranges.dequantized(data, first, last, kind)
        out = data.astype(F32)
        if mode == "SCALED":
            out *= _stand_for(low, high, kind, narrow)
        else:
            steps = F32(kind.highest) - F32(kind.lowest)
            if kind.lowest:
                out += (steps + F32(1)) / F32(2)
            out *= (high - low) / steps
            out += low
        return out.astype(target.np, copy=False)

    return run


def _stand_for(low: Array, high: Array, kind: Integers, narrow: bool) -> Array:
    """What the integer 1 stands for in mode SCALED."""
    above = high / F32(kind.highest)
    return above if kind.lowest == 0 else np.maximum(low / F32(kind.lowest + narrow), above)


# ---------------------------------------------------------------- other ranges
def used(x: Array, low: np.float32, high: np.float32) -> Range:
    """The range of the sums that occur, with 0 inside or below.

    Args:
        x: int32, or whole float32 numbers.
        low, high: what the lowest and the highest integer of 32 bits stand for.
    """
    kind = INT32
    least, most = (x.min(), x.max()) if x.size else (kind.highest, kind.lowest)
    first = ranges.number(least, low, high, kind)
    return min(F32(0), first), ranges.number(most, low, high, kind)


@table.kernel("RequantizationRange", Tinput=dtypes.qint32)
def _requantization_range(ctx: Any, x: Array, low: Array, high: Array) -> Any:
    return tuple(
        np.asarray(end)
        for end in used(storage(x), scalar(low, "input_min"), scalar(high, "input_max"))
    )


def requested(low: Array, high: Array) -> Range:
    """The range to which a Requantize is to bring its input.

    Raises:
        InvalidArgumentError: 0 lies below it, or its ends are the wrong way round.
    """
    start, end = scalar(low, "requested_output_min"), scalar(high, "requested_output_max")
    if start > 0:
        raise invalid(f"requested_output_min must be <= 0, but got {start:g}")
    if end < start:
        raise invalid(
            f"requested_output_max must be >= requested_output_min, but got {end:g} and {start:g}"
        )
    return start, end


def _result(x: Array, source: Range, target: Range, dtype: np.dtype[Any]) -> Any:
    out = requantized(x, source, target, dtype[0])
    return out.view(dtype), np.asarray(target[0]), np.asarray(target[1])


@table.kernel("QuantizeDownAndShrinkRange", Tinput=dtypes.qint32, out_type=dtypes.quint8)
def _quantize_down(ctx: Any, x: Array, low: Array, high: Array) -> Any:
    data, source = storage(x), (scalar(low, "input_min"), scalar(high, "input_max"))
    return _result(data, source, used(data, *source), ctx.sig.out_dtypes[0].np)


@table.kernel("Requantize", Tinput=dtypes.qint32, out_type={dtypes.quint8, dtypes.qint8})
def _requantize(
    ctx: Any, x: Array, low: Array, high: Array, asked_low: Array, asked_high: Array
) -> Any:
    source = scalar(low, "input_min"), scalar(high, "input_max")
    return _result(storage(x), source, requested(asked_low, asked_high), ctx.sig.out_dtypes[0].np)
