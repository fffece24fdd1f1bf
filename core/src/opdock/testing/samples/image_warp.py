"""Samples of images read at other places."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

Array = np.ndarray[Any, Any]
_SINGLE = "places are computed in single precision"
# Places that are not close to halves or whole numbers, where one more bit would decide.
_TRANSFORMS = {
    "shift": [1, 0, 1.3, 0, 1, -0.7, 0, 0],
    "turn": [0.8, -0.6, 1.2, 0.6, 0.8, -0.9, 0, 0],
    "tilt": [1.1, 0.2, -0.4, -0.1, 0.9, 0.3, 0.05, -0.02],
}


def _slack(dtype: np.dtype[Any]) -> dict[str, Any]:
    return {"tol": (1e-4, 1e-4), "tol_reason": _SINGLE} if dtype == np.float64 else {}


def _transforms(*names: str) -> Array:
    return np.array([_TRANSFORMS[name] for name in names], np.float32)


def _transformed(dtype: np.dtype[Any], rng: Sampler, size: list[Any]) -> Iterable[Sample]:
    for way in ("NEAREST", "BILINEAR"):
        attrs = {"interpolation": way}
        images = rng.integers((2, 5, 4, 2), 0, 9)
        exact = dtype.kind != "f" and way == "BILINEAR"
        for names in (("turn",), ("shift", "tilt")):
            # Whole numbers are cut off: one more bit decides there too, but for a few shifts.
            chosen = _transforms(*names) if not exact else _quarters(len(names))
            yield Sample(
                [images, chosen, *size], attrs, f"{'-'.join(names)}-{way}", grad=False,
                **_slack(dtype),
            )  # fmt: skip


def _quarters(count: int) -> Array:
    return np.array([[1, 0, 0.25 + i, 0, 1, -0.5, 0, 0] for i in range(count)], np.float32)


@samples("ImageProjectiveTransform")
def transforms(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Shifted, turned and tilted, one for all images and one for each."""
    yield from _transformed(dtype, rng, [])


@samples("ImageProjectiveTransformV2")
def sized_transforms(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same, to another size; pixels that come from infinity."""
    yield from _transformed(dtype, rng, [np.array([3, 6], np.int32)])
    vanishing = np.array([[1, 0, 0, 0, 1, 0, -0.5, 0]], np.float32)
    inputs = [rng.integers((1, 3, 3, 1), 1, 9), vanishing, np.array([3, 3], np.int32)]
    yield Sample(inputs, {"interpolation": "NEAREST"}, "infinity", grad=False)
    # Turned by a right angle each pixel comes from one, and the gradient is exact.
    turned = np.array([[0, 1, 0, -1, 0, 2, 0, 0]], np.float32)
    inputs = [rng.uniform((1, 3, 3, 1)), turned, np.array([3, 3], np.int32)]
    yield Sample(inputs, {"interpolation": "BILINEAR"}, "square", grad_inputs=(0,), **_slack(dtype))


def _points(dtype: np.dtype[Any]) -> Array:
    # Inside, in the margin of one pixel, beyond it; never on a pixel, where the slope jumps.
    points = [[1.3, 2.2], [0.6, 0.7], [-0.4, 1.6], [2.7, 3.4], [-1.5, 0.3], [1.2, 4.6]]
    return np.array([points, points[::-1]], np.float64).astype(dtype)


@samples("Resampler")
def resampled(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Points inside, at the edge and outside; a grid of points; none."""
    data, warp = rng.uniform((2, 4, 3, 2)), _points(dtype)
    yield Sample([data, warp], {}, "points")
    yield Sample([data, warp.reshape(2, 2, 3, 2)], {}, "grid")
    yield Sample([data, warp[:, :0]], {}, "none", grad=False)


@samples("ResamplerGrad")
def resampled_back(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same points, backwards."""
    data, warp = rng.uniform((2, 4, 3, 2)), _points(dtype)
    yield Sample([data, warp, rng.uniform((2, 6, 2))], {}, "points")
    yield Sample([data, warp[:, :0], rng.uniform((2, 0, 2))], {}, "none")


def _bad_transforms(*size: Any) -> Iterable[ErrorSample]:
    image, one = np.zeros((2, 2, 2, 1), np.float32), _transforms("turn")
    near = {"interpolation": "NEAREST"}
    wrong = "Input transform should be num_images x 8 or 1 x 8"
    yield ErrorSample([image, np.repeat(one, 3, axis=0), *size], near, match=wrong)
    yield ErrorSample([image, one[:, :6], *size], near, match=wrong)
    yield ErrorSample(
        [image, one, *size], {"interpolation": "CUBIC"}, "ValueError",
        "Supported types: NEAREST, BILINEAR", "build",
    )  # fmt: skip


@error_samples("ImageProjectiveTransform")
def bad_transforms() -> Iterable[ErrorSample]:
    """Transforms of other images, of other numbers; no images."""
    yield from _bad_transforms()
    image, one = np.zeros((2, 2, 2), np.float32), _transforms("turn")
    near = {"interpolation": "NEAREST"}
    yield ErrorSample([image, one], near, match="Input images must have rank 4")


@error_samples("ImageProjectiveTransformV2")
def bad_sized_transforms() -> Iterable[ErrorSample]:
    """The same, and outputs without pixels."""
    yield from _bad_transforms(np.array([2, 2], np.int32))
    image, none = np.zeros((1, 2, 2, 1), np.float32), np.array([0, 2], np.int32)
    yield ErrorSample(
        [image, _transforms("turn"), none], {"interpolation": "NEAREST"},
        match="output dimensions must be positive",
    )  # fmt: skip


@error_samples("Resampler")
def bad_points() -> Iterable[ErrorSample]:
    """Points of other images, in three dimensions; one image."""
    data, warp = np.zeros((2, 2, 2, 1), np.float32), np.zeros((2, 3, 2), np.float32)
    yield ErrorSample([data, warp[:1]], {}, match="Batch size of data and warp tensor must be")
    yield ErrorSample(
        [data, np.zeros((2, 3, 3), np.float32)], {}, "UnimplementedError", "must be 2D"
    )
    yield ErrorSample([data[0], warp], {}, "UnimplementedError", "Only bilinear interpolation")


@error_samples("ResamplerGrad")
def bad_gradients() -> Iterable[ErrorSample]:
    """A gradient of other points."""
    data, warp = np.zeros((2, 2, 2, 1), np.float32), np.zeros((2, 3, 2), np.float32)
    yield ErrorSample(
        [data, warp, warp], {}, match="grad_output shape is not consistent with data and warp"
    )
