"""Samples of resizes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_INT = np.int32
_SIZES = (
    ((1, 4, 5, 2), (2, 3), "down"),
    ((2, 3, 2, 1), (5, 7), "up"),
    ((1, 5, 4, 3), (3, 9), "both"),
    ((1, 1, 1, 1), (3, 2), "one"),
    ((1, 4, 3, 1), (1, 1), "to-one"),
    ((0, 3, 3, 2), (2, 2), "empty"),
)
_CENTERS = ((False, False, "legacy"), (True, False, "align"), (False, True, "half"))
_SINGLE = "computed in single precision, whatever the images are"


def _slack(dtype: np.dtype[Any]) -> dict[str, Any]:
    # Results are float32, and so are the sums of what a gradient gives back to doubles.
    wide = dtype == np.float64
    return {"tol": (1e-4, 1e-4), "tol_reason": _SINGLE} if wide else {}


def _size(height: int, width: int) -> np.ndarray[Any, Any]:
    return np.array([height, width], _INT)


@samples("ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor")
def resizes(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Larger, smaller, along one axis each, of and to one pixel; every rule for centres."""
    for shape, size, tag in _SIZES:
        for align, half, rule in _CENTERS:
            attrs = {"align_corners": align, "half_pixel_centers": half}
            images = rng.uniform(shape, 0, 9)
            # TF resizes halves bicubically, but defines no gradient of that.
            grad = dtype.name in ("float32", "float64")
            yield Sample([images, _size(*size)], attrs, f"{tag}-{rule}", grad=grad, **_slack(dtype))


@samples("ResizeArea")
def areas(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Whole and broken numbers of pixels in each new one."""
    for shape, size, tag in (*_SIZES, ((1, 6, 4, 1), (3, 2), "whole")):
        for align in (False, True):
            images = rng.uniform(shape, 0, 9)
            rule = "align" if align else "plain"
            yield Sample(
                [images, _size(*size)], {"align_corners": align}, f"{tag}-{rule}", grad=False
            )


@samples("ResizeBilinearGrad", "ResizeBicubicGrad")
def gradients(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The sizes of the resizes, backwards."""
    for shape, size, tag in _SIZES:
        for align, half, rule in _CENTERS:
            attrs = {"align_corners": align, "half_pixel_centers": half}
            grads = rng.uniform((shape[0], *size, shape[3]), -2, 2).astype(np.float32)
            inputs = [grads, np.zeros(shape, dtype)]
            yield Sample(inputs, attrs, f"{tag}-{rule}", grad=False, **_slack(dtype))


@samples("ResizeNearestNeighborGrad")
def nearest_gradients(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The sizes of the resizes, backwards, in the images' type."""
    for shape, size, tag in _SIZES:
        for align, half, rule in _CENTERS:
            attrs = {"align_corners": align, "half_pixel_centers": half}
            grads = rng.integers((shape[0], *size, shape[3]), 0, 4)
            yield Sample([grads, _size(*shape[1:3])], attrs, f"{tag}-{rule}", grad=False)


_KERNELS = (
    "lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic",
    "mitchellcubic",
)  # fmt: skip
_MOVES = (
    ((1, 5, 4, 2), (3, 6), (0.6, 1.5), (0.0, 0.0), "resize"),
    ((1, 4, 4, 1), (4, 5), (1.0, 0.7), (0.4, -1.3), "moved"),
    ((2, 3, 3, 1), (4, 4), (1.3, 1.3), (5.0, 0.2), "outside"),
)


def _pair(values: tuple[float, float]) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


@samples("ScaleAndTranslate")
def moves(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Every sampling kernel, with and without its widening."""
    for i, kernel in enumerate(_KERNELS):
        shape, size, scale, translation, tag = _MOVES[i % 3]
        for antialias in (True, False):
            yield Sample(
                [rng.uniform(shape, 0, 9), _size(*size), _pair(scale), _pair(translation)],
                {"kernel_type": kernel, "antialias": antialias},
                f"{tag}-{kernel}-{'wide' if antialias else 'narrow'}",
                grad=dtype == np.float32,
                grad_inputs=(0,),
                tol=(1e-4, 1e-4),
                tol_reason="sines and exponentials of weights in single precision",
            )


@samples("ScaleAndTranslateGrad")
def move_gradients(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same, backwards."""
    for i, kernel in enumerate(_KERNELS):
        shape, size, scale, translation, tag = _MOVES[i % 3]
        grads = rng.uniform((shape[0], *size, shape[3]), -2, 2)
        yield Sample(
            [grads, np.zeros(shape, dtype), _pair(scale), _pair(translation)],
            {"kernel_type": kernel},
            f"{tag}-{kernel}",
            grad=False,
            tol=(1e-4, 1e-4),
            tol_reason="sines and exponentials of weights in single precision",
        )


@error_samples("ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor")
def bad_resizes() -> Iterable[ErrorSample]:
    """Ranks, sizes, images without pixels, and two rules at once."""
    image, three = np.zeros((1, 2, 2, 1), np.float32), np.array([1, 2, 3], _INT)
    yield ErrorSample([image[0], _size(1, 1)], {}, "ValueError", "Shape must be rank 4", "build")
    yield ErrorSample([image[0], _size(1, 1)], {}, match="input must be 4-dimensional")
    yield ErrorSample([image, three], {}, "ValueError", "Dimension must be 2 but is 3", "build")
    yield ErrorSample([image, three], {}, match="must have two elements")
    yield ErrorSample([image, _size(0, 3)], {}, match="output dimensions must be positive")
    yield ErrorSample([image[:, :0], _size(1, 1)], {}, match="input image must be of non-zero size")
    yield ErrorSample([image[..., :0], _size(1, 1)], {}, match="at least one channel")
    both = {"align_corners": True, "half_pixel_centers": True}
    yield ErrorSample([image, _size(1, 1)], both, match="If half_pixel_centers is True")


@error_samples("ResizeNearestNeighborGrad")
def bad_nearest_gradients() -> Iterable[ErrorSample]:
    """A size that is none."""
    grads = np.zeros((1, 2, 2, 1), np.float32)
    yield ErrorSample([grads, _size(0, 2)], {}, match="shape_t's elements must be positive")


@error_samples("ScaleAndTranslate")
def bad_moves() -> Iterable[ErrorSample]:
    """Scales that are none, and kernels that nobody knows."""
    image, one, zero = np.zeros((1, 2, 2, 1), np.float32), _pair((1, 1)), _pair((0, 0))
    yield ErrorSample([image, _size(2, 2), zero, zero], {}, match="Scale must be greater than zero")
    yield ErrorSample([image, _size(2, 2), one[:1], zero], {}, match="t must have two elements")
    yield ErrorSample(
        [image, _size(2, 2), one, zero], {"kernel_type": "flat"},
        match="Unrecognized kernel type: flat",
    )  # fmt: skip
