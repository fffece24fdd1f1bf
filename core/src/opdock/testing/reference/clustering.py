"""Oracle of clustering: draw by draw from the stream."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference
from opdock.testing.reference.candidate_sampling import below
from opdock.testing.reference.random import Stream, unit32

Array = npt.NDArray[Any]
Attrs = Mapping[str, Any]


@reference("KmeansPlusPlusInitialization")
def kmeans_plus_plus(
    attrs: Attrs, points: Array, num_to_sample: Array, seed: Array, num_retries_per_sample: Array
) -> Array:
    """Each point as likely as half the square of its distance to the nearest drawn one."""
    words: Iterator[int] = Stream(int(seed), 0).words()
    retries = int(num_retries_per_sample)
    retries = 2 + int(math.log(num_to_sample)) if retries < 0 else retries
    drawn: list[int] = []
    nearest = np.full(len(points), np.inf)
    for _ in range(int(num_to_sample)):
        best = None
        for _ in range(1 + retries):
            index = below(words, len(points), 32) if not drawn else None
            while index is None or index in drawn:
                target, index, total = unit32(next(words)) * nearest.sum(), 0, nearest[0]
                while total <= target:
                    index += 1
                    total += nearest[index]
            closer = np.minimum(nearest, ((points - points[index]) ** 2).sum(1) / 2)
            if best is None or closer.sum() < best[0]:
                best = closer.sum(), index, closer
        assert best is not None
        drawn.append(best[1])
        nearest = best[2]
    return points[drawn]


@reference("KMC2ChainInitialization")
def kmc2_chain(attrs: Attrs, distances: Array, seed: Array) -> Array:
    """Candidate by candidate."""
    words, chosen = Stream(int(seed), 0).words(), 0
    for i, distance in enumerate(distances[1:], 1):
        if distance > unit32(next(words)) * distances[chosen]:
            chosen = i
    return np.array(chosen, np.int64)


@reference("NearestNeighbors")
def nearest_neighbors(attrs: Attrs, points: Array, centers: Array, k: Array) -> tuple[Any, Any]:
    """All distances, sorted."""
    all_distances = ((points[:, None] - centers[None]) ** 2).sum(2)
    order = np.argsort(all_distances, axis=1, kind="stable")[:, : int(k)]
    return order, np.take_along_axis(all_distances, order, axis=1)
