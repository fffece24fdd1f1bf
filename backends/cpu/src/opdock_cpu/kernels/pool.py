"""Pooling kernels, 2-D and 3-D, both data formats: vectorised over the elements of the window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, errors
from opdock_cpu.windows import Window, channels_first, channels_last, narrow, pad, unpad, widen

__all__ = ["Pooling", "table"]

Array = npt.NDArray[Any]

table = KernelTable()

_BATCH = "Pooling is not yet supported on the batch dimension."
_DEPTH = (
    "MaxPooling supports exactly one of pooling across depth or pooling across width/height."
)


class Pooling:
    """A node's window; windows over the channels are taken as one more spatial dimension."""

    def __init__(self, attrs: Any, window: Any, steps: Any) -> None:
        ksize, strides = [int(k) for k in window], [int(s) for s in steps]
        rank = len(ksize)
        self.first = attrs.get("data_format", "NHWC").startswith("NC")
        space = list(range(2, rank)) if self.first else list(range(1, rank - 1))
        channel = 1 if self.first else rank - 1
        if ksize[0] != 1 or strides[0] != 1:
            raise errors.UnimplementedError(None, None, _BATCH)
        if min(ksize) < 1 or min(strides) < 1:
            raise errors.InvalidArgumentError(
                None, None, f"Pooling needs positive windows and steps, got {ksize} and {strides}"
            )
        self.deep = ksize[channel] != 1 or strides[channel] != 1
        if self.deep:
            if any(ksize[a] != 1 or strides[a] != 1 for a in space):
                raise errors.UnimplementedError(None, None, _DEPTH)
            space.append(channel)
        self._ksize = [ksize[a] for a in space]
        self._strides = [strides[a] for a in space]
        self._padding = attrs["padding"]
        self._known: dict[tuple[int, ...], Window] = {}

    def window(self, size: tuple[int, ...]) -> Window:
        """The geometry for spatial sizes (and channels, when pooled)."""
        found = self._known.get(size)
        if found is None:
            if len(self._known) > 64:
                self._known.clear()
            ones = [1] * len(self._ksize)
            found = self._known[size] = Window.make(
                size, self._ksize, self._strides, ones, self._padding
            )
        return found

    def last(self, x: Array) -> Array:
        """Channels last, in the type to compute in; a pooled channel dimension becomes spatial."""
        data = widen(channels_last(x, self.first))
        return data[..., None] if self.deep else data

    def finish(self, x: Array, dtype: Any) -> Array:
        """The result in the node's format and type."""
        return narrow(channels_first(x[..., 0] if self.deep else x, self.first), dtype)

    def view(self, x: Array) -> tuple[Array, Window]:
        """The input channels last, and its window."""
        data = self.last(x)
        return data, self.window(data.shape[1:-1])


def _static(sig: NodeSig) -> Pooling:
    return Pooling(sig.attrs, sig.attrs["ksize"], sig.attrs["strides"])


def _lowest(dtype: np.dtype[Any]) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def _check(what: str, got: Array, data: Array, where: Window) -> None:
    expected = (data.shape[0], *where.out, data.shape[-1])
    if got.shape != expected:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"{what} has shape {list(got.shape)} (channels last), expected {list(expected)} from "
            "the input, the window, strides and padding",
        )


def _here(where: Window, offset: Sequence[int]) -> tuple[slice, ...]:
    return (slice(None), *where.slices(offset))


# ---------------------------------------------------------------- max
def _maximum(data: Array, where: Window) -> Array:
    padded = pad(data, where, _lowest(data.dtype))
    offsets = where.offsets()
    best = np.array(padded[_here(where, next(offsets))], order="C")
    for offset in offsets:
        np.maximum(best, padded[_here(where, offset)], out=best)
    return best


def _first_hits(data: Array, out: Array, where: Window) -> Any:
    """Yields, for each window element, where it is the first that equals the window's maximum."""
    padded = pad(data, where, _lowest(data.dtype))
    inside = pad(np.ones((1, *data.shape[1:-1], 1), np.bool_), where, False)
    free = np.ones(out.shape, np.bool_)
    for offset in where.offsets():
        here = _here(where, offset)
        hit = padded[here] == out
        hit &= free
        if where.is_padded:
            hit &= inside[here]
        free &= ~hit
        yield here, hit


