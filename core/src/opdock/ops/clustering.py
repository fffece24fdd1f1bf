"""Where clusters begin, and which centers are nearest."""

from __future__ import annotations

from opdock import shapes
from opdock.ops.registry import Cost, ShapeSig, Traits, define_op
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__: list[str] = []

kmeans_plus_plus_op = define_op(
    "KmeansPlusPlusInitialization",
    "points: float, num_to_sample: int64, seed: int64, num_retries_per_sample: int64 "
    "-> samples: float",
).not_differentiable()
kmc2_op = define_op(
    "KMC2ChainInitialization", "distances: float, seed: int64 -> index: int64"
).not_differentiable()
nearest_neighbors_op = define_op(
    "NearestNeighbors",
    "points: float, centers: float, k: int64 "
    "-> nearest_center_indices: int64, nearest_center_distances: float",
).not_differentiable()
nearest_neighbors_op.declare(Traits(cost=Cost.PRODUCT))


def _count(sig: ShapeSig, index: int) -> int | None:
    """The number that an input holds, if it is one of rows: others are errors of the step."""
    count = array_util.const_int(sig, index)
    return None if count is None or count < 0 else count


@kmeans_plus_plus_op.shape
def _samples_shape(sig: ShapeSig) -> Shape:
    columns = shapes.with_rank(sig.shapes[0], 2)[1]
    return (_count(sig, 1), columns)


@kmc2_op.shape
def _index_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[0], 1)
    return ()


@nearest_neighbors_op.shape
def _nearest_shape(sig: ShapeSig) -> list[Shape]:
    rows, width = shapes.with_rank(sig.shapes[0], 2)
    centers, as_wide = shapes.with_rank(sig.shapes[1], 2)
    shapes.merge_dim(width, as_wide)
    wanted = _count(sig, 2)
    count = None if wanted is None or centers is None else min(wanted, centers)
    return [(rows, count)] * 2
