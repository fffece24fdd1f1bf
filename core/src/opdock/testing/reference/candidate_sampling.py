"""Oracle of the candidate samplers: word for word from the stream, class after class."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference
from opdock.testing.reference.random import stateful, unit32, unit64

Array = npt.NDArray[Any]
Attrs = Mapping[str, Any]
Words = Iterator[int]
Three = tuple[Array, Array, Array]


def below(words: Words, n: int, bits: int) -> int:
    """An integer in [0, n); what favours small remainders is drawn again."""
    while True:
        word = next(words) if bits == 32 else next(words) | next(words) << 32
        if n & (n - 1) == 0 or word >= (1 << bits) % n:
            return word % n


def expected(p: float, count: int, tries: int) -> float:
    """How often a class of probability `p` is among `count`."""
    return p * count if tries == count else 1.0 - (1.0 - p) ** tries


def sampled(
    attrs: Attrs, classes: Array, draw: Callable[[Words], int], p: Callable[[int], float]
) -> Three:
    """Draws until there are enough, and counts the draws."""
    words, count, tries = stateful(attrs).words(), attrs["num_sampled"], 0
    drawn: list[int] = []
    while len(drawn) < count:
        tries += 1
        value = draw(words)
        if not attrs["unique"] or value not in drawn:
            drawn.append(value)
    of_true = [[expected(p(int(c)), count, tries) for c in row] for row in classes]
    of_drawn = [expected(p(c), count, tries) for c in drawn]
    return (
        np.array(drawn, np.int64),
        np.array(of_true, np.float64).reshape(classes.shape),
        np.array(of_drawn, np.float64),
    )


@reference("UniformCandidateSampler")
def uniform(attrs: Attrs, classes: Array) -> Three:
    """Evenly."""
    n = attrs["range_max"]
    return sampled(attrs, classes, lambda words: below(words, n, 64), lambda c: 1.0 / n)


@reference("LogUniformCandidateSampler")
def log_uniform(attrs: Attrs, classes: Array) -> Three:
    """The smaller, the more often."""
    n = attrs["range_max"]
    whole = math.log1p(n)

    def draw(words: Words) -> int:
        value = int(math.exp(unit64(next(words), next(words)) * whole)) - 1
        return value % int(n)

    return sampled(attrs, classes, draw, lambda c: math.log((c + 2.0) / (c + 1.0)) / whole)


@reference("LearnedUnigramCandidateSampler")
def learned_unigram(attrs: Attrs, classes: Array) -> Three:
    """In the first run each class counts 1."""
    n = attrs["range_max"]
    return sampled(attrs, classes, lambda words: below(words, n, 32), lambda c: 1.0 / n)


reference("ThreadUnsafeUnigramCandidateSampler")(learned_unigram)


@reference("FixedUnigramCandidateSampler")
def fixed_unigram(attrs: Attrs, classes: Array) -> Three:
    """By weights, with Walker's alias method."""
    weights = [0.0] * len(range(attrs["shard"], attrs["num_reserved_ids"], attrs["num_shards"]))
    for i, weight in enumerate(attrs["unigrams"], len(weights)):
        if i % attrs["num_shards"] == attrs["shard"]:
            weights.append(weight ** attrs["distortion"])
    n, total = len(weights), math.fsum(weights)
    share, other = [w * n / total for w in weights], list(range(n))
    low = [i for i in range(n) if share[i] < 1.0]
    high = [i for i in range(n) if share[i] >= 1.0]
    while low and high:
        poor, rich = low.pop(), high.pop()
        other[poor] = rich
        share[rich] -= 1.0 - share[poor]
        (low if share[rich] < 1.0 else high).append(rich)
    for i in low + high:
        share[i] = 1.0

    def draw(words: Words) -> int:
        unit, bucket = unit32(next(words)), below(words, n, 32)
        return bucket if unit < share[bucket] else other[bucket]

    return sampled(attrs, classes, draw, lambda c: weights[c] / total if 0 <= c < n else 0.0)


@reference("AllCandidateSampler")
def every(attrs: Attrs, classes: Array) -> Three:
    """Each class once."""
    count = attrs["num_sampled"]
    return np.arange(count), np.ones(classes.shape), np.ones(count)


@reference("ComputeAccidentalHits")
def accidental_hits(attrs: Attrs, classes: Array, drawn: Array) -> Three:
    """Row by row."""
    place = {int(c): i for i, c in enumerate(drawn)}
    hits = [
        (row, place[int(c)]) for row, line in enumerate(classes) for c in line if int(c) in place
    ]
    rows = np.array([row for row, _ in hits], np.int64)
    ids = np.array([at for _, at in hits], np.int64)
    return rows, ids, np.full(len(hits), float(np.finfo(np.float32).min))
