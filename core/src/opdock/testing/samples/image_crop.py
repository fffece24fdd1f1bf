"""Samples of crops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_INT = np.int32
_CROPS = (
    ((2, 5, 4, 2), [[0.1, 0.15, 0.83, 0.77], [0.23, 0.9, 0.71, 0.06]], [1, 0], (3, 4), "inside"),
    ((1, 4, 6, 1), [[-0.37, 0.11, 0.62, 1.43], [0.2, 0.3, 0.2, 0.3]], [0, 0], (4, 3), "partly"),
    ((1, 5, 5, 3), [[0.13, 0.21, 0.64, 0.93]], [0], (1, 1), "middle"),
    ((1, 3, 3, 1), [[0.0, 0.0, 1.0, 1.0]], [0], (3, 3), "whole"),
    ((1, 3, 3, 1), np.zeros((0, 4)), np.zeros(0), (2, 2), "empty"),
)
_SINGLE = "computed in single precision, whatever the images are"


def _boxes(values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


def _ints(values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, _INT)


@samples("CropAndResize")
def crops(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Boxes inside, upside down, partly and wholly outside, without an extent."""
    for shape, boxes, which, size, tag in _CROPS:
        for method in ("bilinear", "nearest"):
            smooth = tag in ("inside", "middle")
            # Boxes move samples; of nearest ones TF takes the gradient of bilinear ones.
            inputs = (0, 1) if method == "bilinear" else (0,)
            yield Sample(
                [rng.uniform(shape, 0, 9), _boxes(boxes), _ints(which), _ints(size)],
                {"method": method, "extrapolation_value": 2.5},
                f"{tag}-{method}",
                grad=smooth and dtype.kind == "f" and (method == "bilinear" or tag == "inside"),
                grad_inputs=inputs,
                tol=(1e-4, 1e-4) if dtype == np.float64 else None,
                tol_reason=_SINGLE if dtype == np.float64 else "",
            )


@samples("CropAndResizeGradImage")
def image_gradients(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same boxes, backwards; pixels that several samples share."""
    for shape, boxes, which, size, tag in _CROPS:
        for method in ("bilinear", "nearest"):
            grads = rng.uniform((len(boxes), *size, shape[3]), -2, 2).astype(np.float32)
            yield Sample(
                [grads, _boxes(boxes), _ints(which), _ints(shape)],
                {"method": method, "T": dtype},
                f"{tag}-{method}",
                grad=False,
                tol=(1e-4, 1e-4) if dtype == np.float64 else None,
                tol_reason=_SINGLE if dtype == np.float64 else "",
            )


@samples("CropAndResizeGradBoxes")
def box_gradients(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same boxes, by their edges."""
    for shape, boxes, which, size, tag in _CROPS:
        grads = rng.uniform((len(boxes), *size, shape[3]), -2, 2).astype(np.float32)
        yield Sample(
            [grads, rng.uniform(shape, 0, 9), _boxes(boxes), _ints(which)],
            {},
            tag,
            grad=False,
            tol=(1e-4, 1e-4),
            tol_reason="single precision of places, times the length of the image",
        )


@samples("ExtractGlimpse")
def glimpses(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Every way to count offsets; margins of zeros, or none."""
    attrs = {"uniform_noise": False, "noise": "zero"}
    offsets = np.array([[0.3, -0.4], [-1.2, 0.9]], np.float32)
    for centered in (True, False):
        for normalized in (True, False):
            ways = {"centered": centered, "normalized": normalized}
            inputs = [rng.uniform((2, 6, 5, 2), 1, 9), _ints([3, 4]), offsets]
            tag = "-".join(name for name, on in ways.items() if on) or "pixels"
            yield Sample(inputs, {**attrs, **ways}, tag)
    wide = [rng.uniform((1, 2, 3, 1), 1, 9), _ints([5, 6]), offsets[:1]]
    yield Sample(wide, attrs, "larger")
    inside = [rng.uniform((1, 7, 7, 1), 1, 9), _ints([3, 3]), offsets[:1] * 0]
    yield Sample(inside, {}, "no-margin")


@error_samples("CropAndResize")
def bad_crops() -> Iterable[ErrorSample]:
    """Indices of no image, boxes that are none, sizes that are none."""
    image, boxes = np.zeros((1, 2, 2, 1), np.float32), _boxes([[0, 0, 1, 1]])
    one, size = _ints([0]), _ints([2, 2])
    yield ErrorSample(
        [image, boxes, _ints([1]), size], {}, "OutOfRangeError",
        r"box_index has values outside \[0, batch_size\)",
    )  # fmt: skip
    yield ErrorSample([image, boxes[:, :3], one, size], {}, match="boxes must have 4 columns")
    yield ErrorSample([image, boxes, _ints([0, 0]), size], {}, match="incompatible shape")
    yield ErrorSample([image, boxes, one, _ints([0, 2])], {}, match="crop dimensions must be posi")
    yield ErrorSample([image[:, :0], boxes, one, size], {}, match="image dimensions must be posi")
    yield ErrorSample([image[0], boxes, one, size], {}, "ValueError", "must be rank 4", "build")


@error_samples("ExtractGlimpse")
def bad_glimpses() -> Iterable[ErrorSample]:
    """Noise of two kinds, offsets of other images."""
    image, size, at = np.zeros((1, 2, 2, 1), np.float32), _ints([1, 1]), np.zeros((1, 2), "f4")
    yield ErrorSample(
        [image, size, at], {"noise": "zero"}, "ValueError", "should not be specified", "build"
    )
    yield ErrorSample([image, size, at[:0]], {}, match="first dimension should be batch")
