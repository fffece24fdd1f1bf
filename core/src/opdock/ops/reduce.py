"""Reductions: sums, means, extremes and the like over some dimensions of a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.axes import reduced
from opdock.docstrings import explained
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.arithmetic import floormod, maximum, truncatediv
from opdock.ops.array import broadcast_to, rank, reshape, shape, size
from opdock.ops.cast import cast, to_int32
from opdock.ops.compare import equal, logical_not, not_equal
from opdock.ops.complex import conj, real
from opdock.ops.composed.division import divide, floordiv, truediv
from opdock.ops.elementary import sqrt
from opdock.ops.fill import ones_like, reduction_dims
from opdock.ops.fill import range as range_
from opdock.ops.gather import gather
from opdock.ops.joining import concat
from opdock.ops.matrix import transpose
from opdock.ops.registry import Fails, OpSpec, Reduction, ShapeSig, Traits, define_op, get
from opdock.ops.scan import cumprod
from opdock.ops.select import where
from opdock.ops.sets import invert_permutation, setdiff1d
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__ = [
    "reduce_all", "reduce_any", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod",
    "reduce_sum",
]  # fmt: skip


def _define(name: str) -> OpSpec:
    return define_op(
        name, "input: T, reduction_indices: Tidx -> output: T",
        "keep_dims: bool = false, T: numbertype, Tidx: {int32, int64} = DT_INT32",
    )  # fmt: skip


def _define_logical(name: str) -> OpSpec:
    return define_op(
        name, "input: bool, reduction_indices: Tidx -> output: bool",
        "keep_dims: bool = false, Tidx: {int32, int64} = DT_INT32",
    ).not_differentiable()  # fmt: skip


sum_op = _define("Sum")
mean_op = _define("Mean")
prod_op = _define("Prod")
max_op = _define("Max")
min_op = _define("Min")
euclidean_norm_op = _define("EuclideanNorm")
all_op = _define_logical("All")
any_op = _define_logical("Any")
for _op in (sum_op, mean_op, prod_op, max_op, min_op, all_op, any_op):
    _op.declare(Traits(fails=Fails.NEVER, layout=Reduction()))


# ---------------------------------------------------------------- shapes
@sum_op.shape
@mean_op.shape
@prod_op.shape
@max_op.shape
@min_op.shape
@euclidean_norm_op.shape
@all_op.shape
@any_op.shape
def _reduction_shape(sig: ShapeSig) -> Shape:
    source, axes = sig.shapes[0], array_util.const_ints(sig, 1)
    shapes.with_rank_at_most(sig.shapes[1], 1)
    keep = sig.attrs["keep_dims"]
    if axes is None or source is None:
        return (None,) * len(source) if keep and source is not None else None
    gone = reduced(axes, len(source), static=True)
    if keep:
        return tuple(1 if i in gone else dim for i, dim in enumerate(source))
    return tuple(dim for i, dim in enumerate(source) if i not in gone)


def reduced_shape(input_shape: Any, axes: Any) -> Tensor:
    """The shape vector of a reduction that keeps its dimensions, for axes known at run time."""
    input_shape = to_int32(input_shape)
    input_rank = size(input_shape)
    axes = reshape(floormod(to_int32(axes) + input_rank, input_rank), [1, -1])
    hit = reduce_any(equal(reshape(range_(input_rank), [-1, 1]), axes), 1)
    return where(hit, ones_like(input_shape), input_shape)


def _static_kept(op: Operation) -> tuple[int | None, ...] | None:
    """The static shape of `op`'s result with its dimensions kept, when axes and rank are known."""
    source, axes = op.inputs[0].raw_shape, constant_value(op.inputs[1])
    if source is None or axes is None:
        return None
    gone = {int(axis) % len(source) for axis in axes.reshape(-1)} if source else set()
    return tuple(1 if i in gone else dim for i, dim in enumerate(source))


