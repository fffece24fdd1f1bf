"""Sliding windows over channels-last NumPy arrays: padding, strided views."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.plugin import windows

__all__ = ["channels_first", "channels_last", "counts", "pad", "positions", "unpad"]

Array = npt.NDArray[Any]


def positions(padded: Array, where: windows.Window) -> Array:
    """A view [batch, *out, *window, channels] of a padded channels-last array."""
    batch, *steps, channel = padded.strides
    walk = [t * s for t, s in zip(steps, where.strides, strict=True)]
    inside = [t * d for t, d in zip(steps, where.dilations, strict=True)]
    return np.lib.stride_tricks.as_strided(
        padded,
        (padded.shape[0], *where.out, *where.window, padded.shape[-1]),
        (batch, *walk, *inside, channel),
        writeable=False,
    )


def counts(where: windows.Window, dtype: Any = np.int64) -> Array:
    """How many elements of each window are input, to divide channels-last arrays by."""
    total = functools.reduce(np.multiply.outer, (np.asarray(n, dtype) for n in where.inside()))
    return np.asarray(total)[None, ..., None]


def pad(x: Array, where: windows.Window, value: Any = 0) -> Array:
    """A channels-last array with its spatial dimensions padded; `x` itself when nothing is."""
    if not where.is_padded:
        return x
    out = np.empty((x.shape[0], *where.padded, x.shape[-1]), x.dtype)
    out[(slice(None), *where.inner)] = x
    # Only the frame is filled: most of the array is about to be input.
    for axis, (n, (before, after)) in enumerate(zip(where.size, where.pads, strict=True), start=1):
        lead = (slice(None),) * axis
        if before:
            out[(*lead, slice(0, before))] = value
        if after:
            out[(*lead, slice(before + n, None))] = value
    return out


def unpad(padded: Array, where: windows.Window) -> Array:
    """The part of a padded array that is input, as a contiguous array."""
    if not where.is_padded:
        return padded
    return np.ascontiguousarray(padded[(slice(None), *where.inner)])


def channels_last(x: Array, first: bool) -> Array:
    """A view of `x` with its channels last."""
    return np.moveaxis(x, 1, -1) if first else x


def channels_first(x: Array, first: bool) -> Array:
    """`x`, contiguous, with its channels where the data format wants them."""
    return np.ascontiguousarray(np.moveaxis(x, -1, 1) if first else x)
