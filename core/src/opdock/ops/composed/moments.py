"""Means, variances and normalisation of tensors (`tf.nn.moments` and its relatives)."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.arithmetic import add, maximum, multiply, squared_difference, subtract
from opdock.ops.array import shape, size, squeeze
from opdock.ops.cast import cast
from opdock.ops.composed.reduce_stats import count_nonzero
from opdock.ops.elementary import reciprocal, rsqrt, square
from opdock.ops.fill import zeros_like
from opdock.ops.gather import gather
from opdock.ops.identity import identity, stop_gradient
from opdock.ops.reduce import reduce_mean, reduce_prod, reduce_sum
from opdock.ops.support import array_util

__all__ = [
    "l2_normalize", "moments", "normalize_moments", "sufficient_statistics", "weighted_moments",
    "zero_fraction",
]  # fmt: skip


@extensible
def moments(
    x: Any, axes: Any, shift: Any = None, name: str | None = None, keep_dims: Any = None,
    keepdims: Any = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The mean and the variance of a tensor over some dimensions.

    Args:
        x: a floating-point tensor. float16 is averaged in float32.
        axes: the dimensions to reduce; for batch normalisation of images [0, 1, 2].
        shift: accepted for TF's signature, not used.
        name: a name for the operation.
        keep_dims: the old name of `keepdims`.
        keepdims: whether reduced dimensions stay, with size 1.

    Returns:
        The mean and the (biased) variance, of the type of `x`.
    """
    keep = bool(array_util.renamed("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name, "moments", [x, axes]):
        x = convert_to_tensor(x, name="x")
        half = x.dtype.base_dtype is dtypes.float16
        y = cast(x, dtypes.float32) if half else x
        mean = reduce_mean(y, axes, keepdims=True, name="mean")
        # Distances from the mean sum to zero, so the mean's own gradient vanishes here.
        distance = squared_difference(y, stop_gradient(mean))
        variance = reduce_mean(distance, axes, keepdims=True, name="variance")
        return _finish(mean, variance, axes, keep, half)


def _finish(
    mean: Tensor, variance: Tensor, axes: Any, keep: bool, half: bool
) -> tuple[Tensor, Tensor]:
    if not keep:
        mean, variance = squeeze(mean, axes), squeeze(variance, axes)
    if half:
        return cast(mean, dtypes.float16), cast(variance, dtypes.float16)
    return mean, variance


@extensible
def weighted_moments(
    x: Any, axes: Any, frequency_weights: Any, name: str | None = None, keep_dims: Any = None,
    keepdims: Any = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The mean and the variance of a tensor whose elements count with different weights.

    Args:
        x: a floating-point tensor.
        axes: the dimensions to reduce.
        frequency_weights: non-negative weights that broadcast against `x`.
        name: a name for the operation.
        keep_dims: the old name of `keepdims`.
        keepdims: whether reduced dimensions stay, with size 1.

    Returns:
        The weighted mean and the weighted variance, of the type of `x`.
    """
    keep = bool(array_util.renamed("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name, "weighted_moments", [x, frequency_weights, axes]):
        x = convert_to_tensor(x, name="x")
        weights = convert_to_tensor(frequency_weights, name="frequency_weights")
        half = x.dtype.base_dtype is dtypes.float16
        if half:
            x = cast(x, dtypes.float32)
        if weights.dtype.base_dtype is not x.dtype.base_dtype:
            weights = cast(weights, x.dtype)
        total = reduce_sum(weights * x, axes, name="weighted_input_sum", keepdims=True)
        weight = reduce_sum(weights + zeros_like(x), axes, name="sum_of_weights", keepdims=True)
        divisor = reciprocal(weight, name="inv_weight_sum")
        mean = multiply(total, divisor)
        distance = weights * squared_difference(x, mean)
        distance = reduce_sum(distance, axes, name="weighted_distsq", keepdims=True)
        return _finish(mean, multiply(distance, divisor), axes, keep, half)


@extensible
def sufficient_statistics(
    x: Any, axes: Any, shift: Any = None, keep_dims: Any = None, name: str | None = None,
    keepdims: Any = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:  # fmt: skip
    """What is needed to compute mean and variance later: a count, a sum, a sum of squares.

    Args:
        x: a floating-point tensor.
        axes: a list of the dimensions to reduce.
        shift: a value close to the mean, subtracted for numerical stability; or None.
        keep_dims: the old name of `keepdims`.
        name: a name for the operation.
        keepdims: whether reduced dimensions stay, with size 1.

    Returns:
        The element count, the (shifted) sum, the (shifted) sum of squares, and the shift or None.
    """
    keep = bool(array_util.renamed("keepdims", keepdims, "keep_dims", keep_dims))
    axes = list(set(axes))
    with name_scope(name, "sufficient_statistics", [x, shift]):
        x = convert_to_tensor(x, name="x")
        static = x.raw_shape
        if static is not None and all(static[d] is not None for d in axes):
            count = 1
            for d in axes:
                count *= static[d] or 0
            counts = constant(count, x.dtype)
        else:
            counts = reduce_prod(gather(cast(shape(x), x.dtype), axes), name="count")
        if shift is None:
            mean_ss, variance_ss = x, square(x)
        else:
            shift = convert_to_tensor(shift, name="shift")
            mean_ss, variance_ss = subtract(x, shift), squared_difference(x, shift)
        mean_ss = reduce_sum(mean_ss, axes, keepdims=keep, name="mean_ss")
        variance_ss = reduce_sum(variance_ss, axes, keepdims=keep, name="var_ss")
        return counts, mean_ss, variance_ss, shift


@extensible
def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The mean and the variance from what `sufficient_statistics` gave.

    Args:
        counts: the number of elements.
        mean_ss: the (shifted) sum.
        variance_ss: the (shifted) sum of squares.
        shift: the shift, or None.
        name: a name for the operation.

    Returns:
        The mean and the variance.
    """
    with name_scope(name, "normalize", [counts, mean_ss, variance_ss, shift]):
        divisor = reciprocal(counts, name="divisor")
        if shift is None:
            shifted = mean = multiply(mean_ss, divisor, name="mean")
        else:
            shifted = multiply(mean_ss, divisor, name="shifted_mean")
            mean = add(shifted, shift, name="mean")
        variance = subtract(multiply(variance_ss, divisor), square(shifted), name="variance")
        return mean, variance


@extensible
def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """The share of zeros in a tensor.

    Args:
        value: a numeric tensor.
        name: a name for the operation.

    Returns:
        A float32 scalar; NaN for an empty tensor.
    """
    with name_scope(name, "zero_fraction", [value]):
        value = convert_to_tensor(value, name="value")
        total = size(value, out_type=dtypes.int64)
        nonzero = count_nonzero(value)
        with name_scope("counts_to_fraction"):
            fraction = cast(total - nonzero, dtypes.float32) / cast(total, dtypes.float32)
        return identity(fraction, "fraction")


@extensible
def l2_normalize(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> Tensor:
    """Scales a tensor to length 1 along some dimensions: x / sqrt(max(sum(x^2), epsilon)).

    Args:
        x: a floating-point tensor.
        axis: the dimension or dimensions along which to normalise; None takes all.
        epsilon: a lower bound for the squared length.
        name: a name for the operation.
        dim: the old name of `axis`.

    Returns:
        A tensor of the type and shape of `x`.
    """
    axis = array_util.renamed("axis", axis, "dim", dim)
    with name_scope(name, "l2_normalize", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        squares = reduce_sum(square(x), axis, keepdims=True)
        return multiply(x, rsqrt(maximum(squares, epsilon)), name=scope)
