"""Batch normalization with constant parameters as weights and an offset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from opdock.transforms.definitions import attribute
from opdock.transforms.editor import Editor, constant_value

__all__ = ["CONVOLUTIONS", "NORMS", "channels", "scale_and_offset", "scaled_weights"]

Array = np.ndarray[Any, Any]

CONVOLUTIONS: Final = "Conv2D|DepthwiseConv2dNative"


class _Norm(NamedTuple):
    """Where the parameters of a normalization are among its inputs and attributes."""

    gamma: int
    beta: int
    mean: int
    variance: int
    epsilon: str


_FUSED: Final = _Norm(1, 2, 3, 4, "epsilon")
NORMS: Final = {
    "BatchNormWithGlobalNormalization": _Norm(4, 3, 1, 2, "variance_epsilon"),
    "FusedBatchNorm": _FUSED,
    "FusedBatchNormV2": _FUSED,
    "FusedBatchNormV3": _FUSED,
}


def scale_and_offset(
    editor: Editor, norm: Any, kernels: Sequence[Any]
) -> tuple[Array, Array] | str:
    """What a normalization multiplies by and then adds, or why it cannot go into weights.

    Args:
        editor: the graph.
        norm: the normalization.
        kernels: the nodes that are to be weights.

    Returns:
        Two vectors of float64, or the reason.
    """
    where = NORMS[norm.op]
    fused = where is _FUSED
    if fused and attribute(norm, "is_training"):
        return "it normalizes by the batch"
    parts = [editor.source(norm.input[i]) for i in where[:4]]
    for part in (*kernels, *parts):
        if part.op != "Const":
            return f"'{part.name}' is a {part.op} and no Const; is the graph frozen?"
    gamma, beta, mean, variance = (constant_value(part) for part in parts)
    for part, value in zip(parts, (gamma, beta, mean, variance), strict=True):
        if value.ndim != 1 or value.shape != mean.shape:
            return f"'{part.name}' has the shape {list(value.shape)}, not {list(mean.shape)}"
    # As the op adds them up: then what is folded differs least from it.
    shifted = variance + variance.dtype.type(attribute(norm, where.epsilon))
    scale = 1 / np.sqrt(shifted.astype(np.float64))
    if fused or attribute(norm, "scale_after_normalization"):
        scale = scale * gamma
    return scale, beta - mean * scale


def channels(conv: Any, weights: Array) -> int | None:
    """How many channels the result of a convolution or a product has; None if these are no weights.

    Args:
        conv: the node.
        weights: what its second input holds.
    """
    if weights.ndim != (2 if conv.op == "MatMul" else 4):
        return None
    if conv.op == "DepthwiseConv2dNative":
        return int(np.prod(weights.shape[2:]))
    if conv.op == "MatMul" and attribute(conv, "transpose_b"):
        return int(weights.shape[0])
    return int(weights.shape[-1])


def scaled_weights(editor: Editor, conv: Any, kernel: Any, scale: Array) -> str:
    """Puts the weights that give a result multiplied by `scale`, channel by channel.

    They keep their name if only this convolution uses them.

    Returns:
        The name of the constant.
    """
    weights = constant_value(kernel)
    by_channel = scale.astype(np.float64)
    if conv.op == "DepthwiseConv2dNative":
        by_channel = by_channel.reshape(weights.shape[2:])
    elif conv.op == "MatMul" and attribute(conv, "transpose_b"):
        by_channel = by_channel[:, None]
    name = kernel.name
    if editor.is_shared(name):
        name = editor.unique(f"{conv.name}/weights")
    return editor.constant(name, (weights * by_channel).astype(weights.dtype))
