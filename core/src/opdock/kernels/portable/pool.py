"""Portable kernels of pooling, 2-D and 3-D, in both data formats.

Each element of the window is one strided slice of the padded input, so a pool is a few whole-array
steps for each of them.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from opdock.dtypes import FLOATS, REALS, as_dtype
from opdock.kernels.array_api import (
    copy,
    device_ints,
    fails,
    full,
    index_type,
    ints,
    invalid,
)
from opdock.kernels.portable import portable
from opdock.kernels.portable.segment import sum_at, wide
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.sliding import Sliding
from opdock.windows import Pool, Window, check_shape, plain_format


class Pooling(Sliding):
    """A node's windows on arrays with channels last; pooled channels become a spatial dimension."""

    def __init__(self, xp: Any, sig: NodeSig, window: Any = None, strides: Any = None) -> None:
        super().__init__(xp)
        self.layout = Pool(sig.attrs, window, strides)
        self.dtype = sig.in_dtypes[0].base_dtype

    def enter(self, x: Any) -> Any:
        """Channels last, 16-bit floats as float32."""
        x = wide(self.xp, x, as_dtype(self.dtype))
        if self.layout.first:
            x = self.xp.moveaxis(x, 1, -1)
        # Pooled channels are the one spatial dimension; the real ones join the batch.
        return self.xp.reshape(x, (-1, x.shape[-1], 1)) if self.layout.deep else x

    def leave(self, x: Any, like: Any, element: Any) -> Any:
        """Back in the node's format and type; `like` has the batch and spatial sizes that count."""
        if self.layout.deep:
            space = self.layout.spatial(like.shape)
            x = self.xp.reshape(x, (like.shape[0], *space, x.shape[1]))
        x = self.xp.moveaxis(x, -1, 1) if self.layout.first else x
        return self.xp.astype(x, element, copy=False)

    def window(self, data: Any) -> Window:
        """The positions on an array that was entered."""
        return self.layout.window(data.shape[1:-1], self.layout.ksize)

    def maximum(self, data: Any, where: Window) -> Any:
        """The maximum of each window."""
        values = self.taps(data, where, self.lowest(data))
        best = self.fold("maximum", values, as_dtype(self.dtype))
        # Of one element a window sees a view of the input.
        return best if math.prod(where.window) > 1 else copy(self.xp, best)

    def hits(self, data: Any, where: Window) -> Iterator[Any]:
        """For each element of the window: where it is the one that counts.

        That is the first of the greatest; a NaN is greater than any number, as the maximum has it.
        """
        xp = self.xp
        device = getattr(data, "device", None)
        inside = xp.ones((1, *where.size, 1), dtype=xp.bool, device=device)
        inside = self.taps(inside, where, value=False)
        number: Any = None
        count, is_float = math.prod(where.window), self.dtype in FLOATS
        for k, (value, counts) in enumerate(
            zip(self.taps(data, where, self.lowest(data)), inside, strict=True)
        ):
            if number is None:
                top, free = value, xp.logical_not(counts)
                number = xp.zeros(value.shape, dtype=xp.int32, device=device)
                continue
            better = xp.logical_or(value > top, xp.logical_and(free, counts))
            if is_float:
                first_nan = xp.logical_and(xp.isnan(value), xp.logical_not(xp.isnan(top)))
                better = xp.logical_or(better, first_nan)
            free = xp.logical_and(free, xp.logical_not(counts))
            number = xp.where(better, xp.full_like(number, k), number)
            if k + 1 < count:
                top = xp.where(better, value, top)
        return (number == k for k in range(count))


def _max_pool(pooling: Pooling, x: Any) -> Any:
    data = pooling.enter(x)
    return pooling.leave(pooling.maximum(data, pooling.window(data)), x, x.dtype)


@portable("MaxPool", "MaxPool3D", when=plain_format, T=REALS)
def max_pool(xp: Any, sig: NodeSig) -> Any:
    """The maximum of each window."""
    pooling = Pooling(xp, sig)
    return lambda x: _max_pool(pooling, x)


@portable("MaxPoolV2", when=plain_format, T=REALS, host_inputs=("ksize", "strides"))
def max_pool_v2(xp: Any, sig: NodeSig) -> Any:
    """The maximum of each window, the window given as input."""
    return lambda x, ksize, strides: _max_pool(Pooling(xp, sig, ksize, strides), x)