def _kept_shape(op: Operation) -> Any:
    """What to reshape `op`'s output to so that it broadcasts against the input."""
    kept = _static_kept(op)
    if kept is not None and kept.count(None) <= 1 and (0 not in kept or None not in kept):
        wanted = [-1 if dim is None else dim for dim in kept]
        return constant(np.array(wanted, np.int32), dtypes.int32)
    return reduced_shape(shape(op.inputs[0]), op.inputs[1])


def _with_dims(op: Operation, *tensors: Any) -> list[Any]:
    """Tensors of the output's shape, reshaped to broadcast against the input."""
    if op.attrs["keep_dims"]:
        return list(tensors)
    kept = _kept_shape(op)
    return [reshape(t, kept) for t in tensors]


# ---------------------------------------------------------------- gradients
@sum_op.gradient
def _sum_grad(op: Operation, grad: Any) -> list[Any]:
    (grad,) = _with_dims(op, grad)
    return [broadcast_to(grad, shape(op.inputs[0])), None]


@mean_op.gradient
def _mean_grad(op: Operation, grad: Any) -> list[Any]:
    source, result = op.inputs[0], op.outputs[0]
    factor = _element_count(source, result)
    # Dividing before the broadcast rounds the same and touches fewer elements.
    (grad,) = _with_dims(op, truediv(grad, cast(factor, source.dtype)))
    return [broadcast_to(grad, shape(source)), None]


@max_op.gradient
@min_op.gradient
def _extreme_grad(op: Operation, grad: Any) -> list[Any]:
    result, grad = _with_dims(op, op.outputs[0], grad)
    selected = cast(equal(result, op.inputs[0]), grad.dtype)
    # Ties share the gradient evenly.
    count = sum_op(selected, op.inputs[1], keep_dims=True)
    return [divide(selected, count) * grad, None]


@prod_op.gradient
def _prod_grad(op: Operation, grad: Any) -> list[Any]:
    source = op.inputs[0]
    (grad,) = _with_dims(op, grad)
    input_shape = shape(source)
    grad = broadcast_to(grad, input_shape)
    order, count, others = _reduced_first(op, input_shape)
    moved = transpose(source, order)
    rows = reshape(moved, [count, others])
    # The product of all other elements, without dividing: zeros stay exact.
    before = cumprod(rows, axis=0, exclusive=True)
    after = cumprod(rows, axis=0, exclusive=True, reverse=True)
    rest = reshape(conj(before) * conj(after), shape(moved))
    out = grad * transpose(rest, invert_permutation(order))
    return [reshape(out, input_shape), None]


def _reduced_first(op: Operation, input_shape: Tensor) -> tuple[Any, Any, Any]:
    """A permutation that puts reduced dimensions first; how much they and the rest hold."""
    source = op.inputs[0]
    static, axes = source.raw_shape, constant_value(op.inputs[1])
    if static is not None and axes is not None:
        reduced = sorted({int(a) % len(static) for a in axes.reshape(-1)})
        order = reduced + [i for i in range(len(static)) if i not in reduced]
        dims = [static[i] for i in order]
        if None not in dims:
            split = len(reduced)
            count: Any = shapes.num_elements(tuple(dims[:split]))
            others: Any = shapes.num_elements(tuple(dims[split:]))
            return constant(np.array(order, np.int32), dtypes.int32), count, others
    n = rank(source)
    indices = floormod(to_int32(reshape(op.inputs[1], [-1])) + n, n)
    other, _ = setdiff1d(range_(n), indices)
    count = reduce_prod(gather(input_shape, indices))
    others = reduce_prod(gather(input_shape, other))
    return concat([indices, other], 0), count, others


@euclidean_norm_op.gradient
def _euclidean_norm_grad(op: Operation, grad: Any) -> list[Any]:
    axes = constant_value(op.inputs[1])
    if axes is not None and axes.size == 0:
        return [grad, None]
    if grad.dtype.is_complex:
        # A norm is real, whatever its type: the imaginary part of its gradient leads nowhere.
        grad = cast(real(grad), grad.dtype)
    result, grad = _with_dims(op, op.outputs[0], grad)
    return [truediv(op.inputs[0], result / grad), None]


