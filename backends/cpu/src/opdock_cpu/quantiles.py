"""Summaries of weighted values that answer for quantiles, and streams of them.

The summaries and what is left out of them are those of TF, which are XGBoost's: an entry knows
between which ranks its value stands, and is left out where its neighbours say enough.
"""

from __future__ import annotations

import math
import threading
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock.plugin import checks

__all__ = ["QuantileStreams", "Stream", "summary_of"]

Array = npt.NDArray[Any]

_VALUE, _WEIGHT, _MIN, _MAX = range(4)
_NOTHING: Final = np.zeros((0, 4), np.float32)


def _merged(one: Array, other: Array) -> Array:
    """The summary of what two summaries are of."""
    if not len(one) or not len(other):
        return one if len(one) else other
    mine, twins = _ranked(one, other)
    theirs, _ = _ranked(other, one)
    both = np.concatenate([mine, theirs[~np.isin(other[:, _VALUE], twins)]])
    return both[np.argsort(both[:, _VALUE], kind="stable")]


def _ranked(own: Array, other: Array) -> tuple[Array, Array]:
    """One summary's entries as they stand among another's too, and the values that both have."""
    place = np.searchsorted(other[:, _VALUE], own[:, _VALUE])
    inside = place < len(other)
    above = other[np.minimum(place, len(other) - 1)]
    twin = inside & (above[:, _VALUE] == own[:, _VALUE])
    before = other[np.maximum(place - 1, 0)]
    least = np.where(place > 0, before[:, _MIN] + before[:, _WEIGHT], np.float32(0))
    most = np.where(inside, above[:, _MAX] - above[:, _WEIGHT], other[-1, _MAX])
    out = own.copy()
    out[:, _MIN] += np.where(twin, above[:, _MIN], least)
    out[:, _MAX] += np.where(twin, above[:, _MAX], most)
    out[:, _WEIGHT] += np.where(twin, above[:, _WEIGHT], np.float32(0))
    return out, own[twin, _VALUE]


def _compressed(entries: Array, size: int, least_error: float) -> Array:
    """Fewer entries, about `size`, with ranks known no worse than asked for."""
    size, count = max(size, 2), len(entries)
    if count <= size:
        return entries
    allowed = float(entries[-1, _MAX]) * max(1.0 / size, least_error)
    before, after = entries[:, _MAX] - entries[:, _WEIGHT], entries[:, _MIN] + entries[:, _WEIGHT]
    kept, saved, at = [0], 0, 0
    while at + 1 < count:
        ahead = at + 1
        while ahead < count and saved < count and before[ahead] - after[at] <= allowed:
            saved += size
            ahead += 1
        at = max(at + 1, ahead - 1)
        kept.append(at)
        saved -= count
    if kept[-1] + 1 < count:
        kept.append(count - 1)
    return entries[kept]


def summary_of(values: Array, weights: Array) -> Array:
    """The exact summary of values."""
    found, where = np.unique(values, return_inverse=True)
    sums = np.zeros(len(found), np.float32)
    np.add.at(sums, where.reshape(-1), weights)
    most = np.cumsum(sums, dtype=np.float32)
    least = np.concatenate([np.zeros(1, np.float32), most[:-1]]) if len(most) else most
    return np.stack([found.astype(np.float32), sums, least, most], axis=1)


class Stream:
    """A summary that grows.

    Args:
        epsilon: how far ranks may be off, as a share of all weight.
        max_elements: how many entries may come.
    """

    def __init__(self, epsilon: float, max_elements: int) -> None:
        self._epsilon = float(np.float32(epsilon))
        self._block = _block_size(self._epsilon, max_elements)
        self._buffer = min(2 * self._block, max_elements)
        self._levels: list[Array] = []

    def push(self, values: Array, weights: Array) -> None:
        """Adds values; those without weight do not count."""
        counts = weights > 0
        values, weights = values[counts], weights[counts]
        for start in range(0, len(values), self._buffer):
            part = slice(start, start + self._buffer)
            self.push_summary(summary_of(values[part], weights[part]))

    def push_summary(self, entries: Array) -> None:
        """Adds a summary of values."""
        entries = _compressed(entries, self._block, self._epsilon)
        if not len(entries):
            return
        for level, there in enumerate(self._levels):
            entries = _merged(entries, there)
            if not len(there) or len(entries) <= self._block + 1:
                self._levels[level] = entries
                return
            entries = _compressed(entries, self._block, self._epsilon)
            self._levels[level] = _NOTHING
        self._levels.append(entries)

    def summary(self) -> Array:
        """The summary of all that came."""
        out = _NOTHING
        for level in self._levels:
            out = _merged(out, level)
        return out


