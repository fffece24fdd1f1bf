"""Regions of images of one value, and the nearest pairs of two kinds of things.

TensorFlow has these ops in `tf.contrib.image`.
"""

from __future__ import annotations

from opdock import shapes
from opdock.ops.registry import ShapeSig, Traits, define_op
from opdock.shapes import Shape

__all__: list[str] = []  # `tf.contrib.image` has them

image_connected_components_op = define_op(
    "ImageConnectedComponents", "image: dtype -> components: int64",
    "dtype: {int64, int32, uint16, int16, uint8, int8, half, float, double, bool, string}",
).not_differentiable()  # fmt: skip
bipartite_match_op = define_op(
    "BipartiteMatch",
    "distance_mat: float, num_valid_rows: float -> row_to_col_match_indices: int32, "
    "col_to_row_match_indices: int32",
    "top_k: int = -1",
    stateful=True,
).not_differentiable()
# TF calls it stateful, but there is no state.
bipartite_match_op.declare(Traits(effect=False))


@image_connected_components_op.shape
def _image_connected_components_shape(sig: ShapeSig) -> Shape:
    return sig.shapes[0]


@bipartite_match_op.shape
def _bipartite_match_shape(sig: ShapeSig) -> list[Shape]:
    rows, columns = shapes.with_rank(sig.shapes[0], 2)
    return [(rows,), (columns,)]
