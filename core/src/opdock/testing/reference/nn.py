"""Oracle of activations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]

SCALE = 1.0507009873554804934193349852946
ALPHA = 1.6732632423543772848170429916717


def _each(fn: Any, *arrays: Array) -> Array:
    """A scalar function at every element."""
    out = np.zeros(arrays[0].shape, arrays[0].dtype)
    for at in np.ndindex(out.shape):
        out[at] = fn(*(a[at] for a in arrays))
    return out


@reference("Relu")
def relu(attrs: Any, x: Array) -> Array:
    """X where positive, else 0; NaN stays."""
    return _each(lambda v: max(v, 0), x)


@reference("ReluGrad")
def relu_grad(attrs: Any, g: Array, x: Array) -> Array:
    """The gradient times a slope: 1 where x is positive, else 0."""
    return _each(lambda d, v: d * (1 if v > 0 else 0), g, x)


@reference("Relu6")
def relu6(attrs: Any, x: Array) -> Array:
    """X limited to 0 .. 6."""
    return _each(lambda v: min(max(v, 0), 6), x)


@reference("Relu6Grad")
def relu6_grad(attrs: Any, g: Array, x: Array) -> Array:
    """The gradient times a slope: 1 where x is strictly within the limits, else 0."""
    return _each(lambda d, v: d * (1 if 0 < v < 6 else 0), g, x)


@reference("LeakyRelu")
def leaky_relu(attrs: Any, x: Array) -> Array:
    """X where positive, else alpha x."""
    return _each(lambda v: v if v > 0 else attrs["alpha"] * v, x)


@reference("LeakyReluGrad")
def leaky_relu_grad(attrs: Any, g: Array, x: Array) -> Array:
    """The gradient where x is positive, else alpha times it."""
    return _each(lambda d, v: d if v > 0 else attrs["alpha"] * d, g, x)


@reference("Elu")
def elu(attrs: Any, x: Array) -> Array:
    """exp(x) - 1 where negative, else x."""
    return _each(lambda v: math.expm1(v) if v < 0 else v, x)


@reference("EluGrad")
def elu_grad(attrs: Any, g: Array, y: Array) -> Array:
    """The slope is y + 1 where the output is negative, else 1."""
    return _each(lambda d, v: d * (v + 1) if v < 0 else d, g, y)


@reference("Selu")
def selu(attrs: Any, x: Array) -> Array:
    """Scale * alpha * (exp(x) - 1) where negative, else scale * x."""
    return _each(lambda v: SCALE * (ALPHA * math.expm1(v) if v < 0 else v), x)


@reference("SeluGrad")
def selu_grad(attrs: Any, g: Array, y: Array) -> Array:
    """The slope is y + scale * alpha where the output is negative, else scale."""
    return _each(lambda d, v: d * (v + SCALE * ALPHA if v < 0 else SCALE), g, y)


@reference("Softplus")
def softplus(attrs: Any, x: Array) -> Array:
    """log(exp(x) + 1)."""
    return _each(lambda v: max(v, 0) + math.log1p(math.exp(-abs(v))), x)


@reference("SoftplusGrad")
def softplus_grad(attrs: Any, g: Array, x: Array) -> Array:
    """The slope is the logistic function."""
    return _each(lambda d, v: d / (1 + math.exp(-v)), g, x)


@reference("Softsign")
def softsign(attrs: Any, x: Array) -> Array:
    """X / (|x| + 1)."""
    return _each(lambda v: v / (abs(v) + 1), x)


@reference("SoftsignGrad")
def softsign_grad(attrs: Any, g: Array, x: Array) -> Array:
    """The slope is 1 / (|x| + 1) ** 2."""
    return _each(lambda d, v: d / (abs(v) + 1) ** 2, g, x)
