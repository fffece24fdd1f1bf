"""Polyharmonic splines: smooth functions through values at points."""

from __future__ import annotations

from typing import Any, Final

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.arithmetic import maximum
from opdock.ops.arithmetic import pow as pow_
from opdock.ops.array import expand_dims, shape
from opdock.ops.composed.eye import eye
from opdock.ops.elementary import log, sqrt, square
from opdock.ops.fill import ones_like, zeros
from opdock.ops.joining import concat
from opdock.ops.linalg import matmul
from opdock.ops.matrix import transpose
from opdock.ops.reduce import reduce_sum
from opdock.ops.solve import matrix_solve

__all__ = ["interpolate_spline"]

_LEAST: Final = 1e-10  # of a distance whose logarithm or root is taken


def interpolate_spline(
    train_points: Any, train_values: Any, query_points: Any, order: int,
    regularization_weight: float = 0.0, name: str = "interpolate_spline",
) -> Tensor:  # fmt: skip
    """The values at points of a smooth function that has given values at others.

    Args:
        train_points: [batch, n, d], where d is known.
        train_values: [batch, n, k], where k is known.
        query_points: [batch, m, d].
        order: of the spline: 1 is linear in distances, 2 a thin plate in two dimensions.
        regularization_weight: how much smoothness counts; at 0 it has the values exactly.
        name: a name for the operations.

    Returns:
        A tensor [batch, m, k].

    Raises:
        ValueError: d or k is not known.
    """
    with name_scope(name):
        points, values = convert_to_tensor(train_points), convert_to_tensor(train_values)
        places = convert_to_tensor(query_points)
        for tensor, what in ((points, "input points (d)"), (values, "output values (k)")):
            if _last(tensor) is None:
                raise ValueError(f"The dimensionality of the {what} must be statically-inferrable.")
        weights, plane = _solved(points, values, order, regularization_weight)
        bumps = _radial(_squared_distances(places, points), order)
        return matmul(bumps, weights) + matmul(_affine(places), plane)


def _solved(
    points: Tensor, values: Tensor, order: int, regularization_weight: float
) -> tuple[Tensor, Tensor]:
    """The weights of the points' bumps [batch, n, k], and a plane [batch, d + 1, k]."""
    batch, count = shape(points)[0], shape(points)[1]
    bumps = _radial(_squared_distances(points, points), order)
    if regularization_weight > 0:
        bumps += regularization_weight * expand_dims(eye(count, dtype=points.dtype), 0)
    flat = _affine(points)
    size = _last(flat)
    # The bumps have no part that a plane could have: their sums over the points are zero.
    above = concat([bumps, flat], 2)
    below = concat([transpose(flat, [0, 2, 1]), zeros([batch, size, size], points.dtype)], 2)
    right = concat([values, zeros([batch, size, _last(values)], points.dtype)], 1)
    found = matrix_solve(concat([above, below], 1), right)
    return found[:, :count], found[:, count:]


def _last(tensor: Tensor) -> int | None:
    return tensor.raw_shape[-1] if tensor.raw_shape else None


def _affine(points: Tensor) -> Tensor:
    return concat([points, ones_like(points[..., :1])], 2)


def _squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """Between all points of two sets: [batch, n, m]."""
    of_x, of_y = (reduce_sum(square(p), 2) for p in (x, y))
    found: Tensor = expand_dims(of_x, 2) - 2 * matmul(x, y, transpose_b=True)
    return found + expand_dims(of_y, 1)


def _radial(squared: Tensor, order: int) -> Tensor:
    """The bump at a squared distance: r^order, times log r where the order is even."""
    apart = maximum(squared, _LEAST)
    if order % 2:
        power: Tensor = sqrt(apart) if order == 1 else pow_(apart, 0.5 * order)
        return power
    # Where the power is known to be whole, it is exact at zero too.
    power = {2: squared, 4: square(squared)}.get(order, pow_(apart, 0.5 * order))
    return 0.5 * power * log(apart)
