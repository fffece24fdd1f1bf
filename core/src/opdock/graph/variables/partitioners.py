"""Partitioners, which say how a variable is cut, and variables cut by a list of numbers."""

from __future__ import annotations

import math
from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.variables.partitioned import Partitioner, get_partitioned
from opdock.graph.variables.variable_scope import get_variable_scope, variable_scope, variable_store

__all__ = [
    "create_partitioned_variables", "fixed_size_partitioner", "min_max_variable_partitioner",
    "variable_axis_size_partitioner",
]  # fmt: skip


def fixed_size_partitioner(num_shards: int, axis: int = 0) -> Partitioner:
    """A partitioner that cuts `axis` into `num_shards` parts, or fewer if it is shorter."""

    def partition(shape: Any, **unused: Any) -> list[int]:
        sizes = shapes.as_shape(shape) or ()
        out = [1] * len(sizes)
        out[axis] = min(num_shards, int(sizes[axis] or 1))
        return out

    return partition


def variable_axis_size_partitioner(
    max_shard_bytes: int,
    axis: int = 0,
    bytes_per_string_element: int = 16,
    max_shards: int | None = None,
) -> Partitioner:
    """A partitioner that keeps each part below `max_shard_bytes` if `axis` is long enough.

    Args:
        max_shard_bytes: the largest size of a part.
        axis: the axis to cut.
        bytes_per_string_element: what a string counts.
        max_shards: the largest number of parts.

    Raises:
        ValueError: a limit is not positive.
    """
    if max_shard_bytes < 1 or bytes_per_string_element < 1:
        raise ValueError("Both max_shard_bytes and bytes_per_string_element must be positive.")
    if max_shards and max_shards < 1:
        raise ValueError("max_shards must be positive.")

    def partition(shape: Any, dtype: Any) -> list[int]:
        sizes = [int(d or 0) for d in shapes.as_shape(shape) or ()]
        out = [1] * len(sizes)
        rest = math.prod(s for i, s in enumerate(sizes) if i != axis % len(sizes))
        per_entry = _element_bytes(dtype, bytes_per_string_element) * rest
        entries = max(1, max_shard_bytes // per_entry) if per_entry else sizes[axis]
        count = math.ceil(sizes[axis] / entries) if entries else 1
        count = min(count, sizes[axis])
        if max_shards:
            count = min(count, max_shards)
        out[axis] = max(1, count)
        return out

    return partition


def min_max_variable_partitioner(
    max_partitions: int = 1,
    axis: int = 0,
    min_slice_size: int = 256 << 10,
    bytes_per_string_element: int = 16,
) -> Partitioner:
    """A partitioner with as many parts as keep each above `min_slice_size` bytes.

    Args:
        max_partitions: the largest number of parts.
        axis: the axis to cut.
        min_slice_size: the least size of a part.
        bytes_per_string_element: what a string counts.
    """

    def partition(shape: Any, dtype: Any) -> list[int]:
        sizes = [int(d or 0) for d in shapes.as_shape(shape) or ()]
        out = [1] * len(sizes)
        total = math.prod(sizes) * _element_bytes(dtype, bytes_per_string_element)
        wanted = max(1, math.ceil(total / min_slice_size))
        out[axis] = max(1, min(sizes[axis], max_partitions, wanted))
        return out

    return partition


def _element_bytes(dtype: Any, string_bytes: int) -> int:
    base = dtypes.as_dtype(dtype).base_dtype
    return string_bytes if base is dtypes.string else int(base.size)


def create_partitioned_variables(
    shape: Any,
    slicing: list[int],
    initializer: Any,
    dtype: Any = dtypes.float32,
    trainable: bool = True,
    collections: Any = None,
    name: str | None = None,
    reuse: Any = None,
) -> list[Any]:
    """The parts of a new variable, cut as `slicing` says.

    Args:
        shape: the shape of the whole.
        slicing: the number of parts along each axis; at most one may exceed 1.
        initializer: a value for the whole, or an initializer that is called for each part.
        dtype: the element type.
        trainable: whether optimizers train it.
        collections: graph collections, GLOBAL_VARIABLES by default.
        name: the name of the whole, "PartitionedVariable" by default.
        reuse: as in `tf.get_variable`.

    Returns:
        The variables in order.

    Raises:
        ValueError: `slicing` does not fit the shape.
    """
    sizes = shapes.as_shape(shape)
    if isinstance(shape, Tensor):
        known = constant_value(shape)
        sizes = None if known is None else tuple(int(d) for d in known)
    if len(slicing) != len(sizes or ()):
        raise ValueError(f"The slicing should have the rank of the shape: {slicing} vs. {shape}")
    if any(n > size for n, size in zip(slicing, sizes or (), strict=True) if size is not None):
        raise ValueError(f"There are more slices than elements: {slicing} vs. {shape}")
    with variable_scope(name, "PartitionedVariable", reuse=reuse):
        scope = get_variable_scope()
        with name_scope(None):
            made = get_partitioned(
                variable_store(), scope.name, sizes, dtypes.as_dtype(dtype).base_dtype, initializer,
                lambda **unused: list(slicing), scope.reuse,
                {"trainable": trainable, "collections": collections},
            )  # fmt: skip
    return [] if made is None else list(made)
