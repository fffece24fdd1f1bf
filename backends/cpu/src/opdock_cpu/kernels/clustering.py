"""Kernels of clustering: TF's draws for TF's seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, checks
from opdock_cpu.jit.looped import Looped
from opdock_cpu.kernels.sorting import largest
from opdock_cpu.namespace import namespace
from opdock_cpu.philox import Philox, unit_float32
from opdock_cpu.portable import portable_kernel

__all__ = ["table"]

Array = npt.NDArray[Any]
Words = Iterator[np.uint32]

table = KernelTable()


def _words(seed: Array) -> Words:
    place = Philox(int(seed))
    while True:
        yield from place.blocks(64).reshape(-1)
        place = place.skip(64)


def _unit(words: Words) -> np.float32:
    unit: np.float32 = unit_float32(np.array([next(words)]))[0]
    return unit


def _below(words: Words, n: int) -> int:
    """A number below `n`; words that would make small ones likelier are passed over."""
    return next(word for word in map(int, words) if word >= (1 << 32) % n) % n


def _half_norms(points: Array) -> Array:
    """Half the square of each point's length, without squares of all points in memory."""
    half: Array = np.float32(0.5) * np.einsum("ij,ij->i", points, points)
    return half


def _half_distances(points: Array, norms: Array, index: int) -> Array:
    """Half the squared distance of each point to one of them."""
    half: Array = norms - points @ points[index] + norms[index]
    return half


def _check_scalars(**given: Array) -> None:
    for name, value in given.items():
        if value.ndim:
            raise checks.invalid(f"Input {name} should be a scalar.")


@table.kernel("KmeansPlusPlusInitialization", host_inputs=("num_to_sample", "seed"))
def kmeans_plus_plus(
    ctx: Any, points: Array, num_to_sample: Array, seed: Array, num_retries_per_sample: Array
) -> Array:
    """Points drawn one by one, likelier the farther they are from those drawn before.

    With retries, several are tried, and the one that brings all points nearest is kept.
    """
    if points.ndim != 2:
        raise checks.invalid("Input points should be a matrix.")
    _check_scalars(
        num_to_sample=num_to_sample, seed=seed, num_retries_per_sample=num_retries_per_sample
    )
    count, wanted, retries = len(points), int(num_to_sample), int(num_retries_per_sample)
    checks.check_any_points(points)
    if wanted < 1:
        raise checks.invalid("Expected num_to_sample > 0.")
    if wanted > count:
        raise checks.invalid(f"Expected num_to_sample <= points.rows(). {wanted} vs {count}.")
    if retries < 0:
        retries = 2 + int(np.log(wanted))
    words, norms = _words(seed), _half_norms(points)
    drawn: list[int] = []
    nearest = np.full(count, np.inf, np.float32)
    for _ in range(wanted):
        totals = np.cumsum(nearest, dtype=np.float32)
        tried: list[tuple[float, int, int, Array]] = []
        for _ in range(1 + retries):
            index = _draw(words, drawn, totals)
            closer = np.minimum(nearest, _half_distances(points, norms, index))
            tried.append((float(closer.sum()), len(tried), index, closer))
        _, _, index, nearest = min(tried, key=lambda found: found[:2])
        drawn.append(index)
    return points[drawn]


def _draw(words: Words, drawn: list[int], totals: Array) -> int:
    """A point that was not drawn before."""
    if not drawn:
        return _below(words, len(totals))
    while True:
        at = int(np.searchsorted(totals, _unit(words) * totals[-1], side="right"))
        # Where the points left are all at distance zero, the search ends behind the last.
        if at >= len(totals):
            return next(i for i in range(len(totals) - 1, -1, -1) if i not in drawn)
        if at not in drawn:
            return at


def _chain(
    begin: int, end: int, last: Array, distances: Array, units: Array, count: int
) -> None:  # fmt: skip
    for turn in range(begin, end):
        chosen = 0
        for i in range(1, count):
            if distances[i] > units[i - 1] * distances[chosen]:
                chosen = i
        last[turn] = chosen


_CHAIN: Final = Looped(_chain)


@table.kernel("KMC2ChainInitialization", host_inputs=("seed",))
def kmc2_chain(ctx: Any, distances: Array, seed: Array) -> Array:
    """The last state of a chain that goes on to each candidate as likely as it is far."""
    if distances.ndim != 1:
        raise checks.invalid("Input distances should be a vector.")
    _check_scalars(seed=seed)
    if not distances.size:
        raise checks.invalid("Expected distances_tensor.size() > 0.")
    units = Philox(int(seed)).units(len(distances) - 1)
    last, chosen = np.empty(1, np.int64), 0
    if _CHAIN(1, len(distances), last, distances, units, len(distances)):
        return last.reshape(())
    for i, unit in enumerate(units, 1):
        if distances[i] > unit * distances[chosen]:
            chosen = i
    return np.array(chosen, np.int64)


_AT_ONCE: Final = 1 << 18
"""Distances that stay in the cache from the product to the choice."""


@table.binder("NearestNeighbors", host_inputs=("k",))
def nearest_neighbors(sig: NodeSig) -> Callable[..., tuple[Array, Array]]:
    """The nearest centers of each point, which need not be sorted as far as they are not wanted."""
    plain = portable_kernel(sig)

    def run(points: Array, centers: Array, k: Any) -> Any:
        fits = points.ndim == centers.ndim == 2 and points.shape[1] == centers.shape[1]
        if not fits or np.ndim(k) or not points.size or int(k) < 1 or not centers.size:
            return plain(points, centers, k)
        count, rows = min(int(k), len(centers)), len(points)
        norms, own = _half_norms(centers), _half_norms(points)
        places = np.empty((rows, count), np.int64)
        distances = np.empty((rows, count), np.float32)
        step = max(1, _AT_ONCE // len(centers))
        for start in range(0, rows, step):
            some = slice(start, start + step)
            # Without what all distances of a point have in common, they are in the same order.
            near = namespace.matmul(points[some], centers.T) - norms
            if np.isnan(near).any():  # the farthest of all
                return plain(points, centers, k)
            near, places[some] = largest(near, count)
            distances[some] = 2 * (own[some, None] - near)
        return places, distances

    return run
