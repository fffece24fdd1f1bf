"""Samples of margins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_INT = np.int32
_PADS: tuple[tuple[Any, Any, str], ...] = (
    ((2, 3), [[1, 2], [0, 1]], "plain"),
    ((2, 3), [[0, 0], [0, 0]], "none"),
    ((3,), [[2, 0]], "vector"),
    ((), np.zeros((0, 2)), "scalar"),
    ((0, 2), [[1, 1], [0, 2]], "empty"),
    ((1, 2, 2, 3), [[0, 0], [1, 1], [2, 0], [0, 0]], "rank4"),
)
_MIRRORS: tuple[tuple[Any, Any, str], ...] = (
    ((3, 4), [[1, 2], [2, 1]], "plain"),
    ((3, 4), [[0, 0], [0, 0]], "none"),
    ((4,), [[3, 3]], "wide"),
    ((2, 3, 3, 2), [[0, 0], [2, 1], [1, 2], [0, 1]], "rank4"),
)


@samples("Pad")
def pads(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Margins on some sides."""
    for shape, paddings, tag in _PADS:
        yield Sample([rng.normal(shape), np.array(paddings, _INT)], {}, tag)
    yield Sample([rng.normal((2,)), np.array([[1, 1]], np.int64)], {}, "int64")


@samples("PadV2")
def constant_pads(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Margins of a given value; TF gives that value no gradient."""
    for shape, paddings, tag in _PADS:
        args = [rng.normal(shape), np.array(paddings, _INT), rng.normal(())]
        yield Sample(args, {}, tag, grad=0 not in shape, grad_inputs=(0,))


@samples("MirrorPad")
def mirrors(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Both kinds of mirror."""
    for mode in ("REFLECT", "SYMMETRIC"):
        for shape, paddings, tag in _MIRRORS:
            args = [rng.normal(shape), np.array(paddings, _INT)]
            yield Sample(args, {"mode": mode}, f"{tag}-{mode.lower()}")
    full = [rng.normal((2, 2)), np.array([[2, 2], [0, 0]], _INT)]
    yield Sample(full, {"mode": "SYMMETRIC"}, "full")


@samples("MirrorPadGrad")
def folded_mirrors(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Both kinds of mirror, folded back."""
    for mode in ("REFLECT", "SYMMETRIC"):
        for shape, paddings, tag in _MIRRORS:
            wide = [d + sum(p) for d, p in zip(shape, paddings, strict=True)]
            args = [rng.integers(wide, -2, 3), np.array(paddings, _INT)]
            yield Sample(args, {"mode": mode}, f"{tag}-{mode.lower()}")


@error_samples("Pad")
def bad_pads() -> Iterable[ErrorSample]:
    """Margins that do not fit the rank, and negative ones."""
    x = np.zeros((2, 2), np.float32)
    yield ErrorSample(
        [x, np.array([[1, 1]], _INT)],
        {},
        "ValueError",
        "Shape must be rank 1 but is rank 2",
        "build",
    )
    negative = [x, np.array([[0, 0], [-1, 0]], _INT)]
    yield ErrorSample(negative, {}, "ValueError", "Paddings must be non-negative", "build")
    yield ErrorSample(negative, {}, "InvalidArgumentError", "Paddings must be non-negative", "run")


@error_samples("MirrorPad")
def bad_mirrors() -> Iterable[ErrorSample]:
    """Margins wider than the mirror image."""
    args = [np.zeros((2,), np.float32), np.array([[2, 0]], _INT)]
    yield ErrorSample(
        args,
        {"mode": "REFLECT"},
        "InvalidArgumentError",
        "must be less than the dimension size",
        "run",
    )
