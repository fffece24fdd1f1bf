"""`tf.sets`: rows of tensors as sets."""

from __future__ import annotations

from opdock.ops.set_operations import set_difference, set_intersection, set_size, set_union

difference = set_difference
intersection = set_intersection
size = set_size
union = set_union

__all__ = [
    "difference", "intersection", "set_difference", "set_intersection", "set_size", "set_union",
    "size", "union",
]  # fmt: skip
