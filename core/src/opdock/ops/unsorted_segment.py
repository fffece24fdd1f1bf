"""Sums, products and extremes of slices that share a segment id, in any order."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.arithmetic import maximum
from opdock.ops.array import broadcast_to, rank, reshape, shape
from opdock.ops.cast import cast
from opdock.ops.compare import equal, greater, greater_equal, logical_and
from opdock.ops.complex import conj
from opdock.ops.composed.division import divide
from opdock.ops.elementary import sqrt
from opdock.ops.fill import fill, ones, ones_like, zeros_like
from opdock.ops.gather import gather
from opdock.ops.joining import concat
from opdock.ops.registry import OpSpec, ShapeSig, define_op
from opdock.ops.select import where
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__ = [
    "unsorted_segment_max", "unsorted_segment_mean", "unsorted_segment_min",
    "unsorted_segment_prod", "unsorted_segment_sqrt_n", "unsorted_segment_sum",
]  # fmt: skip


def _define(name: str, types: str) -> OpSpec:
    return define_op(
        name, "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T",
        f"T: {types}, Tindices: {{int32, int64}}, Tnumsegments: {{int32, int64}} = DT_INT32",
    )  # fmt: skip


unsorted_segment_sum_op = _define("UnsortedSegmentSum", "numbertype")
unsorted_segment_prod_op = _define("UnsortedSegmentProd", "numbertype")
unsorted_segment_max_op = _define("UnsortedSegmentMax", "realnumbertype")
unsorted_segment_min_op = _define("UnsortedSegmentMin", "realnumbertype")


@unsorted_segment_sum_op.shape
@unsorted_segment_prod_op.shape
@unsorted_segment_max_op.shape
@unsorted_segment_min_op.shape
def _unsorted_shape(sig: ShapeSig) -> Shape:
    data, ids = sig.shapes[0], sig.shapes[1]
    shapes.with_rank(sig.shapes[2], 0)
    if ids is None:
        return None
    if data is not None:
        shapes.with_rank_at_least(data, len(ids))
        shapes.merge(data[: len(ids)], ids)
    count = array_util.const_int(sig, 2)
    if count is not None and count < 0:
        raise ValueError(
            f"Dimension size, given by scalar input 2, must be non-negative but is {count}"
        )
    return shapes.concat((count,), array_util.subshape(data, len(ids)))


# ---------------------------------------------------------------- gradients
def _gather_kept(params: Any, ids: Tensor) -> Tensor:
    """Rows of `params` by id; zeros for negative ids, whose data took no part."""
    gathered = gather(params, maximum(ids, zeros_like(ids)))
    kept = _like(greater_equal(ids, zeros_like(ids)), gathered)
    return where(kept, gathered, zeros_like(gathered))


def _like(mask: Tensor, data: Tensor) -> Tensor:
    """A mask over the leading dimensions of `data`, spread over all of it."""
    inner, outer = mask.raw_shape, data.raw_shape
    if inner is not None and outer is not None and len(inner) == len(outer):
        return mask
    if inner is not None and outer is not None:
        ones: Any = [1] * (len(outer) - len(inner))
    else:
        ones = fill(reshape(rank(data) - rank(mask), [1]), 1)
    column = reshape(mask, concat([shape(mask), ones], 0))
    return broadcast_to(column, shape(data))


@unsorted_segment_sum_op.gradient
def _unsorted_sum_grad(op: Operation, grad: Any) -> list[Any]:
    return [_gather_kept(grad, op.inputs[1]), None, None]


@unsorted_segment_max_op.gradient
@unsorted_segment_min_op.gradient
def _unsorted_extreme_grad(op: Operation, grad: Any) -> list[Any]:
    data, ids, count = op.inputs
    selected = equal(data, _gather_kept(op.outputs[0], ids))
    selected = logical_and(selected, _like(greater_equal(ids, zeros_like(ids)), data))
    ties = unsorted_segment_sum(cast(selected, grad.dtype), ids, count)
    shares = _gather_kept(divide(grad, ties), ids)
    return [where(selected, shares, zeros_like(shares)), None, None]


@unsorted_segment_prod_op.gradient
def _unsorted_prod_grad(op: Operation, grad: Any) -> list[Any]:
    data, ids, count = op.inputs
    is_zero = equal(data, zeros_like(data))
    zeros = unsorted_segment_sum(cast(is_zero, dtypes.int32), ids, count)
    # With two zeros in a segment, no element of it moves the product.
    grad = where(greater(zeros, 1), zeros_like(grad), grad)
    nonzero = where(is_zero, ones_like(data), data)
    others = unsorted_segment_prod(nonzero, ids, count)
    product = _gather_kept(op.outputs[0], ids)
    rest = where(is_zero, _gather_kept(others, ids), product / nonzero)
    return [_gather_kept(grad, ids) * conj(rest), None, None]


# ---------------------------------------------------------------- public functions
_WORDS = {
    "data": "a numeric tensor.",
    "segment_ids": "ids in any order; their shape is a prefix of that of `data`. Slices with a "
    "negative id are dropped.",
    "num_segments": "the number of segments, a scalar int32 or int64.",
    "name": "a name for the operation.",
    "returns": "A tensor of shape [num_segments] + the rest of the shape of `data`; 0 in empty "
    "segments.",
}
"""What the functions here take."""


@extensible
@explained(
    _WORDS,
    raises="ValueError: the shape of the ids is no prefix of that of the data.\n"
    "InvalidArgumentError: an id is not below `num_segments` (when it runs).",
)
def unsorted_segment_sum(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Adds the slices that share a segment id."""
    return unsorted_segment_sum_op(data, segment_ids, num_segments, name=name)  # type: ignore[no-any-return]


