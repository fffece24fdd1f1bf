"""Oracle of convolutions over images that are resized or mirrored first."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference
from opdock.testing.reference.conv import conv
from opdock.testing.reference.image_resize import bilinear, resized
from opdock.testing.reference.padding import mirror_pad

Array = npt.NDArray[Any]


@reference("FusedPadConv2D")
def fused_pad_conv(attrs: Any, images: Array, paddings: Array, kernel: Array) -> Array:
    """Mirrors, then convolves."""
    wide = mirror_pad(attrs, np.asarray(images, np.float64), paddings)
    plain = {"data_format": "NHWC", "dilations": [1, 1, 1, 1], "explicit_paddings": []}
    return conv({**plain, **attrs}, wide, kernel)


@reference("FusedResizeAndPadConv2D")
def fused_resize_and_pad_conv(
    attrs: Any, images: Array, size: Array, paddings: Array, kernel: Array
) -> Array:
    """Resizes, mirrors, then convolves."""
    align = attrs.get("resize_align_corners", False)
    lines = bilinear({"align_corners": align, "half_pixel_centers": False})
    larger = resized(images, int(size[0]), int(size[1]), lines, lines)
    return fused_pad_conv(attrs, larger, paddings, kernel)
