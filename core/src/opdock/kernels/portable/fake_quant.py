"""Portable kernels of training for quantization."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.kernels.array_api import dims, ints, invalid, opaque
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

_HALVES = (dtypes.float16, dtypes.bfloat16)


# ---------------------------------------------------------------- FakeQuantWithMinMax*
@dataclass(frozen=True)
class _Grid:
    """The numbers that the integers of a node stand for, by the ends of a range."""

    least: float
    most: float

    @classmethod
    def of(cls, sig: NodeSig) -> _Grid:
        """The integers' ends; InvalidArgumentError for a width that TF does not take."""
        bits = sig.attrs["num_bits"]
        if not 2 <= bits <= 16:
            raise invalid("num_bits must be between 2 and 16, inclusive")
        return cls(float(bool(sig.attrs["narrow_range"])), float((1 << bits) - 1))

    def nudged(self, xp: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
        """The range moved so that an integer stands for 0: its ends, and its step."""
        step = (high - low) / opaque(xp, xp.full_like(high, self.most - self.least))
        from_low = self.least - low / step
        whole = xp.floor(from_low)
        # Halves go up, as the numbers that matter here are not negative.
        whole = xp.where(from_low - whole >= 0.5, whole + 1.0, whole)
        zero = xp.where(from_low < self.least, xp.full_like(whole, self.least), whole)
        zero = xp.where(from_low > self.most, xp.full_like(whole, self.most), zero)
        return (self.least - zero) * step, (self.most - zero) * step, step


def _onto(xp: Any, x: Any, low: Any, high: Any, step: Any) -> Any:
    """The nearest of the numbers from `low` to `high`, `step` apart, of which one is 0."""
    inverse = 1.0 / step
    zero = xp.floor(-low * inverse + 0.5)
    inside = xp.maximum(xp.minimum(x, high), low)
    return xp.floor((inside - low) * inverse - zero + 0.5) * step


def _fixed_ends(sig: NodeSig, grid: _Grid) -> tuple[float, ...]:
    """The ends and the step of a range that the node's attributes give, rounded to float32."""
    low, high = sig.attrs["min"], sig.attrs["max"]
    if not low < high:
        raise invalid(f"min has to be smaller than max, was: {low:g} >= {high:g}")
    ends = np.asarray(low, np.float32), np.asarray(high, np.float32)
    return tuple(float(v) for v in grid.nudged(np, *ends))


@portable("FakeQuantWithMinMaxArgs")
def fake_quant_args(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Rounds to the numbers of a fixed range."""
    low, high, step = (np.asarray(v, np.float32) for v in _fixed_ends(sig, _Grid.of(sig)))
    inverse = np.float32(1) / step
    zero = float(np.floor(-low * inverse + np.float32(0.5)))

    def run(x: Any) -> Any:
        inside = xp.clip(x, float(low), float(high))
        return xp.floor((inside - float(low)) * float(inverse) - zero + 0.5) * float(step)

    return run


@portable("FakeQuantWithMinMaxArgsGradient")
def fake_quant_args_gradient(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """The gradient inside of a fixed range."""
    low, high, _ = _fixed_ends(sig, _Grid.of(sig))

    def run(gradients: Any, x: Any) -> Any:
        _check_same(gradients, x)
        inside = (x >= low) & (x <= high)
        return xp.where(inside, gradients, xp.zeros_like(gradients))

    return run


def _check_same(gradients: Any, x: Any) -> None:
    if tuple(gradients.shape) != tuple(x.shape):
        raise invalid("gradient and input must be the same size")


def check_range_axis(axis: int, x: Any) -> None:
    """Raises InvalidArgumentError unless an array has the axis whose entries have ranges."""
    if axis >= len(x.shape):
        raise invalid(f"Axis must be less than input dimension({len(x.shape)}), got {axis}")


def check_range_size(name: str, end: Any, channels: int) -> None:
    """Raises InvalidArgumentError unless there is one end of a range for each channel."""
    if tuple(end.shape) != (channels,):
        raise invalid(f"{name} has incorrect size, expected {channels} was {math.prod(end.shape)}")


def _check_ends(sig: NodeSig, x: Any, low: Any, high: Any) -> None:
    """The ends are scalars, or one for each channel."""
    if "PerChannel" not in sig.op:
        for name, end in (("min", low), ("max", high)):
            if tuple(end.shape) != ():
                raise invalid(f"`{name}` must be rank 0 but is rank {len(end.shape)}")
        return
    depth = int(x.shape[-1])
    for name, end in (("min", low), ("max", high)):
        check_range_size(name, end, depth)


@portable("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_vars(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Rounds to the numbers of a range that is an input, one for all or one a channel."""
    grid = _Grid.of(sig)

    def run(x: Any, low: Any, high: Any) -> Any:
        _check_ends(sig, x, low, high)
        nothing, low, high = _apart(xp, low, high)
        out = _onto(xp, x, *grid.nudged(xp, low, high))
        return xp.where(nothing, xp.zeros_like(out), out)

    return run


def _apart(xp: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
    """Where a range is from 0 to 0, and the ends, there replaced by those of some range."""
    nothing = (low == 0) & (high == 0)
    return nothing, low, xp.where(nothing, xp.ones_like(high), high)


@portable("FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient")
def fake_quant_vars_gradient(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """The gradient inside of the range, and its sums below and above."""
    grid, per_channel = _Grid.of(sig), "PerChannel" in sig.op

    def run(gradients: Any, x: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
        _check_same(gradients, x)
        _check_ends(sig, x, low, high)
        nothing, low, high = _apart(xp, low, high)
        low, high, _ = grid.nudged(xp, low, high)
        axes = tuple(range(len(x.shape) - per_channel))
        none = xp.zeros_like(gradients)
        below, above = (x < low) & ~nothing, (x > high) & ~nothing
        # A comparison with NaN is false: what is not a number passes on no gradient.
        inside = ((x >= low) & (x <= high)) | nothing
        return (
            xp.where(inside, gradients, none),
            xp.sum(xp.where(below, gradients, none), axis=axes),
            xp.sum(xp.where(above, gradients, none), axis=axes),
        )

    return run


# ---------------------------------------------------------------- QuantizeAndDequantize*
@dataclass(frozen=True)
class _Rounding:
    """What a node says about its integers and its range."""

    signed: bool
    narrow: bool
    given: bool
    axis: int
    upwards: bool

    @classmethod
    def of(cls, sig: NodeSig) -> _Rounding:
        """The node's attributes; those that an op lacks at their defaults."""
        attrs = sig.attrs
        return cls(
            attrs["signed_input"], attrs.get("narrow_range", False), attrs["range_given"],
            attrs.get("axis", -1), attrs.get("round_mode") == "HALF_UP",
        )  # fmt: skip

    def ends(self, bits: int) -> tuple[float, float]:
        """The lowest and the highest integer."""
        if not 0 < bits < (62 if self.signed else 63):
            raise invalid(f"num_bits is out of range: {bits} with signed_input_ {int(self.signed)}")
        if not self.signed:
            return 0.0, float((1 << bits) - 1)
        return float(-(1 << (bits - 1)) + self.narrow), float((1 << (bits - 1)) - 1)

    def range_of(self, xp: Any, x: Any, low: Any, high: Any) -> tuple[Any, Any]:
        """The range, shaped to go with `x`: the one given, or that of the numbers."""
        check_range_axis(self.axis, x)
        rank = len(x.shape)
        if not self.given:
            axes = tuple(a for a in range(rank) if a != self.axis)
            return xp.min(x, axis=axes, keepdims=True), xp.max(x, axis=axes, keepdims=True)
        shape = [1] * rank
        if self.axis >= 0:
            shape[self.axis] = int(x.shape[self.axis])
        expected = () if self.axis == -1 else (shape[self.axis],)
        for name, end in (("input_min", low), ("input_max", high)):
            if tuple(end.shape) != expected:
                raise invalid(f"{name} has shape {dims(end.shape)}, expected {dims(expected)}")
        wrong = low > high
        if wrong.any():
            first, last = low[wrong].reshape(-1)[0], high[wrong].reshape(-1)[0]
            raise invalid(f"Invalid range: input_min {first:g} > input_max {last:g}")
        device = getattr(x, "device", None)
        low, high = (
            xp.astype(xp.asarray(e, device=device), x.dtype, copy=False) for e in (low, high)
        )
        return xp.reshape(low, tuple(shape)), xp.reshape(high, tuple(shape))


def _scaled(xp: Any, low: Any, high: Any, least: float, most: float) -> tuple[Any, Any, Any, Any]:
    """(factor, its inverse, low, high): the end that asks for the smaller factor decides it."""
    big = float(xp.finfo(low.dtype).max)
    one, limit = xp.ones_like(low), xp.full_like(low, big)
    negative, positive = least * low > 0, most * high > 0
    below = xp.where(negative, least / xp.where(negative, low, one), limit)
    above = xp.where(positive, most / xp.where(positive, high, one), limit)
    by_low = below < above
    inverse = xp.where(by_low, low / least if least else one, high / most)
    return (
        xp.where(by_low, below, above), inverse, xp.where(by_low, low, least * inverse),
        xp.where(by_low, most * inverse, high),
    )  # fmt: skip


def _rounded(xp: Any, how: _Rounding, bits: int, x: Any, low: Any, high: Any) -> Any:
    if 0 in x.shape:
        return xp.asarray(x, copy=True)
    least, most = how.ends(bits)
    factor, inverse, low, high = _scaled(xp, *how.range_of(xp, x, low, high), least, most)
    own, ends = getattr(xp, "on_grid", None), (low, high) if how.given else None
    if own is not None and (found := own(x, factor, inverse, ends, how.upwards)) is not None:
        return found
    inside = xp.maximum(xp.minimum(x, high), low) if how.given else x
    scaled = inside * factor
    return (xp.floor(scaled + 0.5) if how.upwards else xp.round(scaled)) * inverse


def _widened(xp: Any, sig: NodeSig, run: Callable[..., Any]) -> Callable[..., Any]:
    """Half precision is computed in float32."""
    if sig.in_dtypes[0] not in _HALVES:
        return run

    def wide(x: Any, *rest: Any) -> Any:
        return xp.astype(run(xp.astype(x, xp.float32), *rest), x.dtype)

    return wide


@portable("QuantizeAndDequantize")
def quantize_and_dequantize(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Rounds to multiples of a scale, by a range among the attributes."""
    how, bits = _Rounding.of(sig), sig.attrs["num_bits"]
    ends = [np.asarray(sig.attrs[name], np.float32) for name in ("input_min", "input_max")]
    return _widened(xp, sig, lambda x: _rounded(xp, how, bits, x, *ends))


@portable("QuantizeAndDequantizeV2", host_inputs=("input_min", "input_max"))
def quantize_and_dequantize_v2(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Rounds to multiples of a scale, by a range that is an input."""
    how, bits = _Rounding.of(sig), sig.attrs["num_bits"]
    return _widened(xp, sig, lambda x, low, high: _rounded(xp, how, bits, x, low, high))


@portable("QuantizeAndDequantizeV3", host_inputs=("input_min", "input_max", "num_bits"))
def quantize_and_dequantize_v3(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """The same, with the integers' width an input too."""
    how = _Rounding.of(sig)

    def run(x: Any, low: Any, high: Any, num_bits: Any) -> Any:
        (bits,) = ints(num_bits)
        return _rounded(xp, how, bits, x, low, high)

    return _widened(xp, sig, run)
