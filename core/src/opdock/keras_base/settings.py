"""The types, the small number and the image format that layers use by default."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.variable import Variable
from opdock.ops.cast import cast

__all__ = [
    "cast_to_floatx", "epsilon", "floatx", "image_data_format", "set_epsilon", "set_floatx",
    "set_image_data_format",
]  # fmt: skip

_floatx = "float32"
_epsilon = 1e-7
_image_data_format = "channels_last"


def floatx() -> str:
    """The name of the default type of numbers."""
    return _floatx


def set_floatx(value: str) -> None:
    """Sets the default type of numbers.

    Raises:
        ValueError: it is none of float16, float32 and float64.
    """
    global _floatx
    if value not in ("float16", "float32", "float64"):
        raise ValueError(f"Unknown floatx type: {value}")
    _floatx = str(value)


def epsilon() -> float:
    """The number that keeps divisions and logarithms finite."""
    return _epsilon


def set_epsilon(value: float) -> None:
    """Sets it."""
    global _epsilon
    _epsilon = value


def image_data_format() -> str:
    """Where the channels of images stand: "channels_last" or "channels_first"."""
    return _image_data_format


def set_image_data_format(data_format: str) -> None:
    """Sets where the channels of images stand.

    Raises:
        ValueError: it is neither "channels_last" nor "channels_first".
    """
    global _image_data_format
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(f"Unknown data_format: {data_format}")
    _image_data_format = str(data_format)


def cast_to_floatx(x: Any) -> Any:
    """An array, tensor or variable in the default type of numbers."""
    if isinstance(x, Tensor | Variable):
        return cast(x, _floatx)
    return np.asarray(x, dtype=_floatx)
