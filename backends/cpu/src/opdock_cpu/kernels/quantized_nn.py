"""Layers of quantized networks: convolution, pooling, activations, normalization."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, checks, dtypes, errors, windows
from opdock_cpu import ranges
from opdock_cpu.byte_pools import largest, means
from opdock_cpu.im2col import conv_forward
from opdock_cpu.int8 import BYTES, INT32, Factors, Outputs, centred, wrapped
from opdock_cpu.portable import portable_kernel
from opdock_cpu.ranges import F32, integers, invalid, scalar, storage
from opdock_cpu.windows import counts, pad

__all__ = ["Placement", "convolved", "table"]

Array = npt.NDArray[Any]

table = KernelTable()


def _passed_on(out: Array, dtype: np.dtype[Any], low: Array, high: Array) -> Outputs:
    """The result, and the range of the input, checked and copied."""
    ends = scalar(low, "min_input"), scalar(high, "max_input")
    return out.view(dtype), np.asarray(ends[0]), np.asarray(ends[1])


# ---------------------------------------------------------------- convolution
class Placement:
    """Where the windows of a quantized convolution stand.

    TensorFlow centres them: what no window sees is left out on both sides, where a plain
    convolution leaves it out at the end.
    """

    def __init__(self, attrs: Mapping[str, Any]) -> None:
        strides = attrs["strides"]
        if len(strides) != 4:
            raise invalid("Sliding window strides field must specify 4 dimensions")
        if strides[1] != strides[2]:
            raise invalid(
                "Current implementation only supports equal length strides in the row and column "
                "dimensions."
            )
        if strides[0] != 1 or strides[3] != 1:
            raise invalid(
                "Current implementation does not yet support strides in the batch and depth "
                "dimensions."
            )
        if any(d != 1 for d in attrs["dilations"]):
            raise invalid(
                "Current implementation only supports dilated rate as 1 in the row and column "
                "dimensions."
            )
        self._layout = windows.Layout(attrs)

    def __call__(
        self, x: tuple[int, ...], kernel: tuple[int, ...]
    ) -> tuple[tuple[int, int], windows.Window]:
        """How many rows and columns to leave out at the start, and the window on the rest.

        Args:
            x: the shape of the images [batch, height, width, channels].
            kernel: the shape of the filter [height, width, channels, outputs].

        Raises:
            InvalidArgumentError: they do not fit together.
        """
        for name, shape in (("input", x), ("filter", kernel)):
            if len(shape) != 4:
                raise invalid(f"{name} must be 4-dimensional: {list(shape)}")
        windows.check_depth(x[3], kernel[2])
        plain = self._layout.window(x[1:3], kernel[:2])
        # An odd rest goes to the end, and so does one of 2 where nothing is padded.
        top, left = (
            max(n - (o - 1) * s - k - (self._layout.padding == "VALID"), 0) // 2
            for n, o, s, k in zip(plain.size, plain.out, plain.strides, plain.window)
        )
        size = (plain.size[0] - top, plain.size[1] - left)
        return (top, left), dataclasses.replace(plain, size=size)


def convolved(x: Array, kernel: Array, zeros: tuple[int, int], placement: Placement) -> Array:
    """The sums of a convolution of plain integers, as 32-bit ones."""
    (top, left), where = placement(x.shape, kernel.shape)
    terms = kernel.size // max(kernel.shape[3], 1)
    images, taps = centred(x, kernel, zeros, terms)
    return wrapped(conv_forward(images[:, top:, left:], taps, where))


@table.binder("QuantizedConv2D", Tinput=dtypes.quint8, Tfilter=BYTES, out_type=dtypes.qint32)
def _conv2d(sig: NodeSig) -> Callable[..., Outputs]:
    factors, dtype = Factors(sig, ("input", "filter"), strict=False), sig.out_dtypes[0].np
    placement = Placement(sig.attrs)

    def run(x: Array, kernel: Array, *ends: Array) -> Outputs:
        product = factors(ends)
        sums = convolved(storage(x), storage(kernel), product.zeros, placement)
        return product.result(sums, dtype)

    return run


# ---------------------------------------------------------------- activations
_SAME: Final = "the result has another type than the input"


def _activation_when(sig: NodeSig) -> bool | str:
    return sig.in_dtypes[0] == sig.out_dtypes[0] or _SAME


@table.binder(
    "QuantizedRelu", "QuantizedRelu6", "QuantizedReluX", when=_activation_when,
    Tinput={dtypes.quint8, dtypes.qint32}, out_type={dtypes.quint8, dtypes.qint32},
)  # fmt: skip
def _relu(sig: NodeSig) -> Callable[..., Outputs]:
    dtype = sig.out_dtypes[0].np
    plain, kind = dtype[0], integers(dtype[0])
    fixed = {"QuantizedRelu": None, "QuantizedRelu6": F32(6)}.get(sig.op)

    def run(x: Array, *args: Array) -> Outputs:
        *limit, low, high = args
        ends = scalar(low, "min_features"), scalar(high, "max_features")
        most = scalar(limit[0], "max_value") if limit else fixed
        out = np.maximum(storage(x), plain.type(ranges.clamped(F32(0), *ends, kind)))
        if most is not None:
            np.minimum(out, plain.type(ranges.clamped(most, *ends, kind)), out=out)
        return _passed_on(out, dtype, low, high)

    return run


# ---------------------------------------------------------------- pooling
@table.binder("QuantizedMaxPool", T=BYTES)
def _max_pool(sig: NodeSig) -> Callable[..., Outputs]:
    dtype = sig.out_dtypes[0].np
    plain = NodeSig("MaxPool", sig.name, sig.attrs, in_dtypes=[dtypes.as_dtype(dtype[0])])
    pool, layout = portable_kernel(plain), windows.Pool(sig.attrs)

    def run(x: Array, low: Array, high: Array) -> Outputs:
        values, found = storage(x), None
        if values.dtype == np.uint8 and not layout.deep:
            found = largest(values, layout.on(values.shape))
        return _passed_on(pool(values) if found is None else found, dtype, low, high)

    return run


@table.binder("QuantizedAvgPool", T=BYTES)
def _avg_pool(sig: NodeSig) -> Callable[..., Outputs]:
    dtype, pool = sig.out_dtypes[0].np, windows.Pool(sig.attrs)
    if pool.deep:
        raise errors.UnimplementedError(
            None, None, "Non-spatial pooling is not yet supported. Volunteers? :)"
        )

    def run(x: Array, low: Array, high: Array) -> Outputs:
        where = pool.on(x.shape)
        if dtype[0] == np.uint8 and (found := means(storage(x), where)) is not None:
            return _passed_on(found, dtype, low, high)
        padded = pad(storage(x).astype(np.int32), where)
        total = np.zeros(pool.result(x.shape), np.int32)
        for _, here in where.taps():
            total += padded[(slice(None), *here)]
        # Integers divide towards 0; a quotient in double precision is never rounded past one.
        mean = np.trunc(total / counts(where))
        return _passed_on(mean.astype(dtype[0]), dtype, low, high)

    return run


# ---------------------------------------------------------------- normalization
_SPREAD: Final = F32(1 << 20)
"""What the highest 32-bit integer of a batch normalization stands for."""


@table.binder(
    "QuantizedBatchNormWithGlobalNormalization", Tinput=dtypes.quint8, out_type=dtypes.qint32
)
def _batch_norm(sig: NodeSig) -> Callable[..., Outputs]:
    epsilon, dtype = F32(sig.attrs["variance_epsilon"]), sig.out_dtypes[0].np
    scaled, byte = sig.attrs["scale_after_normalization"], integers(np.uint8)
    wide = np.frompyfunc(lambda v: ranges.clamped(v, -_SPREAD, _SPREAD, INT32), 1, 1)
    one = int(wide(F32(1)))

    def vector(group: tuple[Array, ...], name: str) -> Array:
        values, low, high = group
        checks.check_vector_of(name, values)
        ends = scalar(low, f"{name}_min"), scalar(high, f"{name}_max")
        return np.asarray(ranges.number(storage(values), *ends, byte))

    def run(*args: Array) -> Outputs:
        x, low, high = args[:3]
        if x.ndim != 4:
            raise invalid(f"input must be 4-dimensional{list(x.shape)}")
        mean, variance, beta, gamma = (
            vector(args[i : i + 3], name)
            for i, name in zip(range(3, 15, 3), ("mean", "var", "beta", "gamma"))
        )
        scale = F32(1) / np.sqrt(variance + epsilon)
        if scaled:
            scale = scale * gamma
        every = np.arange(256, dtype=np.uint8)
        ends = scalar(low, "input_min"), scalar(high, "input_max")
        numbers = wide(ranges.number(every, *ends, byte)).astype(np.int32)
        factor, offset = (wide(v).astype(np.int32) for v in (scale, -mean * scale + beta))
        # Products wrap around at 32 bits; integers divide towards 0.
        product = numbers[storage(x)] * factor
        out = np.trunc(product / one).astype(np.int32) + offset
        return out.view(dtype), np.asarray(-_SPREAD), np.asarray(_SPREAD)

    return run


@table.binder("QuantizedInstanceNorm", T=dtypes.quint8)
def _instance_norm(sig: NodeSig) -> Callable[..., Outputs]:
    attrs, dtype, byte = sig.attrs, sig.out_dtypes[0].np, integers(np.uint8)
    epsilon, least = F32(attrs["variance_epsilon"]), F32(attrs["min_separation"])
    given = None
    if attrs["output_range_given"]:
        given = F32(attrs["given_y_min"]), F32(attrs["given_y_max"])
        if not given[0] < given[1]:
            raise invalid(
                f"given_y_min must be less than given_y_max : {given[0]:g} >= {given[1]:g}"
            )

    def run(x: Array, x_min: Array, x_max: Array) -> Outputs:
        start, end = scalar(x_min, "x_min"), scalar(x_max, "x_max")
        if not start < end:
            raise invalid(f"input_min must be less than input_max : {start:g} >= {end:g}")
        scale = F32((end - start) / F32(255))
        data = storage(x).astype(F32)
        data -= data.mean(axis=(1, 2), keepdims=True)
        data *= scale
        variance = np.square(data).mean(axis=(1, 2), keepdims=True)
        data *= F32(1) / np.sqrt(variance + epsilon)
        low, high = (data.min(), data.max()) if given is None else given
        if high - low < least:
            high = F32(low + least)
        out = ranges.quantized(data, low, high, byte).astype(np.uint8)
        return out.view(dtype), np.asarray(low), np.asarray(high)

    return run
