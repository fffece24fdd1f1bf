"""Gamma and Poisson numbers by rejection, each from its own stretch of the stream, as loops.

They take the numbers that `kernels/random_dist.py` takes, and in the same order.
"""

from __future__ import annotations

from math import exp, log, sqrt
from typing import Final

import numpy as np

from opdock.plugin import philox
from opdock_cpu.gammas import log_gamma
from opdock_cpu.jit.draws import COSINE, SINE
from opdock_cpu.jit.looped import Array, Looped, lower

__all__ = ["gamma", "poisson"]

_WORD: Final = (1 << 32) - 1
_FIRST: Final = 0xD2511F53
_SECOND: Final = 0xCD9E8D57

_WEYL0: Final = 0x9E3779B9
_WEYL1: Final = 0xBB67AE85
_STRETCH: Final = philox.RESERVED
_WORK: Final = 100
"""Steps that an output takes, about."""
_TURN: Final = 6.283185307179586
_QUARTERS: Final = 2.0 / np.pi
_QUARTER: Final = 1.5707963267948966
_QUARTER_REST: Final = 6.123233995736766e-17
_TINY: Final = float(np.finfo(np.float64).tiny)


def _block(place: Array, far: int) -> tuple[int, int, int, int]:
    """The block so far behind a place, which is the words of the key and of the counter."""
    c0 = place[2] + (far & _WORD)
    c1 = place[3] + (far >> 32) + (c0 >> 32)
    c2 = place[4] + (c1 >> 32)
    c3 = (place[5] + (c2 >> 32)) & _WORD
    c0, c1, c2 = c0 & _WORD, c1 & _WORD, c2 & _WORD
    k0, k1 = place[0], place[1]
    for _ in range(10):
        # What is above the sign bit comes back by the mask.
        a, b = c0 * _FIRST, c2 * _SECOND
        c0, c1, c2, c3 = (
            (b >> 32 & _WORD) ^ c1 ^ k0,
            b & _WORD,
            (a >> 32 & _WORD) ^ c3 ^ k1,
            a & _WORD,
        )
        k0, k1 = (k0 + _WEYL0) & _WORD, (k1 + _WEYL1) & _WORD
    return c0, c1, c2, c3


def _uniforms(place: Array, far: int) -> tuple[float, float]:
    """The two uniforms of a block, the second one first, as TF takes them."""
    a, b, c, d = _block(place, far)
    first = ((c & 0xFFFFF) << 32 | d) * 2.220446049250313e-16
    second = ((a & 0xFFFFF) << 32 | b) * 2.220446049250313e-16
    return first, second


def _sine_and_cosine(x: float) -> tuple[float, float]:
    """Of an angle between 0 and 2 pi."""
    turns = lower(x * _QUARTERS + 0.5)
    rest = x - turns * _QUARTER - turns * _QUARTER_REST
    z = rest * rest
    sine, cosine = z - z, z - z
    for c in SINE:
        sine = sine * z + c
    for c in COSINE:
        cosine = cosine * z + c
    sine, cosine = sine * z * rest + rest, cosine * z * z - 0.5 * z + 1.0
    quarter = int(turns) & 3
    if quarter & 1 == 1:
        sine, cosine = cosine, sine
    sine = 0.0 - sine if quarter >= 2 else sine
    cosine = 0.0 - cosine if (quarter + 1) & 2 == 2 else cosine
    return sine, cosine


def _normals(place: Array, far: int) -> tuple[float, float]:
    """The two normals of a block, by Box and Muller, the second one first."""
    angle, size = _uniforms(place, far)
    sine, cosine = _sine_and_cosine(angle * _TURN)
    length = sqrt(-2.0 * log(max(size, 1e-7)))
    return cosine * length, sine * length


