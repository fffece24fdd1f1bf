"""Oracle of the random ops: Philox4x32-10, one block at a time, as the paper writes it.

A block is ten rounds over four 32-bit words under a 64-bit key.  TensorFlow's two seeds fill the
key and the upper half of the counter; a stateful op starts at counter zero in a new session, so
its first run is a pure function of its attributes, and that is what is given here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = Mapping[str, Any]
Block = tuple[int, int, int, int]

WORD = 0xFFFFFFFF
LONG = 0xFFFFFFFFFFFFFFFF
RESERVED = 256  # blocks set aside for each output that consumes an unknown number of them


class Stream:
    """A Philox key and a 128-bit counter."""

    def __init__(self, key: int, counter: int) -> None:
        self.key, self.counter = key & LONG, counter

    def block(self, index: int) -> Block:
        """The block ``index`` blocks after the start."""
        number = self.counter + index
        c0, c1, c2, c3 = ((number >> shift) & WORD for shift in (0, 32, 64, 96))
        k0, k1 = self.key & WORD, self.key >> 32
        for _ in range(10):
            a, b = 0xD2511F53 * c0, 0xCD9E8D57 * c2
            c0, c1, c2, c3 = (b >> 32) ^ c1 ^ k0, b & WORD, (a >> 32) ^ c3 ^ k1, a & WORD
            k0, k1 = (k0 + 0x9E3779B9) & WORD, (k1 + 0xBB67AE85) & WORD
        return c0, c1, c2, c3

    def words(self, start: int = 0) -> Iterator[int]:
        """The 32-bit words from block ``start`` on."""
        while True:
            yield from self.block(start)
            start += 1


def stateful(attrs: Attrs) -> Stream:
    """The stream of a node with the attributes ``seed`` and ``seed2``, in its first run."""
    return Stream(attrs["seed"], (attrs["seed2"] & LONG) << 64)


def stateless(seed: Array) -> Stream:
    """The stream of a seed tensor: the seeds are scrambled by one block under a fixed key."""
    first, second = int(seed[0]) & LONG, int(seed[1]) & LONG
    k0, k1, c2, c3 = Stream(0x02461E293EC8F720, first | second << 64).block(0)
    return Stream(k0 | k1 << 32, c2 << 64 | c3 << 96)


# ---------------------------------------------------------------- from bits to numbers
def unit32(word: int, bits: int = 23) -> float:
    """[0, 1) from the low ``bits`` bits: 23 for float32, 10 for float16, 7 for bfloat16."""
    return (word & (1 << bits) - 1) / float(1 << bits)


def unit64(high: int, low: int) -> float:
    """[0, 1) from 52 bits, 20 of the first word and 32 of the second."""
    return ((high & 0xFFFFF) << 32 | low) / float(1 << 52)


def normals32(first: int, second: int) -> tuple[float, float]:
    """Box and Muller's two normals, every step rounded to float32."""
    f = np.float32
    u1 = max(f(unit32(first)), f(1e-7))
    angle = f(2.0 * math.pi * unit32(second))
    radius = np.sqrt(f(-2.0) * f(math.log(u1)))
    return float(f(math.sin(angle)) * radius), float(f(math.cos(angle)) * radius)


def normals64(block: Block) -> tuple[float, float]:
    """Box and Muller's two normals in float64, from one block."""
    u1 = max(unit64(block[0], block[1]), 1e-7)
    angle = 2.0 * math.pi * unit64(block[2], block[3])
    radius = math.sqrt(-2.0 * math.log(u1))
    return math.sin(angle) * radius, math.cos(angle) * radius


# ---------------------------------------------------------------- fills
def uniforms(stream: Stream, dtype: np.dtype[Any]) -> Iterator[float]:
    """An endless supply of uniforms."""
    words = stream.words()
    bits = {"float16": 10, "bfloat16": 7}.get(dtype.name, 23)
    for word in words:
        yield unit64(word, next(words)) if dtype == np.float64 else unit32(word, bits)


def normals(stream: Stream, dtype: np.dtype[Any]) -> Iterator[float]:
    """An endless supply of normals."""
    index = 0
    while True:
        block = stream.block(index)
        if dtype == np.float64:
            yield from normals64(block)
        else:
            yield from normals32(*block[:2])
            yield from normals32(*block[2:])
        index += 1


