"""Fused batch normalization kernels.

Channels-last data are a matrix [pixels, channels]: sums over pixels are products with a vector of
ones, which BLAS does fast and in blocks, so that long sums stay accurate in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig
from opdock_cpu.windows import narrow, widen

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()


class _Format:
    """Sums and products per channel for one data format."""

    def __init__(self, data_format: str) -> None:
        self.first = data_format == "NCHW"

    def view(self, x: Array) -> Array:
        """[pixels, channels], or [batch, channels, pixels] for channels first."""
        if self.first:
            return x.reshape(*x.shape[:2], int(np.prod(x.shape[2:])))
        return x.reshape(int(np.prod(x.shape[:-1])), x.shape[-1])

    def spread(self, vector: Array) -> Array:
        """A per-channel vector that broadcasts against a view."""
        return vector[:, None] if self.first else vector

    def sum(self, x: Array) -> Array:
        """The sum of each channel."""
        if self.first:
            return np.asarray(x.sum(axis=2).sum(axis=0))
        return np.asarray(np.ones(x.shape[0], x.dtype) @ x)

    def dot(self, x: Array, y: Array) -> Array:
        """The sum of products of each channel."""
        return np.asarray(np.einsum("ncp,ncp->c" if self.first else "pc,pc->c", x, y))

    def count(self, x: Array) -> int:
        """How many values each channel has."""
        return int(x.shape[0] * x.shape[2] if self.first else x.shape[0])


@table.binder("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def fused_batch_norm(sig: NodeSig) -> Callable[..., tuple[Any, ...]]:
    """Normalizes by the batch's statistics or by given ones.

    The reserves are the mean and the biased variance that were used.
    """
    form = _Format(sig.attrs["data_format"])
    training = sig.attrs["is_training"]
    factor = np.float32(sig.attrs.get("exponential_avg_factor", 1.0))
    epsilon = np.float32(sig.attrs["epsilon"])
    kind = sig.in_dtypes[0].np
    third = sig.op == "FusedBatchNormV3"

    def run(x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> Any:
        data = form.view(widen(x))
        if training:
            count = np.float32(max(form.count(data), 1))
            used_mean = form.sum(data) / count
            y = data - form.spread(used_mean)
            used_variance = form.dot(y, y) / count
            batch_mean = used_mean.copy()
            batch_variance = used_variance * (count / max(count - 1, np.float32(1)))
            if factor != 1:
                batch_mean = mean * (1 - factor) + batch_mean * factor
                batch_variance = variance * (1 - factor) + batch_variance * factor
            y *= form.spread(scale / np.sqrt(used_variance + epsilon))
            y += form.spread(offset)
        else:
            used_mean, used_variance = mean.copy(), variance.copy()
            batch_mean, batch_variance = mean.copy(), variance.copy()
            gain = scale / np.sqrt(variance + epsilon)
            # One multiply-add: the mean is folded into the offset.
            y = data * form.spread(gain)
            y += form.spread(offset - mean * gain)
        out = (narrow(y.reshape(x.shape), kind), batch_mean, batch_variance)
        reserves = (used_mean, used_variance)
        return (*out, *reserves, np.zeros((), np.float32)) if third else (*out, *reserves)

    return run


@table.binder("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def fused_batch_norm_grad(sig: NodeSig) -> Callable[..., tuple[Array, ...]]:
    """Gradients with respect to x, scale and offset."""
    form = _Format(sig.attrs["data_format"])
    training = sig.attrs["is_training"]
    epsilon = np.float32(sig.attrs["epsilon"])
    kind = sig.in_dtypes[0].np

    def run(grad: Array, x: Array, scale: Array, mean: Array, variance: Array, *unused: Any) -> Any:
        dy, data = form.view(widen(grad)), form.view(widen(x))
        inv = 1 / np.sqrt(variance + epsilon)
        centred = data - form.spread(mean)
        doffset = form.sum(dy)
        projected = form.dot(dy, centred)
        dscale = projected * inv
        if training:
            count = np.float32(max(form.count(dy), 1))
            centred *= form.spread(inv * inv * projected / count)
            np.subtract(dy, centred, centred)
            centred -= form.spread(doffset / count)
            centred *= form.spread(scale * inv)
        else:
            np.multiply(dy, form.spread(scale * inv), centred)
        dx = narrow(centred.reshape(x.shape), kind)
        return dx, dscale, doffset, np.zeros(0, np.float32), np.zeros(0, np.float32)

    return run