def _block_size(epsilon: float, max_elements: int) -> int:
    """How many entries a level keeps, so that all levels together are off by `epsilon`."""
    if epsilon <= np.finfo(np.float64).eps:
        return max(max_elements, 2)
    level, block = 1, 2
    while (1 << level) * block < max_elements:
        block = math.ceil(level / epsilon) + 1
        level += 1
    return max(block, 2)


def _error(entries: Array) -> float:
    """How far ranks may be off, as a share of all weight."""
    if len(entries) < 2:
        return 0.0
    own = entries[1:, _MAX] - entries[1:, _MIN] - entries[1:, _WEIGHT]
    gaps = entries[1:, _MAX] - entries[1:, _WEIGHT] - entries[:-1, _MIN] - entries[:-1, _WEIGHT]
    return float(max(own.max(), gaps.max(), np.float32(0))) / float(entries[-1, _MAX])


def boundaries_of(entries: Array, count: int) -> Array:
    """About `count` values that part what a summary is of evenly."""
    if not len(entries):
        return np.zeros(0, np.float32)
    error = float(np.float32(_error(entries) + 1.0 / count))
    return np.unique(_compressed(entries, count, error)[:, _VALUE])


def quantiles_of(entries: Array, count: int) -> Array:
    """The values at `count` ranks that are evenly apart, the first and the last among them."""
    if not len(entries):
        return np.zeros(0, np.float32)
    parts, out, at = max(count - 1, 2), [], 0
    least, most, weight = entries[:, _MIN], entries[:, _MAX], entries[:, _WEIGHT]
    for rank in range(parts + 1):
        twice = np.float32(2) * (np.float32(rank) * most[-1] / np.float32(parts))
        ahead = at + 1
        while ahead < len(entries) and twice >= least[ahead] + most[ahead]:
            ahead += 1
        at = ahead - 1
        near = ahead == len(entries) or twice < (
            least[at] + weight[at] + most[ahead] - weight[ahead]
        )
        out.append(entries[at if near else ahead, _VALUE])
    return np.array(out, np.float32)


class QuantileStreams:
    """A stream for each feature, and the boundaries that were last drawn from them.

    Attributes:
        lock: whoever reads or changes it holds it.
        boundaries: by feature.
    """

    def __init__(self, epsilon: float, max_elements: int, count: int) -> None:
        if not epsilon > 0:
            raise checks.invalid("An epsilon value of zero is not allowed.")
        if count < 0:
            raise checks.invalid(f"num_streams must not be negative, got {count}")
        self.lock = threading.RLock()
        self._settings, self._count = (epsilon, max_elements), count
        self._streams = self._new()
        self.boundaries: list[Array] = [np.zeros(0, np.float32)] * count

    def _new(self) -> list[Stream]:
        return [Stream(*self._settings) for _ in range(self._count)]

    def check_count(self, count: int) -> None:
        """Raises InvalidArgumentError if there are not so many streams."""
        if count != len(self._streams):
            raise checks.invalid(f"There are {len(self._streams)} quantile streams, got {count}")

    def add(self, summaries: list[Array]) -> None:
        """Adds a summary to each stream."""
        self.check_count(len(summaries))
        for stream, entries in zip(self._streams, summaries, strict=True):
            stream.push_summary(entries)

    def take(self) -> list[Array]:
        """The summaries of the streams, which begin anew."""
        found, self._streams = [stream.summary() for stream in self._streams], self._new()
        return found

    def flush(self, count: int, quantiles: bool) -> None:
        """Draws boundaries from the streams, which begin anew."""
        if count < 1:
            raise checks.invalid(f"num_buckets must be positive, got {count}")
        draw = quantiles_of if quantiles else boundaries_of
        self.boundaries = [draw(entries, count) for entries in self.take()]