def truncated_normals(stream: Stream, dtype: np.dtype[Any]) -> Iterator[float]:
    """An endless supply of normals within two deviations.

    Outputs come in groups (2 doubles or 4 others).  A group draws pairs from its own stretch of
    the stream until it is full; what is left of the last pair is thrown away.
    """
    size = 2 if dtype == np.float64 else 4
    group = 0
    while True:
        words = stream.words(group * size * RESERVED // 4)
        found: list[float] = []
        while len(found) < size:
            if dtype == np.float64:
                pair = normals64((next(words), next(words), next(words), next(words)))
            else:
                pair = normals32(next(words), next(words))
            found += [value for value in pair if abs(value) < 2.0]
        yield from found[:size]
        group += 1


def take(values: Iterator[float], shape: Array) -> Array:
    """The next values, in the shape that a shape tensor asks for."""
    dims = tuple(int(d) for d in shape)
    return np.array([next(values) for _ in range(math.prod(dims))]).reshape(dims)


@reference("RandomUniform")
def random_uniform(attrs: Attrs, shape: Array) -> Array:
    """[0, 1) evenly."""
    return take(uniforms(stateful(attrs), np.dtype(attrs["dtype"])), shape)


@reference("RandomStandardNormal")
def random_standard_normal(attrs: Attrs, shape: Array) -> Array:
    """Mean 0, deviation 1."""
    return take(normals(stateful(attrs), np.dtype(attrs["dtype"])), shape)


@reference("TruncatedNormal")
def truncated_normal(attrs: Attrs, shape: Array) -> Array:
    """Mean 0, deviation 1, redrawn beyond 2."""
    return take(truncated_normals(stateful(attrs), np.dtype(attrs["dtype"])), shape)


@reference("StatelessRandomUniform")
def stateless_random_uniform(attrs: Attrs, shape: Array, seed: Array) -> Array:
    """[0, 1) evenly, from the seed tensor alone."""
    return take(uniforms(stateless(seed), np.dtype(attrs["dtype"])), shape)


@reference("StatelessRandomNormal")
def stateless_random_normal(attrs: Attrs, shape: Array, seed: Array) -> Array:
    """Mean 0, deviation 1, from the seed tensor alone."""
    return take(normals(stateless(seed), np.dtype(attrs["dtype"])), shape)


@reference("StatelessTruncatedNormal")
def stateless_truncated_normal(attrs: Attrs, shape: Array, seed: Array) -> Array:
    """Mean 0, deviation 1, redrawn beyond 2, from the seed tensor alone."""
    return take(truncated_normals(stateless(seed), np.dtype(attrs["dtype"])), shape)


def integers(stream: Stream, dtype: Any, shape: Array, low: Array, high: Array) -> Array:
    """``low`` plus bits modulo the width: one word each for int32, two for int64."""
    dims, width = tuple(int(d) for d in shape), int(high) - int(low)
    words, out = stream.words(), []
    for _ in range(math.prod(dims)):
        bits = next(words)
        if np.dtype(dtype).itemsize == 8:
            bits |= next(words) << 32
        out.append(int(low) + bits % width)
    return np.array(out, np.int64).reshape(dims)


@reference("RandomUniformInt")
def random_uniform_int(attrs: Attrs, shape: Array, low: Array, high: Array) -> Array:
    """Integers of ``[low, high)``."""
    return integers(stateful(attrs), attrs["Tout"], shape, low, high)


@reference("StatelessRandomUniformInt")
def stateless_uniform_int(
    attrs: Attrs, shape: Array, seed: Array, low: Array, high: Array
) -> Array:
    """Integers of ``[low, high)``, from the seed tensor alone."""
    return integers(stateless(seed), attrs["dtype"], shape, low, high)


@reference("RandomShuffle")
def random_shuffle(attrs: Attrs, value: Array) -> Array:
    """Fisher and Yates from the front; the slices move whole."""
    if value.ndim == 0 or value.size <= 1:
        return value
    order = list(range(value.shape[0]))
    words = stateful(attrs).words()
    for first in range(len(order) - 1):
        other = first + next(words) % (len(order) - first)
        order[first], order[other] = order[other], order[first]
    return value[order]


# ---------------------------------------------------------------- distributions
def doubles(stream: Stream, start: int = 0) -> Iterator[float]:
    """Uniform doubles in stream order."""
    words = stream.words(start)
    while True:
        yield unit64(next(words), next(words))


def categorical(stream: Stream, logits: Array, count: int) -> Array:
    """Inverse of the cumulative distribution; a logit that is not finite weighs nothing."""
    draws = doubles(stream)
    out = np.zeros((logits.shape[0], count), np.int64)
    for row, values in enumerate(logits.astype(np.float64)):
        top = max((v for v in values if math.isfinite(v)), default=0.0)
        cumulative, total = [], 0.0
        for value in values:
            total += math.exp(value - top) if math.isfinite(value) else 0.0
            cumulative.append(total)
        for column in range(count):
            target = next(draws) * total
            out[row, column] = sum(1 for bound in cumulative if bound <= target)
    return out


@reference("Multinomial")
def multinomial(attrs: Attrs, logits: Array, num_samples: Array) -> Array:
    """Class indices, ``num_samples`` a row."""
    return categorical(stateful(attrs), logits, int(num_samples))


@reference("StatelessMultinomial")
def stateless_multinomial(attrs: Attrs, logits: Array, num_samples: Array, seed: Array) -> Array:
    """Class indices, from the seed tensor alone."""
    return categorical(stateless(seed), logits, int(num_samples))


class OwnStretch:
    """One output's stretch of the stream: pairs from a block each, the second of a pair first."""

    def __init__(self, stream: Stream, output: int) -> None:
        self.stream, self.next = stream, output * RESERVED
        self.left: dict[str, list[float]] = {"uniform": [], "normal": []}

    def draw(self, kind: str) -> float:
        """The next uniform or normal."""
        if not self.left[kind]:
            block = self.stream.block(self.next)
            self.next += 1
            if kind == "normal":
                self.left[kind] = list(normals64(block))
            else:
                self.left[kind] = [unit64(*block[:2]), unit64(*block[2:])]
        return self.left[kind].pop()


def gamma_sample(alpha: float, own: OwnStretch) -> float:
    """Marsaglia and Tsang (2000): squeeze, else the exact test."""
    if alpha == 1.0:
        return -math.log(1.0 - own.draw("uniform"))
    d = alpha + (2.0 / 3 if alpha < 1 else -1.0 / 3)
    c = 1.0 / 3 / math.sqrt(d)
    while True:
        x = own.draw("normal")
        v = 1.0 + c * x
        if v <= 0:
            continue
        v, u = v**3, own.draw("uniform")
        if u < 1.0 - 0.0331 * x**4 or math.log(u) < 0.5 * x * x + d * (1.0 - v + math.log(v)):
            boost = own.draw("uniform") ** (1.0 / alpha) if alpha < 1 else 1.0
            return d * v * boost


def poisson_sample(rate: float, own: OwnStretch) -> float:
    """Knuth's product below a rate of ten, Hoermann's transformed rejection from there on."""
    if rate < 10:
        events, product = 0, own.draw("uniform")
        while product > math.exp(-rate):
            events, product = events + 1, product * own.draw("uniform")
        return float(events)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    while True:
        u, v = own.draw("uniform") - 0.5, own.draw("uniform")
        room = 0.5 - abs(u)
        k = math.floor((2 * a / room + b) * u + rate + 0.43)
        if room >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2):
            return float(k)
        if k < 0 or (room < 0.013 and v > room):
            continue
        left = math.log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (room * room) + b))
        if left <= k * math.log(rate) - rate - math.lgamma(k + 1):
            return float(k)


