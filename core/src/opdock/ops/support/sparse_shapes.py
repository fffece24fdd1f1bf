"""Static shapes of the three parts of sparse tensors."""

from __future__ import annotations

from opdock import shapes
from opdock.shapes import Shape


def check(indices: Shape, values: Shape, dense_shape: Shape) -> tuple[int | None, int | None]:
    """(rank, number of cells) of a sparse tensor, as far as its parts tell.

    Raises:
        ValueError: the parts do not fit together.
    """
    cells = shapes.with_rank(indices, 2)
    count = shapes.merge_dim(cells[0], shapes.with_rank(values, 1)[0])
    rank = shapes.merge_dim(cells[1], shapes.with_rank(dense_shape, 1)[0])
    return rank, count


def check_ranks(indices: Shape, values: Shape, dense_shape: Shape) -> None:
    """Checks that the parts are a matrix and two vectors; ValueError if not."""
    shapes.with_rank(indices, 2)
    shapes.with_rank(values, 1)
    shapes.with_rank(dense_shape, 1)
