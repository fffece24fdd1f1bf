"""Ragged tensors brought to the rows of others: broadcasting and tiling, by index.

Both go down the dimensions and find, for each item of the result, which item of the source it is:
first for the rows, then for what stands in them, and so on. The values are gathered once, at the
end, whatever the number of dimensions.
"""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.ops.arithmetic import maximum
from opdock.ops.array import reshape
from opdock.ops.array import shape as shape_of
from opdock.ops.cast import cast
from opdock.ops.check import Assert
from opdock.ops.compare import equal, logical_or, not_equal
from opdock.ops.composed.ragged_tensor import RaggedTensor
from opdock.ops.fill import fill, range
from opdock.ops.gather import gather
from opdock.ops.identity import identity
from opdock.ops.joining import concat, stack
from opdock.ops.ragged import range_op
from opdock.ops.reduce import reduce_all
from opdock.ops.support.ragged_rows import assert_splits_match, lengths_to_splits, splits_to_ids
from opdock.ops.tiling import tile as dense_tile
from opdock.shapes import dimension_value

__all__: list[str] = []


class Axis(NamedTuple):
    """One dimension of a source.

    Attributes:
        splits: of a ragged one, where the items of each item above begin and end.
        size: of a uniform one, how many there are in each.
    """

    splits: Tensor | None
    size: Tensor | None

    def starts(self, items: Tensor) -> Tensor:
        """Where the items of given items above begin."""
        if self.splits is not None:
            return gather(self.splits, items)
        return items * self.size

    def lengths(self, items: Tensor) -> Tensor:
        """How many there are in each of given items above."""
        if self.splits is not None:
            return gather(self.splits[1:], items) - gather(self.splits, items)
        assert self.size is not None
        return fill(shape_of(items), self.size)


class Source:
    """An operand as its dimensions, from the outermost on, with `rank` of them."""

    def __init__(self, value: Any, rank: int, levels: int, dtype: DType) -> None:
        self._value = value
        flat = value.flat_values if isinstance(value, RaggedTensor) else value
        nested = value.nested_row_splits if isinstance(value, RaggedTensor) else ()
        sizes = shape_of(flat, out_type=dtype)
        depth = flat.shape.ndims or 0
        own = len(nested) + depth
        one = convert_to_tensor(1, dtype)
        axes = [Axis(None, one)] * (rank - own)
        if own:
            rows = shape_of(nested[0], out_type=dtype)[0] - 1 if nested else sizes[0]
            axes.append(Axis(None, rows))
        axes += [Axis(splits, None) for splits in nested]
        axes += [Axis(None, sizes[i]) for i in builtins.range(1, depth)]
        self.axes = axes
        inner = [axis.size for axis in axes[levels + 1 :]]
        self._flat = flat
        self._inner = stack(inner) if inner else convert_to_tensor([], dtype)
        self._is_flat = isinstance(value, RaggedTensor) and len(nested) == levels

    def taken(self, items: Tensor) -> Tensor:
        """The flat values at given items of the innermost level."""
        flat = self._flat
        if not self._is_flat:
            rows = convert_to_tensor([-1], self._inner.dtype)
            known = flat.shape
            flat = reshape(flat, concat([rows, self._inner], 0))
            inner = flat.shape.ndims
            if inner is not None and inner > 1 and known.ndims is not None:
                padded = [1] * inner + known.as_list()
                flat.set_shape([None, *padded[1 - inner :]])
        return gather(flat, items)


# ---------------------------------------------------------------- broadcasting
def aligned(x: Any, y: Any, dtype: DType) -> tuple[Any, Any, list[Tensor]]:
    """Two operands, of which one is ragged at least, brought to the same rows.

    Returns:
        (flat values of x, flat values of y, the splits of both); inner dimensions are as they were.

    Raises:
        ValueError: a rank is not known.
    """
    if _have_same_rows(x, y):
        checks = assert_splits_match([list(x.nested_row_splits), list(y.nested_row_splits)])
        with control_dependencies(checks):
            return identity(x.flat_values), y.flat_values, list(x.nested_row_splits)
    if x.shape.ndims is None or y.shape.ndims is None:
        raise ValueError("Unable to broadcast: unknown rank")
    rank = max(x.shape.ndims, y.shape.ndims)
    levels = max(
        v.ragged_rank + rank - v.shape.ndims for v in (x, y) if isinstance(v, RaggedTensor)
    )
    sources = [Source(v, rank, levels, dtype) for v in (x, y)]
    items, nested, checks = common_rows(sources[0].axes, sources[1].axes, levels, dtype)
    with control_dependencies(checks):
        found = [s.taken(identity(i)) for s, i in zip(sources, items, strict=True)]
    return found[0], found[1], nested


