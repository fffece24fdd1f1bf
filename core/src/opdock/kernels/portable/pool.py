"""Portable kernels of pooling, 2-D and 3-D, in both data formats.

Each element of the window is one strided slice of the padded input, so a pool is a few whole-array
steps for each of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from opdock import errors
from opdock.dtypes import FLOATS, REALS, as_dtype
from opdock.kernels.array_api import device_ints, dims, full, ints, invalid
from opdock.kernels.portable import portable
from opdock.kernels.portable.segment import sum_at, wide
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.windows import Layout, Window

_BATCH = "Pooling is not yet supported on the batch dimension."
_DEPTH = "MaxPooling supports exactly one of pooling across depth or pooling across width/height."


class Sliding:
    """What kernels need that go over windows an element of the window at a time."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def pad(self, data: Any, where: Window, value: Any) -> Any:
        """An array with channels last with padding around its spatial dimensions."""
        if where.padded == where.size:
            return data
        shape = (data.shape[0], *where.padded, data.shape[-1])
        device = getattr(data, "device", None)
        out = self.xp.full(shape, value, dtype=data.dtype, device=device)
        out[(slice(None), *where.inner, slice(None))] = data
        return out

    def lowest(self, data: Any) -> Any:
        """What no maximum takes unless there is nothing else."""
        whole = self.xp.isdtype(data.dtype, "integral")
        return self.xp.iinfo(data.dtype).min if whole else -math.inf


class Pooling(Sliding):
    """A node's windows on arrays with channels last; pooled channels become a spatial dimension."""

    def __init__(self, xp: Any, sig: NodeSig, window: Any = None, strides: Any = None) -> None:
        attrs = sig.attrs
        size = ints(attrs["ksize"] if window is None else window)
        steps = ints(attrs["strides"] if strides is None else strides)
        super().__init__(xp)
        self.layout = Layout(attrs, steps)
        self.dtype = sig.in_dtypes[0].base_dtype
        if size[0] != 1 or steps[0] != 1:
            raise errors.UnimplementedError(None, None, _BATCH)
        if min(size) < 1 or min(steps) < 1:
            raise invalid(f"Pooling needs positive windows and steps, got {size} and {steps}")
        channel = self.layout.channel
        self.deep = size[channel] != 1 or steps[channel] != 1
        self.size = self.layout.spatial(size)
        if self.deep:
            if any(size[a] != 1 or steps[a] != 1 for a in self.layout.space):
                raise errors.UnimplementedError(None, None, _DEPTH)
            # One spatial dimension: the channels. The real ones join the batch.
            flat = {"strides": (1, steps[channel], 1), "padding": attrs["padding"]}
            self.layout_deep = Layout(flat)
            self.size = (size[channel],)

    def enter(self, x: Any) -> Any:
        """Channels last, 16-bit floats as float32."""
        x = wide(self.xp, x, as_dtype(self.dtype))
        if self.layout.first:
            x = self.xp.moveaxis(x, 1, -1)
        return self.xp.reshape(x, (-1, x.shape[-1], 1)) if self.deep else x

    def leave(self, x: Any, like: Any, element: Any) -> Any:
        """Back in the node's format and type; `like` has the batch and spatial sizes that count."""
        if self.deep:
            space = [like.shape[0], *(like.shape[a] for a in self.layout.space)]
            x = self.xp.reshape(x, (*space, x.shape[1]))
        x = self.xp.moveaxis(x, -1, 1) if self.layout.first else x
        return self.xp.astype(x, element)

    def window(self, data: Any) -> Window:
        """The positions on an array that was entered."""
        layout = self.layout_deep if self.deep else self.layout
        return layout.window(tuple(data.shape[1:-1]), self.size)

    def slices(self, padded: Any, where: Window) -> Iterator[tuple[tuple[Any, ...], Any]]:
        """For each element of the window: its index and its values at all positions."""
        for _, here in where.taps():
            index = (slice(None), *here, slice(None))
            yield index, padded[index]

    def maximum(self, data: Any, where: Window) -> Any:
        """The maximum of each window."""
        values = self.slices(self.pad(data, where, self.lowest(data)), where)
        _, best = next(values)
        for _, value in values:
            best = self.xp.maximum(best, value)
        return best

    def hits(self, data: Any, best: Any, where: Window) -> Iterator[tuple[tuple[Any, ...], Any]]:
        """For each element of the window: where it is the first that equals the maximum."""
        xp = self.xp
        inside = xp.ones_like(data, dtype=xp.bool)
        inside = self.pad(inside, where, value=False)
        free = xp.ones_like(best, dtype=xp.bool)
        for index, value in self.slices(self.pad(data, where, self.lowest(data)), where):
            hit = xp.logical_and(xp.logical_and(value == best, free), inside[index])
            free = xp.logical_and(free, xp.logical_not(hit))
            yield index, hit


def _same_shape(what: str, got: Any, expected: tuple[int, ...]) -> None:
    if tuple(got.shape) != expected:
        raise invalid(
            f"{what} has shape {dims(got.shape)} (channels last), expected {dims(expected)} from "
            "the input, the window, strides and padding"
        )


def _positions(data: Any, where: Window) -> tuple[int, ...]:
    return (data.shape[0], *where.out, data.shape[-1])


def _when(sig: NodeSig) -> bool | str:
    if sig.attrs.get("data_format") == "NCHW_VECT_C":
        return "the format NCHW_VECT_C is for int8 hardware only"
    return True


def _max_pool(pooling: Pooling, x: Any) -> Any:
    data = pooling.enter(x)
    return pooling.leave(pooling.maximum(data, pooling.window(data)), x, x.dtype)


