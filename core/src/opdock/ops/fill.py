"""Tensors made from a shape: fills, zeros and ones, the identity matrix, ranges and grids."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.dtypes import DType
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.array import rank, reshape, shape_internal, size
from opdock.ops.cast import cast
from opdock.ops.registry import Elementwise, Fails, ShapeSig, Traits, define_op, get
from opdock.ops.support import array_util, common_shapes
from opdock.shapes import Shape, TensorShape

__all__ = [
    "fill", "lin_space", "linspace", "meshgrid", "ones", "ones_like", "range", "zeros",
    "zeros_like",
]  # fmt: skip

# Larger constants would make serialized graphs grow with the shapes of their tensors.
_SMALL = 1000


# ---------------------------------------------------------------- Fill, ZerosLike, OnesLike
fill_op = define_op(
    "Fill", "dims: index_type, value: T -> output: T",
    "T: type, index_type: {int32, int64} = DT_INT32",
)  # fmt: skip
fill_op.declare(Traits(repeats=1))
zeros_like_op = define_op("ZerosLike", "x: T -> y: T", "T: type").not_differentiable()
ones_like_op = define_op(
    "OnesLike", "x: T -> y: T",
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, int64, complex64, "
    "complex128, bool}",
).not_differentiable()  # fmt: skip
for _op in (zeros_like_op, ones_like_op):
    _op.declare(Traits(fails=Fails.NEVER, layout=Elementwise()))

zeros_like_op.shape(common_shapes.unchanged)
ones_like_op.shape(common_shapes.unchanged)


@zeros_like_op.elements
def _elements_of_zeros(sig: ShapeSig) -> int:
    return 0


@fill_op.shape
def _fill_shape(sig: ShapeSig) -> Shape:
    array_util.vector_length(sig.shapes[0])
    shapes.with_rank(sig.shapes[1], 0)
    dims = array_util.const_ints(sig, 0)
    if dims is not None and any(d < 0 for d in dims):
        raise ValueError("Fill dimensions must be >= 0")
    return sig.const_shape(0)


@fill_op.gradient
def _fill_grad(op: Operation, grad: Any) -> list[Any]:
    grad = convert_to_tensor(grad)
    total = get("Sum")(grad, reduction_dims(grad, None))
    total.set_shape(())
    return [None, total]


@extensible
def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """A tensor of one value.

    Args:
        dims: the shape, a 1-D int32 or int64 tensor.
        value: a scalar tensor.
        name: a name for the operation.

    Returns:
        A tensor of the type of `value`.

    Raises:
        ValueError: a dimension is negative (`InvalidArgumentError` at run time).
    """
    return fill_op(dims, value, name=name)  # type: ignore[no-any-return]


@extensible
def zeros(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """A tensor of zeros (False for bool, the empty string for string).

    Args:
        shape: a list of integers, a `TensorShape`, or a 1-D integer tensor.
        dtype: the type of the elements.
        name: a name for the operation.

    Returns:
        A tensor of type `dtype`: a constant when the shape is known and small.
    """
    return _filled(shape, 0, dtype, name, "zeros")


@extensible
def ones(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """A tensor of ones (True for bool).

    Args:
        shape: a list of integers, a `TensorShape`, or a 1-D integer tensor.
        dtype: the type of the elements.
        name: a name for the operation.

    Returns:
        A tensor of type `dtype`: a constant when the shape is known and small.
    """
    return _filled(shape, 1, dtype, name, "ones")


def _filled(shape: Any, value: int, dtype: Any, name: str | None, default: str) -> Tensor:
    dtype = dtypes.as_dtype(dtype).base_dtype
    known = None
    if not isinstance(shape, Tensor):
        try:
            known = shapes.as_shape(shape)
        except (TypeError, ValueError):
            known = None  # A list that holds tensors, or -1: the conversion below decides.
    count = shapes.num_elements(known)
    if count is not None and count < _SMALL:
        return constant(_full(known, value, dtype), dtype, name=name or default)
    with name_scope(name, default, [shape]) as scope:
        if count is not None:
            dims = convert_to_tensor(TensorShape(known))
        elif isinstance(shape, Tensor):
            dims = shape
        else:
            dims = convert_to_tensor(shape, dtypes.int32)
        if not dims.raw_shape:
            dims = reshape(dims, [-1])
        return fill(dims, constant(_full((), value, dtype), dtype), name=scope)


def _full(shape: Shape, value: int, dtype: DType) -> np.ndarray[Any, Any]:
    known: Any = shape
    if dtype is dtypes.string:
        if value:
            raise TypeError(f"Expected string, got {value} of type 'int' instead.")
        return np.full(known, b"", object)
    if dtype.is_quantized:
        return np.full(known, value, dtype.np[0]).view(dtype.np)
    return np.full(known, value, dtype.np)


@extensible
def zeros_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Zeros in the shape of another tensor.

    Args:
        tensor: a tensor.
        dtype: the type of the elements; that of `tensor` by default.
        name: a name for the operation.
        optimize: whether a statically known shape may become a constant.

    Returns:
        A tensor of zeros.
    """
    if isinstance(tensor, Tensor) and optimize and shapes.is_fully_defined(tensor.raw_shape):
        kind = dtypes.as_dtype(dtype or tensor.dtype).base_dtype
        if kind is not dtypes.variant:  # which holds a list or another object of any size
            return _filled(tensor.raw_shape, 0, kind, name, "zeros_like")
    with name_scope(name, "zeros_like", [tensor]) as scope:
        tensor = convert_to_tensor(tensor, name="tensor")
        wanted = tensor.dtype.base_dtype if dtype is None else dtypes.as_dtype(dtype).base_dtype
        if optimize and shapes.is_fully_defined(tensor.raw_shape) and wanted is not dtypes.variant:
            return zeros(tensor.raw_shape, wanted, scope)
        if wanted is not tensor.dtype.base_dtype and wanted is not dtypes.variant:
            out = zeros(shape_internal(tensor, optimize=optimize), wanted, scope)
            out.set_shape(tensor.raw_shape)
            return out
        return zeros_like_op(tensor, name=scope)  # type: ignore[no-any-return]


