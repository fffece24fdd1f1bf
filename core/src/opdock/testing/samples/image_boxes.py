"""Samples of boxes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_INT = np.int32
_CLUSTERS = (
    (0, 0, 1, 1), (0, 0.1, 1, 1.1), (0, -0.1, 1, 0.9), (0, 10, 1, 11), (0, 10.1, 1, 11.1),
    (1, 101, 0, 100), (0, 100.4, 1, 101.3), (0.2, 0.2, 0.2, 0.7),
)  # fmt: skip
_SCORES = (0.9, 0.75, 0.6, 0.95, 0.5, 0.3, 0.25, -0.5)


def _count(n: int) -> np.ndarray[Any, Any]:
    return np.array(n, _INT)


def _cases(dtype: np.dtype[Any]) -> Iterable[tuple[list[np.ndarray[Any, Any]], int, float, str]]:
    boxes, scores = np.array(_CLUSTERS).astype(dtype), np.array(_SCORES).astype(dtype)
    yield [boxes, scores], 3, 0.5, "three"
    yield [boxes, scores], 30, 0.5, "all"
    yield [boxes, scores], 8, 0.97, "lenient"
    yield [boxes, scores], 0, 0.5, "none"
    yield [boxes[:1], scores[:1]], 3, 0.5, "one"
    yield [boxes[:0], scores[:0]], 3, 0.5, "empty"


@samples("NonMaxSuppression")
def plain(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Three clusters, corners in any order, a box without an area."""
    for inputs, count, limit, tag in _cases(np.dtype(np.float32)):
        yield Sample([*inputs, _count(count)], {"iou_threshold": limit}, tag)