def binomial_inversion(count: float, prob: float, own: OwnStretch) -> float:
    """Adds up the trials from one success to the next, which are geometric, up to `count`."""
    successes, trials = 0, 0.0
    while True:
        u = own.draw("uniform")
        trials += math.ceil(math.log(u) / math.log1p(-prob)) if u > 0 else math.inf
        if trials > count:
            return float(successes)
        successes += 1


def _stirling_rest(k: float) -> float:
    """What Stirling's formula leaves of the logarithm of the factorial of `k`."""
    return math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + math.log(2 * math.pi) / 2)


def binomial_rejection(count: float, prob: float, own: OwnStretch) -> float:
    """Hoermann's transformed rejection (1993)."""
    deviation = math.sqrt(count * prob * (1 - prob))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * prob
    odds, middle = prob / (1 - prob), math.floor((count + 1) * prob)
    while True:
        u, v = own.draw("uniform") - 0.5, own.draw("uniform")
        room = 0.5 - abs(u)
        k = math.floor((2 * a / room + b) * u + count * prob + 0.5)
        if room >= 0.07 and v <= 0.92 - 4.2 / b:
            return float(k)
        if not 0 <= k <= count:
            continue
        bound = (middle + 0.5) * math.log((middle + 1) / (odds * (count - middle + 1)))
        bound += (count + 1) * math.log((count - middle + 1) / (count - k + 1))
        bound += (k + 0.5) * math.log(odds * (count - k + 1) / (k + 1))
        bound += _stirling_rest(middle) + _stirling_rest(count - middle)
        bound -= _stirling_rest(k) + _stirling_rest(count - k)
        if math.log(v * (2.83 + 5.1 / b) * deviation / (a / (room * room) + b)) <= bound:
            return float(k)


