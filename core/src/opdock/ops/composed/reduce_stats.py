"""Reductions made of other ops: log-sum-exp, variance, standard deviation, counts of non-zeros."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.docstrings import explained
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.arithmetic import add, subtract
from opdock.ops.array import reshape, shape
from opdock.ops.cast import cast
from opdock.ops.compare import not_equal
from opdock.ops.elementary import exp, is_finite, log, sqrt, square
from opdock.ops.fill import zeros, zeros_like
from opdock.ops.identity import stop_gradient
from opdock.ops.reduce import may_reduce_to_scalar, reduce_max, reduce_mean, reduce_sum
from opdock.ops.select import where
from opdock.ops.support import array_util

__all__ = ["count_nonzero", "reduce_logsumexp"]


_WORDS = {
    "input_tensor": "a floating-point or complex tensor.",
    "axis": "the dimension or dimensions to reduce; None (the default) reduces all of them.",
    "keepdims": "whether reduced dimensions stay, with size 1.",
    "name": "a name for the operation.",
    "reduction_indices": "the old name of `axis`.",
    "keep_dims": "the old name of `keepdims`.",
    "returns": "A tensor of the type of `input_tensor`.",
}
"""What the functions here take."""


@extensible
@explained(
    _WORDS,
    input_tensor="a floating-point tensor.",
    returns="A tensor of the type of `input_tensor`; -inf where there were no elements.",
)
def reduce_logsumexp(
    input_tensor: Any, axis: Any = None, keepdims: Any = None, name: str | None = None,
    reduction_indices: Any = None, keep_dims: Any = None,
) -> Tensor:  # fmt: skip
    """log(sum(exp(x))) over dimensions of a tensor, without overflow or underflow."""
    axis = array_util.renamed("axis", axis, "reduction_indices", reduction_indices)
    keepdims = bool(array_util.renamed("keepdims", keepdims, "keep_dims", keep_dims))
    x = convert_to_tensor(input_tensor)
    with name_scope(name, "ReduceLogSumExp", [x]):
        raw_max = reduce_max(x, axis=axis, keepdims=True)
        # The shift cancels out of the result, so it carries no gradient.
        shift = stop_gradient(where(is_finite(raw_max), raw_max, zeros_like(raw_max)))
        out = log(reduce_sum(exp(subtract(x, shift)), axis, keepdims=keepdims))
        if not keepdims:
            shift = reshape(shift, shape(out))
        return may_reduce_to_scalar(keepdims, axis, add(out, shift))


@extensible
@explained(_WORDS)
def reduce_variance(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The variance (mean squared distance from the mean) over dimensions of a tensor."""
    with name_scope(name or "reduce_variance"):
        x = convert_to_tensor(input_tensor)
        means = reduce_mean(x, axis=axis, keepdims=True)
        return reduce_mean(square(x - means), axis=axis, keepdims=keepdims)


@extensible
@explained(_WORDS)
def reduce_std(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The standard deviation over dimensions of a tensor."""
    with name_scope(name or "reduce_std"):
        out: Tensor = sqrt(reduce_variance(input_tensor, axis=axis, keepdims=keepdims))
        return out


@extensible
@explained(
    _WORDS,
    input_tensor="a tensor of a numeric type, bool or string.",
    axis="the dimension or dimensions to count over; None (the default) counts over all.",
    dtype="the type of the result.",
    input="the new name of `input_tensor`.",
    returns="A tensor of type `dtype`.",
)
def count_nonzero(
    input_tensor: Any = None, axis: Any = None, keepdims: Any = None, dtype: Any = dtypes.int64,
    name: str | None = None, reduction_indices: Any = None, keep_dims: Any = None,
    input: Any = None,
) -> Tensor:  # fmt: skip
    """The number of elements that are not zero (not empty, for strings) over some dimensions."""
    keepdims = bool(array_util.renamed("keepdims", keepdims, "keep_dims", keep_dims))
    x = array_util.renamed("input", input, "input_tensor", input_tensor)
    axis = array_util.renamed("axis", axis, "reduction_indices", reduction_indices)
    with name_scope(name, "count_nonzero", [x]):
        x = convert_to_tensor(x, name="input")
        nonzero = cast(not_equal(x, zeros([], x.dtype)), dtypes.int64)
        out: Tensor = cast(reduce_sum(nonzero, axis=axis, keepdims=keepdims), dtype)
        return out
