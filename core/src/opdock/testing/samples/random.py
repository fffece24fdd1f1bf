"""Samples of the random ops: seeded, so that the oracle can say every bit of the first run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_SEEDS = ({"seed": 87654321, "seed2": 7}, {"seed": 1234, "seed2": 0}, {"seed": 5, "seed2": 2**40})
_SHAPES = ((5,), (3, 7), (), (0, 3), (2, 1, 3, 2, 2), (257,))
_FLOAT_REASON = "sine, cosine and logarithm of single-precision libraries differ in the last bits"


def _ints(*values: int, dtype: Any = np.int32) -> np.ndarray[Any, Any]:
    return np.array(values, dtype)


def _slack(dtype: np.dtype[Any]) -> dict[str, Any]:
    if dtype.name in ("float16", "bfloat16"):
        return {}
    eps = float(np.finfo(dtype).eps)
    return {"tol": (8 * eps, 8 * eps), "tol_reason": _FLOAT_REASON}


@samples(
    "RandomUniform", "RandomStandardNormal", "TruncatedNormal", vary="dtype"
)  # fmt: skip
def stateful(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Shapes that fill blocks and shapes that leave part of one; int64 shapes."""
    for i, shape in enumerate(_SHAPES):
        tag = "x".join(map(str, shape)) or "scalar"
        yield Sample([_ints(*shape)], _SEEDS[i % 3], tag, **_slack(dtype))
    yield Sample([_ints(4, 5, dtype=np.int64)], _SEEDS[0], "long-shape", **_slack(dtype))


