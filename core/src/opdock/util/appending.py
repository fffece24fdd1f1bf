"""Sparse and ragged tensors and values one below the other, as Keras gathers its batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.graph.nodes.composite import CompositeTensor, SparseTensor, SparseTensorValue
from opdock.ops.composed.ragged_value import RaggedTensorValue

__all__ = ["append_composite_tensor", "get_shape", "is_composite_or_composite_value"]


def is_composite_or_composite_value(tensor: Any) -> bool:
    """Whether it is a tensor made of several, or what a session gives of one."""
    return isinstance(tensor, (CompositeTensor, SparseTensorValue, RaggedTensorValue))


def get_shape(tensor: Any) -> Any:
    """The shape of a sparse or ragged tensor or value."""
    return tensor.dense_shape if isinstance(tensor, SparseTensorValue) else tensor.shape


def append_composite_tensor(target: Any, to_append: Any) -> Any:
    """The rows of one sparse or ragged tensor or value, and below them those of another.

    Raises:
        RuntimeError: they are not of one class, or what is in their rows differs in shape.
    """
    if type(target) is not type(to_append):
        raise RuntimeError(f"Unable to concatenate {type(target)} and {type(to_append)}")
    if isinstance(target, SparseTensorValue):
        return _sparse_values(target, to_append)
    if isinstance(target, RaggedTensorValue):
        return _ragged_values(target, to_append)
    if isinstance(target, SparseTensor):
        from opdock.ops.composed.sparse import sparse_concat

        return sparse_concat(0, [target, to_append])
    if isinstance(target, CompositeTensor):
        from opdock.ops.composed.ragged_rows import concat

        return concat([target, to_append], 0)
    raise RuntimeError(f"Attempted to concatenate unsupported object {type(target)}.")


def _sparse_values(target: SparseTensorValue, below: SparseTensorValue) -> SparseTensorValue:
    sizes, more = tuple(target.dense_shape), tuple(below.dense_shape)
    if sizes[1:] != more[1:] or len(sizes) != len(more):
        raise RuntimeError(
            f"Unable to concatenate {target} and {below}. The inner dense shapes do not match "
            f"({sizes[1:]} vs {more[1:]})"
        )
    indices = np.array(below.indices)
    indices[:, 0] += sizes[0]
    # As many rows as there are up to the last one with a value, which is how TF counts them.
    rows = max(int(indices[:, 0].max(initial=sizes[0])), sizes[0]) + 1
    return SparseTensorValue(
        np.append(target.indices, indices, axis=0),
        np.concatenate((target.values, below.values), axis=0),
        (rows, *sizes[1:]),
    )


def _ragged_values(target: RaggedTensorValue, below: RaggedTensorValue) -> RaggedTensorValue:
    if target.shape[1:] != below.shape[1:] or len(target.shape) != len(below.shape):
        raise RuntimeError(f"Unable to concatenate {target} and {below}")
    splits = np.append(target.row_splits, below.row_splits[1:] + target.row_splits[-1])
    if isinstance(target.values, RaggedTensorValue):
        return RaggedTensorValue(_ragged_values(target.values, below.values), splits)
    return RaggedTensorValue(np.concatenate((target.values, below.values), axis=0), splits)
