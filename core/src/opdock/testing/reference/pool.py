"""Oracle of pooling: one window at a time."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from opdock.testing.reference._registry import reference
from opdock.testing.reference._windows import Array, Index, Walk


def _walk(attrs: Any, shape: Any, ksize: Any = None, strides: Any = None) -> Walk:
    """The walk over all dimensions, batch and channels included, whatever the data format."""
    ksize = [int(k) for k in (attrs["ksize"] if ksize is None else ksize)]
    strides = [int(s) for s in (attrs["strides"] if strides is None else strides)]
    return Walk(list(shape), ksize, strides, [1] * len(ksize), attrs["padding"])


def _windows(walk: Walk) -> dict[Index, list[Index]]:
    """Output position -> the input positions of its window, in row-major order."""
    found: dict[Index, list[Index]] = defaultdict(list)
    for to, at, _ in walk:
        found[to].append(at)
    return found


def _first_maxima(x: Array, walk: Walk) -> dict[Index, Index]:
    """Output position -> where the first maximum of its window is."""
    return {
        to: max(inside, key=lambda at: x[at])  # max() keeps the first of equals
        for to, inside in _windows(walk).items()
    }


# ---------------------------------------------------------------- max
def _max(attrs: Any, x: Array, *window: Any) -> Array:
    walk = _walk(attrs, x.shape, *window)
    out = np.zeros(walk.out, x.dtype)
    for to, at in _first_maxima(x, walk).items():
        out[to] = x[at]
    return out


def _max_grad(attrs: Any, x: Array, grad: Array, *window: Any) -> Array:
    dx = np.zeros(x.shape, grad.dtype)
    for to, at in _first_maxima(x, _walk(attrs, x.shape, *window)).items():
        dx[at] += grad[to]
    return dx


def _max_grad_grad(attrs: Any, x: Array, grad: Array, *window: Any) -> Array:
    walk = _walk(attrs, x.shape, *window)
    out = np.zeros(walk.out, grad.dtype)
    for to, at in _first_maxima(x, walk).items():
        out[to] = grad[at]
    return out


@reference("MaxPool", "MaxPool3D")
def max_pool(attrs: Any, x: Array) -> Array:
    """The largest element of each window."""
    return _max(attrs, x)


@reference("MaxPoolV2")
def max_pool_v2(attrs: Any, x: Array, ksize: Array, strides: Array) -> Array:
    """The largest element of each window."""
    return _max(attrs, x, ksize, strides)


@reference("MaxPoolGrad")
def max_pool_grad(attrs: Any, x: Array, out: Array, grad: Array) -> Array:
    """The gradient goes to the first of the largest elements."""
    return _max_grad(attrs, x, grad)


@reference("MaxPoolGradV2")
def max_pool_grad_v2(
    attrs: Any, x: Array, out: Array, grad: Array, ksize: Array, strides: Array
) -> Array:
    """The gradient goes to the first of the largest elements."""
    return _max_grad(attrs, x, grad, ksize, strides)


@reference("MaxPoolGradGrad", "MaxPool3DGradGrad")
def max_pool_grad_grad(attrs: Any, x: Array, out: Array, grad: Array) -> Array:
    """The gradient at the first of the largest elements."""
    return _max_grad_grad(attrs, x, grad)


@reference("MaxPoolGradGradV2")
def max_pool_grad_grad_v2(
    attrs: Any, x: Array, out: Array, grad: Array, ksize: Array, strides: Array
) -> Array:
    """The gradient at the first of the largest elements."""
    return _max_grad_grad(attrs, x, grad, ksize, strides)


@reference("MaxPool3DGrad")
def max_pool3d_grad(attrs: Any, x: Array, out: Array, grad: Array) -> Array:
    """In three dimensions every element that equals the maximum gets the whole gradient."""
    dx = np.zeros(x.shape)
    for to, at, _ in _walk(attrs, x.shape):
        if abs(x[at] - out[to]) < 1e-5:
            dx[at] += grad[to]
    return dx


# ---------------------------------------------------------------- average
@reference("AvgPool", "AvgPool3D")
def avg_pool(attrs: Any, x: Array) -> Array:
    """The mean of the elements of each window that are input."""
    walk = _walk(attrs, x.shape)
    out = np.zeros(walk.out)
    for to, inside in _windows(walk).items():
        out[to] = np.mean([x[at] for at in inside])
    return out


@reference("AvgPoolGrad", "AvgPool3DGrad")
def avg_pool_grad(attrs: Any, orig_input_shape: Array, grad: Array) -> Array:
    """Shares each gradient out evenly over its window."""
    dx = np.zeros([int(d) for d in orig_input_shape])
    for to, inside in _windows(_walk(attrs, dx.shape)).items():
        for at in inside:
            dx[at] += grad[to] / len(inside)
    return dx


# ---------------------------------------------------------------- argmax
def _flat(at: Index, shape: Any, with_batch: bool) -> int:
    _, height, width, channels = shape
    n, y, x, c = at
    inner = (y * width + x) * channels + c
    return int(n * height * width * channels + inner if with_batch else inner)


@reference("MaxPoolWithArgmax")
def max_pool_with_argmax(attrs: Any, x: Array) -> tuple[Array, Array]:
    """The largest element of each window and its flat index."""
    out = _max(attrs, x)
    index = np.zeros(out.shape, np.int64)
    for to, at in _first_maxima(x, _walk(attrs, x.shape)).items():
        index[to] = _flat(at, x.shape, attrs["include_batch_in_index"])
    return out, index


def _offset(attrs: Any, x: Array, n: int) -> int:
    return 0 if attrs["include_batch_in_index"] else n * x[0].size


@reference("MaxPoolGradWithArgmax")
def max_pool_grad_with_argmax(attrs: Any, x: Array, grad: Array, argmax: Array) -> Array:
    """Adds each gradient to the element that its index names."""
    dx = np.zeros(x.size)
    for to in np.ndindex(grad.shape):
        dx[argmax[to] + _offset(attrs, x, to[0])] += grad[to]
    return dx.reshape(x.shape)


@reference("MaxPoolGradGradWithArgmax")
def max_pool_grad_grad_with_argmax(attrs: Any, x: Array, grad: Array, argmax: Array) -> Array:
    """The gradient of the element that each index names."""
    out = np.zeros(argmax.shape)
    for to in np.ndindex(argmax.shape):
        out[to] = grad.reshape(-1)[argmax[to] + _offset(attrs, x, to[0])]
    return out
