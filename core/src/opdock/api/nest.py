"""`tf.nest`: nested structures of lists, tuples and dicts."""

from __future__ import annotations

from opdock.util.nest import (
    assert_same_structure,
    flatten,
    is_nested,
    map_structure,
    pack_sequence_as,
)

__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]