@extensible
def ones_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Ones in the shape of another tensor.

    Args:
        tensor: a tensor.
        dtype: the type of the elements; that of `tensor` by default.
        name: a name for the operation.
        optimize: whether a statically known shape may become a constant.

    Returns:
        A tensor of ones.
    """
    with name_scope(name, "ones_like", [tensor]) as scope:
        tensor = convert_to_tensor(tensor, name="tensor")
        wanted = tensor.dtype.base_dtype if dtype is None else dtypes.as_dtype(dtype).base_dtype
        out = ones(shape_internal(tensor, optimize=optimize), wanted, scope)
        out.set_shape(tensor.raw_shape)
        return out


# ---------------------------------------------------------------- Range, LinSpace
range_op = define_op(
    "Range", "start: Tidx, limit: Tidx, delta: Tidx -> output: Tidx",
    "Tidx: {bfloat16, float, double, int32, int64} = DT_INT32",
).not_differentiable()  # fmt: skip
lin_space_op = define_op(
    "LinSpace", "start: T, stop: T, num: Tidx -> output: T",
    "T: {bfloat16, float, double}, Tidx: {int32, int64} = DT_INT32",
).not_differentiable()  # fmt: skip

_RANGE_TYPES = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)


def range_length(start: Any, limit: Any, delta: Any) -> int:
    """The number of elements of a range; ValueError in TF's words when it is not possible."""
    if delta == 0:
        raise ValueError("Requires delta != 0")
    if start > limit and delta > 0:
        raise ValueError(f"Requires start <= limit when delta > 0: {start}/{limit}")
    if start < limit and delta < 0:
        raise ValueError(f"Requires start >= limit when delta < 0: {start}/{limit}")
    if isinstance(start, (int, np.integer)):
        distance, step = abs(int(limit) - int(start)), abs(int(delta))
        return (distance + step - 1) // step
    size = abs((float(limit) - float(start)) / float(delta))
    if not size < 2.0**63:
        raise ValueError(f"Requires ((limit - start) / delta) <= {2**63 - 1}: {size}")
    return math.ceil(size)


