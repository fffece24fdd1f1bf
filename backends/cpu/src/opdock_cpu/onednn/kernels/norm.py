"""Batch normalization on oneDNN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks, windows
from opdock_cpu.kernels import norm as numpy_kernels
from opdock_cpu.onednn import norm as primitives
from opdock_cpu.onednn.kernels.common import F32, PRIORITY, Array, PerShape, declined_at_once

__all__ = ["table"]

table = KernelTable()

_F32: Final = np.dtype(np.float32)
_CACHED: Final = 1 << 18
"""Elements up to which a cache of a core holds an array of images."""


def _when(sig: NodeSig) -> bool | str:
    why = declined_at_once(sig, 0, 1)
    if why:
        return why
    channels = sig.in_shapes[2 if sig.op.startswith("FusedBatchNormGrad") else 1]
    return bool(channels) or "scale is not a vector"


def _dims(shape: tuple[int, ...], data_format: str) -> tuple[int, ...]:
    batch, space, channels = windows.Format(data_format, len(shape)).parts(shape)
    return (batch, channels, *space)


_FORWARD: Final = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
_BACKWARD: Final = ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")


def _in_parts(sig: NodeSig) -> bool:
    """Whether clusters are faster: not where oneDNN has fast code, and data that fit in a cache."""
    if not numpy_kernels.in_parts(sig):
        return False
    shape = [n or 0 for n in sig.in_shapes[0] or ()]
    fast = sig.attrs["data_format"] == "NHWC" and shape[-1] % 8 == 0
    return not (fast and sig.attrs["is_training"] and math.prod(shape) < _CACHED)


@table.binder(*_FORWARD, T=F32, priority=PRIORITY, when=_when, unfold=_in_parts)
def fused_batch_norm(sig: NodeSig) -> Callable[..., tuple[Any, ...]]:
    """Normalizes by the batch's statistics or by given ones."""
    attrs = sig.attrs
    first, training = attrs["data_format"] == "NCHW", bool(attrs["is_training"])
    factor = np.float32(attrs.get("exponential_avg_factor", 1.0))
    epsilon, has_third = float(attrs["epsilon"]), sig.op == "FusedBatchNormV3"
    numpy_kernel = numpy_kernels.fused_batch_norm(sig)

    def third() -> tuple[Array, ...]:
        return (np.zeros((), _F32),) if has_third else ()

    def make(x: Array, *vectors: Array) -> Callable[..., tuple[Any, ...]]:
        _check(x, first, training, *vectors)
        dims = _dims(x.shape, attrs["data_format"])
        if x.size == 0:
            return numpy_kernel
        run = primitives.batch_norm(dims, first, epsilon, training).run
        count = x.size // dims[1]
        unbiased = np.float32(count / max(count - 1, 1))

        def train(x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> Any:
            y = np.empty(x.shape, _F32)
            used_mean, used_variance = np.empty(dims[1], _F32), np.empty(dims[1], _F32)
            run(x, scale, offset, used_mean, used_variance, y)
            batch_mean, batch_variance = used_mean.copy(), used_variance * unbiased
            if factor != 1:
                batch_mean = mean * (1 - factor) + batch_mean * factor
                batch_variance = variance * (1 - factor) + batch_variance * factor
            return (y, batch_mean, batch_variance, used_mean, used_variance, *third())

        def infer(x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> Any:
            y = np.empty(x.shape, _F32)
            run(x, scale, offset, mean, variance, y)
            return (y, mean.copy(), variance.copy(), mean.copy(), variance.copy(), *third())

        return train if training else infer

    shapes = PerShape(make)

    def run(x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> Any:
        key = (x.shape, scale.shape, offset.shape, mean.shape, variance.shape)
        return shapes.find(key, x, scale, offset, mean, variance)(x, scale, offset, mean, variance)

    return run


def _check(x: Array, first: bool, training: bool, *vectors: Array) -> None:
    channels = x.shape[1 if first else -1]
    wanted = vectors[:2] if training else vectors
    if any(v.shape != (channels,) for v in wanted):
        raise checks.invalid(
            f"scale, offset, mean and variance must have {channels} elements, as x of shape "
            f"{list(x.shape)} has channels; got {[list(v.shape) for v in wanted]}"
        )


def _when_grad(sig: NodeSig) -> bool | str:
    return declined_at_once(sig, 0, 1, 2) or True


@table.binder(*_BACKWARD, T=F32, priority=PRIORITY, when=_when_grad, unfold=_in_parts)
def fused_batch_norm_grad(sig: NodeSig) -> Callable[..., tuple[Array, ...]]:
    """Gradients with respect to x, scale and offset."""
    attrs = sig.attrs
    first, training = attrs["data_format"] == "NCHW", bool(attrs["is_training"])
    epsilon = float(attrs["epsilon"])
    numpy_kernel = numpy_kernels.fused_batch_norm_grad(sig)

    def make(grad: Array, x: Array, *vectors: Array) -> Callable[..., tuple[Array, ...]]:
        _check(x, first, False, *vectors)
        dims = _dims(x.shape, attrs["data_format"])
        if x.size == 0 or grad.shape != x.shape:
            return numpy_kernel
        run = primitives.batch_norm_gradient(dims, first, epsilon, training).run

        def call(grad: Array, x: Array, scale: Array, mean: Array, variance: Array) -> Any:
            dx = np.empty(x.shape, _F32)
            dscale, dshift = np.empty(dims[1], _F32), np.empty(dims[1], _F32)
            run(grad, x, scale, mean, variance, dx, dscale, dshift)
            return dx, dscale, dshift, np.zeros(0, _F32), np.zeros(0, _F32)

        return call

    shapes = PerShape(make)

    def run(grad: Array, x: Array, scale: Array, mean: Array, variance: Array, *_: Any) -> Any:
        key = (grad.shape, x.shape, scale.shape, mean.shape, variance.shape)
        return shapes.find(key, grad, x, scale, mean, variance)(grad, x, scale, mean, variance)

    return run
