"""Samples of colours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_SHAPES = ((2, 3, 3), (2, 2, 2, 3), (0, 2, 3))
# A hue is as exact as the range of the colours is large.
_HALVES = {
    "tol": (5e-2, 5e-2),
    "tol_reason": "a hue divides by the range of colours that have few bits",
}


def _colors(rng: Sampler, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Colours whose parts are well apart, in every order."""
    count = int(np.prod(shape[:-1]))
    steps = np.array([0.15, 0.45, 0.85])
    rows = [np.roll(steps, i)[:: 1 if i % 2 else -1] for i in range(count)]
    base = np.array(rows).reshape(shape) if count else np.zeros(shape)
    return (base + 0.08 * rng.uniform(shape, 0, 1).astype(np.float64)).astype(dtype)


def _slack(dtype: np.dtype[Any]) -> dict[str, Any]:
    return _HALVES if dtype.itemsize == 2 else {}


@samples("RGBToHSV")
def to_hsv(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Colours in every order, greys, black; images, batches and one colour."""
    for shape in (*_SHAPES, (3,)):
        tag = "x".join(map(str, shape))
        yield Sample([_colors(rng, dtype, shape)], {}, tag, **_slack(dtype))
    greys = np.array([[0, 0, 0], [0.5, 0.5, 0.5], [1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    yield Sample([greys.astype(dtype)], {}, "corners", grad=False)


@samples("HSVToRGB")
def to_rgb(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The whole range."""
    for shape in (*_SHAPES, (3,)):
        tag = "x".join(map(str, shape))
        yield Sample([rng.uniform(shape, 0, 1)], {}, tag, grad=False, **_slack(dtype))


@samples("AdjustHue", "AdjustSaturation")
def adjusted(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Both ways, and not at all."""
    for shape in _SHAPES:
        for amount in (-0.3, 0.0, 0.45, 1.5):
            inputs = [_colors(rng, dtype, shape), np.array(amount, np.float32)]
            tag = f"{'x'.join(map(str, shape))}-{amount}"
            yield Sample(inputs, {}, tag, grad=False, **_slack(dtype))


@samples("AdjustContrastv2")
def contrasts(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """More, less, none; any number of channels."""
    for shape in ((2, 3, 3), (2, 3, 2, 1), (2, 0, 3)):
        for amount in (0.0, 0.5, 2.0):
            inputs = [rng.uniform(shape, 0, 1), np.array(amount, np.float32)]
            yield Sample(inputs, {}, f"{'x'.join(map(str, shape))}-{amount}", grad=False)


@error_samples("RGBToHSV", "HSVToRGB")
def bad_colors() -> Iterable[ErrorSample]:
    """Other numbers of channels."""
    image = np.zeros((2, 2, 4), np.float32)
    yield ErrorSample([image], {}, "ValueError", "Dimension must be 3 but is 4", "build")
    yield ErrorSample([image[0, 0, 0]], {}, "ValueError", "must be at least rank 1", "build")


@error_samples("AdjustHue", "AdjustSaturation")
def bad_adjusted() -> Iterable[ErrorSample]:
    """Other ranks and numbers of channels."""
    image, one = np.zeros((2, 2, 4), np.float32), np.array(1, np.float32)
    yield ErrorSample([image, one], {}, match="input must have 3 channels but instead has 4")
    yield ErrorSample([image[0], one], {}, "ValueError", "must be at least rank 3", "build")
    yield ErrorSample([image[0], one], {}, match="input must be at least 3-D")
    yield ErrorSample([image[..., :3], one[None]], {}, match="must be scalar")


@samples("AdjustHsvInYiq")
def in_yiq(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Chroma turned, made larger and smaller; nothing changed."""
    for shape in _SHAPES:
        for change in ((0.7, 1.5, 0.9), (-2.5, 0.4, 1.2), (0.0, 1.0, 1.0)):
            inputs = [rng.uniform(shape, 0, 1), *(np.float32(v) for v in change)]
            yield Sample(
                inputs, {}, "x".join(map(str, shape)), grad=False,
                tol=(1e-5, 1e-5) if dtype == np.float64 else None,
                tol_reason="the matrix is of single precision" if dtype == np.float64 else "",
            )  # fmt: skip


@error_samples("AdjustHsvInYiq")
def bad_in_yiq() -> Iterable[ErrorSample]:
    """Images without three channels, changes that are no scalars."""
    image, one = np.zeros((1, 1, 3), np.float32), np.float32(1)
    yield ErrorSample([image[..., :2], one, one, one], {}, match="input must have 3 channels")
    yield ErrorSample(
        [image, np.zeros(1, np.float32), one, one], {}, match="delta_h must be scalar"
    )
    yield ErrorSample([image[0], one, one, one], {}, match="input must be at least 3-D")
