"""Pooling on oneDNN, two and three dimensions, both data formats.

oneDNN's maximum passes over NaNs and takes nothing below the least finite float for one. Inputs
that hold such values go to the portable kernel, which treats them as TF does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, windows
from opdock_cpu.kernels import pool as loops
from opdock_cpu.onednn import pool as primitives
from opdock_cpu.onednn.declarations import Type
from opdock_cpu.onednn.kernels.common import F32, PRIORITY, Array, PerShape, declined_at_once, size
from opdock_cpu.onednn.memory import aligned
from opdock_cpu.onednn.pool import PoolShape
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

table = KernelTable()

_LEAST: Final = float(np.finfo(np.float32).min)


def _when(sig: NodeSig) -> bool | str:
    why = declined_at_once(sig, *(i for i, t in enumerate(sig.in_dtypes) if t in F32))
    if why:
        return why
    attrs, channel = sig.attrs, windows.Layout(sig.attrs).channel
    if any(attrs[what][axis] != 1 for what in ("ksize", "strides") for axis in (0, channel)):
        return "it pools over the batch or the channels"
    return windows.plain_format(sig)


def _shape(pool: windows.Pool, shape: Sequence[int]) -> PoolShape:
    batch, space, channels = pool.parts(shape)
    return PoolShape(batch, channels, pool.window(space, pool.ksize), pool.first, Type.F32)


def _is_plain(x: Array) -> bool:
    """Whether no element is NaN or below every finite float."""
    return bool(x.min() > _LEAST)


_Pool = Callable[..., Array]


def _forward(sig: NodeSig, make_primitive: Any, guarded: bool) -> _Pool:
    pool = windows.Pool(sig.attrs)
    plain: Callable[..., Array] = portable_kernel(sig, out=True)

    def make(x: Array) -> Callable[..., Array]:
        shape, target = _shape(pool, x.shape), pool.result(x.shape)
        if x.size == 0 or size(target) == 0:
            return plain
        run = make_primitive(shape).run

        def call(x: Array, out: Array | None) -> Array:
            if guarded and not _is_plain(x):
                return plain(x, out)
            if out is None:
                out = np.empty(target, np.float32)
            run(x, out)
            return out

        return call

    shapes = PerShape(make)
    return lambda x, out=None: shapes.find(x.shape, x)(x, out)


_OPTIONS: Final[Any] = {"T": F32, "out": True, "priority": PRIORITY, "when": _when}


@table.binder("MaxPool", "MaxPool3D", **_OPTIONS)
def max_pool(sig: NodeSig) -> Callable[..., Array]:
    """The maximum of each window."""
    return _forward(sig, primitives.maximum, True)


@table.binder("AvgPool", "AvgPool3D", **_OPTIONS)
def avg_pool(sig: NodeSig) -> Callable[..., Array]:
    """The mean of each window's elements that are not padding."""
    return _forward(sig, primitives.average, False)


@table.binder("AvgPoolGrad", "AvgPool3DGrad", host_inputs=("orig_input_shape",), **_OPTIONS)
def avg_pool_grad(sig: NodeSig) -> Callable[..., Array]:
    """Each output's gradient is shared out over its window."""
    pool = windows.Pool(sig.attrs)
    plain: Callable[..., Array] = portable_kernel(sig, out=True)

    def make(input_shape: Array, grad: Array) -> Callable[..., Array]:
        target = tuple(input_shape.tolist())
        shape = _shape(pool, target)
        if grad.size == 0 or size(target) == 0 or grad.shape != pool.result(target):
            return plain  # which says what is wrong with them
        run = primitives.average_gradient(shape).run

        def call(input_shape: Array, grad: Array, out: Array | None) -> Array:
            if out is None:
                out = np.empty(target, np.float32)
            run(grad, out)
            return out

        return call

    shapes = PerShape(make)

    def run(input_shape: Array, grad: Array, out: Array | None = None) -> Array:
        key = (input_shape.tobytes(), input_shape.dtype, grad.shape)
        return shapes.find(key, input_shape, grad)(input_shape, grad, out)

    return run


@table.binder("MaxPoolGrad", **_OPTIONS)
def max_pool_grad(sig: NodeSig) -> Callable[..., Array]:
    """The gradient goes to the first maximum of each window."""
    pool = windows.Pool(sig.attrs)
    plain = loops.max_pool_grad(sig)

    def make(x: Array, y: Array, grad: Array) -> Callable[..., Array]:
        shape = _shape(pool, x.shape)
        if x.size == 0 or grad.size == 0 or not y.shape == grad.shape == pool.result(x.shape):
            return plain  # which says what is wrong with them
        found = primitives.maximum_gradient(shape)
        if found is None:
            return plain
        forward, backward, extent = found
        free: list[tuple[Array, Array]] = []

        def call(x: Array, y: Array, grad: Array, out: Array | None) -> Array:
            # A maximum is NaN if its window holds one, and there are fewer of them than elements.
            if not _is_plain(y):
                return plain(x, y, grad, out)
            again, places = held = free.pop() if free else (np.empty_like(grad), aligned(extent))
            if out is None:
                out = np.empty(x.shape, np.float32)
            forward.run(x, again, places)
            backward.run(grad, places, out)
            free.append(held)
            return out

        return call

    shapes = PerShape(make)

    def run(x: Array, y: Array, grad: Array, out: Array | None = None) -> Array:
        return shapes.find((x.shape, y.shape, grad.shape), x, y, grad)(x, y, grad, out)

    return run
