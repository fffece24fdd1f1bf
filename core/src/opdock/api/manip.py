"""`tf.manip`: TF 1's namespace for operators that manipulate tensors."""

from __future__ import annotations

from opdock.ops.array import reshape
from opdock.ops.gather import gather_nd
from opdock.ops.scatter import scatter_nd
from opdock.ops.spacebatch import batch_to_space_nd, space_to_batch_nd
from opdock.ops.tiling import reverse, roll, tile

__all__ = [
    "batch_to_space_nd", "gather_nd", "reshape", "reverse", "roll", "scatter_nd",
    "space_to_batch_nd", "tile",
]  # fmt: skip
