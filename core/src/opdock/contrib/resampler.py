"""`tf.contrib.resampler`: images sampled at points."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.image_warp import resampler_op

__all__ = ["resampler"]


def resampler(data: Any, warp: Any, name: str = "resampler") -> Tensor:
    """Images at points, between the four pixels around each; outside they fade to zero.

    Args:
        data: a floating tensor [batch, height, width, channels].
        warp: the points, [batch, ..., 2]: x, along the width, and y, in pixels.
        name: a name for the operations.

    Returns:
        A tensor [batch, ..., channels].

    Raises:
        UnimplementedError: when run, points have another number of coordinates.
        InvalidArgumentError: when run, `data` and `warp` are of two batch sizes.
    """
    with name_scope(name, "resampler", [data, warp]):
        out: Tensor = resampler_op(
            convert_to_tensor(data, name="data"), convert_to_tensor(warp, name="warp")
        )
        return out