# ---------------------------------------------------------------- gradients of the maximum
def _to_first(pooling: Pooling, data: Any, best: Any, grad: Any, where: Window) -> Any:
    """Each gradient at the first maximum of its window."""
    none = pooling.xp.zeros_like(grad)
    parts = (pooling.xp.where(hit, grad, none) for hit in pooling.hits(data, where))
    return pooling.add_up(parts, where, data)


def _from_first(pooling: Pooling, data: Any, best: Any, grad: Any, where: Window) -> Any:
    """The gradient at the first maximum of each window."""
    out = pooling.xp.zeros_like(best)
    for hit, value in zip(pooling.hits(data, where), pooling.taps(grad, where)):
        out = pooling.xp.where(hit, value, out)
    return out


def _to_equal(pooling: Pooling, data: Any, best: Any, grad: Any, where: Window) -> Any:
    """Each gradient at every element within 1e-5 of the maximum: TF's rule for volumes."""
    xp, none = pooling.xp, pooling.xp.zeros_like(grad)
    values = pooling.taps(data, where, pooling.lowest(data))
    parts = (xp.where(xp.abs(value - best) < 1e-5, grad, none) for value in values)
    return pooling.add_up(parts, where, data)


def _gradient(pooling: Pooling, rule: Callable[..., Any], x: Any, best: Any, grad: Any) -> Any:
    second, pooled = rule is _from_first, pooling.layout.result(x.shape)
    check_shape("orig_output", best.shape, pooled)
    check_shape("grad", grad.shape, x.shape if second else pooled)
    data, maxima, back = pooling.enter(x), pooling.enter(best), pooling.enter(grad)
    out = rule(pooling, data, maxima, back, pooling.window(data))
    return pooling.leave(out, best if second else x, grad.dtype)


_RULES = {"MaxPoolGrad": _to_first, "MaxPoolGradV2": _to_first, "MaxPool3DGrad": _to_equal}


@portable("MaxPoolGrad", "MaxPoolGradGrad", T=REALS)
@portable("MaxPool3DGrad", "MaxPool3DGradGrad", T=REALS)
def max_pool_grad(xp: Any, sig: NodeSig) -> Any:
    """The gradient of a maximum, and the gradient of that."""
    pooling, rule = Pooling(xp, sig), _RULES.get(sig.op, _from_first)
    return lambda x, best, grad: _gradient(pooling, rule, x, best, grad)


@portable("MaxPoolGradV2", "MaxPoolGradGradV2", T=REALS, host_inputs=("ksize", "strides"))
def max_pool_grad_v2(xp: Any, sig: NodeSig) -> Any:
    """As `max_pool_grad`, the window given as input."""
    rule = _RULES.get(sig.op, _from_first)

    def run(x: Any, best: Any, grad: Any, ksize: Any, strides: Any) -> Any:
        return _gradient(Pooling(xp, sig, ksize, strides), rule, x, best, grad)

    return run


# ---------------------------------------------------------------- average
def _counts(pooling: Pooling, where: Window, like: Any) -> Any:
    """How many elements of each window are input rather than padding, to divide by."""
    total = functools.reduce(np.multiply.outer, map(np.asarray, where.inside()))
    device = getattr(like, "device", None)
    counts = pooling.xp.asarray(np.asarray(total), dtype=like.dtype, device=device)
    return pooling.xp.reshape(counts, (1, *where.out, 1))


@portable("AvgPool", "AvgPool3D", T=FLOATS)
def avg_pool(xp: Any, sig: NodeSig) -> Any:
    """The mean of each window's elements that are not padding."""
    pooling = Pooling(xp, sig)

    def run(x: Any) -> Any:
        data = pooling.enter(x)
        where = pooling.window(data)
        total = pooling.fold("add", pooling.taps(data, where), as_dtype(pooling.dtype))
        return pooling.leave(total / _counts(pooling, where, total), x, x.dtype)

    return run


