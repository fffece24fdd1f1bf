"""Candidate samplers: TF's draws for TF's seeds, from words of Philox blocks taken in order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from opdock.plugin import KernelTable, NodeSig, checks
from opdock_cpu.kernels.random import node_stream
from opdock_cpu.philox import Philox, unit_float32, unit_float64

__all__ = ["table"]

Array = npt.NDArray[Any]
Draws = Iterator[Array]

table = KernelTable()

_BLOCKS = 512
"""Blocks that TF sets aside for each class drawn."""
_MOST = np.iinfo(np.int32).max


# ---------------------------------------------------------------- words
def _words(place: Philox, dtype: Any, count: int) -> Iterator[Array]:
    """An endless supply of words of 32 or 64 bits, `count` or more at a time."""
    size = np.dtype(dtype).itemsize // 4
    blocks = -(-count * size // 4)
    while True:
        yield place.blocks(blocks).reshape(-1).astype("<u4").view(dtype)
        place = place.skip(blocks)


def _rejected(n: int, bits: int) -> int:
    """Words below this would favour small remainders of `n`."""
    return 0 if n & (n - 1) == 0 else (1 << bits) % n


def _below(words: Array, n: int) -> Array:
    """Words as integers in [0, n), each as likely; some words are rejected."""
    rejected = _rejected(n, words.dtype.itemsize * 8)
    kept = words[words >= words.dtype.type(rejected)] if rejected else words
    found: Array = (kept % kept.dtype.type(n)).astype(np.int64)
    return found


# ---------------------------------------------------------------- samplers
class Sampler(Protocol):
    """Classes from a range, and the probability of each."""

    range: int

    def draws(self, place: Philox, count: int) -> Draws:
        """An endless supply of classes, about `count` at a time."""

    def probability(self, classes: Array) -> Array:
        """The float32 probability of each class."""


class Uniform:
    """Each class as likely as any other."""

    def __init__(self, range_: int) -> None:
        self.range = range_

    def draws(self, place: Philox, count: int) -> Draws:
        """Remainders of 64-bit words."""
        for words in _words(place, np.uint64, count):
            yield _below(words, self.range)

    def probability(self, classes: Array) -> Array:
        """One part of the range."""
        return np.full(classes.shape, 1.0 / self.range, np.float32)


class LogUniform:
    """A Zipfian distribution."""

    def __init__(self, range_: int) -> None:
        self.range = range_
        self._log = math.log1p(range_)

    def draws(self, place: Philox, count: int) -> Draws:
        """The exponential of a uniform double."""
        for words in _words(place, np.uint32, 2 * count):
            unit = unit_float64(words[0::2], words[1::2])
            # NumPy's exponential is another in its last bit from processor to processor, and the
            # last bit of a large one is many classes.
            powers = [int(math.exp(x)) for x in (unit * self._log).tolist()]
            yield np.array([(power - 1) % self.range for power in powers], np.int64)

    def probability(self, classes: Array) -> Array:
        """That the double falls between the logarithms around a class."""
        wide = classes.astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            part: Array = np.log((wide + 2.0) / (wide + 1.0)) / self._log
        return part.astype(np.float32)


class Learned:
    """Classes by how often they were targets."""

    def __init__(self, range_: int) -> None:
        self.range = range_
        self._weights = np.ones(range_, np.int64)
        self._ends = np.cumsum(self._weights)

    def draws(self, place: Philox, count: int) -> Draws:
        """The class on whose stretch of all weights a word's remainder falls."""
        for words in _words(place, np.uint32, count):
            chosen = _below(words, int(self._ends[-1]))
            yield np.searchsorted(self._ends, chosen, side="right").astype(np.int64)

    def probability(self, classes: Array) -> Array:
        """Its part of all weights."""
        self._check(classes)
        total = np.float32(self._ends[-1])
        return self._weights[classes].astype(np.float32) / total

    def update(self, classes: Array) -> None:
        """Counts targets, until the sum fills 32 bits."""
        np.add.at(self._weights, classes.reshape(-1)[: _MOST - int(self._ends[-1])], 1)
        self._ends = np.cumsum(self._weights)

    def _check(self, classes: Array) -> None:
        wrong = (classes < 0) | (classes >= self.range)
        if wrong.any():
            raise checks.invalid(
                f"true_classes holds {int(classes[wrong][0])}, which is not in [0, {self.range})"
            )


