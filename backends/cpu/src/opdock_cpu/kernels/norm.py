"""Fused batch normalization kernels.

Channels-last data are a matrix: sums over its rows are products with a vector of ones, which BLAS
does fast and in blocks, so that long sums stay accurate in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, checks
from opdock_cpu.halves import narrowed, widened

__all__ = ["table"]

Array = npt.NDArray[Any]

table = KernelTable()

_ROW = 4096


class _Format:
    """Sums and products per channel for one data format."""

    def __init__(self, data_format: str) -> None:
        self.first = data_format == "NCHW"

    def view(self, x: Array) -> tuple[Array, int]:
        """The data as rows, and how many pixels a row holds (channels first: one channel).

        Rows of several pixels keep NumPy's inner loops long when there are few channels.
        """
        if self.first:
            return x.reshape(*x.shape[:2], math.prod(x.shape[2:])), 1
        pixels, channels = math.prod(x.shape[:-1]), x.shape[-1]
        fold = 1
        while 2 * fold * channels <= _ROW and pixels % (2 * fold) == 0 and channels:
            fold *= 2
        return x.reshape(pixels // fold, fold * channels), fold

    def spread(self, vector: Array, fold: int) -> Array:
        """A per-channel vector that broadcasts against a view."""
        if self.first:
            return vector[:, None]
        return np.tile(vector, fold) if fold > 1 else vector

    def sum(self, x: Array, fold: int) -> Array:
        """The sum of each channel."""
        if self.first:
            return np.asarray(x.sum(axis=2).sum(axis=0))
        return self._unfold(np.ones(x.shape[0], x.dtype) @ x, fold)

    def dot(self, x: Array, y: Array, fold: int) -> Array:
        """The sum of products of each channel."""
        if self.first:
            return np.asarray(np.einsum("ncp,ncp->c", x, y))
        return self._unfold(np.einsum("rc,rc->c", x, y), fold)

    def _unfold(self, sums: Array, fold: int) -> Array:
        return np.asarray(sums.reshape(fold, -1).sum(axis=0) if fold > 1 else sums)


def _count(x: Array, channels: int) -> np.float32:
    """How many values each channel has, by which sums are divided; the mean of none is NaN."""
    return np.float32(x.size // channels or np.nan) if channels else np.float32(np.nan)


def in_parts(sig: NodeSig) -> bool:
    """Whether clusters compute a batch norm, or its gradient, faster than a kernel of its own."""
    shape = sig.in_shapes[0]
    return shape is not None and None not in shape and 0 not in shape


@table.binder("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", unfold=in_parts)
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
        checks.check_channels(x, form.first, scale, offset)
        data, fold = form.view(widened(x))
        if training:
            count = _count(x, len(scale))
            used_mean = form.sum(data, fold) / count
            y = data - form.spread(used_mean, fold)
            used_variance = form.dot(y, y, fold) / count
            batch_mean = used_mean.copy()
            batch_variance = used_variance * (count / np.fmax(count - 1, np.float32(1)))
            if factor != 1:
                batch_mean = mean * (1 - factor) + batch_mean * factor
                batch_variance = variance * (1 - factor) + batch_variance * factor
            y *= form.spread(scale / np.sqrt(used_variance + epsilon), fold)
            y += form.spread(offset, fold)
        else:
            used_mean, used_variance = mean.copy(), variance.copy()
            batch_mean, batch_variance = mean.copy(), variance.copy()
            gain = scale / np.sqrt(variance + epsilon)
            # One multiply-add: the mean is folded into the offset.
            y = data * form.spread(gain, fold)
            y += form.spread(offset - mean * gain, fold)
        out = (narrowed(y.reshape(x.shape), kind), batch_mean, batch_variance)
        reserves = (used_mean, used_variance)
        return (*out, *reserves, np.zeros((), np.float32)) if third else (*out, *reserves)

    return run


@table.binder("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3", unfold=in_parts)
def fused_batch_norm_grad(sig: NodeSig) -> Callable[..., tuple[Array, ...]]:
    """Gradients with respect to x, scale and offset."""
    form = _Format(sig.attrs["data_format"])
    training = sig.attrs["is_training"]
    epsilon = np.float32(sig.attrs["epsilon"])
    kind = sig.in_dtypes[0].np

    def run(grad: Array, x: Array, scale: Array, mean: Array, variance: Array, *unused: Any) -> Any:
        dy, fold = form.view(widened(grad))
        data, _ = form.view(widened(x))
        inv = 1 / np.sqrt(variance + epsilon)
        centred = data - form.spread(mean, fold)
        doffset = form.sum(dy, fold)
        # Sums of nothing are zero: a product over no rows may leave its memory as it was.
        projected = form.dot(dy, centred, fold) if x.size else np.zeros_like(inv)
        dscale = projected * inv if x.size else projected
        if training:
            count = _count(x, len(scale))
            centred *= form.spread(inv * inv * projected / count, fold)
            np.subtract(dy, centred, centred)
            centred -= form.spread(doffset / count, fold)
            centred *= form.spread(scale * inv, fold)
        else:
            np.multiply(dy, form.spread(scale * inv, fold), centred)
        dx = narrowed(centred.reshape(x.shape), kind)
        return dx, dscale, doffset, np.zeros(0, np.float32), np.zeros(0, np.float32)

    return run