@portable("AvgPoolGrad", "AvgPool3DGrad", T=FLOATS, host_inputs=("orig_input_shape",))
def avg_pool_grad(xp: Any, sig: NodeSig) -> Any:
    """Each gradient shared out over its window."""
    pooling = Pooling(xp, sig)
    # The first input is a shape; the gradient has the type that counts.
    pooling.dtype = sig.in_dtypes[1].base_dtype

    def run(orig_input_shape: Any, grad: Any) -> Any:
        shape = tuple(ints(orig_input_shape))
        check_shape("grad", grad.shape, pooling.layout.result(shape))
        # It takes no memory: only its shape counts.
        zeros = xp.broadcast_to(full(xp, (), 0, pooling.dtype, grad), shape)
        data, back = pooling.enter(zeros), pooling.enter(grad)
        where = pooling.window(data)
        share = back / _counts(pooling, where, back)
        out = pooling.add_up(itertools.repeat(share), where, data)
        return pooling.leave(out, zeros, grad.dtype)

    return run


# ---------------------------------------------------------------- with the maximum's place
@portable("MaxPoolWithArgmax", T=REALS)
def max_pool_with_argmax(xp: Any, sig: NodeSig) -> Any:
    """The maxima and their flat places, per batch entry unless the batch is included."""
    pooling, whole = Pooling(xp, sig), sig.attrs["include_batch_in_index"]
    element = getattr(xp, sig.out_dtypes[1].name)

    def run(x: Any) -> Any:
        data = pooling.enter(x)
        where = pooling.window(data)
        entry = math.prod(data.shape[1:])
        numbers = np.broadcast_to(np.arange(entry).reshape(1, *data.shape[1:]), data.shape)
        if whole or pooling.layout.deep:
            start = np.arange(data.shape[0]) % (data.shape[0] if whole else _pixels(x, pooling))
            numbers = numbers + start.reshape(-1, *[1] * (numbers.ndim - 1)) * entry
        places = pooling.taps(device_ints(xp, np.ascontiguousarray(numbers), x), where)
        best = place = None
        values = pooling.taps(data, where, pooling.lowest(data))
        for hit, value, number in zip(pooling.hits(data, where), values, places):
            if best is None:
                best, place = copy(xp, value), xp.broadcast_to(number, value.shape)
                continue
            best, place = xp.where(hit, value, best), xp.where(hit, number, place)
        return pooling.leave(best, x, x.dtype), pooling.leave(place, x, element)

    return run


def _pixels(x: Any, pooling: Pooling) -> int:
    return max(1, math.prod(int(n) for n in pooling.layout.spatial(x.shape)))


def _places(xp: Any, argmax: Any, shape: Any, whole: bool) -> Any:
    """Indices into the flattened input, batch included."""
    size = math.prod(shape)
    index = xp.astype(argmax, index_type(xp))
    if not whole:
        start = device_ints(xp, np.arange(argmax.shape[0]) * math.prod(shape[1:]), argmax)
        index = index + xp.reshape(start, (-1, *[1] * (argmax.ndim - 1)))
    index = xp.reshape(index, (-1,))
    if index.shape[0] and fails(xp, (xp.min(index) < 0) | (xp.max(index) >= size)):
        raise outside_of_input(size)
    return index


def outside_of_input(size: int) -> Exception:
    """The error of places of maxima that are none of an input of so many elements."""
    return invalid(f"argmax has indices outside of the input, which has {size} elements")


@portable("MaxPoolGradWithArgmax", T=REALS)
def max_pool_grad_with_argmax(xp: Any, sig: NodeSig) -> Any:
    """Adds each gradient to the input element that its index names."""
    whole, dtype = sig.attrs["include_batch_in_index"], sig.in_dtypes[0].base_dtype

    def run(x: Any, grad: Any, argmax: Any) -> Any:
        place = _places(xp, argmax, x.shape, whole)
        rows = wide(xp, xp.reshape(grad, (-1, 1)), dtype)
        total = sum_at(xp, rows, place, math.prod(x.shape))
        return xp.astype(xp.reshape(total, x.shape), grad.dtype)

    return run


@portable("MaxPoolGradGradWithArgmax", T=REALS)
def max_pool_grad_grad_with_argmax(xp: Any, sig: NodeSig) -> Any:
    """The gradient of the input element that each index names."""
    whole = sig.attrs["include_batch_in_index"]

    def run(x: Any, grad: Any, argmax: Any) -> Any:
        place = _places(xp, argmax, x.shape, whole)
        return xp.reshape(xp.take(xp.reshape(grad, (-1,)), place, axis=0), argmax.shape)

    return run