@portable("MaxPool", "MaxPool3D", when=_when, T=REALS)
def max_pool(xp: Any, sig: NodeSig) -> Any:
    """The maximum of each window."""
    pooling = Pooling(xp, sig)
    return lambda x: _max_pool(pooling, x)


@portable("MaxPoolV2", when=_when, T=REALS, host_inputs=("ksize", "strides"))
def max_pool_v2(xp: Any, sig: NodeSig) -> Any:
    """The maximum of each window, the window given as input."""
    return lambda x, ksize, strides: _max_pool(Pooling(xp, sig, ksize, strides), x)


# ---------------------------------------------------------------- gradients of the maximum
def _to_first(pooling: Pooling, data: Any, best: Any, grad: Any, where: Window) -> Any:
    """Each gradient at the first maximum of its window."""
    out = pooling.pad(pooling.xp.zeros_like(data), where, 0)
    for index, hit in pooling.hits(data, best, where):
        out[index] = out[index] + pooling.xp.where(hit, grad, pooling.xp.zeros_like(grad))
    return out[(slice(None), *where.inner, slice(None))]


def _from_first(pooling: Pooling, data: Any, best: Any, grad: Any, where: Window) -> Any:
    """The gradient at the first maximum of each window."""
    padded, out = pooling.pad(grad, where, 0), pooling.xp.zeros_like(best)
    for index, hit in pooling.hits(data, best, where):
        out = pooling.xp.where(hit, padded[index], out)
    return out


def _to_equal(pooling: Pooling, data: Any, best: Any, grad: Any, where: Window) -> Any:
    """Each gradient at every element within 1e-5 of the maximum: TF's rule for volumes."""
    xp = pooling.xp
    out, none = pooling.pad(xp.zeros_like(data), where, 0), xp.zeros_like(grad)
    for index, value in pooling.slices(pooling.pad(data, where, pooling.lowest(data)), where):
        out[index] = out[index] + xp.where(xp.abs(value - best) < 1e-5, grad, none)
    return out[(slice(None), *where.inner, slice(None))]


def _gradient(pooling: Pooling, rule: Callable[..., Any], x: Any, best: Any, grad: Any) -> Any:
    data, maxima, back = pooling.enter(x), pooling.enter(best), pooling.enter(grad)
    where = pooling.window(data)
    _same_shape("orig_output", maxima, _positions(data, where))
    second = rule is _from_first
    _same_shape("grad", back, tuple(data.shape) if second else _positions(data, where))
    out = rule(pooling, data, maxima, back, where)
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
    inside = np.zeros(where.padded, np.int64)
    inside[where.inner] = 1
    total = sum(inside[here] for _, here in where.taps())
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
        values = pooling.slices(pooling.pad(data, where, 0), where)
        _, total = next(values)
        for _, value in values:
            total = total + value
        return pooling.leave(total / _counts(pooling, where, total), x, x.dtype)

    return run


@portable("AvgPoolGrad", "AvgPool3DGrad", T=FLOATS, host_inputs=("orig_input_shape",))
def avg_pool_grad(xp: Any, sig: NodeSig) -> Any:
    """Each gradient shared out over its window."""
    pooling = Pooling(xp, sig)
    # The first input is a shape; the gradient has the type that counts.
    pooling.dtype = sig.in_dtypes[1].base_dtype

    def run(orig_input_shape: Any, grad: Any) -> Any:
        shape, dtype = tuple(ints(orig_input_shape)), pooling.dtype
        zeros = full(xp, shape, 0, dtype, grad)
        data, back = pooling.enter(zeros), pooling.enter(grad)
        where = pooling.window(data)
        _same_shape("grad", back, _positions(data, where))
        share = back / _counts(pooling, where, back)
        out = pooling.pad(data, where, 0)
        for _, here in where.taps():
            index = (slice(None), *here, slice(None))
            out[index] = out[index] + share
        inner = out[(slice(None), *where.inner, slice(None))]
        return pooling.leave(inner, zeros, grad.dtype)

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
        best = pooling.maximum(data, where)
        entry = math.prod(data.shape[1:])
        numbers = np.broadcast_to(np.arange(entry).reshape(1, *data.shape[1:]), data.shape)
        if whole or pooling.deep:
            start = np.arange(data.shape[0]) % (data.shape[0] if whole else _pixels(x, pooling))
            numbers = numbers + start.reshape(-1, *[1] * (numbers.ndim - 1)) * entry
        padded = pooling.pad(device_ints(xp, np.ascontiguousarray(numbers), x), where, 0)
        place = xp.zeros_like(best, dtype=xp.int64)
        for index, hit in pooling.hits(data, best, where):
            place = xp.where(hit, padded[index], place)
        return pooling.leave(best, x, x.dtype), pooling.leave(place, x, element)

    return run


def _pixels(x: Any, pooling: Pooling) -> int:
    return max(1, math.prod(int(x.shape[a]) for a in pooling.layout.space))


def _places(xp: Any, argmax: Any, shape: Any, whole: bool) -> Any:
    """Indices into the flattened input, batch included."""
    size = math.prod(shape)
    index = xp.astype(argmax, xp.int64)
    if not whole:
        start = device_ints(xp, np.arange(argmax.shape[0]) * math.prod(shape[1:]), argmax)
        index = index + xp.reshape(start, (-1, *[1] * (argmax.ndim - 1)))
    index = xp.reshape(index, (-1,))
    if index.shape[0] and (int(xp.min(index)) < 0 or int(xp.max(index)) >= size):
        raise invalid(f"argmax has indices outside of the input, which has {size} elements")
    return index


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
