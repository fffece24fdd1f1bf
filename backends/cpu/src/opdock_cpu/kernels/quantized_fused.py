"""Layers of 8-bit networks in one op each: product, bias, sum, relu and the way back to 8 bits.

All that follows the exact sums is float32 arithmetic in the order in which oneDNN does it, which
TensorFlow has for these ops: bias, scale, summand, relu, the nearest integer (halves to even).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, checks, dtypes, windows
from opdock_cpu.im2col import conv_forward
from opdock_cpu.int8 import BYTES, INT32, Outputs, centred, wrapped
from opdock_cpu.portable import portable_kernel
from opdock_cpu.ranges import F32, integers, invalid, scalar, storage

__all__ = ["Narrowed", "layer", "narrowed", "table"]

Array = npt.NDArray[Any]

table = KernelTable()

_LAYERS: Final = ("AndRelu", "WithBias", "WithBiasAndRelu")
_CONVOLUTIONS: Final = (
    "QuantizedConv2DPerChannel", "QuantizedConv2DAndRequantize",
    *(f"QuantizedConv2D{w}{n}" for w in _LAYERS for n in ("", "AndRequantize")),
    "QuantizedConv2DWithBiasSumAndRelu", "QuantizedConv2DWithBiasSumAndReluAndRequantize",
    "QuantizedConv2DWithBiasSignedSumAndReluAndRequantize", "QuantizedDepthwiseConv2D",
    "QuantizedDepthwiseConv2DWithBias", "QuantizedDepthwiseConv2DWithBiasAndRelu",
    "QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize",
)  # fmt: skip
_PRODUCTS: Final = tuple(
    f"QuantizedMatMulWithBias{w}" for w in ("", "AndRelu", "AndReluAndRequantize")
)


def _types(sig: NodeSig) -> bool | str:
    """Which types results may have: bytes after requantization, else 32 bits."""
    dtype = sig.out_dtypes[0]
    narrowed = "AndRequantize" in sig.op
    if (dtype in BYTES) if narrowed else (dtype is dtypes.qint32):
        summand = sig.attrs.get("Tsummand")
        return summand is None or dtypes.as_dtype(summand) in BYTES or "the summand has no bytes"
    return f"{sig.op} gives {'8' if narrowed else '32'} bits"


# ---------------------------------------------------------------- ranges
def _reach(low: Any, high: Any) -> Array:
    """What the highest integer of a symmetric range stands for."""
    reach: Array = np.maximum(np.abs(low), np.abs(high)).astype(F32)
    return reach


def _highest(dtype: Any) -> np.float32:
    return F32(integers(dtype.np[0]).highest)


def _weights(low: Array, high: Array, outputs: int) -> tuple[Array, Array]:
    """The ends of the weights' range: scalars, or one for each output channel.

    Raises:
        InvalidArgumentError: there is another number of them.
    """
    for name, end in (("min_filter", low), ("max_filter", high)):
        if end.size not in (1, outputs):
            raise invalid(f"{name} has {end.size} elements, expected 1 or {outputs}")
    return np.asarray(low, F32), np.asarray(high, F32)


def _product_range(ends: Sequence[Any]) -> tuple[Array, Array]:
    """The range of 32-bit sums, from (min, max) of unsigned input and of signed weights."""
    low, high, low_weights, high_weights = ends
    step = (high - low) / F32(255) * ((high_weights - low_weights) / F32(254))
    return np.asarray(step * F32(INT32.lowest)), np.asarray(step * F32(INT32.highest))


# ---------------------------------------------------------------- after the sums
class _After:
    """What a layer does to its sums.

    Args:
        sig: the node; its name says what follows the product.
    """

    def __init__(self, sig: NodeSig) -> None:
        self.narrowed, self.relu = "AndRequantize" in sig.op, "Relu" in sig.op
        self.highest, self._dtype = _highest(sig.out_dtypes[0]), sig.out_dtypes[0].np

    def __call__(
        self, sums: Array, bias: Array | None, scale: Any, summand: Array | None
    ) -> Array:  # fmt: skip
        """The integers of the result.

        Args:
            sums: exact.
            bias: in the scale of the sums.
            scale: from there to that of the result; not used where the result has 32 bits.
            summand: in the scale of the result.
        """
        # 32-bit integers are no float32.
        out: Array = wrapped(sums).astype(F32 if self.narrowed else np.float64)
        if bias is not None:
            np.add(out, bias, out=out)
        if self.narrowed:
            np.multiply(out, scale, out=out)
        if summand is not None:
            np.add(out, summand, out=out)
        if self.relu:
            np.maximum(out, 0, out=out)
        kind = self._dtype[0]
        known = integers(kind)
        np.clip(np.rint(out, out=out), known.lowest, known.highest, out=out)
        return out.astype(kind).view(self._dtype)


# ---------------------------------------------------------------- convolutions
def _sums(sig: NodeSig) -> Callable[[Array, Array], Array]:
    """The exact sums of images times filter."""
    if "Depthwise" in sig.op:
        attrs = {**sig.attrs, "data_format": "NHWC"}
        kinds = [dtypes.float64] * 2
        plain = NodeSig("DepthwiseConv2dNative", sig.name, attrs, (), kinds, (), kinds[:1])
        depthwise = portable_kernel(plain)
        return lambda x, kernel: depthwise(
            storage(x).astype(np.float64), storage(kernel).astype(np.float64)
        )
    layout = windows.Layout(sig.attrs)

    def run(x: Array, kernel: Array) -> Array:
        x, kernel = storage(x), storage(kernel)
        for name, array in (("input", x), ("filter", kernel)):
            if array.ndim != 4:
                raise invalid(f"{name} must be 4-dimensional: {list(array.shape)}")
        windows.check_depth(x.shape[3], kernel.shape[2])
        terms = kernel.size // max(kernel.shape[3], 1)
        images, taps = centred(x, kernel, (0, 0), terms)
        return conv_forward(images, taps, layout.window(x.shape[1:3], kernel.shape[:2]))

    return run


class Narrowed(NamedTuple):
    """What a layer that gives bytes does to its sums.

    Attributes:
        bias: is added, in the scale of the sums; 0 without one.
        scale: multiplies that.
        step: multiplies the summand, which is added then; 0 without one.
        ends: of the result's range.
    """

    bias: Any
    scale: Any
    step: np.float32
    ends: tuple[np.float32, np.float32]


def narrowed(sig: NodeSig, args: Sequence[Array], outputs: int) -> Narrowed:
    """What a layer that gives bytes does to its sums.

    Args:
        sig: the node.
        args: what it takes beside the two factors; the summand's values are not looked at.
        outputs: how many channels there are.

    Raises:
        InvalidArgumentError: ends of ranges are no scalars, nor one for each channel.
    """
    rest = iter(args)
    bias = next(rest) if "WithBias" in sig.op else None
    low, high = scalar(next(rest), "min_input"), scalar(next(rest), "max_input")
    reach, each = _reach(low, high), _reach(*_weights(next(rest), next(rest), outputs))
    summand: Any = F32(0)
    if bias is not None:
        summand = bias if bias.dtype.names is None else storage(bias)
        if bias.dtype.names is None:
            summand = summand * (255.0 * 127.0 / (reach * each)).astype(F32)
    ends = (
        scalar(next(rest), "min_freezed_output"), scalar(next(rest), "max_freezed_output"),
    )  # fmt: skip
    highest, target = _highest(sig.out_dtypes[0]), _reach(*ends)
    scale = highest * reach * each / (F32(255 * 127) * target)
    step = _step(sig, list(rest)[1:], highest / target) if "Sum" in sig.op else F32(0)
    return Narrowed(summand, scale, step, ends)


def _step(sig: NodeSig, ends: Sequence[Array], scale: Any) -> np.float32:
    """What one of a summand's integers is in the scale of the result."""
    low, high = scalar(ends[0], "min_summand"), scalar(ends[1], "max_summand")
    step = _reach(low, high) / _highest(dtypes.as_dtype(sig.attrs["Tsummand"]))
    return F32(step * scale)


