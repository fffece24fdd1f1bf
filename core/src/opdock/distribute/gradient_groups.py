"""Gradients of several devices: dense ones told from slices, summed, and put in order again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opdock.distribute.values import DistributedValues
from opdock.graph.nodes.composite import IndexedSlices
from opdock.ops.joining import concat
from opdock.ops.sums import add_n

__all__ = [
    "aggregate_tensors_or_indexed_slices", "contains_indexed_slices",
    "divide_by_n_tensors_or_indexed_slices", "group_device_names", "is_indexed_slices",
    "split_by_sparsity", "split_grads_by_size", "stitch_values",
]  # fmt: skip


def group_device_names(devices: Sequence[str], group_size: int) -> list[list[str]]:
    """Devices in groups of one size, dealt like cards; the first ones again where some lack.

    Raises:
        ValueError: a group is larger than all devices together.
    """
    if group_size > len(devices):
        raise ValueError(f"only {len(devices)} devices, but group_size={group_size}")
    groups = -(-len(devices) // group_size)
    return [
        [devices[i % len(devices)] for i in range(first, groups * group_size, groups)]
        for first in range(groups)
    ]


def split_grads_by_size(
    threshold_size: int, device_grads: Sequence[Sequence[tuple[Any, Any]]]
) -> tuple[list[Any], list[Any]]:
    """Each device's pairs of gradient and variable: those of so many elements at most, and others.

    Devices without any of a kind are left out of it.
    """
    small, large = [], []
    for pairs in device_grads:
        fits = [pair[0].shape.num_elements() <= threshold_size for pair in pairs]
        small.append([[*pair] for pair, fit in zip(pairs, fits, strict=True) if fit])
        large.append([[*pair] for pair, fit in zip(pairs, fits, strict=True) if not fit])
    return [pairs for pairs in small if pairs], [pairs for pairs in large if pairs]


def aggregate_tensors_or_indexed_slices(
    values: Sequence[Any], accumulation_fn: Callable[[Any], Any] = add_n
) -> Any:
    """The sum of values: of tensors by a function, of slices by putting them behind each other."""
    if not any(isinstance(value, IndexedSlices) for value in values):
        return accumulation_fn(values)
    return IndexedSlices(
        concat([value.values for value in values], 0),
        concat([value.indices for value in values], 0),
        values[0].dense_shape,
    )


def divide_by_n_tensors_or_indexed_slices(value: Any, n: Any) -> Any:
    """A tensor, or slices of one, divided by a number."""
    if isinstance(value, IndexedSlices):
        return IndexedSlices(value.values / n, value.indices, value.dense_shape)
    return value / n


def contains_indexed_slices(value: Any) -> bool:
    """Whether a value is slices of a tensor, or holds some: a list, or a value of replicas."""
    if isinstance(value, (list, tuple)):
        return any(contains_indexed_slices(part) for part in value)
    if isinstance(value, DistributedValues):
        return contains_indexed_slices(value.values)
    return isinstance(value, IndexedSlices)


def is_indexed_slices(value: Any) -> bool:
    """Whether a value is slices of a tensor, on every replica."""
    parts = value.values if isinstance(value, DistributedValues) else [value]
    return all(isinstance(part, IndexedSlices) for part in parts)


def split_by_sparsity(
    values: Sequence[Any],
) -> tuple[list[Any], list[int], list[Any], list[int]]:
    """The dense values and where they were, then the slices and where they were."""
    sparse = [i for i, value in enumerate(values) if is_indexed_slices(value)]
    dense = [i for i in range(len(values)) if i not in sparse]
    return [values[i] for i in dense], dense, [values[i] for i in sparse], sparse


def stitch_values(values_and_indices_list: Sequence[tuple[Sequence[Any], Sequence[int]]]) -> Any:
    """Values at the places that are given with them, as `split_by_sparsity` took them apart."""
    placed = [
        (where, value)
        for values, indices in values_and_indices_list
        for value, where in zip(values, indices, strict=True)
    ]
    return [value for _, value in sorted(placed, key=lambda pair: pair[0])]
