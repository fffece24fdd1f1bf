"""What users give a forest to learn from, as one matrix and a description of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import opdock as tf
from opdock.api import logging

__all__ = [
    "DataColumn", "DataColumnCollection", "TensorForestDataSpec", "as_floats", "column_name",
    "parsed_features", "parsed_labels",
]  # fmt: skip

DATA_FLOAT: Final = 0
DATA_CATEGORICAL: Final = 1
DTYPE_TO_FTYPE: Final = {
    tf.string: DATA_CATEGORICAL,
    tf.int32: DATA_CATEGORICAL,
    tf.int64: DATA_CATEGORICAL,
    tf.float32: DATA_FLOAT,
    tf.float64: DATA_FLOAT,
}
_BUCKETS: Final = 2**62


def as_floats(tensor: Any) -> Any:
    """A column as float32; strings become numbers by their fingerprints."""
    if tensor.dtype == tf.string:
        return tf.cast(tf.string_to_hash_bucket_fast(tensor, _BUCKETS), tf.float32)
    return tf.cast(tensor, tf.float32)


class DataColumn:
    """A column: its name, whether it is a category (1), and how wide it is."""

    def __init__(self) -> None:
        self.name = ""
        self.original_type: Any = ""
        self.size: Any = 0

    def serialized(self) -> str:
        """The column as text."""
        return f"name: {self.name} original_type: {self.original_type} size: {self.size}"

    SerializeToString = serialized


class DataColumnCollection:
    """Columns, in order."""

    def __init__(self) -> None:
        self.cols: list[DataColumn] = []

    def add(self) -> DataColumn:
        """Adds one, to be filled."""
        self.cols.append(DataColumn())
        return self.cols[-1]

    def size(self) -> int:
        """How many there are."""
        return len(self.cols)

    def serialized(self) -> str:
        """The columns as text."""
        return "".join(f"{{{column.serialized()}}}" for column in self.cols)

    SerializeToString = serialized


class TensorForestDataSpec:
    """The columns of a forest's input."""

    def __init__(self) -> None:
        self.sparse = DataColumnCollection()
        self.dense = DataColumnCollection()
        self.dense_features_size: Any = 0

    def serialized(self) -> str:
        """The description as text."""
        return (
            f"dense_features_size: {self.dense_features_size} "
            f"dense: [{self.dense.serialized()}] sparse: [{self.sparse.serialized()}]"
        )

    def chosen(self, columns: Sequence[int]) -> TensorForestDataSpec:
        """The description of some of the dense columns, each by itself."""
        kinds = [
            column.original_type for column in self.dense.cols for _ in range(int(column.size))
        ]
        found = TensorForestDataSpec()
        for i in columns:
            column = found.dense.add()
            column.name, column.original_type, column.size = str(i), kinds[i], 1
        found.dense_features_size = len(columns)
        return found

    SerializeToString = serialized


def column_name(column_key: Any, col_num: int) -> str:
    """The name of a column: a string, a feature column's name, or its number."""
    if isinstance(column_key, str):
        return column_key
    return str(getattr(column_key, "column_name", col_num))


def parsed_features(data: Any) -> tuple[Any, Any, TensorForestDataSpec]:
    """One matrix of what users give.

    Args:
        data: a matrix, a SparseTensor, or a dictionary of both.

    Returns:
        The dense features, the sparse ones, either of them None, and the description of both.
    """
    if isinstance(data, dict):
        return _parsed_columns(data)
    spec = TensorForestDataSpec()
    if isinstance(data, tf.SparseTensor):
        _described(spec.sparse, "sparse_features", data.dtype, -1)
        return None, data, spec
    data = tf.convert_to_tensor(data)
    width = data.shape.with_rank(2)[1].value
    if width is None:
        raise ValueError("Features of a forest need a number of columns that is known")
    _described(spec.dense, "dense_features", data.dtype, width)
    spec.dense_features_size = width
    return as_floats(data), None, spec


def _described(columns: DataColumnCollection, name: str, dtype: Any, size: int) -> None:
    if dtype not in DTYPE_TO_FTYPE:
        raise TypeError(f"A forest takes no features of type {dtype.name}: {name}")
    column = columns.add()
    column.name, column.original_type, column.size = name, DTYPE_TO_FTYPE[dtype], size


def _parsed_columns(data: dict[Any, Any]) -> tuple[Any, Any, TensorForestDataSpec]:
    spec = TensorForestDataSpec()
    dense: list[Any] = []
    sparse: list[Any] = []
    for key in sorted(data, key=str):
        column = data[key]
        if isinstance(column, tf.SparseTensor):
            if column.dtype == tf.float32:
                logging.info("TensorForest does not support sparse continuous.")
                continue
            if not spec.sparse.size():
                _described(spec.sparse, "all_sparse", tf.int64, -1)
            values = as_floats(column.values)
            sparse.append(tf.SparseTensor(column.indices, values, column.dense_shape))
            continue
        column = tf.convert_to_tensor(column)
        if column.shape.ndims == 1:
            column = tf.expand_dims(column, 1)
        size = column.shape[1].value
        _described(spec.dense, column_name(key, len(dense)), column.dtype, size)
        spec.dense_features_size += size
        dense.append(as_floats(column))
    logging.info(spec.serialized())
    return (
        tf.concat(dense, 1) if dense else None,
        tf.sparse_concat(1, sparse) if sparse else None,
        spec,
    )


def parsed_labels(labels: Any) -> Any:
    """Labels as float32: a tensor, a SparseTensor, or a dictionary whose columns are joined."""
    if isinstance(labels, dict):
        return tf.concat([_as_dense(labels[key]) for key in sorted(labels)], 1)
    return _as_dense(labels)


def _as_dense(labels: Any) -> Any:
    if isinstance(labels, tf.SparseTensor):
        labels = tf.sparse_tensor_to_dense(labels, default_value=-1)
    return tf.cast(labels, tf.float32)
