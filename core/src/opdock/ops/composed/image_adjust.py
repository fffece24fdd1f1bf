"""Images in other types, and brighter, richer, of another hue, by a given amount or by chance."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.docstrings import explained
from opdock.dtypes import DType
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor, is_tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.arithmetic import add, maximum, multiply
from opdock.ops.array import shape
from opdock.ops.cast import cast, saturate_cast
from opdock.ops.composed.division import div
from opdock.ops.composed.reduce_stats import reduce_std
from opdock.ops.control import with_dependencies
from opdock.ops.elementary import rsqrt
from opdock.ops.identity import identity
from opdock.ops.image_codec import decode_jpeg, encode_jpeg_variable_quality_op
from opdock.ops.image_color import adjust_contrast_op, adjust_hue_op, adjust_saturation_op
from opdock.ops.random import random_uniform
from opdock.ops.reduce import reduce_mean, reduce_prod
from opdock.ops.support.images import checked, demand

# Public as tf.image.*, which `api/image.py` gathers.
__all__: list[str] = []

_SINGLE = (dtypes.float16, dtypes.float32)
_WORDS = {
    "image": "a tensor of images, channels last; integers span their whole range, floats [0, 1].",
    "images": "a tensor of images, channels last; integers span their whole range, floats [0, 1].",
    "dtype": "the type of the result.",
    "saturate": "whether what does not fit becomes the nearest number that does.",
    "name": "a name for the operation.",
    "seed": "op seed; see `tf.set_random_seed`.",
    "delta": "how much to add: to pixels in [0, 1], or to the hue, of which 1 is a full turn.",
    "max_delta": "the largest amount, either way.",
    "contrast_factor": "what to multiply distances from the mean of each channel with.",
    "saturation_factor": "what to multiply the saturation with.",
    "gamma": "the exponent, not negative.",
    "gain": "what to multiply the result with.",
    "jpeg_quality": "0 to 100, a number or an int32 scalar.",
    "min_jpeg_quality": "the lowest quality.",
    "max_jpeg_quality": "the quality that is not reached.",
    "lower": "the smallest factor, not negative.",
    "upper": "the factor that is not reached.",
    "returns": "A tensor of the same shape and type.",
}
"""What the functions here take."""


# ---------------------------------------------------------------- types
@extensible
@explained(
    _WORDS,
    returns="A tensor of the same shape.",
    raises="AttributeError: `dtype` is neither floating nor integer.",
)
def convert_image_dtype(
    image: Any, dtype: Any, saturate: bool = False, name: str | None = None
) -> Tensor:
    """Images in another type, their range scaled to that of the type."""
    image = convert_to_tensor(image, name="image")
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_floating and not dtype.is_integer:
        raise AttributeError("dtype must be either floating point or integer")
    if dtype == image.dtype:
        return identity(image, name=name)
    with name_scope(name, "convert_image", [image]) as scope:
        into = saturate_cast if saturate else cast
        if image.dtype.is_floating:
            if dtype.is_floating:
                return cast(image, dtype, name=scope)  # type: ignore[no-any-return]
            # Half a step more, so that truncation rounds.
            return into(multiply(image, dtype.max + 0.5), dtype, name=scope)
        if dtype.is_floating:
            return multiply(cast(image, dtype), 1.0 / image.dtype.max, name=scope)
        return _rescaled(image, dtype, into, scope)


def _rescaled(image: Tensor, dtype: DType, into: Any, scope: str) -> Tensor:
    """Integers in the range of another integer type."""
    old, new = int(image.dtype.max), int(dtype.max)
    if old > new:
        return into(div(image, (old + 1) // (new + 1)), dtype, name=scope)  # type: ignore[no-any-return]
    return multiply(into(image, dtype), (new + 1) // (old + 1), name=scope)


def _in_float(image: Any, name: str) -> tuple[Tensor, DType]:
    """Images in a type to compute in, and the one that they had."""
    image = convert_to_tensor(image, name=name)
    original = image.dtype
    single = image if original in _SINGLE else convert_image_dtype(image, dtypes.float32)
    return single, original


@extensible
@explained(_WORDS, raises="ValueError: the image has less than three dimensions.")
def per_image_standardization(image: Any) -> Tensor:
    """Each image with mean 0 and deviation 1; the deviation is not below that of one grey level."""
    with name_scope(None, "per_image_standardization", [image]) as scope:
        image, original = _in_float(checked(image), "image")
        pixels = reduce_prod(shape(image)[-3:])
        axes = [-1, -2, -3]
        mean = reduce_mean(image, axis=axes, keepdims=True)
        deviation = reduce_std(image, axis=axes, keepdims=True)
        least = rsqrt(cast(pixels, image.dtype))
        centered: Any = image - mean
        out = div(centered, maximum(deviation, least), name=scope)
        return convert_image_dtype(out, original, saturate=True)


# ---------------------------------------------------------------- adjusted
@extensible
@explained(_WORDS)
def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """Adds to all pixels."""
    with name_scope(None, "adjust_brightness", [image, delta]) as scope:
        single, original = _in_float(image, "image")
        adjusted = add(single, cast(delta, single.dtype), name=scope)
        return convert_image_dtype(adjusted, original, saturate=True)


@extensible
@explained(_WORDS)
def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """Multiplies the distances from the mean of each channel."""
    with name_scope(None, "adjust_contrast", [images, contrast_factor]) as scope:
        single, original = _in_float(images, "images")
        adjusted = adjust_contrast_op(single, contrast_factor, name=scope)
        return convert_image_dtype(adjusted, original, saturate=True)


@extensible
@explained(_WORDS, raises="ValueError: `gamma` is negative (InvalidArgumentError when run).")
def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """Raises pixels to a power and multiplies them."""
    with name_scope(None, "adjust_gamma", [image, gamma, gain]):
        single, original = _in_float(image, "image")
        checks = demand(gamma >= 0, "Gamma should be a non-negative real number.")
        exponent = with_dependencies(checks, gamma) if checks else gamma
        adjusted: Any = gain * single**exponent
        return convert_image_dtype(adjusted, original, saturate=True)


@extensible
@explained(_WORDS)
def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """Turns the hue of RGB images."""
    with name_scope(name, "adjust_hue", [image]):
        single, original = _in_float(image, "image")
        return convert_image_dtype(adjust_hue_op(single, delta), original)


@extensible
@explained(_WORDS)
def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Tensor:
    """Multiplies the saturation of RGB images."""
    with name_scope(name, "adjust_saturation", [image]):
        single, original = _in_float(image, "image")
        return convert_image_dtype(adjust_saturation_op(single, saturation_factor), original)


@extensible
@explained(_WORDS)
def adjust_jpeg_quality(image: Any, jpeg_quality: Any, name: str | None = None) -> Tensor:
    """What JPEG of a given quality leaves of an image of rank 3."""
    with name_scope(name, "adjust_jpeg_quality", [image]):
        image = convert_to_tensor(image, name="image")
        original = image.dtype
        quality = jpeg_quality
        if not is_tensor(quality):
            quality = convert_to_tensor(quality, dtypes.int32)
        file = encode_jpeg_variable_quality_op(convert_image_dtype(image, dtypes.uint8), quality)
        return convert_image_dtype(decode_jpeg(file), original)


# ---------------------------------------------------------------- by chance
def _check_factors(lower: float, upper: float) -> None:
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    if lower < 0:
        raise ValueError("lower must be non-negative.")


@extensible
@explained(_WORDS, raises="ValueError: `max_delta` is negative.")
def random_brightness(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """`adjust_brightness` by a random amount."""
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_brightness(image, random_uniform([], -max_delta, max_delta, seed=seed))


@extensible
@explained(_WORDS, raises="ValueError: not 0 <= lower < upper.")
def random_contrast(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """`adjust_contrast` by a random factor."""
    _check_factors(lower, upper)
    return adjust_contrast(image, random_uniform([], lower, upper, seed=seed))


@extensible
@explained(_WORDS, raises="ValueError: `max_delta` is not in [0, 0.5].")
def random_hue(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """`adjust_hue` by a random amount."""
    if max_delta > 0.5:
        raise ValueError("max_delta must be <= 0.5.")
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_hue(image, random_uniform([], -max_delta, max_delta, seed=seed))


@extensible
@explained(_WORDS, raises="ValueError: not 0 <= lower < upper.")
def random_saturation(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """`adjust_saturation` by a random factor."""
    _check_factors(lower, upper)
    return adjust_saturation(image, random_uniform([], lower, upper, seed=seed))


@extensible
@explained(_WORDS, raises="ValueError: a quality is not in [0, 100], or they are in no order.")
def random_jpeg_quality(
    image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> Tensor:
    """`adjust_jpeg_quality` to a random quality."""
    if not (0 <= min_jpeg_quality <= 100 and 0 <= max_jpeg_quality <= 100):
        raise ValueError("jpeg encoding range must be between 0 and 100.")
    if min_jpeg_quality >= max_jpeg_quality:
        raise ValueError("`min_jpeg_quality` must be less than `max_jpeg_quality`.")
    quality = random_uniform([], min_jpeg_quality, max_jpeg_quality, seed=seed, dtype=dtypes.int32)
    return adjust_jpeg_quality(image, quality)
