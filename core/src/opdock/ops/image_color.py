"""Colours of images: contrast, hue and saturation, and hue, saturation and value of RGB."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.docstrings import explained
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.cast import cast
from opdock.ops.compare import greater
from opdock.ops.gather import gather
from opdock.ops.joining import stack
from opdock.ops.reduce import reduce_sum
from opdock.ops.registry import ShapeSig, define_op
from opdock.ops.support import array_util
from opdock.ops.support.nn_util import HALF_TYPES, emit
from opdock.shapes import Shape

# Public as tf.image.*, which `api/image.py` gathers.
__all__: list[str] = []

_HALF = "T: {half, float} = DT_FLOAT"
_SPACE = "T: {half, bfloat16, float, double} = DT_FLOAT"

adjust_contrast_op = define_op(
    "AdjustContrastv2", "images: T, contrast_factor: float -> output: T", _HALF
)
adjust_hue_op = define_op("AdjustHue", "images: T, delta: float -> output: T", _HALF)
adjust_saturation_op = define_op("AdjustSaturation", "images: T, scale: float -> output: T", _HALF)
adjust_hsv_in_yiq_op = define_op(
    "AdjustHsvInYiq", "images: T, delta_h: float, scale_s: float, scale_v: float -> output: T",
    "T: {uint8, int8, int16, int32, int64, half, float, double}",
)  # fmt: skip
rgb_to_hsv_op = define_op("RGBToHSV", "images: T -> output: T", _SPACE)
hsv_to_rgb_op = define_op("HSVToRGB", "images: T -> output: T", _SPACE).not_differentiable()
for _op in (adjust_contrast_op, adjust_hue_op, adjust_saturation_op, adjust_hsv_in_yiq_op):
    array_util.no_gradient(_op)


# ---------------------------------------------------------------- shapes
@adjust_contrast_op.shape
@adjust_hue_op.shape
@adjust_saturation_op.shape
@adjust_hsv_in_yiq_op.shape
def _adjusted_shape(sig: ShapeSig) -> Shape:
    if sig.op == "AdjustContrastv2":
        shapes.with_rank(sig.shapes[1], 0)
    return shapes.with_rank_at_least(sig.shapes[0], 3)


@rgb_to_hsv_op.shape
@hsv_to_rgb_op.shape
def _space_shape(sig: ShapeSig) -> Shape:
    images = shapes.with_rank_at_least(sig.shapes[0], 1)
    if images is None:
        return None
    return array_util.replace(images, -1, array_util.with_dim(images[-1], 3))


# ---------------------------------------------------------------- gradient
@rgb_to_hsv_op.gradient
def _rgb_to_hsv_grad(op: Operation, grad: Any) -> Tensor:
    """Chain rule through maximum, range and hue; of equal colours TF takes red, then green.

    With a and b the colours after and before the greatest, in the circle of red, green and blue,
    the hue is (a - b) / (6 * range) plus a constant of the sector.
    """
    original = op.inputs[0].dtype
    narrow = original in HALF_TYPES
    rgb: Any = cast(op.inputs[0], dtypes.float32) if narrow else op.inputs[0]
    grad = cast(grad, rgb.dtype)
    r, g, b = (rgb[..., i] for i in range(3))
    greatest = _mask(rgb, [(r >= b, r >= g), (g > r, g >= b), (b > r, b > g)])
    least = _mask(rgb, [(r < b, r < g), (g <= r, g < b), (b <= r, b <= g)])
    value = reduce_sum(greatest * rgb, -1, keepdims=True)
    spread = value - reduce_sum(least * rgb, -1, keepdims=True)
    across = reduce_sum(greatest * (_turned(rgb, 1) - _turned(rgb, 2)), -1, keepdims=True)
    hue = (_turned(greatest, 2) - _turned(greatest, 1)) * _inverse(spread)
    hue -= across * _inverse(spread * spread) * (greatest - least)
    saturation = greatest * (value - spread) * _inverse(value * value)
    saturation -= least * _inverse(value)
    # TF leaves out colours that are not above zero.
    saturation *= cast(greater(rgb, 0), rgb.dtype)
    parts: Any = [grad[..., i : i + 1] for i in range(3)]
    total = parts[0] * hue / 6 + parts[1] * saturation + parts[2] * greatest
    return cast(total, original)  # type: ignore[no-any-return]


def _mask(rgb: Tensor, conditions: list[tuple[Any, Any]]) -> Any:
    """One for each colour of which both conditions hold, in the type of the image."""
    return cast(stack([p & q for p, q in conditions], axis=-1), rgb.dtype)


def _turned(rgb: Tensor, by: int) -> Any:
    """For each colour the one that comes `by` places after it in the circle."""
    return gather(rgb, [(i + by) % 3 for i in range(3)], axis=-1)


def _inverse(x: Any) -> Any:
    """1 / x, and zero where x is."""
    return emit("DivNoNan", emit("OnesLike", x), x)


# ---------------------------------------------------------------- public functions
_WORDS = {
    "images": "a floating tensor whose last dimension has 3 entries.",
    "name": "a name for the operation.",
    "returns": "A tensor of the same shape and type.",
}
"""What the functions here take."""


@extensible
@explained(_WORDS)
def rgb_to_hsv(images: Any, name: str | None = None) -> Tensor:
    """Hue, saturation and value of colours in [0, 1]; all three are in [0, 1] too."""
    return rgb_to_hsv_op(images, name=name)  # type: ignore[no-any-return]


@extensible
@explained(_WORDS)
def hsv_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Red, green and blue of hues, saturations and values in [0, 1]."""
    return hsv_to_rgb_op(images, name=name)  # type: ignore[no-any-return]
