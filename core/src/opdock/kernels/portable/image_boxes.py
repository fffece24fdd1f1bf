"""The portable kernel of boxes drawn on images: each pixel has the color of its last box."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.dtypes import float32
from opdock.kernels.array_api import device_ints, dims, index_type, invalid
from opdock.kernels.cells import Array
from opdock.kernels.portable import portable
from opdock.kernels.portable.segment import fold
from opdock.kernels.select.signature import NodeSig

_FAR: Final = 1e9
"""Far beyond any image, but an integer."""
_COLORS: Final = np.array(
    [
        (1, 1, 0, 1),
        (0, 0, 1, 1),
        (1, 0, 0, 1),
        (0, 1, 0, 1),
        (0.5, 0, 0.5, 1),
        (0.5, 0.5, 0, 1),
        (0.5, 0, 0, 1),
        (0, 0, 0.5, 1),
        (0, 1, 1, 1),
        (1, 0, 1, 1),
    ],
    np.float32,
)
"""Yellow, blue, red, lime, purple, olive, maroon, navy, aqua, fuchsia."""


def check_drawing(images: Any, boxes: Any, colors: Any | None) -> None:
    """Raises InvalidArgumentError unless there are boxes of each image, and colors to draw with."""
    if len(images.shape) != 4:
        raise invalid("The rank of the images should be 4")
    if len(boxes.shape) != 3:
        raise invalid("The rank of the boxes tensor should be 3")
    if images.shape[0] != boxes.shape[0]:
        raise invalid("The batch sizes should be the same")
    if boxes.shape[2] != 4:
        raise invalid("boxes must have 4 columns")
    if images.shape[3] not in (1, 3, 4):
        raise invalid("Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)")
    if colors is None:
        return
    if len(colors.shape) != 2:
        raise invalid(f"colors must be a 2-D matrix{dims(colors.shape)}")
    if colors.shape[1] < images.shape[3]:
        raise invalid(
            f"colors must have equal or more channels than the image provided: {dims(colors.shape)}"
        )


def usual_colors(depth: int) -> Array:
    """The colors that boxes of images of so many channels get in turn, a row each."""
    return np.ones((1, 1), np.float32) if depth == 1 else _COLORS[:, :depth]


@portable("DrawBoundingBoxes", "DrawBoundingBoxesV2", computes_in=float32)
def draw_bounding_boxes(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Images with boxes on them; inverted boxes and those outside are left out."""

    def run(images: Any, boxes: Any, colors: Any | None = None) -> Any:
        check_drawing(images, boxes, colors)
        batch, height, width, depth = images.shape
        device = getattr(images, "device", None)
        if math.prod(images.shape) == 0 or not boxes.shape[1]:
            return xp.asarray(images, copy=True)
        if colors is None or 0 in tuple(colors.shape):
            palette = xp.asarray(usual_colors(depth), device=device)
        else:
            palette = colors[:, :depth]
        lines, number = _lines(xp, boxes, height, width)
        last, drawn = fold(xp, xp.maximum, number, lines, batch * height * width)
        last = xp.reshape(last, (-1,))
        color = xp.where(drawn, last, xp.zeros_like(last)) % palette.shape[0]
        ink = xp.astype(xp.take(palette, color, axis=0), images.dtype)
        flat = xp.reshape(images, (-1, depth))
        return xp.reshape(xp.where(xp.expand_dims(drawn, axis=1), ink, flat), images.shape)

    return run


def _lines(xp: Any, boxes: Any, height: int, width: int) -> tuple[Any, Any]:
    """The pixels of the four sides of all boxes, -1 for those outside, and the box of each [n, 1].

    A box has as many pixels as the image has on its edges, whatever its size is.
    """
    batch, count = boxes.shape[:2]
    edges = xp.asarray(
        np.array([height, width, height, width], np.float32) - 1,
        device=getattr(boxes, "device", None),
    )
    at = xp.astype(boxes, xp.float32) * edges
    at = xp.clip(xp.where(xp.isnan(at), xp.zeros_like(at), at), -_FAR, _FAR)
    at = xp.expand_dims(xp.astype(at, index_type(xp)), axis=3)
    top, left, bottom, right = (at[:, :, i, :] for i in range(4))
    seen = (top <= bottom) & (left <= right) & (bottom >= 0) & (right >= 0)
    rows, columns = (device_ints(xp, np.arange(n), boxes) for n in (height, width))
    image = device_ints(xp, np.arange(batch) * (height * width), boxes)
    image = xp.reshape(image, (batch, 1, 1))
    across = seen & (left <= columns) & (columns <= right)
    down = seen & (top <= rows) & (rows <= bottom)
    nowhere = xp.full_like(columns, -1)[:1]
    sides = []
    for row in (top, bottom):
        place = image + row * width + columns
        sides.append(xp.where(across & (row >= 0) & (row < height), place, nowhere))
    for column in (left, right):
        place = image + rows * width + column
        sides.append(xp.where(down & (column >= 0) & (column < width), place, nowhere))
    pixels = xp.concat(sides, axis=2)
    box = xp.reshape(device_ints(xp, np.arange(count), boxes), (1, count, 1))
    number = xp.broadcast_to(box, pixels.shape)
    return xp.reshape(pixels, (-1,)), xp.reshape(number, (-1, 1))
