"""Samples of convolutions over images that are resized or mirrored first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_INT = np.int32
_MARGINS = [[0, 0], [1, 2], [2, 1], [0, 0]]
_NONE = [[0, 0]] * 4
# Margins, mode, step and padding.
_CASES: tuple[tuple[Any, str, int, str, str], ...] = (
    (_MARGINS, "REFLECT", 1, "VALID", "reflect"),
    (_MARGINS, "SYMMETRIC", 1, "SAME", "symmetric"),
    (_MARGINS, "REFLECT", 2, "SAME", "steps"),
    (_NONE, "REFLECT", 1, "VALID", "none"),
)


def _attrs(mode: str, step: int, padding: str) -> dict[str, Any]:
    return {"mode": mode, "strides": [1, step, step, 1], "padding": padding}


@samples("FusedPadConv2D")
def padded(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Both mirrors, steps, and no margins; TF defines no gradient."""
    for margins, mode, step, padding, tag in _CASES:
        inputs = [rng.normal((2, 4, 5, 2)), np.array(margins, _INT), rng.normal((3, 2, 2, 3))]
        yield Sample(inputs, _attrs(mode, step, padding), tag, grad=False)


@samples("FusedResizeAndPadConv2D")
def resized(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Larger and smaller images, corners that stay; TF defines no gradient."""
    slack: dict[str, Any] = {}
    if dtype == np.float64:
        slack = {"tol": (1e-4, 1e-4), "tol_reason": "images are resized in single precision"}
    for margins, mode, step, padding, tag in _CASES:
        for size, align in (((6, 5), False), ((3, 7), True)):
            inputs = [rng.normal((2, 4, 5, 2)), np.array(size, _INT), np.array(margins, _INT)]
            attrs = {**_attrs(mode, step, padding), "resize_align_corners": align}
            yield Sample(
                [*inputs, rng.normal((3, 2, 2, 3))], attrs,
                f"{tag}-{'aligned' if align else 'plain'}", grad=False, **slack,
            )  # fmt: skip


def _bad(margins: Any, channels: int) -> list[Any]:
    x = np.zeros((1, 3, 3, 2), np.float32)
    return [x, np.array(margins, _INT), np.zeros((2, 2, channels, 1), np.float32)]


@error_samples("FusedPadConv2D")
def bad_margins() -> Iterable[ErrorSample]:
    """Negative margins, margins wider than the mirror image, a filter for other channels."""
    attrs = _attrs("REFLECT", 1, "VALID")
    negative = [[0, 0], [-1, 0], [0, 0], [0, 0]]
    yield ErrorSample(
        _bad(negative, 2), attrs, "ValueError", "Paddings must be non-negative", "build"
    )
    yield ErrorSample(
        _bad([[0, 0], [3, 0], [0, 0], [0, 0]], 2), attrs, "InvalidArgumentError",
        "must be less than the dimension size", "run",
    )  # fmt: skip
    yield ErrorSample(
        _bad(_NONE, 3), attrs, "ValueError", "Dimensions must be equal, but are 2 and 3", "build"
    )
