"""CPU kernels of boxes: choosing among overlapping ones, drawing, sampling."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, RandomStream, checks, philox, random_stream
from opdock_cpu.drawing import draw
from opdock_cpu.jit.looped import Looped, single
from opdock_cpu.ordering import descending
from opdock_cpu.suppression import chosen, overlaps, suppressed

__all__ = ["table"]

Array = np.ndarray[Any, Any]
table = KernelTable()


# ---------------------------------------------------------------- choosing
def _padded(values: Any, count: int, dtype: Any, pad: bool) -> Array:
    found = np.asarray(values, dtype)
    return np.pad(found, (0, count - found.size)) if pad else found


@table.binder("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3")
@table.binder("NonMaxSuppressionV4", "NonMaxSuppressionV5")
def non_max_suppression(sig: NodeSig) -> Callable[..., Any]:
    """Boxes by score, without those that overlap a better one."""
    pad, outputs = bool(sig.attrs.get("pad_to_max_output_size")), len(sig.out_dtypes)

    def run(boxes: Array, scores: Array, max_output_size: Array, *thresholds: Array) -> Any:
        count, limit, least, sigma = checks.boxes_wanted(
            sig, boxes, scores, max_output_size, thresholds
        )
        if sigma == 0 and scores.dtype == boxes.dtype == np.float32:
            numbers, (valid,) = suppressed(boxes[None], scores[None], count, limit, least)
            found = numbers[0, :valid].tolist()
            lowered = scores[found]
        else:
            found, lowered = chosen(scores, count, overlaps(boxes), limit, least, sigma)
        indices = _padded(found, count, np.int32, pad)
        if outputs == 1:
            return indices
        valid = np.asarray(len(found), np.int32)
        if outputs == 2:
            return indices, valid
        return indices, _padded(lowered, count, scores.dtype, pad), valid

    return run


@table.binder("NonMaxSuppressionWithOverlaps")
def non_max_suppression_with_overlaps(sig: NodeSig) -> Callable[..., Array]:
    """Boxes by score, with overlaps that somebody else found."""

    def run(
        overlaps: Array, scores: Array, max_output_size: Array, limit: Array, least: Array
    ) -> Array:
        wanted = checks.boxes_wanted_by_overlaps(overlaps, scores, max_output_size, limit, least)
        # TF asks each candidate how much it overlaps those chosen: its own row.
        found, _ = chosen(
            scores, wanted.most, lambda i: overlaps[:, i], wanted.limit, wanted.least, 0
        )
        return np.asarray(found, np.int32)

    return run


# ---------------------------------------------------------------- choosing in batches
@table.binder("CombinedNonMaxSuppression")
def combined_non_max_suppression(sig: NodeSig) -> Callable[..., Any]:
    """The best boxes of all classes, for each image."""
    pad, clip = sig.attrs["pad_per_class"], sig.attrs["clip_boxes"]

    def run(
        boxes: Array, scores: Array, each: Array, total: Array, limit: Array, least: Array
    ) -> Any:
        wanted, size = checks.boxes_wanted_of_classes(boxes, scores, each, total, limit, least)
        batch, classes = boxes.shape[0], scores.shape[2]
        if pad:
            size = min(size, wanted.most * classes)
        out = (
            np.zeros((batch, size, 4), np.float32),
            np.zeros((batch, size), np.float32),
            np.zeros((batch, size), np.float32),
            np.zeros(batch, np.int32),
        )
        if not scores.size:
            return out
        order, values = _best(boxes, scores, wanted.most, wanted.limit, wanted.least)
        places, values = order[:, :size], values[:, :size]
        used = values > -np.inf
        length, sets = boxes.shape[1:3]
        at = places // classes * sets + places % classes % sets
        found = np.take_along_axis(boxes.reshape(batch, length * sets, 4), at[:, :, None], axis=1)
        count = places.shape[1]
        np.copyto(out[0][:, :count], found, where=used[:, :, None])
        np.copyto(out[1][:, :count], values, where=used)
        np.copyto(out[2][:, :count], places % classes, where=used, casting="unsafe")
        if clip:
            np.clip(out[0], 0, 1, out[0])
        out[3][:] = used.sum(axis=1)
        return out

    return run


def _best(boxes: Array, scores: Array, count: int, limit: Any, least: Any) -> tuple[Array, Array]:
    """The boxes that are chosen of all classes of each image, the best first.

    Returns:
        Numbers of scores, in the order of their memory, and these scores, both
        [images, classes * at most count]; minus infinity is the score of what is not chosen.
    """
    batch, length, classes = scores.shape
    by_class = np.ascontiguousarray(np.moveaxis(scores, 2, 1)).reshape(-1, length)
    own = np.broadcast_to(np.moveaxis(boxes, 2, 1), (batch, classes, length, 4))
    numbers, found = suppressed(own.reshape(-1, length, 4), by_class, count, limit, least)
    values = np.take_along_axis(by_class, numbers, axis=1)
    values[np.arange(numbers.shape[1]) >= found[:, None]] = -np.inf
    numbers = numbers * classes + np.tile(np.arange(classes), batch)[:, None]
    numbers, values = numbers.reshape(batch, -1), values.reshape(batch, -1)
    order = descending(values)
    return np.take_along_axis(numbers, order, axis=1), np.take_along_axis(values, order, axis=1)


# ---------------------------------------------------------------- drawing
@table.binder("DrawBoundingBoxes", "DrawBoundingBoxesV2")
def draw_bounding_boxes(sig: NodeSig) -> Callable[..., Array]:
    """Images with boxes on them; inverted boxes and those outside are left out."""

    def run(images: Array, boxes: Array, colors: Array | None = None) -> Array:
        checks.check_drawing(images, boxes, colors)
        depth = images.shape[3]
        palette = checks.usual_colors(depth)
        if colors is not None and colors.size:
            palette = colors[:, :depth]
        out = np.array(images, order="C")
        edges = np.array(images.shape[1:3] * 2, np.float32) - 1
        # Far beyond any image, but integers.
        places = np.clip(np.nan_to_num(boxes.astype(np.float32) * edges), -1e9, 1e9)
        draw(out, places.astype(np.int64), palette.astype(images.dtype))
        return out

    return run


# ---------------------------------------------------------------- sampling
Rectangle = tuple[int, int, int, int]
"""x1, y1, x2, y2 in pixels."""


class _Draws:
    """Numbers of a stretch of a random stream, one word at a time."""

    def __init__(self, stream: RandomStream, blocks: int) -> None:
        self._words = self._all(stream.reserve(blocks))

    @staticmethod
    def _all(place: philox.Place) -> Iterator[int]:
        for i in itertools.count():
            yield from (int(word) for word in philox.blocks(place, i, i))

    def unit(self) -> np.float32:
        """Uniform in [0, 1)."""
        return np.float32((next(self._words) & 0x7FFFFF) * 2.0**-23)

    def below(self, n: int) -> int:
        """Uniform in [0, n): numbers that would make it uneven are drawn again."""
        if n & (n - 1) == 0:
            return next(self._words) & (n - 1)
        uneven = 0xFFFFFFFF % n + 1
        return next(word for word in self._words if word >= uneven) % n


def _area(box: Rectangle) -> int:
    return (box[2] - box[0]) * (box[3] - box[1])


def _cover(
    begin: int, end: int, found: Array, objects: Array, left: int, top: int, right: int,
    bottom: int, least: float,
) -> None:  # fmt: skip
    """How many objects there are of which enough is in a rectangle, at most one."""
    found[0] = 0
    for i in range(begin, end):
        x1, y1 = max(left, objects[4 * i]), max(top, objects[4 * i + 1])
        x2, y2 = min(right, objects[4 * i + 2]), min(bottom, objects[4 * i + 3])
        common = 0
        if x1 <= x2 and y1 <= y2:
            common = (x2 - x1) * (y2 - y1)
        width, height = objects[4 * i + 2] - objects[4 * i], objects[4 * i + 3] - objects[4 * i + 1]
        if single(common) / single(width * height) >= single(least):
            found[0] = 1
            break


_COVER: Final = Looped(_cover)


def _covers(crop: Rectangle, least: np.float32, objects: Array) -> bool:
    """Whether enough of one object is in the crop."""
    if _area(crop) < 1:
        return False
    found = np.zeros(1, np.int64)
    if objects.size and _COVER(
        len(objects), objects.size, found, objects, *crop, float(least), most=1
    ):
        return bool(found[0])
    x1, y1 = (np.maximum(crop[i], objects[:, i]) for i in (0, 1))
    x2, y2 = (np.minimum(crop[i], objects[:, i]) for i in (2, 3))
    common = np.where((x1 > x2) | (y1 > y2), 0, (x2 - x1) * (y2 - y1)).astype(np.float32)
    return bool((common / _areas(objects).astype(np.float32) >= least).any())


def _areas(boxes: Array) -> Array:
    area: Array = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    return area


def _times(n: int, ratio: np.float32) -> int:
    """The nearest integer of a product, rounded as TF does in single precision."""
    return int(np.rint(np.float32(n) * ratio))


def _crop(
    width: int, height: int, areas: tuple[np.float32, np.float32], ratio: np.float32, draws: _Draws
) -> Rectangle | None:
    """A random rectangle of a ratio of width to height; None where none has such an area."""
    if width <= 0 or height <= 0 or areas[0] > areas[1]:
        return None
    least, most = (a * np.float32(width) * np.float32(height) for a in areas)
    tall = int(np.rint(np.sqrt(least / ratio)))
    tallest = int(np.rint(np.sqrt(most / ratio)))
    if _times(tallest, ratio) > width:
        tallest = int((width + 0.5 - float(np.float32(1e-7))) / float(ratio))
    tallest = min(tallest, height)
    tall = min(tall, tallest)
    if tall < tallest:
        tall += draws.below(tallest - tall + 1)
    wide = _times(tall, ratio)
    # Rounding may have left the range of areas: one line more or less may be in it.
    if np.float32(wide * tall) < least:
        tall += 1
        wide = _times(tall, ratio)
    if np.float32(wide * tall) > most:
        tall -= 1
        wide = _times(tall, ratio)
    area = np.float32(wide * tall)
    if not (least <= area <= most and 0 < wide <= width and 0 < tall <= height):
        return None
    y = draws.below(height - tall) if tall < height else 0
    x = draws.below(width - wide) if wide < width else 0
    return (x, y, x + wide, y + tall)


def _range(sig: NodeSig, name: str, title: str) -> tuple[np.float32, np.float32]:
    """A pair of positive attributes; InvalidArgumentError when it is none."""
    values = [np.float32(v) for v in sig.attrs[name]]
    if len(values) != 2:
        raise checks.invalid(f"{title} field must specify 2 dimensions")
    if not (values[0] > 0 and values[1] > 0):
        raise checks.invalid(f"{title} must be non-negative: [{values[0]:g}, {values[1]:g}]")
    return values[0], values[1]


def _pixels(size: Array) -> tuple[int, int]:
    """Height and width; InvalidArgumentError when they are no size."""
    checks.check_vector_of("image_size", size)
    if size.shape[0] != 3:
        raise checks.invalid(f"image_size must contain 3 elements{checks.dims(size.shape)}")
    height, width, _ = checks.ints(size)
    for name, value in (("height", height), ("width", width)):
        if not 0 <= value < 2**31 - 1:
            raise checks.invalid(f"image {name} cannot be >= int32 max")
    return height, width


def _corners(
    begin: int, end: int, out: Array, counts: Array, boxes: Array, count: int, height: int,
    width: int,
) -> None:  # fmt: skip
    """The boxes that have a pixel, how many there are, and how many are not of the image."""
    for turn in range(begin, end):
        have, wrong = 0, 0
        for i in range(count):
            y1, x1, y2, x2 = boxes[4 * i], boxes[4 * i + 1], boxes[4 * i + 2], boxes[4 * i + 3]
            inside = (y1 >= 0) & (x1 >= 0) & (y2 >= 0) & (x2 >= 0)
            inside = inside & (y1 <= 1) & (x1 <= 1) & (y2 <= 1) & (x2 <= 1)
            if inside:
                out[4 * have] = int(x1 * single(width))
                out[4 * have + 1] = int(y1 * single(height))
                out[4 * have + 2] = int(x2 * single(width))
                out[4 * have + 3] = int(y2 * single(height))
                wide, tall = (
                    out[4 * have + 2] - out[4 * have],
                    out[4 * have + 3] - out[4 * have + 1],
                )
                if wide * tall >= 1:
                    have += 1
            else:
                wrong += 1
        counts[turn] = have
        counts[turn + 1] = wrong


_CORNERS: Final = Looped(_corners)


def _objects(boxes: Array, height: int, width: int, use_image: bool) -> Array:
    """The boxes that have a pixel, each a row as a `Rectangle` is one.

    Raises:
        InvalidArgumentError: they are none, or not of the image.
    """
    if boxes.ndim != 3:
        raise checks.invalid(
            "input boxes must be 3-dimensional [batch, num_boxes, coords]: "
            f"{checks.dims(boxes.shape)}"
        )
    if boxes.shape[-1] != 4:
        raise checks.invalid(
            f"bounding boxes must have shape [4] or [*, 4], got {checks.dims(boxes.shape)}"
        )
    if boxes.size == 0:
        if not use_image:
            raise checks.invalid(
                "No bounding boxes provided as input. One must enable "
                "use_image_if_no_bounding_boxes if you wish to not provide any bounding boxes."
            )
        return np.array([(0, 0, width, height)])
    flat = np.ascontiguousarray(boxes).reshape(-1, 4)
    corners, counts = np.empty(flat.shape, np.int64), np.empty(2, np.int64)
    if _CORNERS(1, flat.size, corners, counts, flat, len(flat), height, width) and not counts[1]:
        return corners[: int(counts[0])]
    bad = ~((flat >= 0) & (flat <= 1))
    if bad.any():
        raise checks.invalid(
            f"All bounding box coordinates must be in [0.0, 1.0]: {flat[bad][0]:g}"
        )
    scale = np.array([height, width, height, width], np.float32)
    found = (flat.astype(np.float32) * scale).astype(np.int64)[:, [1, 0, 3, 2]]
    return found[_areas(found) >= 1]


@table.binder("SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2")
def sample_distorted_bounding_box(sig: NodeSig) -> Callable[..., Any]:
    """A random part of the image that covers enough of an object, or else all of it."""
    stream = random_stream(sig)
    attempts = int(sig.attrs["max_attempts"])

    def run(image_size: Array, boxes: Array, least: Any = None) -> Any:
        ratios = _range(sig, "aspect_ratio_range", "Aspect ratio range")
        areas = _range(sig, "area_range", "Area range")
        if max(areas) > 1:
            raise checks.invalid(
                f"Area range must be less then or equal to 1.0: [{areas[0]:g}, {areas[1]:g}]"
            )
        if attempts <= 0:
            raise checks.invalid(f"Max attempts must be non-negative: {attempts}")
        height, width = _pixels(image_size)
        given = sig.attrs["min_object_covered"] if least is None else least
        if np.ndim(given):
            raise checks.invalid(
                f"min_object_covered must be 0-D, got shape {checks.dims(np.shape(given))}"
            )
        covered = np.float32(given)
        if not covered >= 0:
            raise checks.invalid(f"Min object covered must be non-negative: {covered:g}")
        use_image = sig.attrs["use_image_if_no_bounding_boxes"]
        objects = _objects(boxes, height, width, use_image)
        draws = _Draws(stream, attempts)
        x1, y1, x2, y2 = 0, 0, width, height
        for _ in range(attempts):
            ratio = draws.unit() * (ratios[1] - ratios[0]) + ratios[0]
            found = _crop(width, height, areas, ratio, draws)
            if found is not None and _covers(found, covered, objects):
                x1, y1, x2, y2 = found
                break
        element = image_size.dtype
        with np.errstate(divide="ignore", invalid="ignore"):
            edges = np.array([y1, x1, y2, x2], np.float32)
            box = edges / np.array([height, width, height, width], np.float32)
        return (
            np.array([y1, x1, 0], element),
            np.array([y2 - y1, x2 - x1, -1]).astype(element),
            box.reshape(1, 1, 4),
        )

    return run