def _max_grad(data: Array, out: Array, grad: Array, where: Window) -> Array:
    padded = np.zeros((data.shape[0], *where.padded_size, data.shape[-1]), grad.dtype)
    for here, hit in _first_hits(data, out, where):
        padded[here] += np.where(hit, grad, 0).astype(grad.dtype, copy=False)
    return unpad(padded, where)


def _max_grad_grad(data: Array, out: Array, grad: Array, where: Window) -> Array:
    padded = pad(grad, where)
    result = np.zeros(out.shape, grad.dtype)
    for here, hit in _first_hits(data, out, where):
        np.copyto(result, padded[here], where=hit)
    return result


def _max_pool_when(sig: NodeSig) -> bool | str:
    if sig.attrs.get("data_format") == "NCHW_VECT_C":
        return "the format NCHW_VECT_C is for int8 hardware only"
    return True


@table.binder("MaxPool", "MaxPool3D", when=_max_pool_when)
def max_pool(sig: NodeSig) -> Callable[..., Array]:
    """The maximum of each window."""
    pooling = _static(sig)

    def run(x: Array) -> Array:
        data, where = pooling.view(x)
        return pooling.finish(_maximum(data, where), x.dtype)

    return run


@table.binder("MaxPoolV2", when=_max_pool_when, host_inputs=("ksize", "strides"))
def max_pool_v2(sig: NodeSig) -> Callable[..., Array]:
    """The maximum of each window, the window given as input."""

    def run(x: Array, ksize: Array, strides: Array) -> Array:
        pooling = Pooling(sig.attrs, ksize, strides)
        data, where = pooling.view(x)
        return pooling.finish(_maximum(data, where), x.dtype)

    return run


def _run_grad(
    pooling: Pooling, compute: Callable[..., Array], forward: bool, x: Array, out: Array,
    grad: Array,
) -> Array:  # fmt: skip
    data, where = pooling.view(x)
    best, back = pooling.last(out), pooling.last(grad)
    _check("orig_output", best, data, where)
    if forward:
        _check("grad", back, data, where)
    elif back.shape != data.shape:
        raise errors.InvalidArgumentError(
            None, None, f"grad has shape {list(grad.shape)}, expected {list(x.shape)}"
        )
    return pooling.finish(compute(data, best, back, where), grad.dtype)


@table.binder("MaxPoolGrad", "MaxPoolGradGrad", "MaxPool3DGradGrad")
def max_pool_grad(sig: NodeSig) -> Callable[..., Array]:
    """The gradient goes to (or, for the second derivative, comes from) the first maximum."""
    pooling, forward = _static(sig), sig.op == "MaxPoolGrad"
    compute = _max_grad if forward else _max_grad_grad
    return lambda x, out, grad: _run_grad(pooling, compute, forward, x, out, grad)


@table.binder("MaxPoolGradV2", "MaxPoolGradGradV2", host_inputs=("ksize", "strides"))
def max_pool_grad_v2(sig: NodeSig) -> Callable[..., Array]:
    """As `max_pool_grad`, the window given as input."""
    forward = sig.op == "MaxPoolGradV2"
    compute = _max_grad if forward else _max_grad_grad

    def run(x: Array, out: Array, grad: Array, ksize: Array, strides: Array) -> Array:
        return _run_grad(Pooling(sig.attrs, ksize, strides), compute, forward, x, out, grad)

    return run


@table.binder("MaxPool3DGrad")
def max_pool3d_grad(sig: NodeSig) -> Callable[..., Array]:
    """The gradient goes to every element that is the maximum, up to 1e-5, as in TF."""
    pooling = _static(sig)

    def compute(data: Array, out: Array, grad: Array, where: Window) -> Array:
        source = pad(data, where, _lowest(data.dtype))
        padded = np.zeros(source.shape, grad.dtype)
        for offset in where.offsets():
            here = _here(where, offset)
            padded[here] += np.where(np.abs(source[here] - out) < 1e-5, grad, 0)
        return unpad(padded, where)

    return lambda x, out, grad: _run_grad(pooling, compute, True, x, out, grad)


