"""Ragged results of ops that work on vectors: `tf.RaggedTensor` where this build has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock import _api
from opdock.dtypes import DType
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.ops.joining import stack
from opdock.ops.support import late


def ragged_tensor() -> Any:
    """The class `tf.RaggedTensor`.

    Raises:
        UnimplementedError: there is none.
    """
    return late.public("RaggedTensor")


def is_ragged(value: Any) -> bool:
    """Whether a value is a RaggedTensor."""
    return "RaggedTensor" in _api.NAMES and isinstance(value, ragged_tensor())


def to_tensor_or_ragged(value: Any, dtype: DType, name: str) -> Any:
    """A tensor, a RaggedTensor as it is, or the one of a RaggedTensorValue."""
    if is_ragged(value):
        return value
    if hasattr(value, "nested_row_splits"):  # a RaggedTensorValue
        flat = convert_to_tensor(value.flat_values, dtype, name)
        return ragged_tensor().from_nested_row_splits(flat, value.nested_row_splits)
    return convert_to_tensor(value, dtype, name)


def map_vector(value: Any, fn: Callable[[Any], Any]) -> Any:
    """Applies what gives a ragged row for each element of a vector to a tensor of any rank.

    Args:
        value: a tensor of known rank, or a RaggedTensor.
        fn: from a vector to a RaggedTensor of as many rows.

    Returns:
        A RaggedTensor with one dimension more; for a scalar the tensor that is its row.

    Raises:
        ValueError: the rank is not known.
    """
    if is_ragged(value):
        return value.with_flat_values(map_vector(value.flat_values, fn))
    rank = value.shape.ndims
    if rank is None:
        raise ValueError("input must have a statically-known rank.")
    if rank == 0:
        return fn(stack([value]))[0]
    if rank == 1:
        return fn(value)
    return map_vector(ragged_tensor().from_tensor(value, ragged_rank=rank - 1), fn)


def with_same_rows(like: Any, rows: Any) -> Any:
    """`rows`, a RaggedTensor of one ragged dimension, in the outer dimensions of `like`."""
    if like.ragged_rank == 1:
        return rows
    return like.with_values(with_same_rows(like.values, rows))
