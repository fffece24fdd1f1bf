"""What tests of generated loops share."""

from __future__ import annotations

from typing import Any

import opdock as tf

__all__ = ["given"]


def given(value: Any) -> Any:
    """An array that is no constant, which would be folded."""
    tensor = tf.py_func(lambda: value, [], value.dtype)
    tensor.set_shape(value.shape)
    return tensor