@samples("NonMaxSuppressionV2")
def with_threshold(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same with a threshold as a tensor."""
    for inputs, count, limit, tag in _cases(dtype):
        yield Sample([*inputs, _count(count), np.array(limit, dtype)], {}, tag)


@samples("NonMaxSuppressionV3")
def with_thresholds(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same, and scores that are not enough."""
    for inputs, count, limit, tag in _cases(dtype):
        for least in (-np.inf, 0.4):
            thresholds = [np.array(v, dtype) for v in (limit, least)]
            yield Sample([*inputs, _count(count), *thresholds], {}, f"{tag}-above{least}")


@samples("NonMaxSuppressionV4")
def padded(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same, padded or not."""
    for inputs, count, limit, tag in _cases(dtype):
        for pad in (False, True):
            thresholds = [np.array(v, dtype) for v in (limit, 0.4)]
            yield Sample(
                [*inputs, _count(count), *thresholds],
                {"pad_to_max_output_size": pad},
                f"{tag}-{'padded' if pad else 'plain'}",
            )


@samples("NonMaxSuppressionV5")
def softened(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Scores as they are, and lowered by overlaps."""
    for inputs, count, limit, tag in _cases(dtype):
        for sigma in (0.0, 0.5):
            for pad in (False, True):
                thresholds = [np.array(v, dtype) for v in (limit, 0.2, sigma)]
                yield Sample(
                    [*inputs, _count(count), *thresholds],
                    {"pad_to_max_output_size": pad},
                    f"{tag}-sigma{sigma}-{'padded' if pad else 'plain'}",
                    grad=False,
                )


@samples("NonMaxSuppressionWithOverlaps")
def by_overlaps(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Overlaps that are not symmetric."""
    overlaps = np.array(
        [[1, 0.2, 0.7, 0.1], [0.6, 1, 0.1, 0.4], [0.3, 0.8, 1, 0.2], [0.1, 0.1, 0.1, 1]], np.float32
    )
    scores = np.array([0.4, 0.9, 0.6, 0.8], np.float32)
    cases = ((4, 0.5, 0.0, "all"), (2, 0.5, 0.0, "two"), (4, 0.3, 0.5, "low"))
    for count, limit, least, tag in cases:
        thresholds = [np.array(v, np.float32) for v in (limit, least)]
        yield Sample([overlaps, scores, _count(count), *thresholds], {}, tag)


@samples("CombinedNonMaxSuppression")
def combined(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Boxes for all classes and for each; results cut off, clipped and padded."""
    boxes = np.array(_CLUSTERS[:6], np.float32)[None, :, None]
    own = np.concatenate([boxes, boxes * 0.7, boxes + 0.05], axis=2)
    scores = np.linspace(0.05, 0.95, 18, dtype=np.float32)[::-1].reshape(1, 6, 3)
    scores = np.concatenate([scores, scores[:, ::-1]])
    for given, tag in ((boxes, "shared"), (own, "own")):
        given = np.concatenate([given, given])
        for each, total, attrs in (
            (3, 5, {}),
            (2, 20, {"pad_per_class": True}),
            (10, 20, {"clip_boxes": False}),
        ):
            thresholds = [np.array(v, np.float32) for v in (0.5, 0.1)]
            yield Sample(
                [given, scores, _count(each), _count(total), *thresholds],
                attrs,
                f"{tag}-{each}-{total}",
                grad=False,
            )


# ---------------------------------------------------------------- drawing
_DRAWN = (
    (0.1, 0.2, 0.7, 0.8), (0, 0, 1, 1), (-0.3, 0.4, 0.5, 1.6), (0.6, 0.6, 0.2, 0.9),
    (1.4, 0, 1.8, 1), (0.5, 0.5, 0.5, 0.5),
)  # fmt: skip


@samples("DrawBoundingBoxes")
def drawn(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Inside, at the edge, beyond it, upside down, outside; more boxes than colours."""
    boxes = np.array(_DRAWN * 2, np.float32)
    for depth in (1, 3, 4):
        yield Sample(
            [rng.uniform((2, 9, 7, depth), 0, 1), np.stack([boxes, boxes[::-1]])],
            {},
            f"depth{depth}",
        )
    yield Sample([rng.uniform((1, 5, 5, 3), 0, 1), np.zeros((1, 0, 4), np.float32)], {}, "none")


@samples("DrawBoundingBoxesV2")
def colored(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Colours of the caller's, in turn."""
    boxes = np.array([_DRAWN], np.float32)
    for depth, count in ((1, 2), (3, 1), (4, 3), (3, 0)):
        colors = np.linspace(0, 1, count * depth, dtype=np.float32).reshape(count, depth)
        inputs = [rng.uniform((1, 8, 6, depth), 0, 1), boxes, colors]
        yield Sample(inputs, {}, f"depth{depth}-{count}", grad=False)


# ---------------------------------------------------------------- sampling
_PARTS: tuple[tuple[int, int, dict[str, Any]], ...] = (
    (60, 100, {}),
    (100, 60, {"area_range": [0.3, 0.7], "aspect_ratio_range": [0.5, 2.0]}),
    (30, 30, {"max_attempts": 1, "area_range": [0.9, 0.91]}),
    (7, 5, {"aspect_ratio_range": [1.0, 1.0], "area_range": [1.0, 1.0]}),
)
_OBJECTS = ((0.2, 0.1, 0.8, 0.9), (0.0, 0.5, 0.4, 1.0))


@samples("SampleDistortedBoundingBox")
def sampled(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Wide, tall and small images; one that no part fits; ranges of one value."""
    objects = np.array([_OBJECTS], np.float32)
    for i, (height, width, attrs) in enumerate(_PARTS):
        seeds = {"seed": 11 + i, "seed2": 3 * i}
        size = np.array([height, width, 3], dtype)
        yield Sample([size, objects], {**seeds, **attrs}, f"{height}x{width}")
    attrs = {"seed": 5, "use_image_if_no_bounding_boxes": True}
    yield Sample([np.array([50, 40, 3], dtype), objects[:, :0]], attrs, "no-boxes")


@samples("SampleDistortedBoundingBoxV2")
def sampled_by_share(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same, with the share of an object as a tensor: none, some, all."""
    objects = np.array([_OBJECTS], np.float32)
    for i, (height, width, attrs) in enumerate(_PARTS):
        for share in (0.0, 0.3, 1.0):
            seeds = {"seed": 29 + i, "seed2": 7 * i}
            size = np.array([height, width, 3], dtype)
            inputs = [size, objects, np.array(share, np.float32)]
            yield Sample(inputs, {**seeds, **attrs}, f"{height}x{width}-{share}")


# ---------------------------------------------------------------- errors
@error_samples("NonMaxSuppression")
def bad_suppression() -> Iterable[ErrorSample]:
    """Thresholds, boxes and scores that are none."""
    boxes, scores = np.zeros((2, 4), np.float32), np.zeros(2, np.float32)
    yield ErrorSample(
        [boxes, scores, _count(1)], {"iou_threshold": 1.2}, match="iou_threshold must be in"
    )
    yield ErrorSample([boxes[:, :3], scores, _count(1)], {}, match="boxes must have 4 columns")
    yield ErrorSample([boxes, scores[:1], _count(1)], {}, match="scores has incompatible shape")
    yield ErrorSample(
        [boxes, scores[:1], _count(1)], {}, "ValueError", "Dimensions must be equal", "build"
    )
    yield ErrorSample([boxes[0], scores, _count(1)], {}, match="boxes must be 2-D")


@error_samples("CombinedNonMaxSuppression")
def bad_combined() -> Iterable[ErrorSample]:
    """Sizes that are none."""
    boxes, scores = np.zeros((1, 2, 1, 4), np.float32), np.zeros((1, 2, 3), np.float32)
    half, low = np.array(0.5, np.float32), np.array(0, np.float32)
    yield ErrorSample(
        [boxes, scores, _count(2), _count(0), half, low], {}, "ValueError",
        "max_total_size should be > 0", "build",
    )  # fmt: skip
    yield ErrorSample(
        [boxes, scores, _count(0), _count(2), half, low], {}, match="must be positive"
    )


@error_samples("DrawBoundingBoxes")
def bad_drawing() -> Iterable[ErrorSample]:
    """Depths that are none, boxes of other images."""
    image, boxes = np.zeros((1, 3, 3, 2), np.float32), np.zeros((1, 1, 4), np.float32)
    depth = r"Channel depth should be either 1 \(GRY\), 3 \(RGB\), or 4 \(RGBA\)"
    yield ErrorSample([image, boxes], {}, "ValueError", depth, "build")
    yield ErrorSample([image, boxes], {}, match=depth)
    yield ErrorSample([image[..., :1], boxes[:0]], {}, match="batch sizes should be the same")


@error_samples("DrawBoundingBoxesV2")
def bad_colors() -> Iterable[ErrorSample]:
    """Too few channels."""
    image, boxes = np.zeros((1, 3, 3, 3), np.float32), np.zeros((1, 1, 4), np.float32)
    yield ErrorSample(
        [image, boxes, np.zeros((2, 2), np.float32)], {}, match="equal or more channels"
    )


@error_samples("SampleDistortedBoundingBoxV2")
def bad_sampling() -> Iterable[ErrorSample]:
    """No boxes, boxes beyond the image, ranges that nothing fits."""
    size, box = np.array([9, 9, 3], _INT), np.array([[[0, 0, 1, 1]]], np.float32)
    tenth = np.array(0.1, np.float32)
    yield ErrorSample([size, box[:, :0], tenth], {}, match="No bounding boxes provided as input")
    yield ErrorSample([size, box * 2, tenth], {}, match="All bounding box coordinates must be in")
    yield ErrorSample([size, box, -tenth], {}, match="Min object covered must be non-negative")
    yield ErrorSample([size, box, tenth], {"area_range": [0.5, 1.5]}, match="Area range must be")
    yield ErrorSample([size, box, tenth], {"aspect_ratio_range": [1.0]}, match="must specify 2")
    yield ErrorSample([size, box, tenth], {"max_attempts": 0}, match="Max attempts must be")