@samples(
    "StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal", vary="dtype"
)
def stateless(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Shapes, seeds of both types, seeds beyond 32 bits and below zero."""
    for shape in _SHAPES:
        tag = "x".join(map(str, shape)) or "scalar"
        yield Sample([_ints(*shape), _ints(1, 2)], {}, tag, **_slack(dtype))
    for seed in ((0, 0), (-1, 2**62), (2**40, -7)):
        inputs = [_ints(9), _ints(*seed, dtype=np.int64)]
        yield Sample(inputs, {}, f"seed{seed[0]}", **_slack(dtype))


@samples("RandomUniformInt", vary="Tout")
def integers(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Ranges around zero, above it, and the widest that there is."""
    info = np.iinfo(dtype)
    for low, high in ((-5, 100), (0, 1), (7, 9), (info.min, info.max)):
        bounds = [np.array(low, dtype), np.array(high, dtype)]
        yield Sample([_ints(3, 7), *bounds], _SEEDS[0], f"{low}..{high}")
    yield Sample([_ints(0), *bounds], _SEEDS[1], "empty")
    yield Sample([_ints(), *bounds], _SEEDS[1], "scalar")


@samples("StatelessRandomUniformInt", vary="dtype")
def stateless_integers(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same ranges from a seed tensor."""
    info = np.iinfo(dtype)
    for low, high in ((-5, 100), (0, 1), (info.min, info.max)):
        bounds = [np.array(low, dtype), np.array(high, dtype)]
        yield Sample([_ints(3, 7), _ints(1, 2), *bounds], {}, f"{low}..{high}")
    yield Sample([_ints(0, 2), _ints(1, 2), *bounds], {}, "empty")


@samples("RandomShuffle")
def shuffles(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Vectors, rows, what cannot be shuffled."""
    yield Sample([rng.normal((40,))], _SEEDS[0], "vector")
    yield Sample([rng.normal((7, 3))], _SEEDS[1], "rows")
    yield Sample([rng.normal((3, 2, 1, 2, 2))], _SEEDS[2], "rank5")
    yield Sample([rng.normal(())], _SEEDS[0], "scalar")
    yield Sample([rng.normal((1, 3))], _SEEDS[0], "one-row")
    yield Sample([rng.normal((0, 3))], _SEEDS[0], "empty")


def _logits(dtype: np.dtype[Any], rng: Sampler) -> Iterable[tuple[str, Any, int]]:
    yield "plain", rng.normal((3, 4)), 16
    yield "one-class", rng.normal((2, 1)), 5
    yield "odd", rng.normal((5, 3)), 7
    yield "no-samples", rng.normal((2, 3)), 0
    yield "no-rows", rng.normal((0, 3)), 4
    yield "wide", rng.uniform((2, 300), 0, 3), 40
    if dtype.kind not in "iu":
        impossible = np.array([[0.5, -np.inf, 1.5], [np.nan, 0.0, 1.0]]).astype(dtype)
        yield "impossible-class", impossible, 9


@samples("Multinomial")
def multinomials(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Logits of every kind, both output types."""
    for tag, logits, count in _logits(dtype, rng):
        for output in (np.int32, np.int64):
            attrs = {**_SEEDS[0], "output_dtype": np.dtype(output)}
            yield Sample([logits, np.array(count, np.int32)], attrs, f"{tag}-{output.__name__}")


@samples("StatelessMultinomial")
def stateless_multinomials(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same from a seed tensor."""
    for tag, logits, count in _logits(dtype, rng):
        yield Sample([logits, np.array(count, np.int32), _ints(3, 4)], {}, tag)


@samples("RandomGamma")
def gammas(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Shape parameters below, at and above one; several at once; none."""
    reason = "a rejection loop in float64 ends in a cast"
    tol: dict[str, Any] = {"tol": (1e-9, 1e-9), "tol_reason": reason, "grad": False}
    for alpha in (0.3, 1.0, 2.5, 40.0):
        yield Sample([_ints(20), np.array(alpha, dtype)], _SEEDS[0], f"alpha{alpha:g}", **tol)
    yield Sample([_ints(3, 2), rng.positive((2, 3))], _SEEDS[1], "several", **tol)
    yield Sample([_ints(), rng.positive((4,))], _SEEDS[1], "one-each", **tol)
    yield Sample([_ints(0), rng.positive((2,))], _SEEDS[1], "no-samples", **tol)
    yield Sample([_ints(3), np.zeros((0,), dtype)], _SEEDS[1], "no-parameters", **tol)


@samples("RandomPoissonV2", vary="R")
def poissons(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Rates on both sides of ten, every output type."""
    for output in (np.float16, np.float32, np.float64, np.int32, np.int64):
        attrs = {**_SEEDS[0], "dtype": np.dtype(output)}
        rates = np.array([1, 3, 9, 10, 30]).astype(dtype)
        yield Sample([_ints(8), rates], attrs, f"rates-{output.__name__}")
    attrs = {**_SEEDS[1], "dtype": np.dtype(np.int64)}
    yield Sample([_ints(2, 3), np.array(0, dtype)], attrs, "rate-zero")
    yield Sample([_ints(0), np.array([4], dtype)], attrs, "empty")


@samples("ParameterizedTruncatedNormal", vary="dtype")
def truncated_normals(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Each way to draw: bounds around the mean, close together, far away; above and below."""
    tol: dict[str, Any] = {"tol": (1e-2, 1e-2) if np.dtype(dtype).itemsize == 2 else (1e-5, 1e-5)}
    tol["tol_reason"] = "the type in which a proposal is computed is not specified"
    endless = np.array(np.inf).astype(dtype)
    for tag, low, high in (
        ("around", -2, 2), ("close", 1, 1.2), ("far", 4, 9), ("below", -9, -4),
        ("above", 3, np.inf), ("under", -np.inf, -3),
    ):  # fmt: skip
        parameters = [np.array(v).astype(dtype) for v in (0, 1, low, high)]
        yield Sample([_ints(12, 11), *parameters], _SEEDS[0], tag, **tol)
    means, bounds = np.array([0, 5]).astype(dtype), np.array([0.5, 4]).astype(dtype)
    spread = np.array([2]).astype(dtype)
    yield Sample([_ints(2, 9), means, spread, bounds, endless], _SEEDS[1], "each", **tol)
    one = np.array(1).astype(dtype)
    yield Sample([_ints(0, 3), one, one, -one, one], _SEEDS[1], "empty", **tol)


@error_samples("ParameterizedTruncatedNormal")
def bad_parameters() -> Iterable[ErrorSample]:
    """Bounds that cross; parameters for another number of batches; a matrix of them."""
    attrs = {"dtype": np.dtype(np.float32)}
    zero, one = np.zeros((), np.float32), np.ones((), np.float32)
    crossed = [_ints(2, 3), zero, one, one, zero]
    yield ErrorSample(crossed, attrs, match="Invalid parameters")
    three = [_ints(2, 3), np.zeros(3, np.float32), one, zero, one]
    yield ErrorSample(three, attrs, match="should have length 1 or shape")
    matrix = [_ints(2, 3), np.zeros((2, 1), np.float32), one, zero, one]
    yield ErrorSample(matrix, attrs, "ValueError", "must be at most rank 1", "build")


@samples("RandomGammaGrad")
def gamma_gradients(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Samples in the bulk and in both tails; a shape parameter that broadcasts."""
    reason = "the oracle differentiates numerically"
    tol: dict[str, Any] = {"tol": (1e-5, 1e-6), "tol_reason": reason, "grad": False}
    alpha = np.array([0.3, 1.0, 2.5, 20.0, 2.5, 2.5]).astype(dtype)
    drawn = np.array([0.1, 0.7, 2.0, 25.0, 0.01, 30.0]).astype(dtype)
    yield Sample([alpha, drawn], {}, "plain", **tol)
    yield Sample([alpha[2:3], drawn.reshape(3, 2)], {}, "broadcast", **tol)
    yield Sample([np.zeros((0,), dtype), np.zeros((0,), dtype)], {}, "empty", **tol)


@error_samples("RandomUniform", "RandomStandardNormal", "TruncatedNormal")
def bad_shapes() -> Iterable[ErrorSample]:
    """A negative dimension; a matrix for a shape."""
    attrs = {"dtype": np.dtype(np.float32)}
    yield ErrorSample([_ints(2, -3)], attrs, "ValueError", "must be >= 0", "build")
    yield ErrorSample([_ints(2, -3)], attrs, match="must be >= 0")
    matrix = np.array([[1, 2]], np.int32)
    yield ErrorSample([matrix], attrs, "ValueError", "Shape must be rank 1 but is rank 2", "build")


@error_samples("RandomUniformInt")
def bad_bounds() -> Iterable[ErrorSample]:
    """An empty range; bounds that are vectors."""
    low, high = np.array(4, np.int32), np.array(4, np.int32)
    yield ErrorSample([_ints(3), low, high], {}, match="Need minval < maxval, got 4 >= 4")
    bad = [_ints(3), _ints(1, 2), _ints(3, 4)]
    yield ErrorSample(bad, {}, match="must be 0-D")


@error_samples("Multinomial")
def bad_logits() -> Iterable[ErrorSample]:
    """Logits of another rank; a negative number of samples; no classes."""
    count = np.array(3, np.int32)
    vector = np.zeros((3,), np.float32)
    yield ErrorSample([vector, count], {}, "ValueError", "must be rank 2 but is rank 1", "build")
    yield ErrorSample([vector, count], {}, match="must be rank 2|should be a matrix")
    bad = [np.zeros((2, 3), np.float32), np.array(-1, np.int32)]
    yield ErrorSample(bad, {}, match="num_samples should be nonnegative, got -1")
    empty = [np.zeros((2, 0), np.float32), count]
    yield ErrorSample(empty, {}, match="num_classes should be positive")


@error_samples("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal")
def bad_seeds() -> Iterable[ErrorSample]:
    """A seed of another length."""
    inputs = [_ints(3), _ints(1, 2, 3)]
    yield ErrorSample(inputs, {}, "ValueError", "Dimension must be 2 but is 3", "build")
    yield ErrorSample(inputs, {}, match=r"seed must have shape \[2\]")
