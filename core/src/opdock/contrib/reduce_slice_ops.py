"""`tf.contrib.reduce_slice_ops`: reductions of ranges of rows, which may overlap.

`indices` are pairs [ranges, 2] of a first row and the one after the last, or a vector in which each
two neighbours are such a pair. A range ends with the rows at the latest, and may be empty.
"""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.operation import Tensor
from opdock.ops import reduce_slice

__all__ = ["reduce_slice_max", "reduce_slice_min", "reduce_slice_prod", "reduce_slice_sum"]


def reduce_slice_sum(data: Any, indices: Any, axis: Any, name: str | None = None) -> Tensor:
    """Sums of ranges along an axis; 0 for those that are empty.

    Args:
        data: a tensor of numbers.
        indices: the ranges, int32 or int64; see above.
        axis: the axis, an int64 scalar.
        name: a name for the operation.
    """
    total: Tensor = reduce_slice.sum_op(data, indices, axis, name=name)
    return total


def reduce_slice_prod(data: Any, indices: Any, axis: Any, name: str | None = None) -> Tensor:
    """Products of ranges along an axis, 1 for those that are empty; see `reduce_slice_sum`."""
    product: Tensor = reduce_slice.prod_op(data, indices, axis, name=name)
    return product


def reduce_slice_max(data: Any, indices: Any, axis: Any, name: str | None = None) -> Tensor:
    """The largest numbers of ranges along an axis; the least that there is for empty ones."""
    largest: Tensor = reduce_slice.max_op(data, indices, axis, name=name)
    return largest


def reduce_slice_min(data: Any, indices: Any, axis: Any, name: str | None = None) -> Tensor:
    """The smallest numbers of ranges along an axis; the largest that there is for empty ones."""
    smallest: Tensor = reduce_slice.min_op(data, indices, axis, name=name)
    return smallest
