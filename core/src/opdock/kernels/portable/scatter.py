"""Portable kernel of replacing values at coordinates; sums are decomposed into segment sums."""

from __future__ import annotations

import math
from typing import Any

from opdock.kernels.array_api import copy, dims, ints, invalid
from opdock.kernels.portable import portable
from opdock.kernels.portable.gather import flat_positions
from opdock.kernels.portable.partition import last_of_each
from opdock.kernels.select.signature import NodeSig


def check_updates(indices: Any, updates: Any, shape: Any) -> None:
    """Raises InvalidArgumentError unless there is an update for each slice of `shape`."""
    if not shape:
        raise invalid("Output must be at least 1-D, got shape: []")
    if 0 in shape and math.prod(indices.shape) and math.prod(updates.shape):
        raise invalid(
            f"Indices and updates specified for empty output tensor with shape {dims(shape)}"
        )
    depth = indices.shape[-1]
    if depth > len(shape):
        raise invalid(
            "The innermost dimension of indices must be at most the rank of the output; saw: "
            f"{depth} vs. {len(shape)}"
        )
    if tuple(updates.shape) != (*indices.shape[:-1], *shape[depth:]):
        raise invalid(
            f"Must have updates.shape = indices.shape[:-1] + output.shape[{depth}:]: got "
            f"updates.shape {dims(updates.shape)}, indices.shape {dims(indices.shape)}, "
            f"output.shape {dims(shape)}"
        )


def scattered_shape(shape: Any) -> tuple[int, ...]:
    """The shape of what updates are scattered into.

    Raises:
        InvalidArgumentError: a dimension is negative.
    """
    wanted = tuple(ints(shape))
    if any(n < 0 for n in wanted):
        raise invalid(f"Shape must have non-negative dimensions, got {dims(wanted)}")
    return wanted


@portable("TensorScatterUpdate")
def tensor_scatter_update(xp: Any, sig: NodeSig) -> Any:
    """Values replaced; of repeated coordinates the last wins."""

    def run(tensor: Any, indices: Any, updates: Any) -> Any:
        depth = indices.shape[-1]
        rest = tuple(tensor.shape[depth:])
        check_updates(indices, updates, tensor.shape)
        flat, count = flat_positions(xp, indices, tensor.shape)
        if flat.shape[0] == 0 or count == 0:
            return copy(xp, tensor)
        place, present = last_of_each(xp, flat, count)
        rows = xp.take(xp.reshape(updates, (flat.shape[0], math.prod(rest))), place, axis=0)
        old = xp.reshape(tensor, (count, math.prod(rest)))
        out = xp.where(xp.reshape(present, (count, 1)), rows, old)
        return xp.reshape(out, tensor.shape)

    return run