@extensible
@explained(
    _WORDS,
    returns="A tensor of shape [num_segments] + the rest of the shape of `data`; 1 in empty "
    "segments.",
)
def unsorted_segment_prod(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Multiplies the slices that share a segment id."""
    return unsorted_segment_prod_op(data, segment_ids, num_segments, name=name)  # type: ignore[no-any-return]


@extensible
@explained(
    _WORDS,
    data="a real numeric tensor.",
    returns="A tensor of shape [num_segments] + the rest of the shape of `data`; the lowest "
    "number of the type in empty segments.",
)
def unsorted_segment_max(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """The largest elements of the slices that share a segment id."""
    return unsorted_segment_max_op(data, segment_ids, num_segments, name=name)  # type: ignore[no-any-return]


@extensible
@explained(
    _WORDS,
    data="a real numeric tensor.",
    returns="A tensor of shape [num_segments] + the rest of the shape of `data`; the highest "
    "number of the type in empty segments.",
)
def unsorted_segment_min(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """The smallest elements of the slices that share a segment id."""
    return unsorted_segment_min_op(data, segment_ids, num_segments, name=name)  # type: ignore[no-any-return]


def _counts(segment_ids: Tensor, num_segments: Any, data: Tensor) -> Tensor:
    """How many slices each segment has, at least 1, shaped to divide the segment sums."""
    num_segments = convert_to_tensor(num_segments)
    flat = reshape(segment_ids, [-1])
    counts = unsorted_segment_sum(ones(shape(flat), data.dtype), flat, num_segments)
    inner, outer = segment_ids.raw_shape, data.raw_shape
    if inner is not None and outer is not None:
        tail: Any = [1] * (len(outer) - len(inner))
    else:
        tail = fill(reshape(rank(data) - rank(segment_ids), [1]), 1)
    column = reshape(counts, concat([[-1], tail], 0) if tail != [] else [-1])
    return maximum(column, 1)


@extensible
@explained(_WORDS, data="a floating-point or complex tensor.")
def unsorted_segment_mean(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Averages the slices that share a segment id."""
    with name_scope(name, "UnsortedSegmentMean"):
        data, segment_ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        counts = _counts(segment_ids, num_segments, data)
        return unsorted_segment_sum(data, segment_ids, num_segments) / counts


@extensible
@explained(_WORDS, data="a floating-point or complex tensor.")
def unsorted_segment_sqrt_n(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Adds the slices that share a segment id, over the square root of their number."""
    with name_scope(name, "UnsortedSegmentSqrtN"):
        data, segment_ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        counts = _counts(segment_ids, num_segments, data)
        return unsorted_segment_sum(data, segment_ids, num_segments) / sqrt(counts)  # type: ignore[no-any-return]
