"""Vectors as sets: unique values, differences, permutations and length masks."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.ops.registry import ShapeSig, define_op
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__ = ["invert_permutation", "setdiff1d", "unique", "unique_with_counts"]

_ATTRS = "T: type, out_idx: {int32, int64} = DT_INT32"
_AXIS_ATTRS = "T: type, Taxis: {int32, int64} = DT_INT64, out_idx: {int32, int64} = DT_INT32"

unique_op = define_op("Unique", "x: T -> y: T, idx: out_idx", _ATTRS)
unique_v2_op = define_op("UniqueV2", "x: T, axis: Taxis -> y: T, idx: out_idx", _AXIS_ATTRS)
unique_with_counts_op = define_op(
    "UniqueWithCounts", "x: T -> y: T, idx: out_idx, count: out_idx", _ATTRS
)
unique_with_counts_v2_op = define_op(
    "UniqueWithCountsV2", "x: T, axis: Taxis -> y: T, idx: out_idx, count: out_idx", _AXIS_ATTRS
)
list_diff_op = define_op("ListDiff", "x: T, y: T -> out: T, idx: out_idx", _ATTRS)
invert_permutation_op = define_op(
    "InvertPermutation", "x: T -> y: T", "T: {int32, int64} = DT_INT32"
).not_differentiable()

for _op in (
    unique_op, unique_v2_op, unique_with_counts_op, unique_with_counts_v2_op, list_diff_op,
):  # fmt: skip
    array_util.no_gradient(_op)


@unique_op.shape
@unique_with_counts_op.shape
def _unique_shape(sig: ShapeSig) -> list[Shape]:
    array_util.vector_length(sig.shapes[0])
    found: list[Shape] = [(None,), sig.shapes[0], (None,)]
    return found[: sig.n_outputs]


@unique_v2_op.shape
@unique_with_counts_v2_op.shape
def _unique_v2_shape(sig: ShapeSig) -> list[Shape]:
    source, axis = sig.shapes[0], array_util.const_ints(sig, 1)
    values: Shape = None if source is None else (None,) * len(source)
    indices: Shape = (None,)
    if source is not None and axis is not None:
        if not axis:
            array_util.vector_length(source)
        at = axis[0] if axis else 0
        if not -len(source) <= at < len(source):
            raise ValueError(f"axis {at} is not in [{-len(source)}, {len(source)})")
        values = array_util.replace(source, at, None)
        indices = (source[at],)
    found: list[Shape] = [values, indices, (None,)]
    return found[: sig.n_outputs]


@list_diff_op.shape
def _list_diff_shape(sig: ShapeSig) -> list[Shape]:
    for shape in sig.shapes:
        array_util.vector_length(shape)
    return [(None,), (None,)]


@invert_permutation_op.shape
def _invert_permutation_shape(sig: ShapeSig) -> Shape:
    return (array_util.vector_length(sig.shapes[0]),)


@extensible
def unique(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Any:
    """The different values of a vector, in order of first occurrence.

    Args:
        x: a 1-D tensor.
        out_idx: the type of the indices, `tf.int32` or `tf.int64`.
        name: a name for the operation.

    Returns:
        A namedtuple (y, idx) with `y[idx[i]] == x[i]`.
    """
    return unique_op(x, out_idx=out_idx, name=name)


@extensible
def unique_with_counts(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Any:
    """The different values of a vector, and how often each occurs.

    Args:
        x: a 1-D tensor.
        out_idx: the type of indices and counts, `tf.int32` or `tf.int64`.
        name: a name for the operation.

    Returns:
        A namedtuple (y, idx, count) with `y[idx[i]] == x[i]`.
    """
    return unique_with_counts_op(x, out_idx=out_idx, name=name)


@extensible
def setdiff1d(x: Any, y: Any, index_dtype: Any = dtypes.int32, name: str | None = None) -> Any:
    """The values of one vector that are not in another, in their order.

    Args:
        x: a 1-D tensor.
        y: a 1-D tensor of the same type.
        index_dtype: the type of the indices, `tf.int32` or `tf.int64`.
        name: a name for the operation.

    Returns:
        A namedtuple (out, idx) with `out[i] == x[idx[i]]`.
    """
    return list_diff_op(x, y, out_idx=index_dtype, name=name)


def listdiff(x: Any, y: Any, out_idx: Any = None, name: str | None = None) -> Any:
    """Deprecated name of `tf.setdiff1d`.

    Args:
        x: a 1-D tensor.
        y: a 1-D tensor of the same type.
        out_idx: the type of the indices, `tf.int32` by default.
        name: a name for the operation.

    Returns:
        A namedtuple (out, idx).
    """
    return list_diff_op(x, y, out_idx=out_idx, name=name)


@extensible
def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """The inverse of a permutation: `y[x[i]] == i`.

    Args:
        x: a 1-D int32 or int64 tensor that holds each of 0 ... n - 1 once.
        name: a name for the operation.

    Returns:
        A tensor of the same type and shape.

    Raises:
        tf.errors.InvalidArgumentError: at run time, when `x` is no permutation.
    """
    return invert_permutation_op(x, name=name)  # type: ignore[no-any-return]
