"""Sliding windows over images and volumes: as kernels' arguments, and memory layouts.

Kernels see three spatial dimensions, of which an image lacks the first, and channels last.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.plugin import windows
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import contiguous

__all__ = ["VOLUME", "channels_first", "channels_last", "numbers", "volume"]

VOLUME = """
#define VOLUME int id, int ih, int iw, int kd, int kh, int kw, int sd, int sh, int sw, \\
               int dd, int dh, int dw, int pd, int ph, int pw, int od, int oh, int ow
"""
"""The parameters that `volume` fills."""


def numbers(where: windows.Window) -> tuple[np.int32, ...]:
    """Sizes, window, strides, dilations, padding before and positions as kernels take them."""
    return tuple(np.int32(v) for group in _groups(where) for v in group)


def volume(where: windows.Window) -> tuple[np.int32, ...]:
    """The arguments of `VOLUME`: an image is a volume of one layer."""
    missing, ones = 3 - len(where.size), (1, 1, 1, 1, 0, 1)
    return tuple(
        np.int32(v)
        for group, one in zip(_groups(where), ones, strict=True)
        for v in (*[one] * missing, *group)
    )


def _groups(where: windows.Window) -> tuple[tuple[int, ...], ...]:
    before = tuple(first for first, _ in where.pads)
    return where.size, where.window, where.strides, where.dilations, before, where.out


def channels_last(device: Any, x: Array, first: bool) -> Array:
    """`x` with its channels last."""
    return contiguous(device, x, (0, *range(2, x.ndim), 1)) if first else x


def channels_first(device: Any, x: Array, first: bool) -> Array:
    """`x`, whose channels are last, with its channels where the format wants them."""
    return contiguous(device, x, (0, x.ndim - 1, *range(1, x.ndim - 1))) if first else x
