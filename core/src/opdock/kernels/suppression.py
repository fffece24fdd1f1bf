"""Boxes chosen by score on any array namespace, without those that overlap a better one.

Whether a box stays is a matter of all better ones, but not of their order: what is right of the
best ones tells which of the next are. So a block of boxes is asked again and again which of them
no better one that stays overlaps, until nothing changes; the first is right after one turn, the
second after two at most, and few blocks need more than some.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from opdock.kernels.array_api import device_ints, dims, index_type, invalid
from opdock.kernels.select.signature import NodeSig

_PAIRS_AT_ONCE: Final = 1 << 21
_FEW: Final = 256
"""Boxes that are compared at once even where fewer are wanted."""
THRESHOLDS: Final = ("iou_threshold", "score_threshold", "soft_nms_sigma")
"""The thresholds of NonMaxSuppression, of which each version has the first few."""
Hits = Callable[[Any, int, int], Any]
"""Which boxes at some places [lists, m] drop those from one place to another [lists, m, n]."""


# ---------------------------------------------------------------- what is asked for
class Choice(NamedTuple):
    """What boxes are chosen.

    Attributes:
        most: how many at most.
        limit: which overlap drops a box.
        least: the scores that count are above it.
        sigma: how much scores sink by overlaps; zero for not at all.
    """

    most: int
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
    given = [_scalar(v, n) for v, n in zip(thresholds, THRESHOLDS, strict=False)]
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
def best_first(xp: Any, scores: Any, least: Any) -> tuple[Any, Any]:
    """The order of scores [lists, n], and whether what stands there counts: it comes first."""
    counts = scores > float(least)
    last = xp.full_like(scores, math.inf)
    order = xp.argsort(xp.where(counts, -scores, last), axis=1, stable=True)
    n = scores.shape[1]
    rank = device_ints(xp, np.arange(n), scores)
    total = xp.sum(xp.astype(counts, index_type(xp)), axis=1, keepdims=True)
    return order, rank < total


def in_order(xp: Any, rows: Any, order: Any) -> Any:
    """The rows [lists, n, ...] of each list in an order of its own [lists, m]."""
    lists, n = rows.shape[:2]
    starts = device_ints(xp, np.arange(lists) * n, rows)
    flat = xp.reshape(xp.expand_dims(starts, axis=1) + order, (-1,))
    every = xp.reshape(rows, (lists * n, *rows.shape[2:]))
    return xp.reshape(xp.take(every, flat, axis=0), (*order.shape, *rows.shape[2:]))


def overlapping(xp: Any, one: Any, other: Any) -> Any:
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


def overlaps_by(xp: Any, boxes: Any, limit: Any) -> Hits:
    """Boxes [lists, n, 4] drop those that they overlap by a limit or more."""

    def hits(places: Any, begin: int, end: int) -> Any:
        return overlapping(xp, in_order(xp, boxes, places), boxes[:, begin:end, :]) >= float(limit)

    return hits


def staying(xp: Any, counts: Any, hits: Hits, most: int) -> Any:
    """Which boxes stay, the best first; of those beyond the first `most` some may.

    Args:
        xp: the array namespace.
        counts: which boxes count [lists, n], before those that do not.
        hits: which boxes drop which.
        most: how many are wanted of each list.
    """
    lists = counts.shape[0]
    integers = index_type(xp)
    alive = int(xp.max(xp.sum(xp.astype(counts, integers), axis=1)))
    # The first block has them all, if half of the boxes stay.
    step = min(max(1, math.isqrt(_PAIRS_AT_ONCE // lists)), max(_FEW, 2 * most))
    stay, found = counts[:, :0], xp.zeros((lists,), dtype=integers, device=_device(counts))
    for begin in range(0, alive, step):
        end = min(begin + step, alive)
        clear = counts[:, begin:end]
        for better, there in _better(xp, stay, found, step):
            drops = hits(better, begin, end) & xp.expand_dims(there, axis=2)
            clear = clear & ~xp.any(drops, axis=1)
        place = device_ints(xp, np.arange(begin, end), counts)
        own = hits(xp.broadcast_to(place, (lists, end - begin)), begin, end)
        own = own & (xp.expand_dims(place, axis=1) < place)
        here = clear
        while True:
            now = clear & ~xp.any(own & xp.expand_dims(here, axis=2), axis=1)
            if bool(xp.all(now == here)):
                break
            here = now
        stay = xp.concat([stay, here], axis=1)
        found = xp.sum(xp.astype(stay, integers), axis=1)
        if bool(xp.all(found >= most)):
            break
    return xp.concat([stay, xp.zeros_like(counts[:, stay.shape[1] :])], axis=1)


def _better(xp: Any, stay: Any, found: Any, step: int) -> Iterator[tuple[Any, Any]]:
    """The places of the boxes that stay, some at a time, and which of these there are."""
    count = int(xp.max(found))
    if not count:
        return
    order = xp.argsort(xp.astype(~stay, xp.int32), axis=1, stable=True)
    for first in range(0, count, step):
        last = min(first + step, count)
        rank = device_ints(xp, np.arange(first, last), stay)
        yield order[:, first:last], rank < xp.expand_dims(found, axis=1)


def _device(like: Any) -> Any:
    return getattr(like, "device", None)


def first_of(xp: Any, stay: Any, order: Any, most: int) -> Any:
    """The numbers of the first boxes of one list that stay, `most` at most."""
    places = xp.nonzero(xp.reshape(stay, (-1,)))[0]
    return xp.take(xp.reshape(order, (-1,)), places[: min(most, places.shape[0])], axis=0)


def chosen(xp: Any, boxes: Any, scores: Any, wanted: Choice) -> Any:
    """The numbers of the boxes that are chosen, of those of one list."""
    order, counts = best_first(xp, xp.expand_dims(scores, axis=0), wanted.least)
    ordered = in_order(xp, xp.expand_dims(boxes, axis=0), order)
    stay = staying(xp, counts, overlaps_by(xp, ordered, wanted.limit), wanted.most)
    return first_of(xp, stay, order, wanted.most)


def sinking(xp: Any, boxes: Any, scores: Any, wanted: Choice) -> tuple[Any, Any]:
    """The numbers and scores of boxes; each lowers the scores of those that it overlaps."""
    scale, least = float(np.float32(-0.5 / float(wanted.sigma))), float(wanted.least)
    alive = scores > least
    numbers: list[Any] = []
    found: list[Any] = []
    nothing = xp.full_like(scores, -math.inf)
    now = xp.where(alive, scores, nothing)
    place = device_ints(xp, np.arange(scores.shape[0]), scores)
    while len(numbers) < wanted.most and bool(xp.any(alive)):
        best = xp.argmax(xp.where(alive, now, nothing))
        at = xp.reshape(best, (1,))
        numbers.append(at)
        found.append(xp.take(now, at, axis=0))
        alive = alive & (place != best)
        own = xp.expand_dims(xp.take(boxes, at, axis=0), axis=0)
        overlap = xp.reshape(overlapping(xp, own, xp.expand_dims(boxes, axis=0)), scores.shape)
        wide = xp.astype(overlap, xp.float32)
        sunk = xp.astype(now, xp.float32) * xp.exp(scale * wide * wide)
        now = xp.where(alive, xp.astype(sunk, now.dtype), now)
        alive = alive & (now > least) & ~(overlap >= float(wanted.limit))
    if not numbers:
        return place[:0], scores[:0]
    return xp.concat(numbers), xp.concat(found)
