"""What is in images and how alike two are: edges, variation, PSNR and structural similarity."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from opdock import dtypes, shapes
from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.arithmetic import pow, squared_difference, subtract
from opdock.ops.array import expand_dims, reshape, shape, shape_n, size
from opdock.ops.cast import cast
from opdock.ops.check import Assert
from opdock.ops.compare import equal, greater_equal, not_equal
from opdock.ops.composed.image_adjust import convert_image_dtype
from opdock.ops.composed.pooling import avg_pool
from opdock.ops.control import cond
from opdock.ops.depthwise import depthwise_conv2d
from opdock.ops.elementary import abs, log, square
from opdock.ops.fill import range as numbers
from opdock.ops.fill import zeros
from opdock.ops.identity import identity
from opdock.ops.joining import concat, stack
from opdock.ops.nn import relu
from opdock.ops.padding import pad
from opdock.ops.reduce import reduce_all, reduce_any, reduce_mean, reduce_prod, reduce_sum
from opdock.ops.splitting import unstack
from opdock.ops.tiling import tile
from opdock.ops.xent import softmax

# Public as tf.image.*, which `api/image.py` gathers.
__all__: list[str] = []

_WEIGHTS: Final = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
_SOBEL: Final = (
    ((-1, -2, -1), (0, 0, 0), (1, 2, 1)),
    ((-1, 0, 1), (-2, 0, 2), (-1, 0, 1)),
)
_WORDS = {
    "image": "a tensor of shape [batch, height, width, channels].",
    "images": "a tensor of shape [height, width, channels], or such images in a batch.",
    "a": "images [..., height, width, channels].",
    "b": "images of the same type, whose leading dimensions broadcast.",
    "img1": "images [..., height, width, channels].",
    "img2": "images of the same type, whose leading dimensions broadcast.",
    "max_val": "the difference between the largest and the smallest value that pixels may have.",
    "filter_size": "the size of the Gaussian window.",
    "filter_sigma": "its deviation.",
    "k1": "keeps the brightness term from dividing by zero.",
    "k2": "keeps the contrast term from dividing by zero.",
    "power_factors": "the weight of each scale, the finest first.",
    "name": "a name for the operation.",
    "returns": "A float32 tensor of the leading dimensions.",
    "raises": "ValueError: the shapes do not fit (InvalidArgumentError when run).",
}
"""What the functions here take."""


# ---------------------------------------------------------------- differences within
@extensible
@explained(
    _WORDS,
    returns="A tensor: one number for each image.",
    raises="ValueError: the images have neither three nor four dimensions.",
)
def total_variation(images: Any, name: str | None = None) -> Tensor:
    """The sum of the differences between neighbouring pixels."""
    with name_scope(name, "total_variation"):
        images = convert_to_tensor(images)
        known = images.raw_shape
        if known is None or len(known) not in (3, 4):
            raise ValueError("'images' must be either 3 or 4-dimensional.")
        axes = None if len(known) == 3 else [1, 2, 3]
        down: Any = images[..., 1:, :, :] - images[..., :-1, :, :]
        right: Any = images[..., 1:, :] - images[..., :-1, :]
        return reduce_sum(abs(down), axis=axes) + reduce_sum(abs(right), axis=axes)


@extensible
@explained(
    _WORDS,
    returns="(differences between rows, between columns), of the shape of `image`; zero in the "
    "last.",
    raises="ValueError: the image has not four dimensions.",
)
def image_gradients(image: Any) -> tuple[Tensor, Tensor]:
    """The difference of each pixel from the next one below, and on the right."""
    image = convert_to_tensor(image)
    known = image.raw_shape
    if known is None or len(known) != 4:
        raise ValueError(
            f"image_gradients expects a 4D tensor [batch_size, h, w, d], not {shapes.text(known)}."
        )
    whole = shape(image)
    batch, height, width, depth = unstack(whole)
    dy: Any = image[:, 1:, :, :] - image[:, :-1, :, :]
    dx: Any = image[:, :, 1:, :] - image[:, :, :-1, :]
    dy = concat([dy, zeros(stack([batch, 1, width, depth]), image.dtype)], 1)
    dx = concat([dx, zeros(stack([batch, height, 1, depth]), image.dtype)], 2)
    return reshape(dy, whole), reshape(dx, whole)


@extensible
@explained(
    _WORDS,
    returns="A tensor [batch, height, width, channels, 2]: along rows' order and along columns'.",
    raises="",
)
def sobel_edges(image: Any) -> Tensor:
    """Edges by Sobel's filters, the image mirrored at its border."""
    image = convert_to_tensor(image)
    known, whole = image.raw_shape, shape(image)
    filters = np.expand_dims(np.transpose(np.array(_SOBEL), (1, 2, 0)), -2)
    kernel = convert_to_tensor(filters, image.dtype)
    kernel = tile(kernel, stack([1, 1, whole[-1], 1]), name="sobel_filters")
    padded = pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
    edges = depthwise_conv2d(padded, kernel, [1, 1, 1, 1], "VALID")
    out = reshape(edges, concat([whole, [2]], 0))
    out.set_shape(None if known is None else [*known, 2])
    return out


