"""What parameters of a spec are drawn from."""

from __future__ import annotations

import math
import random

__all__ = ["Lf", "Li", "Nt", "Uf", "Ui"]


def Uf(lo: float = 0.0, hi: float = 1.0) -> float:
    """A number of a uniform distribution."""
    return random.uniform(lo, hi)  # noqa: S311 - no secret


def Ui(lo: int, hi: int) -> int:
    """An integer of a uniform distribution, bounds included."""
    return random.randint(lo, hi)  # noqa: S311 - no secret


def Lf(lo: float, hi: float) -> float:
    """A number whose logarithm is of a uniform distribution."""
    return math.exp(Uf(math.log(lo), math.log(hi)))


def Li(lo: int, hi: int) -> int:
    """An integer by the logarithm of a uniform distribution, bounds included."""
    return math.floor(Lf(lo, hi + 1 - 1e-5))


def Nt(mu: float, sigma: float, limit: float = 3.0) -> float:
    """A number of a normal distribution, at most `limit` deviations away."""
    return min(max(random.gauss(mu, sigma), mu - limit * sigma), mu + limit * sigma)
