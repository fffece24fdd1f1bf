"""How ragged tensors are made: of values, and of what says where each row begins and ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.arithmetic import maximum
from opdock.ops.array import shape as shape_of
from opdock.ops.cast import cast
from opdock.ops.check import assert_equal, assert_less, assert_less_equal, assert_non_negative
from opdock.ops.composed.check_static import assert_rank, assert_rank_at_least
from opdock.ops.composed.ragged_value import RaggedTensorValue
from opdock.ops.control import with_dependencies
from opdock.ops.fill import range as range_
from opdock.ops.histogram import bincount
from opdock.ops.joining import concat, stack
from opdock.ops.reduce import reduce_sum
from opdock.ops.support.ragged_rows import lengths_to_splits

__all__: list[str] = []

SPLIT_TYPES = (dtypes.int32, dtypes.int64)


class RaggedFactories:
    """The class methods of `tf.RaggedTensor` that make one."""

    def __init__(
        self,
        values: Any,
        row_splits: Any,
        cached_row_lengths: Tensor | None = None,
        cached_value_rowids: Tensor | None = None,
        cached_nrows: Tensor | None = None,
        internal: bool = False,
    ) -> None:
        raise NotImplementedError

    # ------------------------------------------------------------ made of values and rows
    @classmethod
    def from_value_rowids(
        cls,
        values: Any,
        value_rowids: Any,
        nrows: Any = None,
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """A ragged tensor of values and the row of each, in ascending order.

        Args:
            values: a Tensor or RaggedTensor of rank 1 or more.
            value_rowids: an integer vector.
            nrows: the number of rows; by default the last row of a value plus one.
            name: a prefix for the names of the operations.
            validate: whether the arguments are checked when it runs.

        Raises:
            ValueError: `nrows` is negative or smaller than a row.
        """
        _check_flag(validate)
        with name_scope(name, "RaggedFromValueRowIds", _tensors(values, value_rowids, nrows)):
            values, ids = _with_partition(cls, values, value_rowids, "value_rowids")
            known = constant_value(ids)
            static: int | None = None
            if nrows is None and known is not None:
                static = int(known[-1]) + 1 if known.size else 0
                nrows = convert_to_tensor(static, ids.dtype, "nrows")
            elif nrows is None:
                # The last row; without any value there is none.
                nrows = concat([ids[-1:], convert_to_tensor([-1], ids.dtype)], 0)[0] + 1
            else:
                nrows = convert_to_tensor(nrows, ids.dtype, "nrows")
                static = _checked_count(constant_value(nrows), known)
            ids.shape.assert_has_rank(1)
            nrows.shape.assert_has_rank(0)
            values.shape[:1].assert_is_compatible_with(ids.shape)
            if validate:
                message = "Arguments to from_value_rowids do not form a valid RaggedTensor"
                checks = [
                    assert_rank(ids, 1, message=message), assert_rank(nrows, 0, message=message),
                    assert_equal(_length(values), _length(ids), message=message),
                    assert_non_negative(ids[:1], message=message),
                    _ascending(ids, message), assert_less(ids[-1:], nrows, message=message),
                ]  # fmt: skip
                ids = with_dependencies([*checks, *_ranked(values)], ids)
            count = cast(nrows, dtypes.int32)
            lengths = bincount(
                cast(ids, dtypes.int32), minlength=count, maxlength=count, dtype=ids.dtype
            )
            splits = lengths_to_splits(lengths)
            if static is not None:
                lengths.set_shape([static])
                splits.set_shape([static + 1])
            return cls(values, splits, lengths, ids, nrows, internal=True)

    @classmethod
    def from_row_splits(
        cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True
    ) -> Any:
        """A ragged tensor of values and where each row begins and ends.

        Args:
            values: a Tensor or RaggedTensor of rank 1 or more.
            row_splits: an integer vector from 0 to the number of values, one longer than the rows.
            name: a prefix for the names of the operations.
            validate: whether the arguments are checked when it runs.
        """
        _check_flag(validate)
        if isinstance(row_splits, (list, tuple)) and not row_splits:
            raise ValueError("row_splits tensor may not be empty.")
        with name_scope(name, "RaggedFromRowSplits", _tensors(values, row_splits)):
            values, splits = _with_partition(cls, values, row_splits, "row_splits")
            splits.shape.assert_has_rank(1)
            if validate:
                message = "Arguments to from_row_splits do not form a valid RaggedTensor"
                checks = [
                    _zero(splits[0], message), _ascending(splits, message),
                    assert_equal(splits[-1], _length(values, splits.dtype), message=message),
                ]  # fmt: skip
                splits = with_dependencies([*checks, *_ranked(values)], splits)
            return cls(values, splits, internal=True)

    @classmethod
    def from_row_lengths(
        cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> Any:
        """A ragged tensor of values and the length of each row.

        Args:
            values: a Tensor or RaggedTensor of rank 1 or more.
            row_lengths: an integer vector whose sum is the number of values.
            name: a prefix for the names of the operations.
            validate: whether the arguments are checked when it runs.
        """
        _check_flag(validate)
        with name_scope(name, "RaggedFromRowLengths", _tensors(values, row_lengths)):
            values, lengths = _with_partition(cls, values, row_lengths, "row_lengths")
            lengths.shape.assert_has_rank(1)
            if validate:
                message = "Arguments to from_row_lengths do not form a valid RaggedTensor"
                total, count = reduce_sum(lengths), _length(values, lengths.dtype)
                checks = [
                    assert_non_negative(lengths, message=message),
                    assert_equal(total, count, message=message),
                ]
                lengths = with_dependencies([*checks, *_ranked(values)], lengths)
            return cls(values, lengths_to_splits(lengths), lengths, internal=True)

    @classmethod
    def from_row_starts(
        cls, values: Any, row_starts: Any, name: str | None = None, validate: bool = True
    ) -> Any:
        """A ragged tensor of values and where each row begins.

        Args:
            values: a Tensor or RaggedTensor of rank 1 or more.
            row_starts: an integer vector in ascending order, from 0 on.
            name: a prefix for the names of the operations.
            validate: whether the arguments are checked when it runs.
        """
        _check_flag(validate)
        with name_scope(name, "RaggedFromRowStarts", _tensors(values, row_starts)):
            values, starts = _with_partition(cls, values, row_starts, "row_starts")
            starts.shape.assert_has_rank(1)
            count = _length(values, starts.dtype)
            if validate:
                message = "Arguments to from_row_starts do not form a valid RaggedTensor"
                checks = [
                    _zero(starts[:1], message), _ascending(starts, message),
                    assert_less_equal(starts[-1:], count, message=message),
                ]  # fmt: skip
                starts = with_dependencies([*checks, *_ranked(values)], starts)
            return cls(values, concat([starts, stack([count])], 0), internal=True)

    @classmethod
    def from_row_limits(
        cls, values: Any, row_limits: Any, name: str | None = None, validate: bool = True
    ) -> Any:
        """A ragged tensor of values and where each row ends.

        Args:
            values: a Tensor or RaggedTensor of rank 1 or more.
            row_limits: an integer vector in ascending order, up to the number of values.
            name: a prefix for the names of the operations.
            validate: whether the arguments are checked when it runs.
        """
        _check_flag(validate)
        with name_scope(name, "RaggedFromRowLimits", _tensors(values, row_limits)):
            values, limits = _with_partition(cls, values, row_limits, "row_limits")
            limits.shape.assert_has_rank(1)
            if validate:
                message = "Arguments to from_row_limits do not form a valid RaggedTensor"
                count = _length(values, limits.dtype)
                checks = [
                    assert_non_negative(limits[:1], message=message), _ascending(limits, message),
                    assert_equal(limits[-1:], count, message=message),
                ]  # fmt: skip
                limits = with_dependencies([*checks, *_ranked(values)], limits)
            zero = convert_to_tensor([0], limits.dtype)
            return cls(values, concat([zero, limits], 0), internal=True)

    @classmethod
    def from_uniform_row_length(
        cls, values: Any, uniform_row_length: Any, nrows: Any = None, validate: bool = True,
        name: str | None = None,
    ) -> Any:  # fmt: skip
        """A ragged tensor of values and the one length that all rows have.

        Args:
            values: a Tensor or RaggedTensor of rank 1 or more.
            uniform_row_length: an integer scalar; the number of values is a multiple of it.
            nrows: the number of rows, which must be given where rows are empty.
            validate: whether the arguments are checked when it runs.
            name: a prefix for the names of the operations.
        """
        _check_flag(validate)
        given = [values, uniform_row_length, *([] if nrows is None else [nrows])]
        with name_scope(name, "RaggedFromUniformRowLength", _tensors(*given)):
            values, length = _with_partition(cls, values, uniform_row_length, "uniform_row_length")
            length.shape.assert_has_rank(0)
            count = _length(values, length.dtype)
            if nrows is None:
                nrows = count // maximum(length, 1)
            nrows = convert_to_tensor(nrows, length.dtype, name="nrows")
            if validate:
                message = "Arguments to from_uniform_row_length do not form a valid RaggedTensor"
                checks = [
                    assert_non_negative(length, message=message),
                    assert_equal(nrows * length, count, message=message),
                ]
                nrows = with_dependencies([*checks, *_ranked(values)], nrows)
            return cls(values, range_(nrows + 1) * length, internal=True)

    @classmethod
    def from_nested_value_rowids(
        cls,
        flat_values: Any,
        nested_value_rowids: Sequence[Any],
        nested_nrows: Sequence[Any] | None = None,
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """Like `from_value_rowids` for several ragged dimensions, outermost first."""
        _check_nested(validate, nested_value_rowids, "nested_value_rowids")
        if nested_nrows is None:
            counts: list[Any] = [None] * len(nested_value_rowids)
        else:
            _check_nested(validate, nested_nrows, "nested_nrows")
            counts = list(nested_nrows)
            if len(counts) != len(nested_value_rowids):
                raise ValueError("nested_nrows must have the same length as nested_value_rowids")
        with name_scope(name, "RaggedFromNestedValueRowIds"):
            result = flat_values
            for ids, count in reversed(list(zip(nested_value_rowids, counts, strict=True))):
                result = cls.from_value_rowids(result, ids, count, validate=validate)
            return result

    @classmethod
    def from_nested_row_splits(
        cls,
        flat_values: Any,
        nested_row_splits: Sequence[Any],
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """Like `from_row_splits` for several ragged dimensions, outermost first."""
        _check_nested(validate, nested_row_splits, "nested_row_splits")
        with name_scope(name, "RaggedFromNestedRowSplits"):
            result = flat_values
            for splits in reversed(nested_row_splits):
                result = cls.from_row_splits(result, splits, validate=validate)
            return result

    @classmethod
    def from_nested_row_lengths(
        cls,
        flat_values: Any,
        nested_row_lengths: Sequence[Any],
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """Like `from_row_lengths` for several ragged dimensions, outermost first."""
        _check_nested(validate, nested_row_lengths, "nested_row_lengths")
        with name_scope(name, "RaggedFromNestedRowlengths"):
            result = flat_values
            for lengths in reversed(nested_row_lengths):
                result = cls.from_row_lengths(result, lengths, validate=validate)
            return result


# ---------------------------------------------------------------- arguments
def _with_partition(cls: Any, values: Any, partition: Any, name: str) -> tuple[Any, Tensor]:
    """Values and their partition as tensors, its type that of inner splits if there are any."""
    if isinstance(values, RaggedTensorValue):
        flat = convert_to_tensor(values.flat_values, name="flat_values")
        values = cls.from_nested_row_splits(flat, values.nested_row_splits, validate=False)
    if isinstance(values, cls):
        if not isinstance(partition, Tensor):
            return values, convert_to_tensor(partition, values.row_splits.dtype, name)
        _check_partition_type(partition, name)
        if values.row_splits.dtype != partition.dtype:
            raise ValueError(
                f"dtype mismatch: {name} ({partition.dtype}) vs values.row_splits "
                f"({values.row_splits.dtype})"
            )
        return values, partition
    values = convert_to_tensor(values, name="values")
    if isinstance(partition, np.ndarray) and partition.dtype == np.int32:
        partition = convert_to_tensor(partition, name=name)
    else:
        partition = convert_to_tensor(partition, name=name, preferred_dtype=dtypes.int64)
    _check_partition_type(partition, name)
    return values, partition


def _check_partition_type(partition: Tensor, name: str) -> None:
    if partition.dtype not in SPLIT_TYPES:
        raise ValueError(f"{name} must have dtype int32 or int64")


def _checked_count(count: Any, ids: Any) -> int | None:
    if count is None:
        return None
    if count < 0:
        raise ValueError(f"Expected nrows >= 0; got {int(count)}")
    if ids is not None and ids.size and count < ids[-1] + 1:
        raise ValueError(
            "Expected nrows >= value_rowids[-1] + 1; got nrows="
            f"{int(count)}, value_rowids[-1]={int(ids[-1])}"
        )
    return int(count)


def _check_flag(validate: Any) -> None:
    if not isinstance(validate, bool):
        raise TypeError("validate must have type bool")


def _check_nested(validate: Any, nested: Any, name: str) -> None:
    _check_flag(validate)
    if isinstance(nested, Tensor):
        raise TypeError(f"{name} must be a list of Tensors")


def _tensors(*values: Any) -> list[Tensor]:
    return [v for v in values if isinstance(v, Tensor)]


def _length(value: Any, out_type: DType = dtypes.int32) -> Tensor:
    if isinstance(value, RaggedFactories):
        return value.nrows(out_type)  # type: ignore[attr-defined,no-any-return]
    return shape_of(value, out_type=out_type)[0]


def _ranked(values: Any) -> list[Operation]:
    return [] if isinstance(values, RaggedFactories) else [assert_rank_at_least(values, 1)]


def _ascending(vector: Tensor, message: str) -> Any:
    return assert_non_negative(vector[1:] - vector[:-1], message=message)


def _zero(value: Tensor, message: str) -> Any:
    return assert_equal(value, convert_to_tensor(0, value.dtype), message=message)