# ---------------------------------------------------------------- two images
def _comparable(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, list[Operation]]:
    """The shapes of two batches of images, and the checks that they fit when they run.

    Raises:
        ValueError: they are known not to fit.
    """
    for image in (a, b):
        shapes.with_rank_at_least(image.raw_shape, 3)
    known_a, known_b = a.raw_shape, b.raw_shape
    if known_a is not None and known_b is not None:
        tails = known_a[-3:], known_b[-3:]
        if not shapes.is_compatible(*tails):
            raise ValueError(f"Shapes {a.shape[-3:]} and {b.shape[-3:]} are incompatible")
        for x, y in zip(reversed(known_a[:-3]), reversed(known_b[:-3]), strict=False):
            if x is not None and y is not None and x != y and 1 not in (x, y):
                raise ValueError(f"Two images are not compatible: {a.shape} and {b.shape}")
    shape_a, shape_b = shape_n([a, b])
    same = reduce_all(equal(shape_a[-3:], shape_b[-3:]))
    checks = [
        Assert(greater_equal(size(shape_a), 3), [shape_a, shape_b], summarize=10),
        Assert(same, [shape_a, shape_b], summarize=10),
    ]
    return shape_a, shape_b, checks


@extensible
@explained(_WORDS)
def psnr(a: Any, b: Any, max_val: Any, name: str | None = None) -> Tensor:
    """The ratio of the largest signal to the noise between two images, in decibels."""
    with name_scope(name, "PSNR", [a, b]):
        a, b = convert_to_tensor(a), convert_to_tensor(b)
        most = convert_image_dtype(cast(max_val, a.dtype), dtypes.float32)
        a, b = (convert_image_dtype(x, dtypes.float32) for x in (a, b))
        error = reduce_mean(squared_difference(a, b), [-3, -2, -1])
        signal: Any = 20 * log(most) / log(10.0)
        ratio = subtract(signal, np.float32(10 / math.log(10)) * log(error), name="psnr")
        _, _, checks = _comparable(a, b)
        with control_dependencies(checks):
            return identity(ratio)


def _gaussian(count: Tensor, sigma: Tensor) -> Tensor:
    """A Gaussian window [size, size, 1, 1] that adds up to one."""
    at: Any = cast(numbers(count), sigma.dtype) - cast(count - 1, sigma.dtype) / 2.0
    exponents: Any = square(at) * (-0.5 / square(sigma))
    both = reshape(exponents, [1, -1]) + reshape(exponents, [-1, 1])
    weights = softmax(reshape(both, [1, -1]))
    return reshape(weights, stack([count, count, 1, 1]))


def _ssim_by_channel(
    a: Tensor, b: Tensor, max_val: Any, filter_size: Any, filter_sigma: Any, k1: Any, k2: Any
) -> tuple[Tensor, Tensor]:
    """(similarity, contrast and structure alone) of each channel: Wang et al. 2004."""
    count = convert_to_tensor(filter_size, dtypes.int32)
    sigma = convert_to_tensor(filter_sigma, a.dtype)
    sizes: list[Any] = list(shape_n([a, b]))
    checks = [
        Assert(reduce_all(greater_equal(s[-3:-1], count)), [s, count], summarize=8) for s in sizes
    ]
    with control_dependencies(checks):
        a = identity(a)
    kernel = tile(_gaussian(count, sigma), stack([1, 1, sizes[0][-1], 1]))
    mean = _windowed(kernel)
    c1, c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2
    mean_a: Any = mean(a)
    mean_b: Any = mean(b)
    both = mean_a * mean_b * 2.0
    each: Any = square(mean_a) + square(mean_b)
    luminance = (both + c1) / (each + c1)
    product: Any = a * b
    squares: Any = square(a) + square(b)
    structure = (mean(product) * 2.0 - both + c2) / (mean(squares) - each + c2)
    axes = [-3, -2]
    return reduce_mean(luminance * structure, axes), reduce_mean(structure, axes)


