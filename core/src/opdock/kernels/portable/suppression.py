"""Portable kernels of boxes chosen by score, without those that overlap a better one.

Whether a box stays is a matter of all better ones, but not of their order: what is right of the
best ones tells which of the next are. So a block of boxes is asked again and again which of them
no better one that stays overlaps, until nothing changes; the first is right after one turn, the
second after two at most, and few blocks need more than some.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from opdock.dtypes import float16, float32
from opdock.kernels.array_api import copy, device_ints, dims, dtype_of, index_type, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

_PAIRS_AT_ONCE: Final = 1 << 21
_THRESHOLDS: Final = ("iou_threshold", "score_threshold", "soft_nms_sigma")
Hits = Callable[[int, int], Any]
"""Of boxes from one number to another: which of those up to the last number would drop them, an
array [lists, last, boxes]."""


# ---------------------------------------------------------------- what is asked for
class Choice(NamedTuple):
    """What boxes are chosen.

    Attributes:
        count: how many at most.
        limit: which overlap drops a box.
        least: the scores that count are above it.
        sigma: how much scores sink by overlaps; zero for not at all.
    """

    count: int
    limit: Any
    least: Any
    sigma: Any = 0


def _scalar(value: Any, name: str) -> Any:
    if np.ndim(value) != 0:
        raise invalid(f"{name} must be 0-D, got shape {dims(np.shape(value))}")
    return np.asarray(value)[()]


def _check_scores(count: int, scores: Any) -> None:
    if len(scores.shape) != 1:
        raise invalid(f"scores must be 1-D{dims(scores.shape)}")
    if scores.shape[0] != count:
        raise invalid("scores has incompatible shape")


def _check_limit(limit: Any) -> None:
    if not 0 <= limit <= 1:
        raise invalid("iou_threshold must be in [0, 1]")


def boxes_wanted(
    sig: NodeSig, boxes: Any, scores: Any, max_output_size: Any, thresholds: Sequence[Any]
) -> Choice:
    """What a node of NonMaxSuppression asks for.

    Args:
        sig: the node.
        boxes: what it chooses from.
        scores: a score each.
        max_output_size: in host memory; a negative number is taken for none.
        thresholds: in host memory, as many as the op's version has.

    Raises:
        InvalidArgumentError: the arguments do not fit together.
    """
    count = max(int(_scalar(max_output_size, "max_output_size")), 0)
    given = [_scalar(v, n) for v, n in zip(thresholds, _THRESHOLDS, strict=False)]
    limit = given[0] if given else sig.attrs["iou_threshold"]
    _check_limit(limit)
    dtype = sig.in_dtypes[1].base_dtype
    # The first two versions take all scores but minus infinity.
    least = given[1] if len(given) > 1 else dtype.min
    sigma = given[2] if len(given) > 2 else 0
    if not sigma >= 0:
        raise invalid("soft_nms_sigma_val must be >= 0")
    if len(boxes.shape) != 2:
        raise invalid(f"boxes must be 2-D{dims(boxes.shape)}")
    if boxes.shape[1] != 4:
        raise invalid("boxes must have 4 columns")
    _check_scores(boxes.shape[0], scores)
    return Choice(count, dtype.np.type(limit), least, sigma)


def boxes_wanted_by_overlaps(
    overlaps: Any, scores: Any, max_output_size: Any, limit: Any, least: Any
) -> Choice:
    """What NonMaxSuppressionWithOverlaps asks for; InvalidArgumentError for what does not fit."""
    count = max(int(_scalar(max_output_size, "max_output_size")), 0)
    if len(overlaps.shape) != 2:
        raise invalid(f"overlaps must be 2-D{dims(overlaps.shape)}")
    if overlaps.shape[0] != overlaps.shape[1]:
        raise invalid(f"overlaps must be square{dims(overlaps.shape)}")
    _check_scores(overlaps.shape[0], scores)
    return Choice(count, _scalar(limit, "overlap_threshold"), _scalar(least, "score_threshold"))


def boxes_wanted_of_classes(
    boxes: Any, scores: Any, each: Any, total: Any, limit: Any, least: Any
) -> tuple[Choice, int]:
    """What CombinedNonMaxSuppression asks for of each class, and how many of all at most.

    Raises:
        InvalidArgumentError: the arguments do not fit together.
    """
    by_class = int(_scalar(each, "max_size_per_class"))
    if by_class <= 0:
        raise invalid("max_size_per_class must be positive")
    size = int(_scalar(total, "max_total_size"))
    if size <= 0:
        raise invalid("max_total_size must be > 0")
    threshold = _scalar(limit, "iou_threshold")
    _check_limit(threshold)
    lowest = _scalar(least, "score_threshold")
    if len(boxes.shape) != 4:
        raise invalid(f"boxes must be 4-D{dims(boxes.shape)}")
    if len(scores.shape) != 3:
        raise invalid(f"scores must be 3-D{dims(scores.shape)}")
    if boxes.shape[2] not in (1, scores.shape[2]):
        raise invalid("third dimension of boxes must be either 1 or num classes")
    if boxes.shape[3] != 4:
        raise invalid("boxes must have 4 columns")
    if tuple(scores.shape[:2]) != tuple(boxes.shape[:2]):
        raise invalid("scores has incompatible shape")
    # Here TF keeps boxes that overlap by just the limit.
    above = np.nextafter(np.float32(threshold), np.float32(np.inf))
    return Choice(by_class, above, lowest), size


# ---------------------------------------------------------------- which boxes stay
def _best_first(xp: Any, scores: Any, least: Any) -> tuple[Any, Any]:
    """The order of scores [lists, n], and whether what stands there counts: it comes first."""
    counts = scores > float(least)
    last = xp.full_like(scores, math.inf)
    order = xp.argsort(xp.where(counts, -scores, last), axis=1, stable=True)
    n = scores.shape[1]
    rank = device_ints(xp, np.arange(n), scores)
    total = xp.sum(xp.astype(counts, index_type(xp)), axis=1, keepdims=True)
    return order, rank < total


def _in_order(xp: Any, rows: Any, order: Any) -> Any:
    """The rows [lists, n, ...] of each list in an order of its own [lists, m]."""
    lists, n = rows.shape[:2]
    starts = device_ints(xp, np.arange(lists) * n, rows)
    flat = xp.reshape(xp.expand_dims(starts, axis=1) + order, (-1,))
    every = xp.reshape(rows, (lists * n, *rows.shape[2:]))
    return xp.reshape(xp.take(every, flat, axis=0), (*order.shape, *rows.shape[2:]))


def _overlaps(xp: Any, one: Any, other: Any) -> Any:
    """Intersection over union of each of two sets of boxes [lists, n, 4]; 0 without an area."""
    sides = [
        (xp.minimum(each[..., :2], each[..., 2:]), xp.maximum(each[..., :2], each[..., 2:]))
        for each in (xp.expand_dims(one, axis=2), xp.expand_dims(other, axis=1))
    ]
    (low, high), (low_too, high_too) = sides
    areas = [(h - w)[..., 0] * (h - w)[..., 1] for w, h in sides]
    common = xp.minimum(high, high_too) - xp.maximum(low, low_too)
    common = xp.maximum(common, xp.zeros_like(common))
    common = common[..., 0] * common[..., 1]
    counts = (areas[0] > 0) & (areas[1] > 0)
    union = areas[0] + areas[1] - common
    found = common / xp.where(counts, union, xp.ones_like(union))
    return xp.where(counts, found, xp.zeros_like(found))


def _stay(xp: Any, counts: Any, hits: Hits, most: int) -> Any:
    """Which boxes [lists, n] stay, the best first; of those beyond the first `most` some may."""
    lists, n = counts.shape
    step = max(1, _PAIRS_AT_ONCE // max(1, lists * n))
    stay = counts[:, :0]
    for begin in range(0, n, step):
        end = min(begin + step, n)
        dropped = hits(begin, end)
        clear = counts[:, begin:end]
        if begin:
            better = dropped[:, :begin, :] & xp.expand_dims(stay, axis=2)
            clear = clear & ~xp.any(better, axis=1)
        place = device_ints(xp, np.arange(end - begin), counts)
        own = dropped[:, begin:end, :] & (xp.expand_dims(place, axis=1) < place)
        here = clear
        while True:
            now = clear & ~xp.any(own & xp.expand_dims(here, axis=2), axis=1)
            if bool(xp.all(now == here)):
                break
            here = now
        stay = xp.concat([stay, here], axis=1)
        found = xp.sum(xp.astype(stay, index_type(xp)), axis=1)
        if end < n and bool(xp.all(found >= most)):
            rest = xp.zeros_like(counts[:, end:])
            return xp.concat([stay, rest], axis=1)
    return stay


def _first(xp: Any, stay: Any, order: Any, most: int) -> Any:
    """The numbers of the first boxes of one list that stay, `most` at most."""
    places = xp.nonzero(xp.reshape(stay, (-1,)))[0]
    return xp.take(xp.reshape(order, (-1,)), places[: min(most, places.shape[0])], axis=0)


# ---------------------------------------------------------------- one list
def _versions(*ops: str, thresholds: int) -> Callable[[Any], Any]:
    names = ("max_output_size", *_THRESHOLDS[:thresholds])
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
        if 0 in (scores.shape[0], wanted.count):
            found, lowered = device_ints(xp, [], scores), scores[:0]
        elif wanted.sigma > 0:
            found, lowered = _sinking(xp, boxes, scores, wanted)
        else:
            found = _chosen(xp, boxes, scores, wanted)
            lowered = xp.take(scores, found, axis=0)
        indices = padded(xp.astype(found, integers), wanted.count)
        if outputs == 1:
            return indices
        device = getattr(scores, "device", None)
        valid = xp.asarray(found.shape[0], dtype=integers, device=device)
        if outputs == 2:
            return indices, valid
        return indices, padded(copy(xp, lowered), wanted.count), valid

    return run


def _chosen(xp: Any, boxes: Any, scores: Any, wanted: Choice) -> Any:
    order, counts = _best_first(xp, xp.expand_dims(scores, axis=0), wanted.least)
    ordered = _in_order(xp, xp.expand_dims(boxes, axis=0), order)
    limit = float(wanted.limit)

    def hits(begin: int, end: int) -> Any:
        return _overlaps(xp, ordered[:, :end, :], ordered[:, begin:end, :]) >= limit

    return _first(xp, _stay(xp, counts, hits, wanted.count), order, wanted.count)


def _sinking(xp: Any, boxes: Any, scores: Any, wanted: Choice) -> tuple[Any, Any]:
    """The numbers and scores of boxes; each lowers the scores of those that it overlaps."""
    scale, least = float(np.float32(-0.5 / float(wanted.sigma))), float(wanted.least)
    alive, numbers, found = scores > least, [], []
    nothing = xp.full_like(scores, -math.inf)
    now = xp.where(alive, scores, nothing)
    place = device_ints(xp, np.arange(scores.shape[0]), scores)
    while len(numbers) < wanted.count and bool(xp.any(alive)):
        best = xp.argmax(xp.where(alive, now, nothing))
        at = xp.reshape(best, (1,))
        numbers.append(at)
        found.append(xp.take(now, at, axis=0))
        alive = alive & (place != best)
        own = xp.expand_dims(xp.take(boxes, at, axis=0), axis=0)
        overlap = xp.reshape(_overlaps(xp, own, xp.expand_dims(boxes, axis=0)), scores.shape)
        wide = xp.astype(overlap, xp.float32)
        sunk = xp.astype(now, xp.float32) * xp.exp(scale * wide * wide)
        now = xp.where(alive, xp.astype(sunk, now.dtype), now)
        alive = alive & (now > least) & ~(overlap >= float(wanted.limit))
    if not numbers:
        return place[:0], scores[:0]
    return xp.concat(numbers), xp.concat(found)


@portable(
    "NonMaxSuppressionWithOverlaps",
    host_inputs=("max_output_size", "overlap_threshold", "score_threshold"),
)
def non_max_suppression_with_overlaps(xp: Any, sig: NodeSig) -> Callable[..., Any]:
    """Boxes by score, with overlaps that somebody else found."""

    def run(overlaps: Any, scores: Any, max_output_size: Any, limit: Any, least: Any) -> Any:
        wanted = boxes_wanted_by_overlaps(overlaps, scores, max_output_size, limit, least)
        if 0 in (scores.shape[0], wanted.count):
            return xp.astype(device_ints(xp, [], scores), xp.int32)
        order, counts = _best_first(xp, xp.expand_dims(scores, axis=0), wanted.least)
        flat = xp.reshape(order, (-1,))
        # TF asks each candidate how much it overlaps those chosen: its own row.
        drops = xp.take(xp.take(overlaps, flat, axis=0), flat, axis=1) >= float(wanted.limit)
        drops = xp.expand_dims(xp.matrix_transpose(drops), axis=0)
        stay = _stay(xp, counts, lambda begin, end: drops[:, :end, begin:end], wanted.count)
        return xp.astype(_first(xp, stay, order, wanted.count), xp.int32)

    return run


# ---------------------------------------------------------------- many lists
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
            size = min(size, wanted.count * classes)
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
        values, numbers = _in_order(xp, values, order), _in_order(xp, numbers, order)
        used = values > -math.inf
        owner = order // length
        at = numbers * sets + owner % sets
        found = _in_order(xp, xp.reshape(boxes, (batch, length * sets, 4)), at)
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
    order, counts = _best_first(xp, by_class, wanted.least)
    ordered = _in_order(xp, xp.reshape(own, (batch * classes, length, 4)), order)
    limit = float(wanted.limit)

    def hits(begin: int, end: int) -> Any:
        return _overlaps(xp, ordered[:, :end, :], ordered[:, begin:end, :]) >= limit

    stay = _stay(xp, counts, hits, wanted.count)
    rank = xp.cumulative_sum(xp.astype(stay, xp.int32), axis=1)
    values = _in_order(xp, by_class, order)
    nothing = xp.full_like(values, -math.inf)
    values = xp.where(stay & (rank <= wanted.count), values, nothing)
    return xp.reshape(values, (batch, -1)), xp.reshape(order, (batch, -1))
