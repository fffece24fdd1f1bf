"""Portable kernels of samples of classes, by their logits, and of gradients of gamma samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock import dtypes
from opdock.dtypes import REALS, float32, float64
from opdock.kernels.array_api import dtype_of
from opdock.kernels.philox import RESERVED, Place, blocks, sample_counts, stateless_place
from opdock.kernels.portable import portable, special
from opdock.kernels.portable.random import WORDS, interleaved, uniform
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.select.streams import random_stream

Array = Any

_INTS: Final = frozenset({dtypes.int32, dtypes.int64})
_IN: Final = WORDS | {dtypes.float64}


def _classes(xp: Any, place: Place, logits: Array, count: int) -> Array:
    """Inverts each row's cumulative distribution; logits that are not finite weigh nothing."""
    rows, classes = logits.shape
    wide = xp.astype(logits, xp.float64)
    finite = xp.isfinite(wide)
    top = xp.max(xp.where(finite, wide, xp.full_like(wide, -math.inf)), axis=1, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    weights = xp.exp(xp.where(finite, wide, top) - top)
    bounds = xp.cumulative_sum(xp.where(finite, weights, xp.zeros_like(weights)), axis=1)
    index = xp.arange(-(-rows * count // 2), dtype=xp.int64, device=getattr(logits, "device", None))
    drawn = uniform(xp, dtypes.float64)(*blocks(place, index, index.shape[0]))
    drawn = xp.reshape(interleaved(xp, drawn, rows * count), (rows, count))
    targets = drawn * bounds[:, -1:]
    if rows <= classes:
        found = [xp.searchsorted(bounds[i, :], targets[i, :], side="right") for i in range(rows)]
        return xp.stack(found)
    below = xp.astype(xp.zeros_like(targets), xp.int64)
    for i in range(classes):
        below = below + xp.astype(bounds[:, i : i + 1] <= targets, xp.int64)
    return below


def _sampler(xp: Any, sig: NodeSig) -> Callable[[Place, Array, int], Array]:
    element = dtype_of(xp, sig.out_dtypes[0])

    def run(place: Place, logits: Array, count: int) -> Array:
        if logits.shape[0] * count:
            return xp.astype(_classes(xp, place, logits, count), element, copy=False)
        device = getattr(logits, "device", None)
        return xp.zeros((logits.shape[0], count), dtype=element, device=device)

    return run


@portable("Multinomial", T=REALS, output_dtype=_INTS, host_inputs=("num_samples",), computes_in=_IN)
def multinomial(xp: Any, sig: NodeSig) -> Callable[[Array, Any], Array]:
    """Classes from the next stretch of the node's stream."""
    sample, stream = _sampler(xp, sig), random_stream(sig)

    def run(logits: Array, num_samples: Any) -> Array:
        rows, count = sample_counts(logits, num_samples)
        place = stream.reserve(rows * (-(-count // 4) * 4) * 2 * RESERVED)
        return sample(place, logits, count)

    return run


@portable(
    "StatelessMultinomial", T=REALS, output_dtype=_INTS, host_inputs=("num_samples", "seed"),
    computes_in=_IN,
)  # fmt: skip
def stateless_multinomial(xp: Any, sig: NodeSig) -> Callable[[Array, Any, Any], Array]:
    """Classes that are a function of the seed."""
    sample = _sampler(xp, sig)

    def run(logits: Array, num_samples: Any, seed: Any) -> Array:
        _, count = sample_counts(logits, num_samples)
        return sample(stateless_place(seed), logits, count)

    return run


# ---------------------------------------------------------------- gradients of gamma samples
_NODES, _WEIGHTS = np.polynomial.laguerre.laggauss(48)
_TERMS: Final = 60
"""Terms of the series behind those that grow."""


@portable("RandomGammaGrad", T={float32, float64}, computes_in=float64)
def random_gamma_grad(xp: Any, sig: NodeSig) -> Callable[[Any, Any], Any]:
    """The derivative of a gamma sample by its shape parameter, at constant probability.

    With P the distribution function and p the density, a sample x moves with its parameter a by
    ``-(dP/da) / p``. Near the bulk P's power series is differentiated term by term; far in the
    upper tail that would cancel, and the derivative is integrated over what lies beyond x instead.
    """
    element = dtype_of(xp, sig.out_dtypes[0])

    def run(alpha: Any, sample: Any) -> Any:
        a, x = xp.astype(alpha, xp.float64), xp.astype(sample, xp.float64)
        a, x = a + xp.zeros_like(x), x + xp.zeros_like(a)
        if math.prod(a.shape) == 0:
            return xp.astype(a, element)
        valid = (a > 0) & (x >= 0)
        tail = valid & (x > a + 6.0 * xp.sqrt(xp.abs(a)) + 12.0)
        bulk = valid & ~tail & (x > 0) & xp.isfinite(a)
        one = xp.ones_like(a)
        out = xp.where(valid & (x == 0), xp.zeros_like(a), xp.full_like(a, math.nan))
        near = _from_series(xp, xp.where(bulk, a, one), xp.where(bulk, x, one))
        far = _from_tail(xp, xp.where(tail, a, one), xp.where(tail, x, 99.0 * one))
        return xp.astype(xp.where(bulk, near, xp.where(tail, far, out)), element)

    return run


def _from_series(xp: Any, a: Any, x: Any) -> Any:
    """P(a, x) = x**a exp(-x) sum x**n / gamma(a + n + 1), divided by the density x**(a-1) ..."""
    log_x, psi = xp.log(x), special.digamma(xp, a + 1.0)
    term = x / a
    total = term * (log_x - psi)
    growing = xp.maximum(x - a, xp.zeros_like(x)) + 12.0 * xp.sqrt(x)
    for n in range(1, math.ceil(float(xp.max(growing))) + _TERMS):
        term = term * (x / (a + n))
        psi = psi + 1.0 / (a + n)
        total = total + term * (log_x - psi)
    return -total


def _from_tail(xp: Any, a: Any, x: Any) -> Any:
    """The integral of (t/x)**(a-1) exp(x-t) (log t - digamma(a)) over t > x."""
    device = getattr(x, "device", None)
    nodes, weights = (xp.asarray(v, dtype=xp.float64, device=device) for v in (_NODES, _WEIGHTS))
    decay = 1.0 - (a - 1.0) / x
    place = xp.expand_dims(x, axis=-1)
    beyond = nodes / (xp.expand_dims(decay, axis=-1) * place)
    grown = xp.log1p(beyond)
    weight = xp.exp(xp.expand_dims(a - 1.0, axis=-1) * (grown - beyond))
    value = grown + xp.expand_dims(xp.log(x) - special.digamma(xp, a), axis=-1)
    return xp.sum(weight * value * weights, axis=-1) / decay
