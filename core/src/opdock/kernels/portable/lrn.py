"""Portable kernels of local response normalization."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock import dtypes
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

_HALVES = (dtypes.float16, dtypes.bfloat16)


def _band_sum(xp: Any, x: Any, radius: int) -> Any:
    """The sum over the neighbours within `radius` along the last dimension."""
    channels = int(x.shape[-1])
    total = xp.zeros_like(x)
    # A window wider than the tensor holds no more than the tensor.
    reach = min(radius, max(channels - 1, 0))
    if channels == 0:
        return total
    pad = xp.zeros((*x.shape[:-1], reach), dtype=x.dtype)
    padded = xp.concat([pad, x, pad], axis=-1)
    for offset in range(2 * reach + 1):
        total = total + padded[..., offset : offset + channels]
    return total


@portable("LRN")
def lrn(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Divides by a power of the neighbours' energy."""
    radius, bias = sig.attrs["depth_radius"], sig.attrs["bias"]
    alpha, beta = sig.attrs["alpha"], sig.attrs["beta"]
    narrow = sig.in_dtypes[0] in _HALVES

    def run(image: Any) -> Any:
        x = xp.astype(image, xp.float32) if narrow else image
        norm = bias + alpha * _band_sum(xp, x * x, radius)
        out = x * norm**-beta
        return xp.astype(out, image.dtype) if narrow else out

    return run


@portable("LRNGrad")
def lrn_grad(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """The gradient; the window is symmetric, so the neighbours' share is a window sum again."""
    radius, bias = sig.attrs["depth_radius"], sig.attrs["bias"]
    alpha, beta = sig.attrs["alpha"], sig.attrs["beta"]
    narrow = sig.in_dtypes[0] in _HALVES

    def run(grads: Any, image: Any, output: Any) -> Any:
        g, x, y = (xp.astype(v, xp.float32) if narrow else v for v in (grads, image, output))
        norm = bias + alpha * _band_sum(xp, x * x, radius)
        shared = _band_sum(xp, g * y / norm, radius)
        out = g * norm**-beta - 2.0 * alpha * beta * x * shared
        return xp.astype(out, image.dtype) if narrow else out

    return run
