"""Portable kernels of fused batch normalization."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from opdock import dtypes
from opdock.kernels.array_api import invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

_HALVES = (dtypes.float16, dtypes.bfloat16)
_FORWARD = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
_BACKWARD = ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")


def check_channels(x: Any, first: bool, *vectors: Any) -> None:
    """Raises InvalidArgumentError unless there is one number for each channel of an image batch."""
    if len(x.shape) != 4:
        raise invalid(f"input must be 4-dimensional, got shape {list(x.shape)}")
    channels = x.shape[1 if first else 3]
    for name, vector in zip(("scale", "offset"), vectors, strict=False):
        if tuple(vector.shape) != (channels,):
            raise invalid(
                f"{name} must have a number for each of {channels} channels, "
                f"got shape {list(vector.shape)}"
            )


@portable(*_FORWARD)
def fused_batch_norm(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Normalizes by the batch's statistics or by given ones.

    The reserves are the mean and the biased variance that were used.
    """
    first = sig.attrs["data_format"] == "NCHW"
    axes = (0, 2, 3) if first else (0, 1, 2)
    epsilon, training = sig.attrs["epsilon"], sig.attrs["is_training"]
    factor = float(sig.attrs.get("exponential_avg_factor", 1.0))
    narrow = sig.in_dtypes[0] in _HALVES
    third = sig.op == "FusedBatchNormV3"

    def run(x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
        check_channels(x, first, scale, offset)
        wide = xp.astype(x, xp.float32) if narrow else x
        shape = (1, -1, 1, 1) if first else (1, 1, 1, -1)
        if training:
            count = math.prod(int(wide.shape[a]) for a in axes)
            used_mean = xp.sum(wide, axis=axes) / (count or math.nan)
            centred = wide - xp.reshape(used_mean, shape)
            used_variance = xp.sum(centred * centred, axis=axes) / (count or math.nan)
            batch_mean = used_mean
            batch_variance = used_variance * (count / max(count - 1, 1))
            if factor != 1.0:
                batch_mean = mean * (1 - factor) + batch_mean * factor
                batch_variance = variance * (1 - factor) + batch_variance * factor
        else:
            used_mean = batch_mean = mean
            used_variance = batch_variance = variance
            centred = wide - xp.reshape(mean, shape)
        gain = scale / xp.sqrt(used_variance + epsilon)
        y = centred * xp.reshape(gain, shape) + xp.reshape(offset, shape)
        y = xp.astype(y, x.dtype, copy=False)
        vectors = (batch_mean, batch_variance, used_mean, used_variance)
        # Each output has its own buffer: the same array must not leave twice.
        out = (y, *(xp.asarray(v, copy=True) for v in vectors))
        return (*out, xp.zeros((), dtype=xp.float32)) if third else out

    return run


@portable(*_BACKWARD)
def fused_batch_norm_grad(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Gradients with respect to x, scale and offset."""
    first = sig.attrs["data_format"] == "NCHW"
    axes = (0, 2, 3) if first else (0, 1, 2)
    epsilon, training = sig.attrs["epsilon"], sig.attrs["is_training"]
    narrow = sig.in_dtypes[0] in _HALVES

    def run(grad: Any, x: Any, scale: Any, mean: Any, variance: Any, *unused: Any) -> Any:
        dy, wide = (xp.astype(v, xp.float32) if narrow else v for v in (grad, x))
        shape = (1, -1, 1, 1) if first else (1, 1, 1, -1)
        inv = 1.0 / xp.sqrt(variance + epsilon)
        normal = (wide - xp.reshape(mean, shape)) * xp.reshape(inv, shape)
        doffset = xp.sum(dy, axis=axes)
        dscale = xp.sum(dy * normal, axis=axes)
        inner = dy
        if training:
            count = max(math.prod(int(wide.shape[a]) for a in axes), 1)
            inner = dy - xp.reshape(doffset / count, shape)
            inner = inner - normal * xp.reshape(dscale / count, shape)
        dx = xp.astype(inner * xp.reshape(scale * inv, shape), x.dtype, copy=False)
        return (
            dx, dscale, doffset, xp.zeros((0,), dtype=xp.float32), xp.zeros((0,), dtype=xp.float32)
        )  # fmt: skip

    return run