def per_parameter(attrs: Attrs, shape: Array, parameter: Array, sample: Any) -> Array:
    """All samples of the first parameter, then of the second, laid out samples first."""
    dims, values = tuple(int(d) for d in shape), parameter.reshape(-1)
    each, stream = math.prod(dims), stateful(attrs)
    out = np.zeros((each, values.size))
    for p, value in enumerate(values):
        for s in range(each):
            out[s, p] = sample(float(value), OwnStretch(stream, p * each + s))
    return out.reshape(dims + parameter.shape)


@reference("RandomGamma")
def random_gamma(attrs: Attrs, shape: Array, alpha: Array) -> Array:
    """Samples ``shape + alpha.shape``."""
    return per_parameter(attrs, shape, alpha, gamma_sample)


@reference("RandomPoissonV2")
def random_poisson(attrs: Attrs, shape: Array, rate: Array) -> Array:
    """Samples ``shape + rate.shape``."""
    return per_parameter(attrs, shape, rate, poisson_sample)


@reference("RandomGammaGrad")
def random_gamma_grad(attrs: Attrs, alpha: Array, sample: Array) -> Array:
    """How a sample moves with its shape parameter at constant probability: -(dP/da) / (dP/dx)."""

    def below(a: float, x: float) -> float:
        logs = (((a + n) * math.log(x) - x - math.lgamma(a + n + 1.0)) for n in range(400))
        return sum(math.exp(value) for value in logs)

    def above(a: float, x: float) -> float:
        t = x + (np.arange(60000) + 0.5) * 0.001
        logs = (a - 1.0) * np.log(t) - t - math.lgamma(a)
        return float(np.exp(logs).sum() * 0.001)

    def one(a: float, x: float) -> float:
        # The smaller of the two probabilities keeps its digits when it is differenced.
        probability, sign = (above, 1.0) if x > a + 1 else (below, -1.0)
        step = 1e-4 * a
        slope = (probability(a + step, x) - probability(a - step, x)) / (2 * step)
        return float(sign * slope / math.exp((a - 1) * math.log(x) - x - math.lgamma(a)))

    a, x = np.broadcast_arrays(alpha, sample)
    out = [one(float(p), float(q)) for p, q in zip(a.reshape(-1), x.reshape(-1), strict=True)]
    return np.array(out).reshape(a.shape)


@reference("ParameterizedTruncatedNormal")
def parameterized_truncated_normal(attrs: Attrs, shape: Array, *parameters: Array) -> Array:
    """Batch by batch, each from its own stretch of the stream."""
    means, deviations, low, high = parameters
    count = int(np.prod(shape, dtype=np.int64))
    batches, each = int(shape[0]), count // max(int(shape[0]), 1)
    if means.size == deviations.size == 1 and low.ndim == high.ndim == 0:
        batches, each = -(-count // 100), 100
    stream, out = stateful(attrs), np.empty(batches * each)
    rows = zip(*(np.broadcast_to(p, (batches,)).tolist() for p in parameters), strict=True)
    for batch, (mean, deviation, least, most) in enumerate(rows):
        if least == -np.inf or most < mean:
            least, most, deviation = most, least, -deviation
        start = batch * 2 * 1000 * (each + 3) // 4
        own = Stream(stream.key, stream.counter + start)
        bounds = (least - mean) / deviation, (most - mean) / deviation
        fitting = truncated_between(own, np.dtype(attrs["dtype"]), *bounds)
        for i in range(each):
            out[batch * each + i] = next(fitting) * deviation + mean
    return out[:count].reshape(shape).astype(attrs["dtype"])


def truncated_between(
    stream: Stream, dtype: np.dtype[Any], low: float, high: float
) -> Iterator[float]:
    """Normals between two bounds by one of three ways to reject what does not fit."""
    root = math.sqrt(low * low + 4)
    cutoff = 2 * math.exp(0.5 + low * (low - root) / 4) / (low + root)
    if (low < -1.3 and high >= 0) or (high > 1.3 and low <= 0):
        yield from (value for value in normals(stream, dtype) if low <= value <= high)
    unit, size = uniforms(stream, dtype), 2 if dtype == np.float64 else 4
    while high - low < cutoff:
        values = [next(unit) * (high - low) + low for _ in range(size)]
        least = low * low if low > 0 else 0.0
        for value in values:
            if next(unit) <= math.exp((least - value * value) / 2):
                yield value
    rate = (low + root) / 2
    while True:
        first, second = next(unit), next(unit)
        value = (-math.log(first) if first else math.inf) / rate + low
        off = rate - value if low < rate else low - rate
        if second <= math.exp(-off * off / 2) and value < high:
            yield value
