"""Shapes of tensors and changes of shape that move no data."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops.cast import cast
from opdock.ops.registry import DropsAxes, Fails, PartialShape, ShapeSig, Traits, define_op, get
from opdock.ops.support import array_util, common_shapes
from opdock.ops.unbroadcast import broadcast_gradient_args_op
from opdock.shapes import Shape, TensorShape

__all__ = [
    "broadcast_dynamic_shape", "broadcast_static_shape", "broadcast_to", "ensure_shape",
    "expand_dims", "rank", "reshape", "shape", "shape_n", "size", "squeeze", "unravel_index",
]  # fmt: skip

_OUT_TYPE = "T: type, out_type: {int32, int64} = DT_INT32"


# ---------------------------------------------------------------- Shape, ShapeN, Size, Rank
shape_op = define_op("Shape", "input: T -> output: out_type", _OUT_TYPE)
shape_n_op = define_op(
    "ShapeN", "input: N * T -> output: N * out_type", f"N: int >= 1, {_OUT_TYPE}"
)
size_op = define_op("Size", "input: T -> output: out_type", _OUT_TYPE)
rank_op = define_op("Rank", "input: T -> output: int32", "T: type")

size_op.shape(common_shapes.scalar)
rank_op.shape(common_shapes.scalar)


@shape_op.shape
@shape_n_op.shape
def _shape_vectors(sig: ShapeSig) -> list[Shape]:
    return [(None if s is None else len(s),) for s in sig.shapes]


@shape_op.known
@shape_n_op.known
def _known_shapes(sig: ShapeSig) -> list[Any]:
    dtype = sig.attrs["out_type"].np
    return [
        PartialShape(s) if s is None or None in s else array_util.held(s, dtype) for s in sig.shapes
    ]


@size_op.known
def _known_size(sig: ShapeSig) -> list[Any]:
    count = shapes.num_elements(sig.shapes[0])
    return [None if count is None else array_util.held(count, sig.attrs["out_type"].np)]


@rank_op.known
def _known_rank(sig: ShapeSig) -> list[Any]:
    shape = sig.shapes[0]
    return [None if shape is None else np.array(len(shape), np.int32)]


for _op in (shape_op, shape_n_op, size_op, rank_op):
    _op.not_differentiable().declare(Traits(builtin=True, on_host=True, fails=Fails.NEVER))


@extensible
def shape(input: Any, name: str | None = None, out_type: Any = dtypes.int32) -> Tensor:
    """The shape of a tensor, as a vector. A statically known shape becomes a constant.

    Args:
        input: a Tensor or SparseTensor.
        name: a name for the operation.
        out_type: `tf.int32` or `tf.int64`.

    Returns:
        A 1-D tensor of type `out_type`.
    """
    return shape_internal(input, name, optimize=True, out_type=out_type)


def shape_internal(
    input: Any, name: str | None = None, optimize: bool = True, out_type: Any = dtypes.int32
) -> Tensor:
    """`shape`, optionally without turning a static shape into a constant."""
    if not isinstance(input, Tensor):
        with name_scope(name, "Shape", [input]) as scope:
            if hasattr(input, "dense_shape"):
                return cast(input.dense_shape, out_type)  # type: ignore[no-any-return]
            return shape_internal(convert_to_tensor(input), scope, optimize, out_type)
    static, out = input.raw_shape, dtypes.as_dtype(out_type)
    if optimize and static is not None and None not in static:
        if (known := array_util.held(static, out.np)) is not None:
            return constant(known, name=name or "Shape")
    return shape_op(input, out_type=out_type, name=name)  # type: ignore[no-any-return]


@extensible
def shape_n(
    input: list[Any], out_type: Any = dtypes.int32, name: str | None = None
) -> list[Tensor]:
    """The shapes of several tensors of one type.

    Args:
        input: a list of tensors.
        out_type: `tf.int32` or `tf.int64`.
        name: a name for the operation.

    Returns:
        A list of 1-D tensors of type `out_type`.
    """
    return shape_n_op(input, out_type=out_type, name=name)  # type: ignore[no-any-return]


@extensible
def size(input: Any, name: str | None = None, out_type: Any = dtypes.int32) -> Tensor:
    """The number of elements of a tensor.

    Args:
        input: a Tensor or SparseTensor.
        name: a name for the operation.
        out_type: `tf.int32` or `tf.int64`.

    Returns:
        A scalar tensor of type `out_type`.
    """
    with name_scope(name, "Size", [input]) as scope:
        if hasattr(input, "dense_shape") and not isinstance(input, Tensor):
            return get("Prod")(cast(input.dense_shape, out_type), 0, name=scope)  # type: ignore[no-any-return]
        tensor = convert_to_tensor(input)
        count, out = shapes.num_elements(tensor.raw_shape), dtypes.as_dtype(out_type)
        if count is not None and (known := array_util.held(count, out.np)) is not None:
            return constant(known, out, name=scope)
        return size_op(tensor, out_type=out_type, name=scope)  # type: ignore[no-any-return]


@extensible
def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of dimensions of a tensor.

    Args:
        input: a Tensor or SparseTensor.
        name: a name for the operation.

    Returns:
        A scalar int32 tensor.
    """
    with name_scope(name, "Rank", [input]) as scope:
        if hasattr(input, "dense_shape") and not isinstance(input, Tensor):
            return size(input.dense_shape, name=scope)
        tensor = convert_to_tensor(input)
        if tensor.raw_shape is not None:
            return constant(len(tensor.raw_shape), dtypes.int32, name=scope)
        return rank_op(tensor, name=scope)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- Reshape
