"""Structures of classes with sparse tensors among them."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.data.util import nest
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.operation import Tensor
from opdock.ops.sparse_serial import deserialize_op, serialize_many_op, serialize_op
from opdock.shapes import TensorShape

__all__ = [
    "any_sparse", "as_dense_shapes", "as_dense_types", "deserialize_sparse_tensors",
    "get_classes", "serialize_many_sparse_tensors", "serialize_sparse_tensors",
]  # fmt: skip


def any_sparse(classes: Any) -> bool:
    """Whether a structure of classes has `tf.SparseTensor` among them."""
    return any(c is SparseTensor for c in nest.flatten(classes))


def as_dense_shapes(shapes: Any, classes: Any) -> Any:
    """Shapes of the tensors that stand for values: unknown for sparse ones."""
    return _by_class(shapes, classes, TensorShape(None))


def as_dense_types(types: Any, classes: Any) -> Any:
    """Types of the tensors that stand for values: variants for sparse ones."""
    return _by_class(types, classes, dtypes.variant)


def _by_class(values: Any, classes: Any, sparse: Any) -> Any:
    flat = zip(nest.flatten(values), nest.flatten(classes), strict=True)
    return nest.pack_sequence_as(values, [sparse if c is SparseTensor else v for v, c in flat])


def get_classes(tensors: Any) -> Any:
    """The classes of values: `tf.SparseTensor` or `tf.Tensor`."""
    return nest.map_structure(
        lambda t: SparseTensor if isinstance(t, SparseTensor) else Tensor, tensors
    )


def serialize_sparse_tensors(tensors: Any) -> Any:
    """Values with variants for the sparse tensors among them."""
    return nest.map_structure(_serialized, tensors)


def _serialized(value: Any) -> Any:
    if not isinstance(value, SparseTensor):
        return value
    return serialize_op(value.indices, value.values, value.dense_shape, out_type=dtypes.variant)


def serialize_many_sparse_tensors(tensors: Any) -> Any:
    """The same with a variant for each row."""

    def convert(value: Any) -> Any:
        if not isinstance(value, SparseTensor):
            return value
        return serialize_many_op(
            value.indices, value.values, value.dense_shape, out_type=dtypes.variant
        )

    return nest.map_structure(convert, tensors)


def deserialize_sparse_tensors(tensors: Any, types: Any, shapes: Any, classes: Any) -> Any:
    """The values whose sparse tensors are variants."""
    found = []
    parts = (nest.flatten(x) for x in (tensors, types, shapes, classes))
    for tensor, dtype, shape, cls in zip(*parts, strict=True):
        if cls is not SparseTensor:
            found.append(tensor)
            continue
        value = SparseTensor(*deserialize_op(tensor, dtype=dtype))
        rank = TensorShape(shape).ndims
        value.indices.set_shape([None, rank])
        value.dense_shape.set_shape([rank])
        found.append(value)
    return nest.pack_sequence_as(types, found)
