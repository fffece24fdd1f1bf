"""The shapes of ragged tensors as tensors: a size or the lengths of all rows for each dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.array import broadcast_to as dense_broadcast_to
from opdock.ops.array import shape as shape_of
from opdock.ops.cast import cast
from opdock.ops.composed.ragged_align import Axis, Source, common_rows, common_size
from opdock.ops.composed.ragged_factories import SPLIT_TYPES
from opdock.ops.composed.ragged_tensor import (
    RaggedTensor,
    convert_to_tensor_or_ragged_tensor,
    is_ragged,
)
from opdock.ops.fill import ones
from opdock.ops.identity import identity
from opdock.ops.joining import concat, stack
from opdock.ops.reduce import reduce_sum
from opdock.ops.support.ragged_rows import lengths_to_splits
from opdock.shapes import dimension_value

__all__: list[str] = []


class RaggedTensorDynamicShape:
    """The shape of a tensor some of whose dimensions may be ragged.

    Of a uniform dimension it has the one size, of a ragged one the lengths of all slices in it. The
    dimensions up to the last ragged one are `partitioned_dim_sizes`, those of the flat values below
    them are one vector, `inner_dim_sizes`.
    """

    def __init__(
        self, partitioned_dim_sizes: Sequence[Any], inner_dim_sizes: Any, dim_size_dtype: Any = None
    ) -> None:
        """Takes the dimensions from the outermost on.

        Args:
            partitioned_dim_sizes: a scalar for each uniform dimension and a vector for each ragged
                one; the first is uniform, the last is ragged.
            inner_dim_sizes: a vector.
            dim_size_dtype: int32 or int64; that of the ragged dimensions by default.

        Raises:
            ValueError: the dimensions cannot be partitioned so, or differ in type.
        """
        if not isinstance(partitioned_dim_sizes, (list, tuple)):
            raise TypeError("partitioned_dim_sizes must be a list or tuple")
        with name_scope(None, "RaggedTensorDynamicShape"):
            outer = [
                convert_to_tensor(size, name=f"partitioned_dimension_size_{i}")
                for i, size in enumerate(partitioned_dim_sizes)
            ]
            inner = convert_to_tensor(inner_dim_sizes, name="inner_dim_sizes")
            _check_partitions(outer)
            inner.shape.assert_has_rank(1)
            dtype = dim_size_dtype or _size_type(outer)
            self._outer = tuple(cast(size, dtype) for size in outer)
            self._inner: Tensor = cast(inner, dtype)

    partitioned_dim_sizes: Any = property(
        lambda self: self._outer, doc="The sizes down to the last ragged dimension."
    )
    inner_dim_sizes: Any = property(
        lambda self: self._inner, doc="The sizes below the last ragged dimension, as one vector."
    )
    num_partitioned_dimensions: Any = property(
        lambda self: len(self._outer), doc="How many dimensions are partitioned."
    )
    num_inner_dimensions: Any = property(
        lambda self: dimension_value(self._inner.shape[0]),
        doc="How many dimensions the values of a row have, or None if that is not known.",
    )
    dim_size_dtype: Any = property(lambda self: self._inner.dtype, doc="The type of the sizes.")

    def __repr__(self) -> str:
        return (
            f"RaggedTensorDynamicShape(partitioned_dim_sizes={self._outer!r}, "
            f"inner_dim_sizes={self._inner!r})"
        )

    @staticmethod
    def from_dim_sizes(dim_sizes: Sequence[Any]) -> RaggedTensorDynamicShape:
        """The shape with a scalar for each uniform dimension and a vector for each ragged one.

        Raises:
            ValueError: a size is neither.
        """
        with name_scope(None, "RaggedTensorDynamicShapeFromDimensionSizes"):
            sizes = [
                convert_to_tensor(size, name="dim_sizes", preferred_dtype=dtypes.int64)
                for size in dim_sizes
            ]
            if any(size.shape.ndims not in (0, 1) for size in sizes):
                raise ValueError("Each dim_size must be a scalar or a vector")
            ragged = [axis for axis, size in enumerate(sizes) if size.shape.ndims == 1]
            depth = ragged[-1] + 1 if ragged else 0
            return _shape_of_sizes(sizes, depth, None)

    @staticmethod
    def from_tensor(rt_input: Any, dim_size_dtype: Any = None) -> RaggedTensorDynamicShape:
        """The shape of a tensor or RaggedTensor."""
        with name_scope(None, "RaggedTensorDynamicShapeFromTensor"):
            value = convert_to_tensor_or_ragged_tensor(rt_input)
            if not is_ragged(value):
                return RaggedTensorDynamicShape([], shape_of(value), dim_size_dtype)
            outer = (value.nrows(), *value.nested_row_lengths())
            inner = shape_of(value.flat_values)[1:]
            return RaggedTensorDynamicShape(outer, inner, dim_size_dtype)

    @property
    def rank(self) -> int | None:
        """The number of dimensions, or None if it is not known."""
        inner = self.num_inner_dimensions
        return None if inner is None else len(self._outer) + inner

    def dimension_size(self, axis: int) -> Tensor:
        """The size of a dimension: a scalar, or a vector with the length of each slice."""
        _check_axis(axis)
        depth = len(self._outer)
        return self._outer[axis] if axis < depth else self._inner[axis - depth]

    def is_ragged(self, axis: int) -> bool:
        """Whether a dimension is ragged.

        Raises:
            ValueError: there is no such dimension.
        """
        _check_axis(axis)
        if axis < 0:
            raise ValueError("Negative axis values are not supported")
        if self.rank is not None and axis >= self.rank:
            raise ValueError(f"Expected axis={axis} < rank={self.rank}")
        return axis < len(self._outer) and self._outer[axis].shape.ndims == 1

    def num_slices_in_dimension(self, axis: int) -> Tensor:
        """How many slices there are in a dimension, in all slices above together."""
        if axis < 0:
            return convert_to_tensor(1, self.dim_size_dtype)
        size = self.dimension_size(axis)
        if self.is_ragged(axis):
            return reduce_sum(size)
        return size * self.num_slices_in_dimension(axis - 1)

    def broadcast_to_rank(self, rank: int) -> RaggedTensorDynamicShape:
        """The shape with so many dimensions, those that come before its own of size 1.

        Raises:
            ValueError: it has more, or their number is not known.
        """
        if self.rank is None:
            raise ValueError("Unable to broadcast: self.rank is unknown")
        missing = rank - self.rank
        if missing < 0:
            raise ValueError(
                f"Unable to broadcast: rank={rank} must be greater than self.rank={self.rank}."
            )
        if missing == 0:
            return self
        ones = [convert_to_tensor(1, self.dim_size_dtype)] * missing
        if self._outer:
            return RaggedTensorDynamicShape([*ones, *self._outer], self._inner)
        return RaggedTensorDynamicShape([], concat([stack(ones), self._inner], 0))

    def broadcast_dimension(self, axis: int, lengths: Any) -> RaggedTensorDynamicShape:
        """The shape with one dimension brought to a size, or to the lengths of its slices.

        Args:
            axis: which dimension; its size is 1, or what `lengths` says, or `lengths` is 1.
            lengths: an integer scalar or vector.

        Raises:
            ValueError: `lengths` has another rank, or is a vector for the outermost dimension.
            InvalidArgumentError: when it runs and the sizes do not fit.
        """
        wanted = convert_to_tensor(lengths, name="lengths", preferred_dtype=self.dim_size_dtype)
        if wanted.shape.ndims is None:
            raise ValueError("lengths must have a known rank.")
        if wanted.shape.ndims > 1:
            raise ValueError("lengths must be a scalar or vector")
        if self.rank is None:
            raise ValueError("Unable to broadcast: self.rank is unknown")
        if wanted.shape.ndims and axis == 0:
            raise ValueError("Unable to broadcast: outermost dimension must be uniform.")
        one = convert_to_tensor(1, self.dim_size_dtype)
        sizes = [one] * self.rank
        depth = 0
        if wanted.shape.ndims:
            # The lengths are those of the slices that there are above.
            sizes[:axis] = [self.dimension_size(i) for i in range(axis)]
            depth = axis + 1
        sizes[axis] = cast(wanted, self.dim_size_dtype)
        other = _shape_of_sizes(sizes, depth, self.dim_size_dtype)
        return broadcast_dynamic_shape(self, other)

    def with_dim_size_dtype(self, dtype: Any) -> RaggedTensorDynamicShape:
        """The shape with its sizes in another type.

        Raises:
            ValueError: it is neither int32 nor int64.
        """
        if dtype not in SPLIT_TYPES:
            raise ValueError("dtype must be int32 or int64")
        if self.dim_size_dtype == dtype:
            return self
        return RaggedTensorDynamicShape(self._outer, self._inner, dtype)

    def with_single_items(self, axis: int) -> RaggedTensorDynamicShape:
        """The shape with one item in each slice of a dimension, and of ragged ones below it."""
        depth, one = len(self._outer), convert_to_tensor([1], self.dim_size_dtype)
        if axis >= depth:
            at = axis - depth
            inner = concat([self._inner[:at], one, self._inner[at + 1 :]], 0)
            return RaggedTensorDynamicShape(self._outer, inner)
        each = ones(stack([self.num_slices_in_dimension(axis - 1)]), self.dim_size_dtype)
        single = each if self.is_ragged(axis) else one[0]
        below = [each] * (depth - axis - 1)
        return RaggedTensorDynamicShape([*self._outer[:axis], single, *below], self._inner)

    def axes(self, rank: int) -> list[Axis]:
        """The dimensions of the shape, which has this rank or is broadcast to it."""
        shape = self.broadcast_to_rank(rank)
        sizes = [shape.dimension_size(axis) for axis in range(rank)]
        return [
            Axis(lengths_to_splits(size), None) if size.shape.ndims else Axis(None, size)
            for size in sizes
        ]


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> RaggedTensorDynamicShape:
    """The shape that two shapes are broadcast to.

    Raises:
        TypeError: one is no RaggedTensorDynamicShape.
        ValueError: a rank is not known.
        InvalidArgumentError: when it runs and the sizes do not fit.
    """
    _check_shape(shape_x, "shape_x")
    _check_shape(shape_y, "shape_y")
    if shape_x.rank is None or shape_y.rank is None:
        raise ValueError("Unable to broadcast: unknown rank")
    rank, dtype = max(shape_x.rank, shape_y.rank), shape_x.dim_size_dtype
    x, y = shape_x.axes(rank), shape_y.axes(rank)
    depth = max([0, *(axis + 1 for axis in range(rank) if x[axis].splits is not None
                      or y[axis].splits is not None)])  # fmt: skip
    sizes: list[Tensor] = []
    checks: list[Operation] = []
    nested: list[Tensor] = []
    if depth:
        _, nested, checks = common_rows(x, y, depth - 1, dtype)
    for axis, (a, b) in enumerate(zip(x, y, strict=True)):
        if a.splits is None and b.splits is None:
            size, more = common_size(a, b, axis)
            checks = [*checks, *more]
        else:
            splits = nested[axis - 1]
            size = splits[1:] - splits[:-1]
        sizes.append(size)
    return _shape_of_sizes(sizes, depth, dtype, checks)


def broadcast_to(rt_input: Any, shape: Any, broadcast_inner_dimensions: bool = True) -> Any:
    """A tensor or RaggedTensor repeated so that it has a shape.

    Args:
        rt_input: what is repeated.
        shape: a RaggedTensorDynamicShape to which that of `rt_input` can be broadcast.
        broadcast_inner_dimensions: whether the dimensions below the ragged ones are repeated.

    Raises:
        TypeError: `shape` is no RaggedTensorDynamicShape.
        ValueError: the ranks do not fit or are not known, or the row splits differ in type.
        InvalidArgumentError: when it runs and the sizes do not fit.
    """
    _check_shape(shape, "shape")
    value = convert_to_tensor_or_ragged_tensor(rt_input)
    levels = shape.num_partitioned_dimensions - 1
    if getattr(value, "ragged_rank", 0) > max(levels, 0):
        raise ValueError("Incompatible with shape: ragged rank mismatch")
    if levels < 0:
        if not broadcast_inner_dimensions:
            return value
        return dense_broadcast_to(value, shape.inner_dim_sizes)
    dtype = shape.dim_size_dtype
    if is_ragged(value) and value.row_splits.dtype != dtype:
        raise ValueError(
            "rt_input and dst_shape have different row_split dtypes; use "
            "RaggedTensor.with_row_splits_dtype() or "
            "RaggedTensorDynamicShape.with_dim_size_dtype() to convert to a compatible dtype."
        )
    if value.shape.ndims is None or shape.rank is None:
        raise ValueError("Unable to broadcast: unknown rank")
    if value.shape.ndims > shape.rank:
        raise ValueError("Incompatible with shape: rank mismatch")
    source = Source(value, shape.rank, levels, dtype)
    items, nested, checks = common_rows(source.axes, shape.axes(shape.rank), levels, dtype)
    with control_dependencies(checks):
        flat = source.taken(identity(items[0]))
    if broadcast_inner_dimensions and shape.num_inner_dimensions:
        rows = shape_of(flat, out_type=dtype)[:1]
        flat = dense_broadcast_to(flat, concat([rows, shape.inner_dim_sizes], 0))
    return RaggedTensor.from_nested_row_splits(flat, nested, validate=False)


# ---------------------------------------------------------------- sizes
def _shape_of_sizes(
    sizes: Sequence[Tensor], depth: int, dtype: DType | None, checks: Sequence[Operation] = ()
) -> RaggedTensorDynamicShape:
    """The shape with a tensor for each dimension, `depth` of which are partitioned."""
    inner = stack(sizes[depth:]) if sizes[depth:] else convert_to_tensor([], dtypes.int64)
    with control_dependencies(checks):
        return RaggedTensorDynamicShape(sizes[:depth], identity(inner), dtype)


def _check_partitions(sizes: Sequence[Tensor]) -> None:
    for axis, size in enumerate(sizes):
        if size.shape.ndims is None:
            raise ValueError(f"rank of partitioned_dim_sizes[{axis}] is unknown")
        size.shape.with_rank_at_most(1)
    if sizes and sizes[0].shape.ndims == 1:
        raise ValueError("outermost partitioned dimension must be uniform")
    if sizes and sizes[-1].shape.ndims == 0:
        raise ValueError("innermost partitioned dimension must be ragged")


def _size_type(sizes: Sequence[Tensor]) -> DType:
    """The type that the ragged dimensions have, int64 where there is none."""
    found = {size.dtype for size in sizes if size.shape.ndims == 1}
    if len(found) > 1:
        raise ValueError("partitioned_dim_sizes must have matching dtypes")
    return found.pop() if found else dtypes.int64


def _check_axis(axis: Any) -> None:
    if not isinstance(axis, int):
        raise TypeError("axis must be an integer")


def _check_shape(shape: Any, name: str) -> None:
    if not isinstance(shape, RaggedTensorDynamicShape):
        raise TypeError(f"{name} must be a RaggedTensorDynamicShape")