reshape_op = define_op(
    "Reshape", "tensor: T, shape: Tshape -> output: T",
    "T: type, Tshape: {int32, int64} = DT_INT32",
)  # fmt: skip


@reshape_op.shape
def _reshape_shape(sig: ShapeSig) -> Shape:
    source, wanted = sig.shapes[0], sig.const_shape(1)
    if wanted is None or source is None:
        return wanted
    n_in, hole_in = _known_product(source)
    n_out, hole_out = _known_product(wanted)
    if n_in is None or n_out is None:
        return wanted
    if hole_in is None and hole_out is None:
        if n_in != n_out:
            raise ValueError(
                f"Cannot reshape a tensor with {n_in} elements to shape {shapes.text(wanted)} "
                f"({n_out} elements)"
            )
    elif hole_in is None and hole_out is not None and n_out > 0:
        return array_util.replace(wanted, hole_out, array_util.divide_exactly(n_in, n_out))
    elif hole_in is not None and hole_out is None and n_in != 0:
        array_util.divide_exactly(n_out, n_in)
    return wanted


def _known_product(shape: tuple[int | None, ...]) -> tuple[int | None, int | None]:
    """The product of the known dimensions (None: two are unknown), and the unknown one's index."""
    product, hole = 1, None
    if 0 in shape:
        return 0, None
    for i, dim in enumerate(shape):
        if dim is not None:
            product *= dim
        elif hole is not None:
            return None, hole
        else:
            hole = i
    return product, hole


@reshape_op.gradient
def _reshape_grad(op: Operation, grad: Any) -> list[Any]:
    return [_reshape_to_input(op, grad), None]


def _reshape_to_input(op: Operation, grad: Any) -> Tensor:
    grad = convert_to_tensor(grad)
    return reshape(grad, shape(op.inputs[0]))


@extensible
def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """The same elements in row-major order under another shape.

    Args:
        tensor: a tensor.
        shape: a 1-D int32 or int64 tensor; one entry may be -1 and is then inferred.
        name: a name for the operation.

    Returns:
        A tensor of the type of `tensor`.

    Raises:
        ValueError: the element counts are known and differ (`InvalidArgumentError` at run time).
    """
    return reshape_op(tensor, shape, name=name)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- ExpandDims, Squeeze
expand_dims_op = define_op(
    "ExpandDims", "input: T, dim: Tdim -> output: T",
    "T: type, Tdim: {int32, int64} = DT_INT32",
)  # fmt: skip
for _op in (reshape_op, expand_dims_op):
    _op.declare(Traits(fails=Fails.NEVER, repeats=0, reshapes=True))