@table.binder(
    *_CONVOLUTIONS, Tinput=dtypes.quint8, Tfilter=dtypes.qint8, when=_types
)  # fmt: skip
def _convolution(sig: NodeSig) -> Callable[..., Outputs]:
    return layer(sig, _sums(sig))


def layer(sig: NodeSig, sums: Callable[[Array, Array], Array]) -> Callable[..., Outputs]:
    """A layer over sums that come from elsewhere.

    Args:
        sig: the node.
        sums: the exact sums of images times filter, from both as they come.
    """
    after = _After(sig)
    biased, summed = "WithBias" in sig.op, "Sum" in sig.op

    def whole(product: Array, *args: Array) -> Outputs:
        rest = iter(args)
        bias = next(rest) if biased else None
        low, high = scalar(next(rest), "min_input"), scalar(next(rest), "max_input")
        weights = _weights(next(rest), next(rest), product.shape[-1])
        unit = (255.0 * 127.0 / (_reach(low, high) * _reach(*weights))).astype(F32)
        if bias is not None:
            bias = bias * unit if bias.dtype.names is None else storage(bias)
        addend = np.rint(next(rest) * unit) if summed else None
        return after(product, bias, None, addend), *_product_range((low, high, *weights))

    def run(x: Array, kernel: Array, *args: Array) -> Outputs:
        product = sums(x, kernel)
        if not after.narrowed:
            return whole(product, *args)
        how = narrowed(sig, args, product.shape[-1])
        addend = storage(args[-3]) * how.step if summed else None
        out = after(product, how.bias if biased else None, how.scale, addend)
        return out, np.asarray(how.ends[0]), np.asarray(how.ends[1])

    return run


