"""Sparse forms of dense tensors, and how far the rows of a sparse one reach."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.arithmetic import maximum
from opdock.ops.array import reshape, shape
from opdock.ops.cast import cast
from opdock.ops.compare import equal, not_equal
from opdock.ops.fill import ones_like, zeros_like
from opdock.ops.gather import gather_nd
from opdock.ops.joining import concat
from opdock.ops.reduce import reduce_max
from opdock.ops.scan import cumsum
from opdock.ops.select import where
from opdock.ops.unsorted_segment import unsorted_segment_max

__all__ = ["dense_to_sparse_tensor", "indicators_to_sparse_ids", "sparse_row_envelope"]


def dense_to_sparse_tensor(dense_tensor: Any, ignore_value: Any = None) -> SparseTensor:
    """The entries of a dense tensor that are not `ignore_value`.

    Args:
        dense_tensor: a tensor.
        ignore_value: what counts as missing; by default "" for strings and 0 for numbers.
    """
    with name_scope(None, "DenseToSparseTensor"):
        dense = convert_to_tensor(dense_tensor)
        missing = _missing(dense.dtype.base_dtype, ignore_value)
        indices = where(not_equal(dense, missing), name="indices")
        return SparseTensor(
            indices=indices,
            values=gather_nd(dense, indices, name="values"),
            dense_shape=shape(dense, out_type=dtypes.int64, name="dense_shape"),
        )


def indicators_to_sparse_ids(
    indicators: Any, ignore_value: Any = None, dtype: Any = dtypes.int64
) -> SparseTensor:
    """The places of the entries that are there, row by row and without gaps.

    The row `[0, 1, 0, 1]` becomes the ids 1 and 3.

    Args:
        indicators: a tensor; what differs from `ignore_value` is there.
        ignore_value: what counts as missing; by default "" for strings and 0 for numbers.
        dtype: the integer type of the ids.

    Raises:
        ValueError: `dtype` is no integer type.
    """
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_integer:
        raise ValueError(f"Invalid dtype {dtype} not integer.")
    with name_scope(None, "indicators_to_sparse_ids", (indicators, ignore_value)):
        indicators = convert_to_tensor(indicators, name="indicators")
        missing = equal(indicators, _missing(indicators.dtype.base_dtype, ignore_value))
        none = zeros_like(indicators, dtype=dtypes.int64)
        there = where(missing, none, ones_like(indicators, dtype=dtypes.int64))
        # The n-th entry of a row that is there counts n; 0 is one that is missing.
        numbered = where(missing, none, cumsum(there, axis=-1))
        cells = dense_to_sparse_tensor(numbered, ignore_value=0)
        place = reshape(cells.values - 1, (-1, 1))
        width = reshape(reduce_max(numbered), (1,))
        return SparseTensor(
            indices=concat((cells.indices[:, :-1], place), axis=1, name="indices"),
            values=cast(cells.indices[:, -1], dtype, name="values"),
            dense_shape=concat((cells.dense_shape[:-1], width), axis=0, name="dense_shape"),
        )


def sparse_row_envelope(
    sparse_input: SparseTensor, row_axis: int = 0, col_axis: int = 1, name: str | None = None
) -> Tensor:
    """For each row, one more than its last column with an entry; 0 for a row without one.

    Args:
        sparse_input: a SparseTensor.
        row_axis: the axis of the rows.
        col_axis: the axis of the columns.
        name: a name for the operation.

    Raises:
        ValueError: an axis is no integer, or both are one.
    """
    if not (isinstance(row_axis, int) and isinstance(col_axis, int)):
        raise ValueError("`row_axis` and `col_axis` must be integers.")
    if row_axis == col_axis:
        raise ValueError("Row and column can not be the same axis.")
    with name_scope(name, "sparse_row_envelope", [sparse_input]):
        rows = sparse_input.indices[:, row_axis]
        columns = sparse_input.indices[:, col_axis]
        count = cast(sparse_input.dense_shape[row_axis], dtypes.int32)
        last: Tensor = unsorted_segment_max(columns + 1, rows, count, name=name)
        return maximum(last, zeros_like(last))


def _missing(dtype: DType, ignored: Any) -> Tensor:
    if ignored is None:
        ignored = "" if dtype is dtypes.string else dtype.as_numpy_dtype()
    missing: Tensor = cast(ignored, dtype, name="ignore_value")
    return missing
