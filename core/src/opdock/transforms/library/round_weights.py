"""`round_weights`: constants of few different numbers, which compress well."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from opdock import errors
from opdock.transforms.editor import Editor, constant_value, set_value
from opdock.transforms.quantization import widened
from opdock.transforms.registry import Context

_LEAST: Final = 16
"""Smaller constants matter for accuracy more than for size."""


def round_weights(graph_def: Any, context: Context, *, num_steps: int = 256) -> Any:
    """Rounds float32 constants of 16 numbers or more.

    Args:
        graph_def: a `GraphDef`.
        context: its inputs and outputs.
        num_steps: how many different numbers a constant keeps, evenly from its least to its
            largest.

    Raises:
        InvalidArgumentError: there are no steps, or a constant cannot be decoded.
    """
    if num_steps < 1:
        raise errors.InvalidArgumentError(
            None, None, f"round_weights: num_steps is {num_steps}, expected 1 or more"
        )
    editor = Editor(graph_def, context.ends)
    for node in editor:
        if node.op != "Const":
            continue
        value = constant_value(node)
        if value.dtype == np.float32 and value.size >= _LEAST:
            set_value(node, _rounded(value, np.float32(num_steps)))
    return editor.result()


def _rounded(value: np.ndarray[Any, Any], steps: np.float32) -> np.ndarray[Any, Any]:
    low, high = widened(value.min(), value.max())
    width = (high - low) / steps
    bucket = np.floor((value - low) / width)
    middles: np.ndarray[Any, Any] = np.minimum(bucket, steps - 1) + np.float32(0.5)
    return np.asarray(low + width * middles)
