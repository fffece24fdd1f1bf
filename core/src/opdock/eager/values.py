"""The values of structures of tensors that have some."""

from __future__ import annotations

from typing import Any

from opdock.eager.tensor import EagerTensor
from opdock.graph.nodes.composite import (
    IndexedSlices,
    IndexedSlicesValue,
    SparseTensor,
    SparseTensorValue,
)
from opdock.graph.variables.variable import Variable
from opdock.ops.composed.ragged_tensor import RaggedTensor
from opdock.util import nest

__all__ = ["values_of"]


def values_of(tensors: Any) -> Any:
    """What a session would give for a structure of tensors, variables and functions of them."""
    return nest.map_structure(_value, tensors)


def _value(item: Any) -> Any:
    if isinstance(item, (EagerTensor, Variable)):
        return item.numpy()
    if isinstance(item, SparseTensor):
        return SparseTensorValue(*map(_value, (item.indices, item.values, item.dense_shape)))
    if isinstance(item, IndexedSlices):
        return IndexedSlicesValue(*map(_value, (item.values, item.indices, item.dense_shape)))
    if isinstance(item, RaggedTensor):
        return item._at_once()
    return values_of(item()) if callable(item) else item
