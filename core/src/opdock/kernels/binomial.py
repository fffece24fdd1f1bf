"""Binomial samples, which are found one after the other on the host.

A sample takes as many blocks of the generator's stream as it needs, so where the next one begins
is known only when it is done.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["Pairs", "successes"]

# What Stirling's formula leaves of the logarithms of the factorials of 0 to 9.
_RESTS: Final = tuple(
    math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi))
    for k in range(10)
)
Pairs = Iterator[tuple[float, float]]


def successes(
    count: Any, prob: Any, size: int, pairs: Pairs, target: np.dtype[Any]
) -> npt.NDArray[Any]:
    """So many samples of one pair of parameters."""
    if count <= 0 or prob <= 0:
        return np.zeros(size, target)
    if prob >= 1:
        return np.full(size, count).astype(target)
    if not (math.isfinite(count) and math.isfinite(prob)):
        lowest = math.nan if target.kind == "f" else np.iinfo(target).min
        return np.full(size, lowest, target)
    few = prob <= 0.5
    rare = prob if few else type(prob)(1) - prob
    # Whether there are many successes is found in the parameters' own type.
    find = _by_rejection if count * rare >= 10 else _by_inversion
    found = np.array([find(float(count), float(rare), pairs) for _ in range(size)])
    return (found if few else float(count) - found).astype(target)


def _by_inversion(count: float, prob: float, pairs: Pairs) -> float:
    """Adds up the trials from one success to the next, which are geometric, up to `count`."""
    scale, trials, successes = math.log1p(-prob), 0.0, 0
    for pair in pairs:
        for u in pair:
            trials += math.ceil(math.log(u) / scale) if u else math.inf
            if trials > count:
                return successes
            successes += 1
    raise AssertionError("a stream has no end")


def _rest(k: float) -> float:
    if k <= 9:
        return _RESTS[int(k)]
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 + 1.0 / 1260 / square) / square) / (k + 1)


def _by_rejection(count: float, prob: float, pairs: Pairs) -> float:
    """Hoermann's transformed rejection (1993), with the constants of his paper."""
    deviation = math.sqrt(count * prob * (1 - prob))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * prob
    centre, sure = count * prob + 0.5, 0.92 - 4.2 / b
    alpha, odds, mode = (2.83 + 5.1 / b) * deviation, prob / (1 - prob), (count + 1) * prob // 1
    log = math.log
    for u, v in pairs:
        u -= 0.5
        room = 0.5 - abs(u)
        # Where there is no room, the sample would be infinitely far out.
        k = ((2 * a / room + b) * u + centre) // 1 if room else -math.inf
        if room >= 0.07 and v <= sure:
            return k
        if k < 0 or k > count:
            continue
        bound = (
            (mode + 0.5) * log((mode + 1) / (odds * (count - mode + 1)))
            + (count + 1) * log((count - mode + 1) / (count - k + 1))
            + (k + 0.5) * log(odds * (count - k + 1) / (k + 1))
            + _rest(mode) + _rest(count - mode) - _rest(k) - _rest(count - k)
        )  # fmt: skip
        if not v or log(v * alpha / (a / (room * room) + b)) <= bound:
            return k
    raise AssertionError("a stream has no end")
