"""Oracle of fused batch normalization: one channel at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]


def _channels(x: Array, attrs: Any) -> Array:
    """The array with its channels first; writing to it writes to `x`."""
    return np.moveaxis(x, 1 if attrs["data_format"] == "NCHW" else 3, 0)


def _forward(attrs: Any, x: Array, scale: Array, offset: Array, mean: Array, var: Array) -> Any:
    y = np.zeros(x.shape)
    count = x.size // max(len(scale), 1)
    batch_mean, batch_var = np.zeros(len(scale)), np.zeros(len(scale))
    used_mean, used_var = np.zeros(len(scale)), np.zeros(len(scale))
    factor = attrs.get("exponential_avg_factor", 1.0)
    parts = zip(_channels(x, attrs), _channels(y, attrs), strict=True)
    for c, (source, target) in enumerate(parts):
        if attrs["is_training"]:
            used_mean[c] = source.sum() / count if count else math.nan
            used_var[c] = ((source - used_mean[c]) ** 2).sum() / count if count else math.nan
            batch_mean[c] = used_mean[c]
            batch_var[c] = used_var[c] * count / max(count - 1, 1)
            if factor != 1:
                batch_mean[c] = (1 - factor) * mean[c] + factor * batch_mean[c]
                batch_var[c] = (1 - factor) * var[c] + factor * batch_var[c]
        else:
            used_mean[c] = batch_mean[c] = mean[c]
            used_var[c] = batch_var[c] = var[c]
        target[...] = (source - used_mean[c]) / math.sqrt(used_var[c] + attrs["epsilon"])
        target[...] = target * scale[c] + offset[c]
    return y, batch_mean, batch_var, used_mean, used_var


@reference("FusedBatchNorm", "FusedBatchNormV2")
def fused_batch_norm(attrs: Any, *inputs: Array) -> Any:
    """Normalizes each channel; the reserves are the mean and biased variance that were used."""
    return _forward(attrs, *inputs)


@reference("FusedBatchNormV3")
def fused_batch_norm_v3(attrs: Any, *inputs: Array) -> Any:
    """As version 2, and a third reserve that holds nothing."""
    return (*_forward(attrs, *inputs), np.zeros(()))


@reference("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def fused_batch_norm_grad(
    attrs: Any, grad: Array, x: Array, scale: Array, mean: Array, var: Array, *unused: Array
) -> Any:
    """Gradients of each channel; the batch's statistics depend on x when training."""
    dx, dscale, doffset = np.zeros(x.shape), np.zeros(len(scale)), np.zeros(len(scale))
    parts = zip(_channels(grad, attrs), _channels(x, attrs), _channels(dx, attrs), strict=True)
    for c, (dy, source, target) in enumerate(parts):
        inv = 1 / math.sqrt(var[c] + attrs["epsilon"])
        normal = (source - mean[c]) * inv
        dscale[c], doffset[c] = (dy * normal).sum(), dy.sum()
        inner = dy
        if attrs["is_training"] and dy.size:
            inner = dy - dy.mean() - normal * (dy * normal).mean()
        target[...] = scale[c] * inv * inner
    return dx, dscale, doffset, np.zeros(0), np.zeros(0)


@reference("BatchNormWithGlobalNormalization")
def batch_norm(attrs: Any, t: Array, m: Array, v: Array, beta: Array, gamma: Array) -> Array:
    """Normalizes each channel by given statistics."""
    out = np.zeros(t.shape)
    for c in range(t.shape[3]):
        scale = gamma[c] if attrs["scale_after_normalization"] else 1.0
        out[..., c] = (t[..., c] - m[c]) / math.sqrt(v[c] + attrs["variance_epsilon"]) * scale
        out[..., c] += beta[c]
    return out


@reference("BatchNormWithGlobalNormalizationGrad")
def batch_norm_grad(attrs: Any, t: Array, m: Array, v: Array, gamma: Array, grad: Array) -> Any:
    """Gradients of each channel, of the statistics as of any input."""
    dx, (dm, dv, db, dg) = np.zeros(t.shape), np.zeros((4, len(gamma)))
    scaled = attrs["scale_after_normalization"]
    for c in range(t.shape[3]):
        deviation = math.sqrt(v[c] + attrs["variance_epsilon"])
        scale = gamma[c] if scaled else 1.0
        dy, centred = grad[..., c], t[..., c] - m[c]
        dx[..., c] = dy * scale / deviation
        dm[c], db[c] = -dx[..., c].sum(), dy.sum()
        dv[c] = -0.5 * (dy * centred).sum() * scale / deviation**3
        dg[c] = (dy * centred).sum() / deviation if scaled else 0.0
    return dx, dm, dv, db, dg
