"""`tf.ragged`: tensors whose rows differ in length."""

from __future__ import annotations

from opdock.ops.composed.ragged_constant import constant, constant_value, placeholder
from opdock.ops.composed.ragged_dispatch import RaggedTensor as _RaggedTensor
from opdock.ops.composed.ragged_math import map_flat_values, range
from opdock.ops.composed.ragged_rows import boolean_mask, stack, stack_dynamic_partitions
from opdock.ops.composed.ragged_value import RaggedTensorValue
from opdock.ops.support.ragged_rows import ids_to_splits as segment_ids_to_row_splits
from opdock.ops.support.ragged_rows import splits_to_ids as row_splits_to_segment_ids

_ = _RaggedTensor  # with its operators, whatever made it

__all__ = [
    "RaggedTensorValue", "boolean_mask", "constant", "constant_value", "map_flat_values",
    "placeholder", "range", "row_splits_to_segment_ids", "segment_ids_to_row_splits", "stack",
    "stack_dynamic_partitions",
]  # fmt: skip