def _gamma(begin: int, end: int, out: Array, alphas: Array, place: Array) -> None:
    """A turn is an output; its shape is above zero."""
    for t in range(begin, end):
        far, undecided, alpha = t * _STRETCH, 1, alphas[t]
        normals, uniforms = 0, 0  # how many are left of a pair
        x2, u2, u = alpha - alpha, alpha - alpha, alpha - alpha
        if alpha == 1:
            u, u2 = _uniforms(place, far)
            out[t] = -log(1.0 - u)
            undecided = 0
        small = alpha < 1
        d = alpha + 2.0 / 3 if small else alpha - 1.0 / 3
        c = 1.0 / 3 / sqrt(max(d, _TINY))
        while undecided == 1:
            if normals == 0:
                x, x2 = _normals(place, far)
                far += 1
            else:
                x = x2
            normals = 1 - normals
            v = 1.0 + c * x
            if v <= 0:
                continue
            v = v * v * v
            if uniforms == 0:
                u, u2 = _uniforms(place, far)
                far += 1
            else:
                u = u2
            uniforms = 1 - uniforms
            square = x * x
            if u < 1.0 - 0.0331 * square * square or log(u) < 0.5 * square + d * (1.0 - v + log(v)):
                undecided = 0
                out[t] = d * v
        if small:
            if uniforms == 0:
                u, u2 = _uniforms(place, far)
            else:
                u = u2
            out[t] = out[t] * exp(log(u) / alpha)


def _poisson(begin: int, end: int, out: Array, rates: Array, limits: Array, place: Array) -> None:
    """A turn is an output; its limit is the chance of zero.

    Knuth's product of uniforms below a rate of ten, Hoermann's transformed rejection above (The
    transformed rejection method for generating Poisson random variables, 1993).
    """
    for t in range(begin, end):
        far, undecided, events, rate = t * _STRETCH, 1, 0, rates[t]
        if rate < 10:
            product = rate - rate + 1.0
            while undecided == 1:
                first, second = _uniforms(place, far)
                far += 1
                product = product * first
                if product <= limits[t]:
                    undecided = 0
                else:
                    events += 1
                    product = product * second
                    if product <= limits[t]:
                        undecided = 0
                    else:
                        events += 1
            out[t] = events
        else:
            b = 0.931 + 2.53 * sqrt(rate)
            a = -0.059 + 0.02483 * b
            inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
            while undecided == 1:
                first, v = _uniforms(place, far)
                far += 1
                u = first - 0.5
                room = 0.5 - abs(u)
                k = lower((2.0 * a / room + b) * u + rate + 0.43)
                if room >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2.0):
                    undecided = 0
                elif k >= 0 and not (room < 0.013 and v > room):
                    left = log(v * inverse_alpha / (a / (room * room) + b))
                    if left <= k * log(rate) - rate - log_gamma(k + 1.0):
                        undecided = 0
                out[t] = k


_GAMMA, _POISSON = Looped(_gamma), Looped(_poisson)


def _words(key: int, counter: int) -> Array:
    words = [key, key >> 32, *(counter >> 32 * i for i in range(4))]
    return np.array([word & _WORD for word in words], np.int64)


def gamma(key: int, counter: int, alphas: Array) -> Array | None:
    """Gamma numbers of shapes above zero, as float64 good enough for single precision.

    Args:
        key, counter: where the stream is, of which each output has a stretch.
        alphas: float64, of each output.

    Returns:
        None while there is no code.
    """
    out = np.empty(len(alphas))
    done = _GAMMA(len(alphas), _WORK * len(alphas), out, alphas, _words(key, counter))
    return out if done else None


def poisson(key: int, counter: int, rates: Array) -> Array | None:
    """Poisson numbers of finite rates that are not negative, as float64; None without code.

    Args:
        key, counter: where the stream is, of which each output has a stretch.
        rates: float64, of each output.
    """
    out, limits, place = np.empty(len(rates)), np.exp(-rates), _words(key, counter)
    done = _POISSON(len(rates), _WORK * len(rates), out, rates, limits, place)
    return out if done else None