squeeze_op = define_op(
    "Squeeze", "input: T -> output: T", "T: type, squeeze_dims: list(int) >= 0 = []"
)
squeeze_op.declare(
    Traits(fails=Fails.NEVER, repeats=0, reshapes=True, layout=DropsAxes("squeeze_dims"))
)


@expand_dims_op.shape
def _expand_dims_shape(sig: ShapeSig) -> Shape:
    source, dims = sig.shapes[0], array_util.const_ints(sig, 1)
    if dims is not None and len(dims) != 1:
        raise ValueError("'dim' input must be a tensor with a single value")
    if dims is None or source is None:
        return None
    n, dim = len(source), dims[0]
    if not -n - 1 <= dim <= n:
        raise ValueError(f"dim {dim} not in the interval [{-n - 1}, {n}].")
    if dim < 0:
        dim += n + 1
    return source[:dim] + (1,) + source[dim:]


@squeeze_op.shape
def _squeeze_shape(sig: ShapeSig) -> Shape:
    source, given = sig.shapes[0], sig.attrs["squeeze_dims"]
    if source is None:
        return None
    n = len(source)
    axes = set()
    for i, axis in enumerate(given):
        if not -n <= axis < n:
            raise ValueError(f"squeeze_dims[{i}] not in [{-n},{n}).")
        axes.add(axis % n)
    out: list[int | None] = []
    for i, dim in enumerate(source):
        if i in axes:
            if dim is not None and dim != 1:
                raise ValueError(f"Can not squeeze dim[{i}], expected a dimension of 1, got {dim}")
        elif axes or (dim is not None and dim != 1):
            out.append(dim)
        elif dim is None:
            return None
    return tuple(out)


@expand_dims_op.gradient
def _expand_dims_grad(op: Operation, grad: Any) -> list[Any]:
    return [_reshape_to_input(op, grad), None]


@squeeze_op.gradient
def _squeeze_grad(op: Operation, grad: Any) -> Tensor:
    return _reshape_to_input(op, grad)


@extensible
def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """Inserts a dimension of size 1.

    Args:
        input: a tensor.
        axis: where to insert, in [-rank - 1, rank].
        name: a name for the operation.
        dim: deprecated name of `axis`.

    Returns:
        A tensor with the elements of `input` and one more dimension.

    Raises:
        ValueError: neither or both of `axis` and `dim` are given, or the axis is out of range.
    """
    axis = array_util.renamed("axis", axis, "dim", dim)
    if axis is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    return expand_dims_op(input, axis, name=name)  # type: ignore[no-any-return]


@extensible
def squeeze(
    input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None
) -> Tensor:
    """Removes dimensions of size 1.

    Args:
        input: a tensor.
        axis: an integer or list of integers: the dimensions to remove; all of size 1 by default.
        name: a name for the operation.
        squeeze_dims: deprecated name of `axis`.

    Returns:
        A tensor with the elements of `input` and fewer dimensions.

    Raises:
        ValueError: a given dimension is known not to be 1.
    """
    axis = array_util.renamed("axis", axis, "squeeze_dims", squeeze_dims)
    if axis is not None and np.ndim(axis) == 0:
        axis = [axis]
    return squeeze_op(input, squeeze_dims=axis, name=name)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- broadcasting
broadcast_to_op = define_op(
    "BroadcastTo", "input: T, shape: Tidx -> output: T",
    "T: type, Tidx: {int32, int64} = DT_INT32",
)  # fmt: skip
broadcast_to_op.declare(Traits(fails=Fails.BY_SHAPE, repeats=0))
broadcast_args_op = define_op(
    "BroadcastArgs", "s0: T, s1: T -> r0: T", "T: {int32, int64} = DT_INT32"
).not_differentiable()


@broadcast_to_op.shape
def _broadcast_to_shape(sig: ShapeSig) -> Shape:
    array_util.vector_length(sig.shapes[1])
    source, out = sig.shapes[0], sig.const_shape(1)
    if out is None or source is None:
        return out
    shapes.with_rank_at_most(source, len(out))
    for i, dim in enumerate(reversed(source), 1):
        if dim is not None and dim > 1:
            out = array_util.replace(out, -i, shapes.merge_dim(dim, out[-i]))
    return out


