"""Images whose pixels flow: a flow for each, or for some points between which it is smooth."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.contrib.image.splines import interpolate_spline
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.arithmetic import maximum, minimum
from opdock.ops.array import expand_dims, reshape, shape
from opdock.ops.cast import cast
from opdock.ops.check import assert_equal, assert_greater_equal
from opdock.ops.elementary import floor
from opdock.ops.fill import meshgrid
from opdock.ops.fill import range as range_
from opdock.ops.gather import gather
from opdock.ops.joining import concat, stack
from opdock.ops.splitting import unstack

__all__ = ["dense_image_warp", "interpolate_bilinear", "sparse_image_warp"]

Array = np.ndarray[Any, Any]


def interpolate_bilinear(
    grid: Any, query_points: Any, name: str = "interpolate_bilinear", indexing: str = "ij"
) -> Tensor:
    """Images at points, between the four pixels around each; beyond an edge, as at the edge.

    Args:
        grid: images [batch, height, width, channels], at least two pixels high and wide.
        query_points: [batch, points, 2], in pixels.
        name: a name for the operations.
        indexing: "ij" if a point is a row and a column, "xy" if the other way round.

    Returns:
        A tensor [batch, points, channels].

    Raises:
        ValueError: `indexing` is neither, or a rank is another.
        InvalidArgumentError: when run, images are smaller.
    """
    if indexing not in ("ij", "xy"):
        raise ValueError("Indexing mode must be 'ij' or 'xy'")
    with name_scope(name):
        images, points = convert_to_tensor(grid), convert_to_tensor(query_points)
        if images.shape.ndims != 4:
            raise ValueError(f"Grid must be 4 dimensional. Received size: {images.shape}")
        if points.shape.ndims != 3:
            raise ValueError("Query points must be 3 dimensional.")
        batch, height, width, channels = unstack(shape(images), num=4)
        checks = [
            assert_equal(shape(points)[2], 2, message="Query points must be size 2 in dim 2."),
            assert_greater_equal(height, 2, message="Grid height must be at least 2."),
            assert_greater_equal(width, 2, message="Grid width must be at least 2."),
        ]
        with control_dependencies(checks):
            y, x = unstack(points, axis=2)[:: 1 if indexing == "ij" else -1]
        top, down = _between(y, height, images.dtype)
        left, right = _between(x, width, images.dtype)
        rows = reshape(images, [batch * height * width, channels])
        first = expand_dims(range_(batch) * height * width, 1)

        def at(row: Tensor, column: Tensor) -> Tensor:
            return gather(rows, first + row * width + column)

        above, below = (
            at(row, left) + right * (at(row, left + 1) - at(row, left)) for row in (top, top + 1)
        )
        return above + down * (below - above)


def _between(at: Tensor, length: Tensor, dtype: dtypes.DType) -> tuple[Tensor, Tensor]:
    """The pixel before each place along an axis, and how far the place is to the next."""
    last = cast(length - 2, at.dtype)
    before = minimum(maximum(constant(0, at.dtype), floor(at)), last)
    part = cast(at - before, dtype)
    part = minimum(maximum(constant(0, dtype), part), constant(1, dtype))
    return cast(before, dtypes.int32), expand_dims(part, 2)


def dense_image_warp(image: Any, flow: Any, name: str = "dense_image_warp") -> Tensor:
    """Images each of whose pixels comes from a place of its own.

    Args:
        image: [batch, height, width, channels], at least two pixels high and wide.
        flow: [batch, height, width, 2]: the pixel (row, column) comes from (row - flow[..., 0],
            column - flow[..., 1]).
        name: a name for the operations.

    Returns:
        A tensor of the type and shape of `image`. A place between pixels is interpolated; beyond
        an edge all is as at the edge.

    Raises:
        InvalidArgumentError: when run, images are smaller.
    """
    with name_scope(name):
        images, flows = convert_to_tensor(image), convert_to_tensor(flow)
        batch, height, width, channels = unstack(shape(images), num=4)
        here = stack(meshgrid(range_(height), range_(width), indexing="ij"), axis=2)
        here = cast(here, flows.dtype)
        points = reshape(here[None] - flows, [batch, height * width, 2])
        found = interpolate_bilinear(images, points)
        out = reshape(found, [batch, height, width, channels])
        out.set_shape(images.raw_shape)
        return out


def sparse_image_warp(
    image: Any, source_control_point_locations: Any, dest_control_point_locations: Any,
    interpolation_order: int = 2, regularization_weight: float = 0.0,
    num_boundary_points: int = 0, name: str = "sparse_image_warp",
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Images warped so that some points come to others, smoothly in between.

    Args:
        image: [batch, height, width, channels], of a shape that is known.
        source_control_point_locations: [batch, points, 2], rows and columns.
        dest_control_point_locations: where they go, likewise.
        interpolation_order: of the spline, as of `interpolate_spline`.
        regularization_weight: as there.
        num_boundary_points: how many points of each edge, corners included, stay where they are.
        name: a name for the operations.

    Returns:
        The images, and the flow of each of their pixels, [batch, height, width, 2].

    Raises:
        ValueError: the shape of `image` is not known.
    """
    images = convert_to_tensor(image)
    source = convert_to_tensor(source_control_point_locations)
    goal = convert_to_tensor(dest_control_point_locations)
    flows = goal - source
    with name_scope(name):
        batch, height, width = _static_size(images)
        pixels = grid_locations(height, width).reshape(-1, 2)
        if num_boundary_points > 0:
            still = boundary_locations(height, width, num_boundary_points - 1)
            goal = concat([goal, _for_each(still, batch, goal.dtype)], 1)
            flows = concat([flows, _for_each(np.zeros_like(still), batch, goal.dtype)], 1)
        found = interpolate_spline(
            goal, flows, _for_each(pixels, batch, images.dtype), interpolation_order,
            regularization_weight,
        )  # fmt: skip
        dense = reshape(found, [batch, height, width, 2])
        return dense_image_warp(images, dense), dense


def grid_locations(image_height: int, image_width: int) -> Array:
    """The rows and columns of all pixels, [height, width, 2]."""
    return np.moveaxis(np.indices((image_height, image_width), np.float64), 0, -1)


def boundary_locations(image_height: int, image_width: int, num_points_per_edge: int) -> Array:
    """Points along the edges of an image, so many between two corners: [points, 2]."""
    rows, columns = (
        np.linspace(0, length - 1, num_points_per_edge + 2)
        for length in (image_height, image_width)
    )
    y, x = np.meshgrid(rows, columns, indexing="ij")
    edge = (x == 0) | (x == image_width - 1) | (y == 0) | (y == image_height - 1)
    return np.stack([y[edge], x[edge]], axis=-1)


def _static_size(images: Tensor) -> tuple[int, int, int]:
    batch, height, width, _ = shapes.with_rank(images.raw_shape, 4)
    if batch is None or height is None or width is None:
        raise ValueError(f"The shape of image must be known, but is {images.shape}.")
    return batch, height, width


def _for_each(points: Array, batch: int, dtype: dtypes.DType) -> Tensor:
    return constant(np.tile(points[None], (batch, 1, 1)), dtype)
