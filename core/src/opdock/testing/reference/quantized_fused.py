"""Oracles of layers of 8-bit networks: all in real numbers, rounded once at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._quantized import limits
from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]

LAYERS = (
    *(
        f"QuantizedConv2D{what}"
        for what in (
            "PerChannel", "AndRequantize", "AndRelu", "AndReluAndRequantize", "WithBias",
            "WithBiasAndRequantize", "WithBiasAndRelu", "WithBiasAndReluAndRequantize",
            "WithBiasSumAndRelu", "WithBiasSumAndReluAndRequantize",
            "WithBiasSignedSumAndReluAndRequantize",
        )
    ),
    *(
        f"QuantizedDepthwiseConv2D{what}"
        for what in ("", "WithBias", "WithBiasAndRelu", "WithBiasAndReluAndRequantize")
    ),
)  # fmt: skip
"""Convolutions; their names say what follows the sums."""
PRODUCTS = tuple(
    f"QuantizedMatMulWithBias{what}" for what in ("", "AndRelu", "AndReluAndRequantize")
)
"""Products of matrices."""


def _reach(*ends: Any) -> Any:
    """What the highest integer of a symmetric range stands for."""
    return np.max(np.abs(np.stack([np.asarray(e, np.float64) for e in ends])), axis=0)


def _padded(attrs: Any, x: Array, kernel: Array) -> Array:
    listed = attrs.get("padding_list") or []
    if any(listed):
        return np.pad(x, ((0, 0), (listed[2], listed[3]), (listed[4], listed[5]), (0, 0)))
    if attrs["padding"] == "VALID":
        return x
    pads = []
    for axis in (0, 1):
        size, stride = x.shape[axis + 1], attrs["strides"][axis + 1]
        wide = (kernel.shape[axis] - 1) * attrs["dilations"][axis + 1] + 1
        total = max((-(-size // stride) - 1) * stride + wide - size, 0)
        pads.append((total // 2, total - total // 2))
    return np.pad(x, ((0, 0), *pads, (0, 0)))


def _sums(attrs: Any, x: Array, kernel: Array, depthwise: bool) -> Array:
    """Products of integers, added up over each window."""
    images, taps = _padded(attrs, x, kernel).astype(np.int64), kernel.astype(np.int64)
    (_, sy, sx, _), (_, dy, dx, _) = attrs["strides"], attrs["dilations"]
    rows = (images.shape[1] - (taps.shape[0] - 1) * dy - 1) // sy + 1
    columns = (images.shape[2] - (taps.shape[1] - 1) * dx - 1) // sx + 1
    outputs = taps.shape[2] * taps.shape[3] if depthwise else taps.shape[3]
    out = np.zeros((images.shape[0], rows, columns, outputs), np.int64)
    for i, j, u, v in np.ndindex(rows, columns, *taps.shape[:2]):
        seen = images[:, i * sy + u * dy, j * sx + v * dx]
        if depthwise:
            out[:, i, j] += (seen[:, :, None] * taps[u, v]).reshape(len(seen), -1)
        else:
            out[:, i, j] += seen @ taps[u, v]
    return out


def _result(name: str, dtype: Any, numbers: Array) -> Array:
    if "Relu" in name:
        numbers = np.maximum(numbers, 0.0)
    return np.clip(np.rint(numbers), *limits(dtype)).astype(np.int64)


def _wide_range(ends: Any) -> tuple[Any, Any]:
    """Of 32-bit sums: the product of what one more in either factor stands for."""
    low, high, weights_low, weights_high = (np.asarray(e, np.float64) for e in ends)
    step = (high - low) / 255 * (weights_high - weights_low) / 254
    return -step * 2.0**31, step * (2.0**31 - 1)


def _layer(name: str, attrs: Any, x: Array, kernel: Array, *args: Array) -> Any:
    rest = list(args)
    bias = rest.pop(0) if "WithBias" in name else None
    ends, rest = rest[:4], rest[4:]
    # How many of its integers the numbers 1 are.
    scale = 255 * 127 / (_reach(*ends[:2]) * _reach(*ends[2:]))
    numbers: Any = _sums(attrs, x, kernel, "Depthwise" in name).astype(np.float64)
    if bias is not None:
        numbers = numbers + (bias if attrs.get("Tbias") == np.int32 else bias * scale)
    if "AndRequantize" not in name:
        if "Sum" in name:
            numbers = numbers + np.rint(rest[0] * scale)
        return _result(name, np.int32, numbers), *_wide_range(ends)
    low, high, *rest = rest
    highest = limits(attrs["out_type"])[1]
    numbers = numbers / scale * highest / _reach(low, high)
    if "Sum" in name:
        step = _reach(*rest[1:3]) / limits(attrs["Tsummand"])[1]
        numbers = numbers + rest[0] * step * highest / _reach(low, high)
    return _result(name, attrs["out_type"], numbers), low, high


def _product(name: str, attrs: Any, a: Array, b: Array, bias: Array, *ends: Array) -> Any:
    left, right = a.T if attrs["transpose_a"] else a, b.T if attrs["transpose_b"] else b
    numbers: Any = (left @ right).astype(np.float64)
    low, high, reach = ends[0], ends[1], _reach(*ends[2:4])
    if attrs.get("Tbias") == np.int32:
        numbers = numbers + bias
    elif attrs["input_quant_mode"] == "SCALED":
        numbers = numbers + bias * (255 * 127 / high * reach)
    else:
        # The integers of `a` begin at its lowest number.
        shift = right.sum(axis=0) * 255 * low / (high - low)
        numbers = numbers + bias * (255 * 127 / ((high - low) * reach)) + shift
    wide = _wide_range(ends[:4])
    if "AndRequantize" not in name:
        return _result(name, np.int32, numbers), *wide
    bits = 23 if attrs["Toutput"] == np.uint8 else 24
    numbers = numbers * _reach(*wide) / _reach(*ends[4:]) / 2.0**bits
    return _result(name, attrs["Toutput"], numbers), *ends[4:]


def _of(name: str, oracle: Callable[..., Any]) -> Callable[..., Any]:
    return lambda attrs, *inputs: oracle(name, attrs, *inputs)


for _names, _oracle in ((LAYERS, _layer), (PRODUCTS, _product)):
    for _name in _names:
        reference(_name)(_of(_name, _oracle))


@reference("RequantizePerChannel")
def requantize(
    attrs: Any, x: Array, low: Array, high: Array, new_low: Array, new_high: Array
) -> Any:
    """From 32 bits, each channel with its own range, to 8 bits of one range."""
    highest = limits(attrs["out_type"])[1]
    numbers = x * _reach(low, high) / 2.0**31 / _reach(new_low, new_high) * highest
    return _result("", attrs["out_type"], numbers), new_low, new_high


@reference("RequantizationRangePerChannel")
def requantization_range(attrs: Any, x: Array, low: Array, high: Array) -> Any:
    """The largest number of any channel, and its negative unless there is none."""
    numbers = np.abs(x) * _reach(low, high) / 2.0**31
    most = min(numbers.max(), attrs["clip_value_max"])
    return (-most if (x < 0).any() else 0.0), most
