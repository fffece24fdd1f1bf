"""The portable kernel of glimpses: windows around a place in each image."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.kernels.array_api import device_ints, dims, index_type, ints, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

_NOISES: Final = ("uniform", "gaussian", "zero")
_FAR: Final = 2.0**30


def glimpse_noise(sig: NodeSig) -> str:
    """What fills the margins of a node's glimpses: "uniform", "gaussian" or "zero".

    Raises:
        InvalidArgumentError: the attributes contradict one another.
    """
    given = sig.attrs["noise"]
    noise = given.decode() if isinstance(given, bytes) else str(given)
    if sig.attrs["uniform_noise"] and noise not in ("", "uniform"):
        raise invalid("The uniform_noise and noise could not be specified at the same time")
    if not noise:
        return "uniform" if sig.attrs["uniform_noise"] else "gaussian"
    if noise not in _NOISES:
        raise invalid(f"The noise could only be uniform, gaussian, or zero, got{noise}")
    return noise


def check_glimpses(images: Any, size: Any, offsets: Any) -> tuple[int, int]:
    """The height and width of glimpses.

    Raises:
        InvalidArgumentError: they are none, or there is no place for each image.
    """
    if len(images.shape) != 4:
        raise invalid(
            f"input must be 4-dimensional (batch_size, height, width, depth){dims(images.shape)}"
        )
    if np.shape(size) != (2,):
        raise invalid(f"input must be a vector of size 2 (height, width){dims(np.shape(size))}")
    height, width = ints(size)
    if min(height, width) < 0:
        raise invalid(f"Dimensions must be >= 0, got {[height, width]}")
    if len(offsets.shape) != 2:
        raise invalid(f"input must be a matrix{dims(offsets.shape)}")
    if offsets.shape[0] != images.shape[0]:
        raise invalid(f"first dimension should be batch{dims(offsets.shape)}")
    if offsets.shape[1] != 2:
        raise invalid(f"second dimension should be of size 2 (y,x){dims(offsets.shape)}")
    return height, width


def _still(sig: NodeSig) -> bool | str:
    """Whether margins are zeros: noise has no seed, so whoever draws it may as well fill it in."""
    noisy = sig.attrs["uniform_noise"] or sig.attrs["noise"] not in (b"zero", "zero")
    return not noisy or "margins of noise are drawn on the host"


@portable("ExtractGlimpse", when=_still, host_inputs=("size",))
def extract_glimpse(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Windows of each image, with zeros outside of it."""
    centered, normalized = sig.attrs["centered"], sig.attrs["normalized"]

    def places(offset: Any, length: int, size: int) -> tuple[Any, Any]:
        """Where the pixels of windows are along an axis, [batch, size], and which are inside."""
        at = offset * float(length if normalized else 1)
        if centered:
            at = at / 2 + length / 2
        at = at - size / 2
        at = xp.clip(xp.where(xp.isnan(at), xp.zeros_like(at), at), -_FAR, _FAR)
        # What is between pixels is cut off, towards zero.
        first = xp.expand_dims(xp.astype(at, index_type(xp)), axis=1)
        place = first + device_ints(xp, np.arange(size), offset)
        return xp.clip(place, 0, length - 1), (place >= 0) & (place < length)

    def run(images: Any, size: Any, offsets: Any) -> Any:
        height, width = check_glimpses(images, size, offsets)
        batch, rows, columns, depth = images.shape
        shape = (batch, height, width, depth)
        if math.prod(shape) == 0 or math.prod(images.shape) == 0:
            return xp.zeros(shape, dtype=xp.float32, device=getattr(images, "device", None))
        y, within_y = places(offsets[:, 0], rows, height)
        x, within_x = places(offsets[:, 1], columns, width)
        image = xp.reshape(device_ints(xp, np.arange(batch) * rows, images), (batch, 1))
        pixel = xp.expand_dims((image + y) * columns, axis=2) + xp.expand_dims(x, axis=1)
        flat = xp.reshape(images, (-1, depth))
        found = xp.reshape(xp.take(flat, xp.reshape(pixel, (-1,)), axis=0), shape)
        inside = xp.expand_dims(within_y, axis=2) & xp.expand_dims(within_x, axis=1)
        return xp.where(xp.expand_dims(inside, axis=3), found, xp.zeros_like(found))

    return run
