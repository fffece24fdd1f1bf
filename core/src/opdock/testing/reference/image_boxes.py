"""Boxes, one by one: suppression over candidates, drawing by pixels, sampling by words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference
from opdock.testing.reference.random import Stream, stateful

Array = npt.NDArray[Any]
Attrs = dict[str, Any]


# ---------------------------------------------------------------- suppression
def overlap(a: Array, b: Array) -> float:
    """Intersection over union of two boxes, given by any two opposite corners."""
    (top_a, bottom_a), (left_a, right_a) = sorted((a[0], a[2])), sorted((a[1], a[3]))
    (top_b, bottom_b), (left_b, right_b) = sorted((b[0], b[2])), sorted((b[1], b[3]))
    area_a = (bottom_a - top_a) * (right_a - left_a)
    area_b = (bottom_b - top_b) * (right_b - left_b)
    if area_a <= 0 or area_b <= 0:
        return 0.0
    height = max(0.0, min(bottom_a, bottom_b) - max(top_a, top_b))
    width = max(0.0, min(right_a, right_b) - max(left_a, left_b))
    return float(height * width / (area_a + area_b - height * width))


def suppressed(
    scores: Array, count: int, between: Callable[[int, int], float], drops: Callable[[float], bool],
    least: float, sigma: float = 0.0,
) -> tuple[list[int], list[float]]:  # fmt: skip
    """The chosen boxes and their scores.

    Args:
        scores: of all boxes.
        count: how many to choose at most.
        between: how much two boxes overlap.
        drops: whether such an overlap with a chosen box drops another.
        least: the score that is not enough.
        sigma: the width of the Gaussian by which overlaps lower scores, if above zero.
    """
    left = {i: float(score) for i, score in enumerate(scores) if score > least}
    chosen: list[int] = []
    values: list[float] = []
    while left and len(chosen) < count:
        best = max(left, key=lambda i: (left[i], -i))
        chosen.append(best)
        values.append(left.pop(best))
        for i in list(left):
            common = between(i, best)
            if sigma > 0:
                left[i] *= math.exp(-0.5 * common * common / sigma)
            if drops(common) or left[i] <= least:
                del left[i]
    return chosen, values


def _padded(values: list[Any], count: int, pad: bool) -> Array:
    return np.array(values + [0] * (count - len(values) if pad else 0))


@reference("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3")
@reference("NonMaxSuppressionV4", "NonMaxSuppressionV5")
def non_max_suppression(
    attrs: Attrs, boxes: Array, scores: Array, max_output_size: Array, *thresholds: Array
) -> Any:
    """Indices; in later versions scores and how many of them count."""
    count = max(int(max_output_size), 0)
    given = [float(t) for t in thresholds]
    limit = given[0] if given else attrs["iou_threshold"]
    least = given[1] if len(given) > 1 else -1e30
    sigma = given[2] if len(given) > 2 else 0.0
    chosen, values = suppressed(
        scores, count, lambda i, j: overlap(boxes[i], boxes[j]), lambda o: o >= limit, least, sigma
    )
    pad = bool(attrs.get("pad_to_max_output_size"))
    indices, valid = _padded(chosen, count, pad), np.array(len(chosen))
    if len(given) < 2 or "pad_to_max_output_size" not in attrs:
        return indices
    if len(given) == 2:
        return indices, valid
    return indices, _padded(values, count, pad), valid


@reference("NonMaxSuppressionWithOverlaps")
def with_overlaps(
    attrs: Attrs, overlaps: Array, scores: Array, max_output_size: Array, limit: Array, least: Array
) -> Array:
    """Indices, by overlaps that are given."""
    chosen, _ = suppressed(
        scores, int(max_output_size), lambda i, j: float(overlaps[i, j]),
        lambda o: o >= float(limit), float(least),
    )  # fmt: skip
    return np.array(chosen)


@reference("CombinedNonMaxSuppression")
def combined(
    attrs: Attrs, boxes: Array, scores: Array, each: Array, total: Array, limit: Array, least: Array
) -> Any:
    """The best boxes of all classes of each image."""
    classes = scores.shape[2]
    size = int(total)
    if attrs["pad_per_class"]:
        size = min(size, int(each) * classes)
    out = [np.zeros((len(boxes), size, 4))] + [np.zeros((len(boxes), size)) for _ in range(2)]
    counts = np.zeros(len(boxes))
    for n in range(len(boxes)):
        found = []
        for c in range(classes):
            own = boxes[n, :, c if boxes.shape[2] > 1 else 0]
            chosen, values = suppressed(
                scores[n, :, c], int(each),
                lambda i, j, own=own: overlap(own[i], own[j]),  # type: ignore[misc]
                lambda o: o > float(limit), float(least),
            )  # fmt: skip
            found += [(v, c, own[i]) for i, v in zip(chosen, values, strict=True)]
        found.sort(key=lambda entry: -entry[0])
        for k, (value, c, box) in enumerate(found[:size]):
            out[0][n, k] = np.clip(box, 0, 1) if attrs["clip_boxes"] else box
            out[1][n, k], out[2][n, k] = value, c
        counts[n] = min(len(found), size)
    return (*out, counts)


# ---------------------------------------------------------------- drawing
_COLORS = (
    (1, 1, 0, 1), (0, 0, 1, 1), (1, 0, 0, 1), (0, 1, 0, 1), (0.5, 0, 0.5, 1),
    (0.5, 0.5, 0, 1), (0.5, 0, 0, 1), (0, 0, 0.5, 1), (0, 1, 1, 1), (1, 0, 1, 1),
)  # fmt: skip


@reference("DrawBoundingBoxes", "DrawBoundingBoxesV2")
def draw_bounding_boxes(
    attrs: Attrs, images: Array, boxes: Array, colors: Array | None = None
) -> Array:
    """Every pixel that lies on an edge of a box, the last box on top."""
    out = np.array(images, np.float64)
    _, height, width, depth = images.shape
    palette = [list(c) for c in _COLORS] if colors is None or not colors.size else colors.tolist()
    if depth == 1 and (colors is None or not colors.size):
        palette = [[1.0]]
    for n, k in np.ndindex(*boxes.shape[:2]):
        top, left, bottom, right = (
            int(np.float32(v) * np.float32(size - 1))
            for v, size in zip(boxes[n, k], (height, width) * 2, strict=True)
        )
        if top > bottom or left > right:
            continue
        for i, j in np.ndindex(height, width):
            within = top <= i <= bottom and left <= j <= right
            if within and (i in (top, bottom) or j in (left, right)):
                out[n, i, j] = palette[k % len(palette)][:depth]
    return out


# ---------------------------------------------------------------- sampling
class _Words:
    def __init__(self, stream: Stream) -> None:
        self.words: Iterator[int] = stream.words()

    def unit(self) -> np.float32:
        return np.float32((next(self.words) & 0x7FFFFF) / 2**23)

    def below(self, n: int) -> int:
        if n & (n - 1) == 0:
            return next(self.words) & (n - 1)
        while True:
            word = next(self.words)
            if word >= 0xFFFFFFFF % n + 1:
                return word % n


def _rounded(value: np.float32) -> int:
    return int(np.rint(value))


def _proposal(
    height: int, width: int, areas: list[np.float32], ratio: np.float32, words: _Words
) -> tuple[int, int, int, int] | None:
    """y, x, height and width of a part."""
    least, most = (a * np.float32(width) * np.float32(height) for a in areas)
    h, largest = _rounded(np.sqrt(least / ratio)), _rounded(np.sqrt(most / ratio))
    if _rounded(np.float32(largest) * ratio) > width:
        largest = int((width + 0.5 - 1e-7) / float(ratio))
    largest = min(largest, height)
    h = min(h, largest)
    if h < largest:
        h += words.below(largest - h + 1)
    w = _rounded(np.float32(h) * ratio)
    for step, is_wrong in ((1, h * w < least), (-1, h * w > most)):
        if is_wrong:
            h += step
            w = _rounded(np.float32(h) * ratio)
    if not least <= h * w <= most or not 0 < w <= width or not 0 < h <= height:
        return None
    y = words.below(height - h) if h < height else 0
    x = words.below(width - w) if w < width else 0
    return y, x, h, w


@reference("SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2")
def sample_distorted_bounding_box(
    attrs: Attrs, image_size: Array, boxes: Array, least: Array | None = None
) -> Any:
    """The first part of those tried that holds enough of a box."""
    height, width = int(image_size[0]), int(image_size[1])
    needed = float(attrs["min_object_covered"] if least is None else least)
    areas = [np.float32(a) for a in attrs["area_range"]]
    ratios = [np.float32(r) for r in attrs["aspect_ratio_range"]]
    objects = [
        [int(np.float32(v) * np.float32(n)) for v, n in zip(box, (height, width) * 2, strict=True)]
        for box in boxes.reshape(-1, 4)
    ] or [[0, 0, height, width]]
    words, part = _Words(stateful(attrs)), (0, 0, height, width)
    for _ in range(attrs["max_attempts"]):
        ratio = words.unit() * (ratios[1] - ratios[0]) + ratios[0]
        found = _proposal(height, width, areas, ratio, words)
        if found is not None and any(_covers(found, box, needed) for box in objects):
            part = found
            break
    y, x, h, w = part
    edges = np.array([y / height, x / width, (y + h) / height, (x + w) / width])
    return np.array([y, x, 0]), np.array([h, w, -1]), edges.reshape(1, 1, 4)


def _covers(part: tuple[int, int, int, int], box: list[int], needed: float) -> bool:
    y, x, h, w = part
    area = (box[2] - box[0]) * (box[3] - box[1])
    if area < 1:
        return False
    rows = min(y + h, box[2]) - max(y, box[0])
    columns = min(x + w, box[3]) - max(x, box[1])
    common = max(rows, 0) * max(columns, 0)
    return bool(np.float32(common) / np.float32(area) >= np.float32(needed))