class Fixed:
    """Classes by given weights: Walker's alias method, a bucket a class."""

    def __init__(self, weights: Array) -> None:
        self.range = len(weights)
        self._weights = weights
        # In single precision and in order, as TF adds.
        self._total = np.cumsum(weights, dtype=np.float32)[-1]
        self._keep, self._other = _buckets(weights)

    def draws(self, place: Philox, count: int) -> Draws:
        """A bucket, and whether its own class or the other."""
        for share, bucket in self._pairs(_words(place, np.uint32, 2 * count)):
            unit = unit_float32(share)
            yield np.where(unit < self._keep[bucket], bucket, self._other[bucket])

    def _pairs(self, supply: Iterator[Array]) -> Iterator[tuple[Array, Array]]:
        """(a word, a bucket), where a word rejected as a bucket is drawn again."""
        limit, left = _rejected(self.range, 32), np.zeros(0, np.uint32)
        for more in supply:
            left = np.concatenate([left, more])
            while len(left) >= 2:
                pairs = left[: len(left) // 2 * 2].reshape(-1, 2)
                bad = pairs[:, 1] < limit
                good = int(bad.argmax()) if bad.any() else len(pairs)
                if good:
                    yield pairs[:good, 0], (pairs[:good, 1] % self.range).astype(np.int64)
                left = left[2 * good :]
                if good < len(pairs):
                    # The word goes, the share before it stays.
                    left = np.delete(left, 1)

    def probability(self, classes: Array) -> Array:
        """Its part of all weights; 0 outside."""
        inside = (classes >= 0) & (classes < self.range)
        found = self._weights[np.where(inside, classes, 0)] / self._total
        return np.where(inside, found, np.float32(0)).astype(np.float32)


def _buckets(weights: Array) -> tuple[Array, Array]:
    """How much of each class's bucket is its own, and whose the rest is."""
    n = len(weights)
    total = np.cumsum(weights, dtype=np.float64)[-1]
    share = (weights * np.float32(n)).astype(np.float64) / total
    other = np.arange(n)
    low = [int(i) for i in np.flatnonzero(share < 1.0)]
    high = [int(i) for i in np.flatnonzero(share >= 1.0)]
    while low and high:
        poor, rich = low.pop(), high.pop()
        other[poor] = rich
        share[rich] -= 1.0 - share[poor]
        (low if share[rich] < 1.0 else high).append(rich)
    # What rounding has left over is whole.
    share[low + high] = 1.0
    return share.astype(np.float32), other


# ---------------------------------------------------------------- drawing
def _expected(p: Array, count: int, tries: int) -> Array:
    """How often a class of probability `p` comes up; in single precision, as TF computes it."""
    if tries == count:
        return p * np.float32(count)
    with np.errstate(invalid="ignore", divide="ignore"):
        return -np.expm1(np.float32(tries) * np.log1p(-p))


def _unique(draws: Draws, count: int) -> tuple[Array, int]:
    """The first `count` different classes in the order of the draws, and how many draws it took."""
    seen = np.zeros(0, np.int64)
    for more in draws:
        seen = np.concatenate([seen, more])
        first = np.sort(np.unique(seen, return_index=True)[1])
        if len(first) >= count:
            return seen[first[:count]], int(first[count - 1]) + 1
        if len(seen) >= _MOST:
            break
    raise checks.invalid(f"{count} different classes did not turn up in {_MOST} draws.")


def _first(draws: Draws, count: int) -> Array:
    found = [next(draws)]
    while sum(map(len, found)) < count:
        found.append(next(draws))
    return np.concatenate(found)[:count]


def _check(sig: NodeSig, classes: Array) -> None:
    if classes.ndim != 2:
        raise checks.invalid("true_classes must be a matrix")
    if classes.shape[1] != sig.attrs["num_true"]:
        raise checks.invalid(
            f"true_classes must have num_true columns, expected: {classes.shape[1]} was: "
            f"{sig.attrs['num_true']}"
        )


def _run(sig: NodeSig, sampler: Sampler) -> Callable[[Array], tuple[Array, Array, Array]]:
    stream, count = node_stream(sig), int(sig.attrs["num_sampled"])
    unique = bool(sig.attrs["unique"])

    def run(classes: Array) -> tuple[Array, Array, Array]:
        _check(sig, classes)
        if unique and count > sampler.range:
            raise checks.invalid("Sampler's range is too small.")
        draws = sampler.draws(stream.reserve(_BLOCKS * count), count)
        drawn, tries = _unique(draws, count) if unique else (_first(draws, count), count)
        counts = (_expected(sampler.probability(x), count, tries) for x in (classes, drawn))
        of_true, of_drawn = counts
        return drawn, of_true, of_drawn

    return run


@table.binder("UniformCandidateSampler")
def uniform(sig: NodeSig) -> Callable[..., Any]:
    """Evenly."""
    return _run(sig, Uniform(int(sig.attrs["range_max"])))


@table.binder("LogUniformCandidateSampler")
def log_uniform(sig: NodeSig) -> Callable[..., Any]:
    """The smaller, the more often."""
    return _run(sig, LogUniform(int(sig.attrs["range_max"])))


@table.binder("LearnedUnigramCandidateSampler", "ThreadUnsafeUnigramCandidateSampler")
def learned_unigram(sig: NodeSig) -> Callable[..., Any]:
    """As often as before; the counts are the session's."""
    size = int(sig.attrs["range_max"])
    if sig.resources is None:
        sampler = Learned(size)
    else:
        sampler = sig.resources.node_state(f"{sig.name}/unigrams", lambda: Learned(size))
    draw = _run(sig, sampler)

    def run(classes: Array) -> Any:
        found = draw(classes)
        sampler.update(classes)
        return found

    return run


@table.binder("FixedUnigramCandidateSampler")
def fixed_unigram(sig: NodeSig) -> Callable[..., Any]:
    """By weights that are given, or stand in a file."""
    return _run(sig, Fixed(_weights(sig)))


def _weights(sig: NodeSig) -> Array:
    attrs = sig.attrs
    path, given = attrs["vocab_file"], list(attrs["unigrams"])
    path = path.decode() if isinstance(path, bytes) else path
    if not path and not given:
        raise checks.invalid("Must provide either vocab_file or unigrams.")
    if path and given:
        raise checks.invalid("Must only provide one of vocab_file and unigrams.")
    shards, shard = int(attrs["num_shards"]), int(attrs["shard"])
    reserved = len(range(shard, int(attrs["num_reserved_ids"]), shards))
    weights = np.array(_read(path) if path else given, np.float32)
    # TF numbers what follows the reserved classes from those that this shard has.
    mine = (np.arange(len(weights)) + reserved) % shards == shard
    powers = weights[mine] ** np.float32(attrs["distortion"])
    found = np.concatenate([np.zeros(reserved, np.float32), powers]).astype(np.float32)
    if len(found) != attrs["range_max"]:
        raise checks.invalid(f"range_max is {attrs['range_max']}, but {len(found)} weights stand")
    if not np.isfinite(found).all() or (found < 0).any() or not found.any():
        raise checks.invalid("the weights must be finite and not negative, and not all 0")
    return found


def _read(path: str) -> list[float]:
    found = []
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    found.append(float(line.rstrip("\n").rpartition(",")[2]))
                except ValueError:
                    raise checks.invalid(
                        f"Wrong vocabulary format at line: {line.rstrip()}"
                    ) from None
    except OSError as e:
        raise checks.invalid(f"{path}; {e.strerror}") from None
    return found


@table.binder("AllCandidateSampler")
def every(sig: NodeSig) -> Callable[..., Any]:
    """Each class once."""
    count = int(sig.attrs["num_sampled"])

    def run(classes: Array) -> Any:
        _check(sig, classes)
        ones = np.ones(count, np.float32)
        return np.arange(count, dtype=np.int64), np.ones(classes.shape, np.float32), ones

    return run
