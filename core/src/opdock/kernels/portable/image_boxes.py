"""Portable kernels of boxes: drawn on images, or chosen by score among those that overlap."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.dtypes import float16, float32
from opdock.kernels.array_api import copy, device_ints, dims, dtype_of, index_type, invalid
from opdock.kernels.cells import Array
from opdock.kernels.portable import portable
from opdock.kernels.portable.segment import fold
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.suppression import (
    THRESHOLDS,
    Choice,
    best_first,
    boxes_wanted,
    boxes_wanted_by_overlaps,
    boxes_wanted_of_classes,
    chosen,
    first_of,
    in_order,
    overlaps_by,
    sinking,
    staying,
)

# ---------------------------------------------------------------- drawing
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
    """Images with boxes on them, the last one on top; those inverted or outside are left out."""

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


# ---------------------------------------------------------------- choosing from one list
def _versions(*ops: str, thresholds: int) -> Callable[[Any], Any]:
    names = ("max_output_size", *THRESHOLDS[:thresholds])
    return portable(*ops, T={float16, float32}, host_inputs=names)


@portable("NonMaxSuppression", host_inputs=("max_output_size",))
@_versions("NonMaxSuppressionV2", thresholds=1)
@_versions("NonMaxSuppressionV3", "NonMaxSuppressionV4", thresholds=2)
@_versions("NonMaxSuppressionV5", thresholds=3)
def non_max_suppression(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Boxes by score, without those that overlap a better one."""
    pad, outputs = bool(sig.attrs.get("pad_to_max_output_size")), len(sig.out_dtypes)
    integers = dtype_of(xp, sig.out_dtypes[0])

    def padded(values: Any, count: int) -> Any:
        if not pad or values.shape[0] == count:
            return values
        rest = (count - values.shape[0],)
        nothing = xp.zeros(rest, dtype=values.dtype, device=getattr(values, "device", None))
        return xp.concat([values, nothing])

    def run(boxes: Any, scores: Any, max_output_size: Any, *thresholds: Any) -> Any:
        wanted = boxes_wanted(sig, boxes, scores, max_output_size, thresholds)
        if 0 in (scores.shape[0], wanted.most):
            found, lowered = device_ints(xp, [], scores), scores[:0]
        elif wanted.sigma > 0:
            found, lowered = sinking(xp, boxes, scores, wanted)
        else:
            found = chosen(xp, boxes, scores, wanted)
            lowered = xp.take(scores, found, axis=0)
        indices = padded(xp.astype(found, integers), wanted.most)
        if outputs == 1:
            return indices
        device = getattr(scores, "device", None)
        valid = xp.asarray(found.shape[0], dtype=integers, device=device)
        if outputs == 2:
            return indices, valid
        return indices, padded(copy(xp, lowered), wanted.most), valid

    return run


@portable(
    "NonMaxSuppressionWithOverlaps",
    host_inputs=("max_output_size", "overlap_threshold", "score_threshold"),
)
def non_max_suppression_with_overlaps(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Boxes by score, with overlaps that somebody else found."""

    def run(overlaps: Any, scores: Any, max_output_size: Any, limit: Any, least: Any) -> Any:
        wanted = boxes_wanted_by_overlaps(overlaps, scores, max_output_size, limit, least)
        if 0 in (scores.shape[0], wanted.most):
            return xp.astype(device_ints(xp, [], scores), xp.int32)
        order, counts = best_first(xp, xp.expand_dims(scores, axis=0), wanted.least)
        flat = xp.reshape(order, (-1,))
        # TF asks each candidate how much it overlaps those chosen: its own row.
        drops = xp.take(xp.take(overlaps, flat, axis=0), flat, axis=1) >= float(wanted.limit)
        drops = xp.matrix_transpose(drops)

        def hits(places: Any, begin: int, end: int) -> Any:
            rows = xp.take(drops, xp.reshape(places, (-1,)), axis=0)
            return xp.expand_dims(rows[:, begin:end], axis=0)

        stay = staying(xp, counts, hits, wanted.most)
        return xp.astype(first_of(xp, stay, order, wanted.most), xp.int32)

    return run


# ---------------------------------------------------------------- choosing from many lists
@portable(
    "CombinedNonMaxSuppression",
    host_inputs=("max_output_size_per_class", "max_total_size", "iou_threshold", "score_threshold"),
)
def combined_non_max_suppression(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """The best boxes of all classes, for each image."""
    pad, clip = sig.attrs["pad_per_class"], sig.attrs["clip_boxes"]

    def run(boxes: Any, scores: Any, *asked: Any) -> Any:
        wanted, size = boxes_wanted_of_classes(boxes, scores, *asked)
        batch, length, classes = scores.shape
        if pad:
            size = min(size, wanted.most * classes)
        device = getattr(scores, "device", None)

        def filled(rows: Any, shape: tuple[int, ...]) -> Any:
            rest = xp.zeros((batch, size - rows.shape[1], *shape), dtype=rows.dtype, device=device)
            return xp.concat([rows, rest], axis=1)

        if 0 in tuple(scores.shape):
            rows = xp.zeros((batch, 0), dtype=xp.float32, device=device)
            none = xp.zeros((batch, 0, 4), dtype=xp.float32, device=device)
            counts = xp.zeros((batch,), dtype=xp.int32, device=device)
            return filled(none, (4,)), filled(rows, ()), filled(rows, ()), counts
        values, numbers, sets = *_of_classes(xp, boxes, scores, wanted), boxes.shape[2]
        order = xp.argsort(-values, axis=1, stable=True)[:, : min(size, length * classes)]
        values, numbers = in_order(xp, values, order), in_order(xp, numbers, order)
        used = values > -math.inf
        owner = order // length
        at = numbers * sets + owner % sets
        found = in_order(xp, xp.reshape(boxes, (batch, length * sets, 4)), at)
        found = xp.where(xp.expand_dims(used, axis=2), found, xp.zeros_like(found))
        if clip:
            found = xp.clip(found, 0.0, 1.0)
        owner = xp.astype(owner, xp.float32)
        return (
            filled(found, (4,)),
            filled(xp.where(used, values, xp.zeros_like(values)), ()),
            filled(xp.where(used, owner, xp.zeros_like(owner)), ()),
            xp.sum(xp.astype(used, xp.int32), axis=1, dtype=xp.int32),
        )

    return run


def _of_classes(xp: Any, boxes: Any, scores: Any, wanted: Choice) -> tuple[Any, Any]:
    """The scores of boxes and their numbers, class after class, both [images, classes * boxes].

    What is not chosen has a score of minus infinity.
    """
    batch, length, classes = scores.shape
    by_class = xp.reshape(xp.permute_dims(scores, (0, 2, 1)), (batch * classes, length))
    own = xp.broadcast_to(xp.permute_dims(boxes, (0, 2, 1, 3)), (batch, classes, length, 4))
    order, counts = best_first(xp, by_class, wanted.least)
    ordered = in_order(xp, xp.reshape(own, (batch * classes, length, 4)), order)
    stay = staying(xp, counts, overlaps_by(xp, ordered, wanted.limit), wanted.most)
    rank = xp.cumulative_sum(xp.astype(stay, xp.int32), axis=1)
    values = in_order(xp, by_class, order)
    nothing = xp.full_like(values, -math.inf)
    values = xp.where(stay & (rank <= wanted.most), values, nothing)
    return xp.reshape(values, (batch, -1)), xp.reshape(order, (batch, -1))