@range_op.shape
def _range_shape(sig: ShapeSig) -> Shape:
    for i, what in enumerate(("start", "limit", "delta")):
        try:
            shapes.with_rank(sig.shapes[i], 0)
        except ValueError as e:
            raise ValueError(f"{e} for '{what}'") from None
    values = [sig.const(i) for i in builtins.range(3)]
    if any(v is None for v in values):
        return (None,)
    return (range_length(*(np.asarray(v).reshape(-1)[0] for v in values)),)


@lin_space_op.shape
def _lin_space_shape(sig: ShapeSig) -> Shape:
    for shape in sig.shapes:
        shapes.with_rank(shape, 0)
    num = array_util.const_int(sig, 2)
    if num is not None and num <= 0:
        raise ValueError(f"Requires num > 0: {num}")
    return (num,)


@extensible
def range(
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range"
) -> Tensor:
    """A sequence of numbers from `start` up to and without `limit`.

    Args:
        start: the first number; with one argument, the limit, and the first number is 0.
        limit: the end of the sequence.
        delta: the step.
        dtype: the type of the elements; by default the widest of the arguments' types.
        name: a name for the operation.

    Returns:
        A 1-D tensor.

    Raises:
        ValueError: the step is zero or leads away from the limit.
    """
    if limit is None:
        start, limit = 0, start
    with name_scope(name, "Range", [start, limit, delta]) as scope:
        args = [
            convert_to_tensor(value, dtype, arg)
            for value, arg in ((start, "start"), (limit, "limit"), (delta, "delta"))
        ]
        if dtype is None:
            for arg in args:
                if arg.dtype.base_dtype not in _RANGE_TYPES:
                    raise TypeError(f"tf.range takes int32, int64, float32 or float64, got {arg!r}")
            widest = max((a.dtype.base_dtype for a in args), key=_RANGE_TYPES.index)
            args = [cast(a, widest) for a in args]
        return range_op(*args, name=scope)  # type: ignore[no-any-return]


def reduction_dims(x: Any, axis: Any) -> Any:
    """`axis`, or a node that names all dimensions of `x` when it is None."""
    if axis is not None:
        return axis
    if isinstance(x, Tensor) and x.raw_shape is not None:
        return constant(np.arange(len(x.raw_shape), dtype=np.int32), dtypes.int32)
    return range(0, rank(x))


@extensible
def lin_space(start: Any, stop: Any, num: Any, name: str | None = None) -> Tensor:
    """Evenly spaced numbers from `start` to `stop`, both included.

    Args:
        start: a floating-point scalar.
        stop: a scalar of the same type.
        num: how many numbers, at least 1.
        name: a name for the operation.

    Returns:
        A 1-D tensor of the type of `start`.

    Raises:
        ValueError: `num` is not positive (`InvalidArgumentError` at run time).
    """
    return lin_space_op(start, stop, num, name=name)  # type: ignore[no-any-return]


linspace = lin_space


# ---------------------------------------------------------------- meshgrid
@extensible
def meshgrid(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Coordinate arrays of the grid that 1-D coordinate vectors span.

    Args:
        *args: 1-D tensors.
        **kwargs: `indexing`: "xy" (the first two axes swapped, the default) or "ij";
            `name`: a name for the operations.

    Returns:
        A list of as many tensors as arguments, each of the grid's shape.

    Raises:
        TypeError: for another keyword.
        ValueError: for another `indexing`.
    """
    indexing = kwargs.pop("indexing", "xy")
    name = kwargs.pop("name", "meshgrid")
    if kwargs:
        raise TypeError(f"'{next(iter(kwargs))}' is an invalid keyword argument for this function")
    if indexing not in ("xy", "ij"):
        raise ValueError("indexing parameter must be either 'xy' or 'ij'")
    with name_scope(name, "meshgrid", args):
        n = len(args)
        vectors = [convert_to_tensor(a) for a in args]
        lengths = [size(v) for v in vectors]
        grids = [
            reshape(v, [-1 if j == i else 1 for j in builtins.range(n)])
            for i, v in enumerate(vectors)
        ]
        if indexing == "xy" and n > 1:
            grids[0] = reshape(grids[0], [1, -1] + [1] * (n - 2))
            grids[1] = reshape(grids[1], [-1, 1] + [1] * (n - 2))
            lengths[0], lengths[1] = lengths[1], lengths[0]
        if not grids:
            return []
        full = ones(lengths, vectors[0].dtype)
        return [g * full for g in grids]