def common_rows(
    x: list[Axis], y: list[Axis], levels: int, dtype: DType
) -> tuple[list[Tensor], list[Tensor], list[Any]]:
    """The rows that two operands of one rank have together.

    Args:
        x: the dimensions of one.
        y: those of the other.
        levels: how many dimensions below the outermost are parted into rows.
        dtype: the type of sizes and splits.

    Returns:
        (for each operand the item that each item of the innermost level is, the splits of each
        level, the assertions that hold before the items are used).
    """
    count, checks = common_size(x[0], y[0], 0)
    first = range(count)
    items = [first * _steps(axes[0], dtype) for axes in (x, y)]
    nested = []
    for axis in builtins.range(1, levels + 1):
        pair = [x[axis], y[axis]]
        with control_dependencies(checks):
            lengths, checks = _common_lengths(pair, items, axis)
        splits, place = range_op(
            fill(shape_of(lengths), convert_to_tensor(0, dtype)), lengths,
            convert_to_tensor(1, dtype), Tsplits=dtype,
        )  # fmt: skip
        above = splits_to_ids(splits)
        items = [
            gather(dim.starts(item), above) + place * _steps(dim, dtype)
            for dim, item in zip(pair, items, strict=True)
        ]
        nested.append(splits)
    return items, nested, checks


def _have_same_rows(x: Any, y: Any) -> bool:
    """Whether both have the same ragged dimensions, so that nothing can be repeated."""
    if not (isinstance(x, RaggedTensor) and isinstance(y, RaggedTensor)):
        return False
    if x.ragged_rank != y.ragged_rank:
        return False
    pairs = zip(x.nested_row_splits, y.nested_row_splits, strict=True)
    if all(a is b for a, b in pairs):
        return True
    ranks = {x.flat_values.shape.ndims, y.flat_values.shape.ndims}
    rows = {dimension_value(x.shape[0]), dimension_value(y.shape[0])}
    return len(ranks) == 1 and None not in ranks and (len(rows) == 1 or 1 not in rows)


def _steps(axis: Axis, dtype: DType) -> Tensor:
    """1, or 0 where one item stands for all."""
    if axis.splits is not None:
        return convert_to_tensor(1, dtype)
    return cast(not_equal(axis.size, 1), dtype)  # type: ignore[no-any-return]


def _mismatch(holds: Tensor, axis: int, *sizes: Tensor) -> Any:
    message = "Unable to broadcast: dimension size mismatch in dimension"
    return Assert(holds, [message, axis, "lengths=", sizes[0], "dim_size=", sizes[1]], summarize=10)


def common_size(a: Axis, b: Axis, axis: int) -> tuple[Tensor, list[Any]]:
    """The size that two uniform dimensions have together, and the assertion that they do."""
    assert a.size is not None
    assert b.size is not None
    known = [constant_value(a.size), constant_value(b.size)]
    size = maximum(a.size, b.size)
    if 1 in known or (None not in known and known[0] == known[1]):
        size = b.size if known[0] == 1 else a.size
        return size, []
    alike = logical_or(equal(a.size, b.size), logical_or(equal(a.size, 1), equal(b.size, 1)))
    # One item stands for none as well.
    one = logical_or(equal(a.size, 0), equal(b.size, 0))
    size = size * (1 - cast(one, size.dtype))
    return size, [_mismatch(alike, axis, a.size, b.size)]


def _common_lengths(pair: list[Axis], items: list[Tensor], axis: int) -> tuple[Tensor, list[Any]]:
    """How many items of a dimension each item above has in the result."""
    a, b = pair
    if a.splits is None and b.splits is None:
        size, checks = common_size(a, b, axis)
        return fill(shape_of(items[0]), size), checks
    if a.splits is None:
        pair, items, (a, b) = pair[::-1], items[::-1], (b, a)
    lengths, other = a.lengths(items[0]), b.lengths(items[1])
    holds = reduce_all(equal(lengths, other))
    if b.size is not None:
        if constant_value(b.size) == 1:
            return lengths, []
        holds = logical_or(holds, equal(b.size, 1))
    return lengths, [_mismatch(holds, axis, lengths, other)]


# ---------------------------------------------------------------- tiling
def tile(value: RaggedTensor, multiples: Tensor) -> RaggedTensor:
    """A ragged tensor repeated along its dimensions, so often as a vector says for each."""
    dtype = value.row_splits.dtype
    nested, flat = value.nested_row_splits, value.flat_values
    multiples = cast(multiples, dtype)
    multiples.shape.assert_has_rank(1)
    items = dense_tile(range(value.nrows()), multiples[:1])
    found = []
    for axis, splits in enumerate(nested):
        starts = gather(splits, items)
        own = gather(splits[1:], items) - starts
        lengths = own * multiples[axis + 1]
        zero, one = convert_to_tensor(0, dtype), convert_to_tensor(1, dtype)
        new, place = range_op(fill(shape_of(lengths), zero), lengths, one, Tsplits=dtype)
        above = splits_to_ids(new)
        items = gather(starts, above) + place % gather(own, above)
        found.append(lengths_to_splits(lengths))
    inner = concat([convert_to_tensor([1], dtype), multiples[len(nested) + 1 :]], 0)
    values = gather(flat, items)
    if flat.shape.ndims != 1:
        values = dense_tile(values, cast(inner, dtypes.int32))
    tiled: RaggedTensor = RaggedTensor.from_nested_row_splits(values, found, validate=False)
    return tiled