def _windowed(kernel: Tensor) -> Callable[[Any], Tensor]:
    """The weighted mean under a window, over images with any leading dimensions."""

    def mean(x: Any) -> Tensor:
        whole: Any = shape(x)
        flat = reshape(x, concat([[-1], whole[-3:]], 0))
        found = depthwise_conv2d(flat, kernel, strides=[1, 1, 1, 1], padding="VALID")
        return reshape(found, concat([whole[:-3], shape(found)[1:]], 0))

    return mean


def _in_single(img1: Any, img2: Any, max_val: Any) -> tuple[Tensor, Tensor, Any, Tensor, Tensor]:
    """Both images and the largest value as float32, once they are checked, and their shapes."""
    a, b = convert_to_tensor(img1, name="img1"), convert_to_tensor(img2, name="img2")
    shape_a, shape_b, checks = _comparable(a, b)
    with control_dependencies(checks):
        a = identity(a)
    most = convert_image_dtype(cast(max_val, a.dtype), dtypes.float32)
    a, b = (convert_image_dtype(x, dtypes.float32) for x in (a, b))
    return a, b, most, shape_a, shape_b


@extensible
@explained(_WORDS)
def ssim(
    img1: Any, img2: Any, max_val: Any, filter_size: Any = 11, filter_sigma: Any = 1.5,
    k1: Any = 0.01, k2: Any = 0.03,
) -> Tensor:  # fmt: skip
    """The structural similarity of images, the mean over their channels."""
    a, b, most, _, _ = _in_single(img1, img2, max_val)
    by_channel, _ = _ssim_by_channel(a, b, most, filter_size, filter_sigma, k1, k2)
    return reduce_mean(by_channel, [-1])


@extensible
@explained(_WORDS)
def ssim_multiscale(
    img1: Any, img2: Any, max_val: Any, power_factors: Sequence[float] = _WEIGHTS,
    filter_size: Any = 11, filter_sigma: Any = 1.5, k1: Any = 0.01, k2: Any = 0.03,
) -> Tensor:  # fmt: skip
    """The structural similarity of images at several scales, each half as large as the last."""
    with name_scope(None, "MS-SSIM", [img1, img2]):
        a, b, most, *sizes = _in_single(img1, img2, max_val)
        images: list[Any] = [a, b]
        heads: list[Any] = [s[:-3] for s in sizes]
        tails: list[Any] = [s[-3:] for s in sizes]
        parts = []
        similarity = None
        for k in range(len(power_factors)):
            with name_scope(None, f"Scale{k}", images):
                if k > 0:
                    images, tails = _halved(images, heads, tails)
                similarity, structure = _ssim_by_channel(
                    images[0], images[1], most, filter_size, filter_sigma, k1, k2
                )
                parts.append(relu(structure))
        # The coarsest scale counts whole.
        parts[-1] = relu(similarity)
        weighted = pow(stack(parts, axis=-1), list(power_factors))
        return reduce_mean(reduce_prod(weighted, [-1]), [-1])


def _halved(images: list[Any], heads: list[Any], tails: list[Any]) -> tuple[list[Any], list[Any]]:
    """Images of half the size, after a mirrored line where it is odd; and their last dimensions."""
    flat = [reshape(x, concat([[-1], tail], 0)) for x, tail in zip(images, tails, strict=True)]
    odd: Any = tails[0] % convert_to_tensor([2, 2, 1], dtypes.int32)

    def padded() -> list[Tensor]:
        margins = pad(expand_dims(odd, -1), [[1, 0], [1, 0]])
        return [pad(x, margins, mode="SYMMETRIC") for x in flat]

    even = cond(reduce_any(not_equal(odd, 0)), padded, lambda: flat)
    halves = [avg_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID") for x in even]
    tails = [s[1:] for s in shape_n(halves)]
    shaped = [reshape(x, concat([h, t], 0)) for x, h, t in zip(halves, heads, tails, strict=True)]
    return shaped, tails