# ---------------------------------------------------------------- average
@table.binder("AvgPool", "AvgPool3D")
def avg_pool(sig: NodeSig) -> Callable[..., Array]:
    """The mean of each window's elements that are not padding."""
    pooling = _static(sig)

    def run(x: Array) -> Array:
        data, where = pooling.view(x)
        padded = pad(data, where)
        offsets = where.offsets()
        total = np.array(padded[_here(where, next(offsets))], order="C")
        for offset in offsets:
            total += padded[_here(where, offset)]
        total /= where.counts().astype(total.dtype)[None, ..., None]
        return pooling.finish(total, x.dtype)

    return run


@table.binder("AvgPoolGrad", "AvgPool3DGrad", host_inputs=("orig_input_shape",))
def avg_pool_grad(sig: NodeSig) -> Callable[..., Array]:
    """Each output's gradient is shared out over its window."""
    pooling = _static(sig)

    def run(orig_input_shape: Array, grad: Array) -> Array:
        dims = [int(d) for d in orig_input_shape]
        if pooling.first:
            dims = [dims[0], *dims[2:], dims[1]]
        if pooling.deep:
            dims.append(1)
        back, where = pooling.last(grad), pooling.window(tuple(dims[1:-1]))
        expected = (dims[0], *where.out, dims[-1])
        if back.shape != expected:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"grad has shape {list(back.shape)} (channels last), expected {list(expected)} "
                "from orig_input_shape, the window, strides and padding",
            )
        share = back / where.counts().astype(back.dtype)[None, ..., None]
        padded = np.zeros((dims[0], *where.padded_size, dims[-1]), back.dtype)
        for offset in where.offsets():
            padded[_here(where, offset)] += share
        return pooling.finish(unpad(padded, where), grad.dtype)

    return run


# ---------------------------------------------------------------- argmax
@table.binder("MaxPoolWithArgmax")
def max_pool_with_argmax(sig: NodeSig) -> Callable[..., tuple[Array, Array]]:
    """The maxima and their flat indices, per batch entry unless the batch is included."""
    pooling = _static(sig)
    whole, index_type = sig.attrs["include_batch_in_index"], sig.out_dtypes[1].np

    def run(x: Array) -> tuple[Array, Array]:
        data, where = pooling.view(x)
        best = _maximum(data, where)
        flat = np.arange(data[0].size if data.shape[0] else 0, dtype=np.int64)
        numbers = pad(flat.reshape(1, *data.shape[1:]), where) if data.shape[0] else flat
        which = np.zeros(best.shape, np.int64)
        for here, hit in _first_hits(data, best, where) if best.size else ():
            np.copyto(which, numbers[here], where=hit)
        if whole:
            which += (np.arange(data.shape[0]) * flat.size).reshape(-1, *[1] * (which.ndim - 1))
        return pooling.finish(best, x.dtype), pooling.finish(which, index_type)

    return run


def _flat_indices(argmax: Array, entry: int, whole: bool) -> Array:
    """Indices into the flattened input, batch included."""
    index = argmax.astype(np.int64)
    if not whole:
        index += (np.arange(argmax.shape[0]) * entry).reshape(-1, *[1] * (argmax.ndim - 1))
    return index


def _checked(index: Array, size: int) -> Array:
    if index.size and (index.min() < 0 or index.max() >= size):
        raise errors.InvalidArgumentError(
            None, None, f"argmax has indices outside of the input, which has {size} elements"
        )
    return index


@table.binder("MaxPoolGradWithArgmax")
def max_pool_grad_with_argmax(sig: NodeSig) -> Callable[..., Array]:
    """Adds each output's gradient to the input element that its index names."""
    whole = sig.attrs["include_batch_in_index"]

    def run(x: Array, grad: Array, argmax: Array) -> Array:
        entry = x[0].size if x.shape[0] else 0
        index = _checked(_flat_indices(argmax, entry, whole), x.size).reshape(-1)
        back = widen(grad)
        out = np.zeros(x.size, back.dtype)
        np.add.at(out, index, back.reshape(-1))
        return narrow(out.reshape(x.shape), grad.dtype)

    return run


@table.binder("MaxPoolGradGradWithArgmax")
def max_pool_grad_grad_with_argmax(sig: NodeSig) -> Callable[..., Array]:
    """Takes the gradient of the input element that each index names."""
    whole = sig.attrs["include_batch_in_index"]

    def run(x: Array, grad: Array, argmax: Array) -> Array:
        entry = x[0].size if x.shape[0] else 0
        index = _checked(_flat_indices(argmax, entry, whole), x.size)
        return np.ascontiguousarray(grad).reshape(-1)[index]

    return run