# ---------------------------------------------------------------- decompositions
def _element_count(x: Tensor, total: Tensor) -> Any:
    """How many elements of `x` each element of `total` stands for, as an int32 scalar."""
    n_in, n_out = shapes.num_elements(x.raw_shape), shapes.num_elements(total.raw_shape)
    if n_in is not None and n_out is not None:
        return constant(n_in // max(n_out, 1), dtypes.int32)
    return floordiv(size(x), maximum(size(total), 1))


@mean_op.decomposition
def _mean_parts(sig: ShapeSig, x: Tensor, axes: Tensor) -> Tensor:
    dtype = x.dtype.base_dtype
    if dtype.is_integer:
        # Narrow integers must not overflow before they are divided.
        x = cast(x, dtypes.int64)
    total = sum_op(x, axes, keep_dims=sig.attrs["keep_dims"])
    count = _element_count(x, total)
    if dtype.is_integer:
        out = truncatediv(total, cast(maximum(count, 1), x.dtype))
    else:
        out = truediv(total, cast(count, x.dtype))
    return cast(out, dtype)  # type: ignore[no-any-return]


@euclidean_norm_op.decomposition
def _euclidean_norm_parts(sig: ShapeSig, x: Tensor, axes: Tensor) -> Tensor:
    dtype, keep = x.dtype.base_dtype, sig.attrs["keep_dims"]
    if dtype.is_integer:
        x = cast(x, dtypes.float64)
    squares = real(x * conj(x)) if dtype.is_complex else x * x
    norm = cast(sqrt(sum_op(squares, axes, keep_dims=keep)), x.dtype)
    # A sum along no axis is what it is a sum of, and so is a norm.
    chosen = get("SelectV2")(equal(size(axes), 0), sum_op(x, axes, keep_dims=keep), norm)
    return cast(chosen, dtype)  # type: ignore[no-any-return]


@all_op.decomposition
def _all_parts(sig: ShapeSig, x: Tensor, axes: Tensor) -> Tensor:
    wrong = sum_op(cast(logical_not(x), dtypes.int32), axes, keep_dims=sig.attrs["keep_dims"])
    return equal(wrong, 0)


@any_op.decomposition
def _any_parts(sig: ShapeSig, x: Tensor, axes: Tensor) -> Tensor:
    right = sum_op(cast(x, dtypes.int32), axes, keep_dims=sig.attrs["keep_dims"])
    return not_equal(right, 0)


# ---------------------------------------------------------------- public functions
def _reduce(
    op: OpSpec, input_tensor: Any, axis: Any, keepdims: Any, name: str | None,
    reduction_indices: Any, keep_dims: Any,
) -> Tensor:  # fmt: skip
    axis = array_util.renamed("axis", axis, "reduction_indices", reduction_indices)
    keepdims = array_util.renamed("keepdims", keepdims, "keep_dims", keep_dims)
    if not isinstance(input_tensor, Tensor) and hasattr(input_tensor, "dtype"):
        input_tensor = convert_to_tensor(input_tensor)
    dims = reduction_dims(input_tensor, axis)
    out: Tensor = op(input_tensor, dims, keep_dims=bool(keepdims), name=name)
    return may_reduce_to_scalar(keepdims, axis, out)


def may_reduce_to_scalar(keepdims: Any, axis: Any, output: Tensor) -> Tensor:
    """`output`, known to be a scalar when everything was reduced."""
    if axis is None and not keepdims and not shapes.is_fully_defined(output.raw_shape):
        output.set_shape(())
    return output


_WORDS = {
    "input_tensor": "a tensor of a numeric type.",
    "axis": "the dimension or dimensions to reduce, from -rank to rank - 1; None (the default) "
    "reduces all of them.",
    "keepdims": "whether reduced dimensions stay, with size 1.",
    "name": "a name for the operation.",
    "reduction_indices": "the old name of `axis`.",
    "keep_dims": "the old name of `keepdims`.",
    "raises": "ValueError: an axis is out of range, or both names of an argument are given.",
}
"""What the functions here take."""


@extensible
@explained(_WORDS, returns="A tensor of the type of `input_tensor`; 0 where nothing was added.")
def reduce_sum(
    input_tensor: Any, axis: Any = None, keepdims: Any = None, name: str | None = None,
    reduction_indices: Any = None, keep_dims: Any = None,
) -> Tensor:  # fmt: skip
    """Adds the elements over dimensions of a tensor."""
    return _reduce(sum_op, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


@extensible
@explained(
    _WORDS,
    input_tensor="a tensor of a numeric type. Integers divide as in C: the mean of [1, 0, 1, 0] "
    "is 0.",
    returns="A tensor of the type of `input_tensor`; NaN where there was nothing to average.",
)
def reduce_mean(
    input_tensor: Any, axis: Any = None, keepdims: Any = None, name: str | None = None,
    reduction_indices: Any = None, keep_dims: Any = None,
) -> Tensor:  # fmt: skip
    """The mean of the elements over dimensions of a tensor."""
    return _reduce(mean_op, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


@extensible
@explained(
    _WORDS,
    returns="A tensor of the type of `input_tensor`; 1 where nothing was multiplied.",
)
def reduce_prod(
    input_tensor: Any, axis: Any = None, keepdims: Any = None, name: str | None = None,
    reduction_indices: Any = None, keep_dims: Any = None,
) -> Tensor:  # fmt: skip
    """Multiplies the elements over dimensions of a tensor."""
    return _reduce(prod_op, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


@extensible
@explained(
    _WORDS,
    input_tensor="a tensor of a real numeric type.",
    returns="A tensor of the type of `input_tensor`; -inf (or the lowest integer) where there "
    "was none.",
)
def reduce_max(
    input_tensor: Any, axis: Any = None, keepdims: Any = None, name: str | None = None,
    reduction_indices: Any = None, keep_dims: Any = None,
) -> Tensor:  # fmt: skip
    """The largest element over dimensions of a tensor. Ties share the gradient evenly."""
    return _reduce(max_op, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


@extensible
@explained(
    _WORDS,
    input_tensor="a tensor of a real numeric type.",
    returns="A tensor of the type of `input_tensor`; inf (or the highest integer) where there "
    "was none.",
)
def reduce_min(
    input_tensor: Any, axis: Any = None, keepdims: Any = None, name: str | None = None,
    reduction_indices: Any = None, keep_dims: Any = None,
) -> Tensor:  # fmt: skip
    """The smallest element over dimensions of a tensor. Ties share the gradient evenly."""
    return _reduce(min_op, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


@extensible
@explained(
    _WORDS,
    input_tensor="a bool tensor.",
    returns="A bool tensor; True where there were no elements.",
    raises="TypeError: `input_tensor` is not bool.\n"
    "ValueError: an axis is out of range, or both names of an argument are given.",
)
def reduce_all(
    input_tensor: Any, axis: Any = None, keepdims: Any = None, name: str | None = None,
    reduction_indices: Any = None, keep_dims: Any = None,
) -> Tensor:  # fmt: skip
    """Whether all elements are true over dimensions of a tensor."""
    return _reduce(all_op, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


@extensible
@explained(
    _WORDS,
    input_tensor="a bool tensor.",
    returns="A bool tensor; False where there were no elements.",
    raises="TypeError: `input_tensor` is not bool.\n"
    "ValueError: an axis is out of range, or both names of an argument are given.",
)
def reduce_any(
    input_tensor: Any, axis: Any = None, keepdims: Any = None, name: str | None = None,
    reduction_indices: Any = None, keep_dims: Any = None,
) -> Tensor:  # fmt: skip
    """Whether some element is true over dimensions of a tensor."""
    return _reduce(any_op, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


@extensible
@explained(_WORDS, returns="A tensor of the type of `input_tensor`.", raises="")
def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of the sum of squared elements over dimensions of a tensor."""
    return _reduce(euclidean_norm_op, input_tensor, axis, keepdims, name, None, None)
