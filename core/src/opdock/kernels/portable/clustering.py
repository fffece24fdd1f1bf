"""The portable kernel of the nearest centers of points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.kernels.array_api import device_ints, invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig

_DISTANCES_AT_ONCE: Final = 1 << 22


def check_any_points(points: Any) -> None:
    """Raises InvalidArgumentError unless there is a point."""
    if not points.shape[0]:
        raise invalid("Expected points.rows() > 0.")


@portable("NearestNeighbors", host_inputs=("k",))
def nearest_neighbors(xp: Any, sig: NodeSig) -> Callable[..., tuple[Any, Any]]:
    """The nearest centers of each point and their squared distances, the nearest first."""

    def run(points: Any, centers: Any, k: Any) -> tuple[Any, Any]:
        for name, value in (("points", points), ("centers", centers)):
            if len(value.shape) != 2:
                raise invalid(f"Input {name} should be a matrix.")
        if np.ndim(k):
            raise invalid("Input k should be a scalar.")
        check_any_points(points)
        if points.shape[1] != centers.shape[1]:
            raise invalid(
                "Expected point_dimensions == center_dimensions: "
                f"{points.shape[1]} vs {centers.shape[1]}."
            )
        if k < 0:
            raise invalid(f"Expected k >= 0, got {k}.")
        count = min(int(k), centers.shape[0])
        if not count:
            return xp.zeros((points.shape[0], 0), dtype=xp.int64), points[:, :0]
        norms, rows = _norms(xp, centers), points.shape[0]
        step = max(1, _DISTANCES_AT_ONCE // max(1, centers.shape[0]))
        found = [
            _nearest(xp, points[start : min(start + step, rows), :], centers, norms, count)
            for start in range(0, rows, step)
        ]
        places, distances = ([part[i] for part in found] for i in (0, 1))
        return xp.concat(places, axis=0), xp.concat(distances, axis=0)

    return run


def _norms(xp: Any, points: Any) -> Any:
    """Half of each point's squared distance to the origin."""
    return 0.5 * xp.sum(points * points, axis=1)


def _nearest(xp: Any, points: Any, centers: Any, norms: Any, count: int) -> tuple[Any, Any]:
    # Without what all distances of a point have in common, they are in the same order.
    partial = norms - xp.matmul(points, xp.matrix_transpose(centers))
    order = xp.argsort(partial, axis=1, stable=True)[:, :count]
    rows = device_ints(xp, np.arange(points.shape[0]) * centers.shape[0], points)
    flat = xp.reshape(xp.expand_dims(rows, axis=1) + order, (-1,))
    values = xp.reshape(xp.take(xp.reshape(partial, (-1,)), flat, axis=0), order.shape)
    distances = 2 * (xp.expand_dims(_norms(xp, points), axis=1) + values)
    return xp.astype(order, xp.int64), distances
