"""Portable kernels of samples of classes, by their logits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from opdock import dtypes
from opdock.dtypes import REALS
from opdock.kernels.array_api import dtype_of
from opdock.kernels.philox import RESERVED, Place, blocks, sample_counts, stateless_place
from opdock.kernels.portable import portable
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
