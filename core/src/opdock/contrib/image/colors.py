"""Colours changed in luma and chroma."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.composed.image_adjust import convert_image_dtype
from opdock.ops.image_color import adjust_hsv_in_yiq_op
from opdock.ops.random import random_uniform

__all__ = ["adjust_hsv_in_yiq", "random_hsv_in_yiq"]


def adjust_hsv_in_yiq(
    image: Any, delta_hue: Any = 0, scale_saturation: Any = 1, scale_value: Any = 1,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Images with other hues, saturations and values, all by one matrix in YIQ space.

    Args:
        image: RGB images, of any type, with the three colours last.
        delta_hue: how far to turn hues, in radians.
        scale_saturation: what to multiply saturations by.
        scale_value: what to multiply all by.
        name: a name for the operations.

    Returns:
        A tensor of the type and shape of `image`; nothing is clipped but by the type.
    """
    with name_scope(name, "adjust_hsv_in_yiq", [image]):
        given = convert_to_tensor(image, name="image")
        changed = adjust_hsv_in_yiq_op(
            convert_image_dtype(given, dtypes.float32), delta_hue, scale_saturation, scale_value
        )
        return convert_image_dtype(changed, given.dtype)


def random_hsv_in_yiq(
    image: Any, max_delta_hue: float = 0, lower_saturation: float = 1, upper_saturation: float = 1,
    lower_value: float = 1, upper_value: float = 1, seed: int | None = None,
) -> Tensor:  # fmt: skip
    """`adjust_hsv_in_yiq` by random amounts.

    Args:
        image: as there.
        max_delta_hue: how far to turn hues at most, in radians, either way.
        lower_saturation: the least factor of saturations,
        upper_saturation: and the greatest.
        lower_value: the least factor of all,
        upper_value: and the greatest.
        seed: of the random numbers.

    Raises:
        ValueError: something is negative, or a lower bound is above the upper one.
    """
    for name, least in (
        ("max_delta", max_delta_hue),
        ("lower_saturation", lower_saturation),
        ("lower_value", lower_value),
    ):
        if least < 0:
            raise ValueError(f"{name} must be non-negative.")
    if lower_saturation > upper_saturation:
        raise ValueError("lower_saturation must be < upper_saturation.")
    if lower_value > upper_value:
        raise ValueError("lower_value must be < upper_value.")

    def drawn(low: float, high: float) -> Any:
        return low if low == high else random_uniform([], low, high, seed=seed)

    return adjust_hsv_in_yiq(
        image,
        drawn(-max_delta_hue, max_delta_hue),
        drawn(lower_saturation, upper_saturation),
        drawn(lower_value, upper_value),
    )
