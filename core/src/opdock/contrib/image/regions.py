"""Regions of images, and pairs of the nearest."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import reshape, shape
from opdock.ops.cast import cast
from opdock.ops.compare import not_equal
from opdock.ops.gather import gather
from opdock.ops.image_regions import bipartite_match_op, image_connected_components_op
from opdock.ops.scan import cumsum
from opdock.ops.sets import unique

__all__ = ["bipartite_match", "connected_components"]


def connected_components(images: Any) -> Tensor:
    """Which region of one value each pixel is in.

    Args:
        images: one image [height, width], or several, [batch, height, width]. Pixels that are
            zero, False or empty are in none.

    Returns:
        An int32 tensor of the same shape: 0 for those, and for the others the number of their
        region, from 1 on, in the order of first pixels. Pixels meet at sides, not at corners.

    Raises:
        TypeError: images have another rank.
    """
    with name_scope("connected_components"):
        given = convert_to_tensor(images, name="images")
        rank = given.shape.ndims
        if rank not in (2, 3):
            raise TypeError(
                f"images should have rank 2 (HW) or 3 (NHW). Static shape is {given.shape}"
            )
        regions = image_connected_components_op(given[None] if rank == 2 else given)
        ids, index = unique(reshape(regions, [-1]))
        # Numbers in the order in which they come, but zero stays zero.
        counts = cast(not_equal(ids, 0), dtypes.int32)
        found = reshape(gather(cumsum(counts) * counts, index), shape(regions))
        found.set_shape(regions.raw_shape)
        return found[0] if rank == 2 else found


def bipartite_match(
    distance_mat: Any, num_valid_rows: Any, top_k: int = -1, name: str = "bipartite_match"
) -> tuple[Tensor, Tensor]:
    """Pairs of rows and columns: the nearest, then the nearest of those that are left.

    Args:
        distance_mat: a float32 matrix of how far rows are from columns.
        num_valid_rows: how many rows count, a scalar; all if it is negative.
        top_k: how many pairs to find; as many as there are if it is not positive.
        name: a name for the operation.

    Returns:
        The column of each row and the row of each column, int32 vectors; -1 where there is none.

    Raises:
        InvalidArgumentError: when run, there are fewer rows.
    """
    rows, columns = bipartite_match_op(distance_mat, num_valid_rows, top_k=top_k, name=name)
    return rows, columns
