"""Counting: occurrences of integers, histograms of numbers."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.arithmetic import maximum, minimum
from opdock.ops.array import reshape, shape
from opdock.ops.cast import cast
from opdock.ops.compare import less
from opdock.ops.composed.division import truediv
from opdock.ops.elementary import floor
from opdock.ops.fill import ones_like
from opdock.ops.reduce import reduce_max, reduce_prod
from opdock.ops.registry import ShapeSig, define_op
from opdock.ops.select import where
from opdock.ops.support import array_util
from opdock.ops.unsorted_segment import unsorted_segment_sum
from opdock.shapes import Shape

__all__ = ["bincount", "histogram_fixed_width", "histogram_fixed_width_bins"]

bincount_op = define_op(
    "Bincount", "arr: int32, size: int32, weights: T -> bins: T", "T: {int32, int64, float, double}"
).not_differentiable()
histogram_op = define_op(
    "HistogramFixedWidth", "values: T, value_range: T, nbins: int32 -> out: dtype",
    "T: {int32, int64, float, double}, dtype: {int32, int64} = DT_INT32",
).not_differentiable()  # fmt: skip


@bincount_op.shape
def _bincount_shape(sig: ShapeSig) -> Shape:
    size = array_util.const_int(sig, 1)
    if size is not None and size < 0:
        raise ValueError(f"size ({size}) must be non-negative")
    return (size,)


@histogram_op.shape
def _histogram_shape(sig: ShapeSig) -> Shape:
    array_util.with_dim(array_util.vector_length(sig.shapes[1]), 2)
    shapes.with_rank(sig.shapes[2], 0)
    nbins = array_util.const_int(sig, 2)
    if nbins is not None and nbins <= 0:
        raise ValueError(f"Requires nbins > 0: {nbins}")
    return (nbins,)


@bincount_op.decomposition
def _bincount_parts(sig: ShapeSig, arr: Tensor, size: Tensor, weights: Tensor) -> Tensor:
    if weights.raw_shape is None or None in weights.raw_shape:
        raise NotImplementedError("whether there are weights must be known")
    # A negative id is dropped, as are numbers beyond the last bin.
    ids = where(less(arr, size), arr, -ones_like(arr))
    counted = weights if 0 not in weights.raw_shape else cast(ones_like(arr), weights.dtype)
    return unsorted_segment_sum(counted, ids, size)


def bincount(
    arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None,
    dtype: Any = dtypes.int32, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Counts how often each number occurs in an array of non-negative integers.

    Args:
        arr: an int32 tensor of non-negative numbers.
        weights: what each element counts, a tensor of the shape of `arr`; 1 by default.
        minlength: the result has at least this length, padded with zeros.
        maxlength: the result has at most this length; larger numbers are not counted.
        dtype: the type of the counts when there are no weights.
        name: a name for the operation.

    Returns:
        A vector, of type `dtype` or that of `weights`, as long as the largest number plus one.

    Raises:
        InvalidArgumentError: `arr` holds negative numbers (when it runs).
    """
    with name_scope("bincount" if name is None else name):
        arr = convert_to_tensor(arr, dtypes.int32, "arr")
        nonempty = reduce_prod(shape(arr)) > 0
        size = cast(nonempty, dtypes.int32) * (reduce_max(arr) + 1)
        if minlength is not None:
            size = maximum(convert_to_tensor(minlength, dtypes.int32, "minlength"), size)
        if maxlength is not None:
            size = minimum(convert_to_tensor(maxlength, dtypes.int32, "maxlength"), size)
        if weights is not None:
            weights = convert_to_tensor(weights, name="weights")
            return unsorted_segment_sum(weights, arr, size)
        return bincount_op(arr, size, constant([], dtype))  # type: ignore[no-any-return]


@extensible
def histogram_fixed_width(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """A histogram of bins of equal width. Values outside the range count in the outer bins.

    Args:
        values: a numeric tensor.
        value_range: the lower and the upper limit, a tensor of shape [2] of the type of `values`.
        nbins: the number of bins, a scalar int32.
        dtype: `tf.int32` or `tf.int64`.
        name: a name for the operation.

    Returns:
        A vector of `nbins` counts.

    Raises:
        ValueError: `nbins` is not positive.
        InvalidArgumentError: the range is empty (when it runs).
    """
    with name_scope(name, "histogram_fixed_width", [values, value_range, nbins]) as scope:
        return histogram_op(values, value_range, nbins, dtype=dtype, name=scope)  # type: ignore[no-any-return]


@extensible
def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The bin that each value of a histogram of equal bins falls into.

    Args:
        values: a numeric tensor.
        value_range: the lower and the upper limit, a tensor of shape [2] of the type of `values`.
        nbins: the number of bins, a scalar int32.
        dtype: accepted for TF's signature; the result is int32.
        name: a name for the operation.

    Returns:
        An int32 tensor of the shape of `values`, from 0 to nbins - 1.
    """
    with name_scope(name, "histogram_fixed_width_bins", [values, value_range, nbins]):
        values = convert_to_tensor(values, name="values")
        values_shape = shape(values)
        flat = reshape(values, [-1])
        value_range = convert_to_tensor(value_range, name="value_range")
        nbins_float = cast(convert_to_tensor(nbins, dtypes.int32, "nbins"), values.dtype)
        low, high = value_range[0], value_range[1]
        scaled = truediv(flat - low, high - low, name="scaled_values")
        indices = floor(nbins_float * scaled, name="indices")
        indices = maximum(minimum(indices, nbins_float - 1), 0)
        return reshape(cast(indices, dtypes.int32), values_shape)
