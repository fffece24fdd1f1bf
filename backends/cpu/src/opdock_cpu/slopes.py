"""What the incomplete gamma function P(a, x) grows by with its shape a.

As in `gammas.py`, a turn computes some elements beside each other, each step for all of them.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Final

import numpy as np

from opdock.plugin import codegen
from opdock_cpu.jit.looped import Array, Looped, double

__all__ = ["ENOUGH", "MOST", "SHIFTS", "WORK", "psi", "slope_sorts", "slope_sums"]

ENOUGH: Final = 1e-9
"""What is left of a sum that does not count in single precision."""
_NOTHING: Final = 1e-17
"""The same in double precision."""
_BROAD: Final = 1e4
"""Arguments from which that takes too many terms."""
MOST: Final = 4000
"""Terms of a series."""
WORK: Final = 100
"""Steps that an element takes, about."""
SHIFTS: Final = (0, 1, 2, 3, 4, 5, 6, 7)
"""What is added to small arguments until an asymptotic series is exact."""
_ABREAST: Final = 32
"""Elements of a turn, whose steps wait for each other: 8 take a third longer."""
_FAR, _REST = 254, 255
"""What `slope_sorts` does not call near."""
_DIGAMMA: Final = codegen.SERIES["digamma"][::-1]


def psi(x: float) -> float:
    """Digamma."""
    less = x - x
    for k in SHIFTS:
        less = less + 1.0 / (x + k) if x < 8.0 else less
    z = x + 8.0 if x < 8.0 else x
    squared = 1.0 / (z * z)
    series = z - z
    for c in _DIGAMMA:
        series = series * squared + c
    return log(z) - 0.5 / z - series * squared - less


# ---------------------------------------------------------------- loops
def _slope(
    begin: int, end: int, out: Array, total: Array, term: Array, digamma: Array, logs: Array,
    shape: Array, at: Array, a: Array, x: Array, places: Array, count: int, moved: int,
    enough: float,
) -> None:  # fmt: skip
    """The sum of x**n / ((a + 1) ... (a + n)) times log x less digamma(a + n + 1), at places.

    Or what that says of a sample x, if it is `moved`. The turns of a share work in the same lanes.
    """
    first = begin * _ABREAST
    for turn in range(begin, end):
        for i in range(_ABREAST):
            place = places[min(turn * _ABREAST + i, count - 1)]
            shape[first + i] = a[place]
            at[first + i] = x[place]
        for i in range(first, first + _ABREAST):
            term[i] = 1.0
            digamma[i] = psi(shape[i] + 1.0)
            logs[i] = log(at[i])
            total[i] = logs[i] - digamma[i]
        more, k = 1, 0
        while more > 0 and k < MOST:
            more = 0
            k += 1
            for i in range(first, first + _ABREAST):
                inverse = 1.0 / (shape[i] + k)
                digamma[i] = digamma[i] + inverse
                term[i] = term[i] * (at[i] * inverse)
                value = term[i] * (logs[i] - digamma[i])
                total[i] = total[i] + value
                # Terms grow up to the largest; one comparison, which LLVM makes a vector of.
                left = max(abs(value) - abs(total[i]) * enough, at[i] - shape[i] - k)
                more += 1 if left > 0.0 else 0
        for i in range(_ABREAST):
            place = places[min(turn * _ABREAST + i, count - 1)]
            value = total[first + i]
            if moved > 0:
                value = -value * at[first + i] / shape[first + i]
            if turn * _ABREAST + i < count:
                out[place] = value


def _sorts(begin: int, end: int, out: Array, a: Array, x: Array) -> None:
    """Which function an element is for, and about how many terms it takes there."""
    for i in range(begin, end):
        shape, at = double(a[i]), double(x[i])
        sort = _REST
        if shape > 0 and at >= 0:
            if at > shape + 6.0 * sqrt(shape) + 12.0:
                sort = _FAR
            elif at > 0 and shape - shape == 0:
                sort = min(int(sqrt(at) * 8.0), _FAR - 1)
        out[i] = sort


_SORTS: Final = Looped(_sorts)
_SLOPE: Final = Looped(_slope, fixed=("moved",))


# ---------------------------------------------------------------- arrays
def slope_sums(
    out: Array, a: Array, x: Array, places: Array, moved: bool = False, wide: bool = False
) -> bool:
    """At places, the derivative of P(a, x) by a, over x**a exp(-x) / gamma(a + 1).

    Args:
        out: where they go, a contiguous array of the others' shape.
        a, x: the arguments, positive at the places.
        places: in flat arrays.
        moved: whether instead it is what a sample x moves by as its shape a grows.
        wide: whether all that double precision tells counts.

    Returns:
        Whether there is code, and no need of too many terms.
    """
    if wide and x.take(places).max(initial=0) > _BROAD:
        return False
    turns = -(-places.size // _ABREAST)
    lanes = [np.empty(turns * _ABREAST) for _ in range(6)]
    numbers = places.size, int(moved), _NOTHING if wide else ENOUGH
    return _SLOPE(turns, WORK * places.size, out, *lanes, a, x, places, *numbers)


def slope_sorts(a: Array, x: Array) -> tuple[Array, Array, Array] | None:
    """Places of what `slope_sums` is for, of what `tail_integral` is for, and of the rest.

    The first stand in an order by how many terms they take, since those beside each other wait for
    the last of them. None if there is no code.
    """
    sorts = np.empty(a.size, np.uint8)
    if not _SORTS(a.size, a.size, sorts, a, x):
        return None
    order = np.argsort(sorts, kind="stable")
    counts = np.bincount(sorts, minlength=256)
    near, far = a.size - counts[_FAR] - counts[_REST], a.size - counts[_REST]
    return order[:near], order[near:far], order[far:]
