"""Samples of layers of 8-bit networks in one op each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples
from opdock.testing.reference.quantized_fused import LAYERS, PRODUCTS
from opdock.testing.samples.quantize import integers
from opdock.testing.samples.quantized import of_type, scalars

F = np.float32
_BYTES = (dtypes.quint8,)


def _biases(name: str, length: int) -> Iterable[tuple[list[Any], dict[str, Any]]]:
    """The bias input of an op, if it has one, and the attribute of its type."""
    if "WithBias" not in name:
        yield [], {}
        return
    numbers = np.linspace(-1.93, 3.11, length, dtype=F)  # no halves once they are scaled
    typed = "AndRequantize" in name or name == "QuantizedMatMulWithBias"
    yield [numbers], {"Tbias": np.dtype(F)} if typed else {}
    if typed:
        yield [of_type(dtypes.qint32, (length,))], {"Tbias": dtypes.qint32.np}


def _layers(
    name: str, x: Any, kernel: Any, outputs: tuple[int, ...], attrs: dict[str, Any]
) -> Iterable[Sample]:
    """Both kinds of bias and of the weights' range."""
    depth, narrowed = outputs[-1], "AndRequantize" in name
    each = [np.linspace(-2, -1, depth, dtype=F), np.linspace(1, 2.5, depth, dtype=F)]
    out = dtypes.qint32 if not narrowed else dtypes.quint8 if "Relu" in name else dtypes.qint8
    for bias, kind in _biases(name, depth):
        for tag, weights in (("one", scalars(-1.5, 2)), ("each", each)):
            inputs = [x, kernel, *bias, *scalars(-0.5, 6), *weights]
            inputs += scalars(-3, 41.3) if narrowed else []
            extra = {}
            if "Sum" in name and narrowed:
                summand = dtypes.qint8 if "Signed" in name else dtypes.quint8
                inputs += [of_type(summand, outputs), *scalars(-2, 5)]
                extra = {"Tsummand": summand.np}
            elif "Sum" in name:
                inputs.append(np.linspace(-9, 9, int(np.prod(outputs)), dtype=F).reshape(outputs))
            given = {**attrs, **kind, **extra, "out_type": out.np}
            yield Sample(inputs, given, f"{tag}-{attrs['padding']}{len(bias)}{kind}")


def _windows(padding: str, stride: int = 1, dilation: int = 1) -> dict[str, Any]:
    return {
        "strides": [1, stride, stride, 1], "padding": padding,
        "dilations": [1, dilation, dilation, 1],
    }  # fmt: skip


_Named = Callable[[str, np.dtype[Any], Sampler], Iterable[Sample]]


def _of(name: str, make: _Named) -> Callable[[np.dtype[Any], Sampler], Iterable[Sample]]:
    """The samples of one op, whose name says what it takes."""
    return lambda dtype, rng: make(name, dtype, rng)


def _convolutions(name: str, dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Both paddings, strides, dilations, a pad that was taken in; each bias and kind of range."""
    depthwise = "Depthwise" in name
    kernel = of_type(dtypes.qint8, (3, 2, 2, 2) if depthwise else (3, 2, 2, 3))
    outputs = 4 if depthwise else 3
    x = integers(rng, dtype, (2, 5, 6, 2))
    for attrs, size in (
        (_windows("SAME"), (5, 6)), (_windows("VALID", 2), (2, 3)),
        (_windows("SAME", dilation=2), (5, 6)),
    ):  # fmt: skip
        yield from _layers(name, x, kernel, (2, *size, outputs), attrs)
    if not depthwise and not name.endswith("PerChannel"):
        padded = {**_windows("VALID"), "padding_list": [0, 0, 1, 2, 0, 3, 0, 0]}
        for sample in _layers(name, x, kernel, (2, 6, 8, outputs), padded):
            yield dataclasses.replace(sample, tag=f"padded-{sample.tag}")


for _name in LAYERS:
    samples(_name, vary="Tinput", types=_BYTES)(_of(_name, _convolutions))


def _products(name: str, dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Both ways in which `a` may have been quantized, both ways round."""
    narrowed = "AndRequantize" in name
    ends = scalars(-0.5, 6, -1, 1.5, *((-3, 400) if narrowed else ()))
    out = (dtypes.quint8 if narrowed else dtypes.qint32).np
    for mode in ("MIN_FIRST", "SCALED"):
        for turned in (False, True):
            a = integers(rng, dtype, (7, 5) if turned else (5, 7))
            b = of_type(dtypes.qint8, (4, 7) if turned else (7, 4))
            attrs = {
                "Toutput": out, "transpose_a": turned, "transpose_b": turned,
                "input_quant_mode": mode,
            }  # fmt: skip
            for bias, kind in _biases(name, 4):
                tag = f"{mode}{turned}{kind}"
                yield Sample([a, b, *bias, *ends], {**attrs, **kind}, tag)


for _name in PRODUCTS:
    samples(_name, vary="T1", types=_BYTES)(_of(_name, _products))


@samples("RequantizePerChannel", types=[dtypes.qint32])
def requantize(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """To both types, from ranges of any length."""
    x = integers(rng, dtype, (2, 3, 4))
    ends = [np.array([-1, -3, -0.5, 0], F), np.array([2, 1, 0.25, 4], F)]
    for out in (dtypes.qint8, dtypes.quint8):
        yield Sample([x, *ends, *scalars(-2, 1.5)], {"out_type": out.np}, out.name)


@samples("RequantizationRangePerChannel", types=[dtypes.qint32])
def requantization_range(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """With and without negative numbers, cut off and not."""
    ends = [np.array([-1, -3, -0.5], F), np.array([2, 1, 0.25], F)]
    for x in (integers(rng, dtype, (4, 3)), np.arange(12, dtype=dtype).reshape(2, 2, 3)):
        for most in (1e6, 1e-9):
            yield Sample([x, *ends], {"clip_value_max": most}, f"{x.ndim}d-{most:g}")


@error_samples("QuantizedConv2DWithBias")
def layer_errors() -> Iterable[ErrorSample]:
    """Depths, and as many ends as there are no channels."""
    x, kernel = np.zeros((1, 5, 5, 2), dtypes.quint8.np), np.zeros((3, 3, 2, 3), dtypes.qint8.np)
    other, bias, attrs = np.zeros((3, 3, 4, 3), dtypes.qint8.np), np.zeros(3, F), _windows("SAME")
    ends = scalars(0, 1, -1, 1)
    yield ErrorSample([x, other, bias, *ends], attrs, match="depth")
    two = [*scalars(0, 1), np.zeros(2, F), np.ones(2, F)]
    yield ErrorSample([x, kernel, bias, *two], attrs, match="has 2 elements, expected 1 or 3")


@error_samples("QuantizedMatMulWithBias")
def product_errors() -> Iterable[ErrorSample]:
    """Matrices that do not fit."""
    a, b = np.zeros((2, 3), dtypes.quint8.np), np.zeros((4, 5), dtypes.qint8.np)
    inputs = [a, b, np.zeros(5, F), *scalars(0, 1, -1, 1)]
    yield ErrorSample(inputs, {"Tbias": np.dtype(F)}, match="Matrix size-incompatible")


@error_samples("RequantizationRangePerChannel")
def channel_errors() -> Iterable[ErrorSample]:
    """More channels than ranges."""
    x, ends = np.zeros((2, 3), dtypes.qint32.np), [np.zeros(2, F), np.ones(2, F)]
    yield ErrorSample([x, *ends], {"clip_value_max": 1.0}, match="incorrect size, expected 3 was 2")