# ---------------------------------------------------------------- products of matrices
@table.binder(*_PRODUCTS, T1=dtypes.quint8, T2=dtypes.qint8, when=_types)
def _product(sig: NodeSig) -> Callable[..., Outputs]:
    after, attrs = _After(sig), sig.attrs
    ta, tb, first = attrs["transpose_a"], attrs["transpose_b"], attrs["input_quant_mode"]

    def run(a: Array, b: Array, bias: Array, *args: Array) -> Outputs:
        names = ("min_a", "max_a", "min_b", "max_b", "min_freezed_output", "max_freezed_output")
        ends = [scalar(e, n) for e, n in zip(args, names, strict=False)]
        checks.check_matmul(a, b, ta, tb)
        left, right = storage(a), storage(b)
        left, right = left.T if ta else left, right.T if tb else right
        if bias.dtype.names is None:
            bias = _shifted(bias, right, ends[:4], first == "MIN_FIRST")
        sums = np.dot(*centred(left, right, (0, 0), left.shape[1]))
        low, high = _product_range(ends[:4])
        if not after.narrowed:
            return after(sums, storage(bias), None, None), low, high
        # From 32 bits of one range to the 8 of the other.
        bits = F32(1 << (23 if after.highest == 255 else 24))
        scale = _reach(low, high) / _reach(*ends[4:]) / bits
        out = after(sums, storage(bias), scale, None)
        return out, np.asarray(ends[4]), np.asarray(ends[5])

    return run


def _shifted(bias: Array, weights: Array, ends: Sequence[Any], first: bool) -> Array:
    """A bias in the scale of the sums, with what the lowest number of `a` adds to them."""
    low, high, *weight_ends = ends
    each = _reach(*weight_ends)
    if not first:  # so TensorFlow has it: by the range of the weights, not over it
        return np.multiply(bias, F32(255.0 * 127.0 / high * each))
    scale = F32(255.0 * 127.0 / ((high - low) * each))
    shift = F32(255) * low / (high - low)
    summed: Array = weights.sum(axis=0, dtype=np.int32).astype(F32)
    moved: Array = bias * scale + summed * shift
    return moved


# ---------------------------------------------------------------- ranges by channel
def _check_channels(low: Array, high: Array, channels: int) -> None:
    for name, end in (("input_min", low), ("input_max", high)):
        checks.check_range_size(name, end, channels)


@table.binder("RequantizePerChannel", T=dtypes.qint32, out_type=BYTES)
def _requantize(sig: NodeSig) -> Callable[..., Outputs]:
    dtype = sig.out_dtypes[0].np
    highest, known = _highest(sig.out_dtypes[0]), integers(dtype[0])

    def run(x: Array, low: Array, high: Array, new_low: Array, new_high: Array) -> Outputs:
        ends = scalar(new_low, "requested_output_min"), scalar(new_high, "requested_output_max")
        _check_channels(low, high, x.shape[-1])
        scale = highest * (_reach(low, high) / _reach(*ends) / F32(1 << 31))
        out = storage(x).astype(F32) * scale
        np.clip(np.rint(out, out=out), known.lowest, known.highest, out=out)
        return out.astype(dtype[0]).view(dtype), np.asarray(ends[0]), np.asarray(ends[1])

    return run


@table.binder("RequantizationRangePerChannel", T=dtypes.qint32)
def _range(sig: NodeSig) -> Callable[..., tuple[Array, Array]]:
    most = F32(sig.attrs["clip_value_max"])

    def run(x: Array, low: Array, high: Array) -> tuple[Array, Array]:
        _check_channels(low, high, x.shape[-1])
        rows = storage(x).reshape(-1, x.shape[-1]).astype(np.int64)
        if not rows.size:
            raise invalid(f"input must not be empty: {list(x.shape)}")
        largest = np.abs(rows).max(axis=0).astype(F32)
        reach = (_reach(low, high) * largest / F32(1 << 31)).max(initial=np.finfo(F32).tiny)
        reach = min(F32(reach), most)
        return np.asarray(F32(0) if rows.min() >= 0 else -reach), np.asarray(reach)

    return run