@broadcast_args_op.shape
def _broadcast_args_shape(sig: ShapeSig) -> Shape:
    x, y = (array_util.vector_length(s) for s in sig.shapes)
    return (None,) if x is None or y is None else (max(x, y),)


@broadcast_to_op.gradient
def _broadcast_to_grad(op: Operation, grad: Any) -> list[Any]:
    source = op.inputs[0]
    source_shape = shape(source, out_type=op.inputs[1].dtype)
    _, axes = broadcast_gradient_args_op(op.inputs[1], source_shape)
    total = get("Sum")(convert_to_tensor(grad), axes, keep_dims=True)
    return [reshape(total, source_shape), None]


@extensible
def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """Repeats a tensor along new and size-1 dimensions until it has the given shape.

    Args:
        input: a tensor.
        shape: a 1-D int32 or int64 tensor.
        name: a name for the operation.

    Returns:
        A tensor of shape `shape`.

    Raises:
        ValueError: the shapes do not broadcast (`InvalidArgumentError` at run time).
    """
    return broadcast_to_op(input, shape, name=name)  # type: ignore[no-any-return]


@extensible
def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The shape of a broadcast of two shapes that are known at run time.

    Args:
        shape_x: a 1-D int32 or int64 tensor.
        shape_y: a 1-D tensor of the same type.

    Returns:
        A 1-D tensor: the broadcast shape.
    """
    return broadcast_args_op(shape_x, shape_y)  # type: ignore[no-any-return]


@extensible
def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The shape of a broadcast of two static shapes.

    Args:
        shape_x: a `TensorShape`.
        shape_y: a `TensorShape`.

    Returns:
        A `TensorShape`.

    Raises:
        ValueError: the shapes do not broadcast.
    """
    x, y = shapes.as_shape(shape_x), shapes.as_shape(shape_y)
    try:
        return TensorShape(shapes.broadcast(x, y))
    except ValueError:
        raise ValueError(
            f"Incompatible shapes for broadcasting: {TensorShape(x)} and {TensorShape(y)}"
        ) from None


# ---------------------------------------------------------------- EnsureShape, UnravelIndex
ensure_shape_op = define_op("EnsureShape", "input: T -> output: T", "shape: shape, T: type")
unravel_index_op = define_op(
    "UnravelIndex", "indices: Tidx, dims: Tidx -> output: Tidx",
    "Tidx: {int32, int64} = DT_INT32",
).not_differentiable()  # fmt: skip


@ensure_shape_op.shape
def _ensure_shape_shape(sig: ShapeSig) -> Shape:
    return shapes.merge(sig.attrs["shape"], sig.shapes[0])


@ensure_shape_op.gradient
def _ensure_shape_grad(op: Operation, grad: Any) -> Any:
    return grad


@unravel_index_op.shape
def _unravel_index_shape(sig: ShapeSig) -> Shape:
    indices, n = sig.shapes[0], array_util.vector_length(sig.shapes[1])
    if indices is None:
        return None
    return (n,) if not indices else (n, shapes.num_elements(indices))


@extensible
def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """Checks at run time that a tensor has a shape, and tells the graph so.

    Unlike `Tensor.set_shape`, which is believed, this is verified at each step.

    Args:
        x: a tensor.
        shape: a possibly partial `TensorShape`.
        name: a name for the operation.

    Returns:
        `x`, with the merged static shape.

    Raises:
        tf.errors.InvalidArgumentError: at run time, when the shape is incompatible.
    """
    return ensure_shape_op(x, shape=shape, name=name)  # type: ignore[no-any-return]


@extensible
def unravel_index(indices: Any, dims: Any, name: str | None = None) -> Tensor:
    """Converts flat indices to coordinates in an array of shape `dims`.

    Args:
        indices: a scalar or vector of int32 or int64 indices into the flattened array.
        dims: the shape of the array, of the type of `indices`.
        name: a name for the operation.

    Returns:
        A tensor whose first dimension runs over the axes of `dims`.

    Raises:
        tf.errors.InvalidArgumentError: at run time, for an index outside the array.
    """
    return unravel_index_op(indices, dims, name=name)  # type: ignore[no-any-return]
