"""Matrix products: MatMul, batches of them, matrix times vector, trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.ops import registry
from opdock.ops.array import expand_dims, reshape, shape, squeeze
from opdock.ops.cast import cast
from opdock.ops.complex import conj
from opdock.ops.diag import matrix_diag_part
from opdock.ops.joining import concat
from opdock.ops.matrix import matrix_transpose
from opdock.ops.reduce import reduce_sum
from opdock.ops.registry import Cost, Fails, OpSpec, ShapeSig, Traits, define_op
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__ = ["matmul", "sparse_matmul", "trace"]

_SPARSE_TYPES = (dtypes.bfloat16, dtypes.float32)

matmul_op = define_op(
    "MatMul", "a: T, b: T -> product: T",
    "transpose_a: bool = false, transpose_b: bool = false, "
    "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
)  # fmt: skip
matmul_op.declare(Traits(cost=Cost.PRODUCT, fails=Fails.NEVER))
sparse_matmul_op = define_op(
    "SparseMatMul", "a: Ta, b: Tb -> product: float",
    "transpose_a: bool = false, transpose_b: bool = false, a_is_sparse: bool = false, "
    "b_is_sparse: bool = false, Ta: {float, bfloat16} = DT_FLOAT, Tb: {float, bfloat16} = DT_FLOAT",
)  # fmt: skip


def _define_batch(name: str) -> OpSpec:
    return define_op(
        name, "x: T, y: T -> output: T",
        "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}, "
        "adj_x: bool = false, adj_y: bool = false",
    )  # fmt: skip


batch_matmul_op = _define_batch("BatchMatMul")
batch_matmul_v2_op = _define_batch("BatchMatMulV2")
for _op in (sparse_matmul_op, batch_matmul_op, batch_matmul_v2_op):
    _op.declare(Traits(cost=Cost.PRODUCT, fails=Fails.BY_SHAPE))


# ---------------------------------------------------------------- shapes
@matmul_op.shape
@sparse_matmul_op.shape
def _matmul_shape(sig: ShapeSig) -> Shape:
    a, b = shapes.with_rank(sig.shapes[0], 2), shapes.with_rank(sig.shapes[1], 2)
    rows, inner_a = reversed(a) if sig.attrs["transpose_a"] else a
    inner_b, columns = reversed(b) if sig.attrs["transpose_b"] else b
    shapes.merge_dim(inner_a, inner_b)
    return (rows, columns)


def _batch_parts(sig: ShapeSig) -> tuple[Shape, Shape, Shape]:
    """The batch shapes of both inputs (None: unknown rank) and the shape of one product."""
    x = shapes.with_rank_at_least(sig.shapes[0], 2)
    y = shapes.with_rank_at_least(sig.shapes[1], 2)
    rows, inner_x = (None, None) if x is None else x[-2:]
    inner_y, columns = (None, None) if y is None else y[-2:]
    if sig.attrs["adj_x"]:
        rows, inner_x = inner_x, rows
    if sig.attrs["adj_y"]:
        inner_y, columns = columns, inner_y
    shapes.merge_dim(inner_x, inner_y)
    return array_util.subshape(x, 0, -2), array_util.subshape(y, 0, -2), (rows, columns)


@batch_matmul_op.shape
def _batch_matmul_shape(sig: ShapeSig) -> Shape:
    batch_x, batch_y, product = _batch_parts(sig)
    return shapes.concat(shapes.merge(batch_x, batch_y), product)


@batch_matmul_v2_op.shape
def _batch_matmul_v2_shape(sig: ShapeSig) -> Shape:
    batch_x, batch_y, product = _batch_parts(sig)
    return shapes.concat(shapes.broadcast(batch_x, batch_y), product)


def square_matrices(shape: Shape) -> Shape:
    """`shape` with its last two dimensions known to be equal; ValueError when they differ."""
    shape = shapes.with_rank_at_least(shape, 2)
    if shape is None:
        return None
    n = shapes.merge_dim(shape[-2], shape[-1])
    return (*shape[:-2], n, n)


# ---------------------------------------------------------------- gradients
@matmul_op.gradient
def _matmul_grad(op: Operation, grad: Any) -> list[Any]:
    ta, tb = op.attrs["transpose_a"], op.attrs["transpose_b"]
    a, b = conj(op.inputs[0]), conj(op.inputs[1])
    if ta:
        grad_a = matmul_op(b, grad, transpose_a=tb, transpose_b=True)
    else:
        grad_a = matmul_op(grad, b, transpose_b=not tb)
    if tb:
        grad_b = matmul_op(grad, a, transpose_a=True, transpose_b=ta)
    else:
        grad_b = matmul_op(a, grad, transpose_a=not ta)
    return [grad_a, grad_b]


@sparse_matmul_op.gradient
def _sparse_matmul_grad(op: Operation, grad: Any) -> list[Any]:
    ta, tb = op.attrs["transpose_a"], op.attrs["transpose_b"]
    a, b = op.inputs
    sparse_a, sparse_b = op.attrs["a_is_sparse"], op.attrs["b_is_sparse"]

    def product(
        x: Any, y: Any, transpose_a: bool, transpose_b: bool, is_sparse: tuple[bool, bool]
    ) -> Tensor:
        return sparse_matmul_op(  # type: ignore[no-any-return]
            x, y, transpose_a=transpose_a, transpose_b=transpose_b,
            a_is_sparse=is_sparse[0], b_is_sparse=is_sparse[1],
        )  # fmt: skip

    if ta:
        grad_a = product(b, grad, tb, True, (sparse_b, False))
    else:
        grad_a = product(grad, b, False, not tb, (False, sparse_b))
    if tb:
        grad_b = product(grad, a, True, ta, (False, sparse_a))
    else:
        grad_b = product(a, grad, not ta, False, (sparse_a, False))
    return [cast(grad_a, a.dtype), cast(grad_b, b.dtype)]


def _batch_grads(op: Operation, grad: Any) -> tuple[Tensor, Tensor]:
    x, y = op.inputs
    adj_x, adj_y = op.attrs["adj_x"], op.attrs["adj_y"]
    if adj_x:
        grad_x = op.spec(y, grad, adj_x=adj_y, adj_y=True)
    else:
        grad_x = op.spec(grad, y, adj_y=not adj_y)
    if adj_y:
        grad_y = op.spec(grad, x, adj_x=True, adj_y=adj_x)
    else:
        grad_y = op.spec(x, grad, adj_x=not adj_x)
    return grad_x, grad_y


@batch_matmul_op.gradient
def _batch_matmul_grad(op: Operation, grad: Any) -> list[Any]:
    return list(_batch_grads(op, grad))


@batch_matmul_v2_op.gradient
def _batch_matmul_v2_grad(op: Operation, grad: Any) -> list[Any]:
    x, y = op.inputs
    grads = _batch_grads(op, grad)
    batch_x, batch_y = (array_util.subshape(t.raw_shape, 0, -2) for t in (x, y))
    if batch_x == batch_y and shapes.is_fully_defined(batch_x):
        return list(grads)
    axes = _batch_sum_axes(x, y)
    # What was broadcast forward is summed backward.
    return [
        reshape(reduce_sum(g, r), shape(t)) for g, r, t in zip(grads, axes, (x, y), strict=True)
    ]


def _batch_sum_axes(x: Tensor, y: Tensor) -> tuple[Any, Any]:
    """The batch dimensions over which the gradients of `x` and of `y` are summed."""
    a, b = (array_util.subshape(t.raw_shape, 0, -2) for t in (x, y))
    if a is not None and b is not None and None not in a and None not in b:
        rank = max(len(a), len(b))
        a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
        return tuple(
            constant(np.array([i for i in range(rank) if own[i] == 1], np.int32), dtypes.int32)
            for own in (a, b)
        )  # type: ignore[return-value]
    args = registry.get("BroadcastGradientArgs")
    r0, r1 = args(shape(x)[:-2], shape(y)[:-2])
    return r0, r1


# ---------------------------------------------------------------- decompositions
@sparse_matmul_op.decomposition
def _sparse_matmul_parts(sig: ShapeSig, a: Tensor, b: Tensor) -> Tensor:
    turn = {key: sig.attrs[key] for key in ("transpose_a", "transpose_b")}
    return matmul_op(cast(a, dtypes.float32), cast(b, dtypes.float32), **turn)  # type: ignore[no-any-return]


@batch_matmul_op.decomposition
def _batch_matmul_parts(sig: ShapeSig, x: Tensor, y: Tensor) -> Tensor:
    return batch_matmul_v2_op(x, y, adj_x=sig.attrs["adj_x"], adj_y=sig.attrs["adj_y"])  # type: ignore[no-any-return]


@batch_matmul_v2_op.decomposition
def _batch_matmul_v2_parts(sig: ShapeSig, x: Tensor, y: Tensor) -> Tensor:
    """Only for batches of one: those are plain products."""
    for t in (x, y):
        if t.raw_shape is None or any(d != 1 for d in t.raw_shape[:-2]):
            raise NotImplementedError("only matrices and batches of one are plain products")
    turn = {"transpose_a": sig.attrs["adj_x"], "transpose_b": sig.attrs["adj_y"]}
    if x.dtype.is_complex:
        x, y = (conj(t) if turned else t for t, turned in zip((x, y), turn.values(), strict=True))
    rank = max(len(t.raw_shape or ()) for t in (x, y))
    flat = [reshape(t, shape(t)[-2:]) for t in (x, y)]
    out = matmul_op(*flat, **turn)
    return out if rank == 2 else reshape(out, concat([[1] * (rank - 2), shape(out)], 0))


# ---------------------------------------------------------------- public functions
@extensible
def matmul(
    a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, adjoint_a: bool = False,
    adjoint_b: bool = False, a_is_sparse: bool = False, b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Multiplies matrix `a` by matrix `b`, or batches of matrices.

    Args:
        a: a tensor of rank 2 or more of type float16, bfloat16, float32, float64, int32, int64,
            complex64 or complex128. Leading dimensions are batch dimensions and broadcast.
        b: a tensor of the type of `a`.
        transpose_a: transpose `a` first.
        transpose_b: transpose `b` first.
        adjoint_a: conjugate and transpose `a` first.
        adjoint_b: conjugate and transpose `b` first.
        a_is_sparse: a hint that `a` holds many zeros.
        b_is_sparse: a hint that `b` holds many zeros.
        name: a name for the operation.

    Returns:
        A tensor of the type of `a`, the matrix product over the last two dimensions.

    Raises:
        ValueError: both ways to turn one matrix are set, or the inner dimensions differ
            (`InvalidArgumentError` if that only shows when it runs).
        TypeError: the types differ.
    """
    if transpose_a and adjoint_a:
        raise ValueError("Only one of transpose_a and adjoint_a can be True.")
    if transpose_b and adjoint_b:
        raise ValueError("Only one of transpose_b and adjoint_b can be True.")
    with name_scope(name, "MatMul", [a, b]) as scope:
        a, b = convert_to_tensor(a, name="a"), convert_to_tensor(b, name="b")
        may_be_batch = any(t.raw_shape is None or len(t.raw_shape) > 2 for t in (a, b))
        if may_be_batch and not a_is_sparse and not b_is_sparse:
            # The batched op only knows adjoints; conjugating twice is a transpose.
            if transpose_a:
                a, adjoint_a = conj(a), True
            if transpose_b:
                b, adjoint_b = conj(b), True
            return batch_matmul_v2_op(a, b, adj_x=adjoint_a, adj_y=adjoint_b, name=scope)  # type: ignore[no-any-return]
        if adjoint_a:
            a, transpose_a = conj(a), True
        if adjoint_b:
            b, transpose_b = conj(b), True
        types = (a.dtype.base_dtype, b.dtype.base_dtype)
        hinted = (a_is_sparse or b_is_sparse) and all(t in _SPARSE_TYPES for t in types)
        if hinted or (dtypes.bfloat16 in types and types[0] is not types[1]):
            out: Tensor = sparse_matmul_op(
                a, b, transpose_a=transpose_a, transpose_b=transpose_b, a_is_sparse=a_is_sparse,
                b_is_sparse=b_is_sparse, name=scope,
            )  # fmt: skip
            return cast(out, dtypes.bfloat16) if types == (dtypes.bfloat16,) * 2 else out
        return matmul_op(a, b, transpose_a=transpose_a, transpose_b=transpose_b, name=scope)  # type: ignore[no-any-return]


def sparse_matmul(
    a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, a_is_sparse: bool = False,
    b_is_sparse: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Multiplies two matrices that may hold many zeros.

    Args:
        a: a float32 or bfloat16 matrix.
        b: a float32 or bfloat16 matrix, of either type.
        transpose_a: transpose `a` first.
        transpose_b: transpose `b` first.
        a_is_sparse: a hint that `a` holds many zeros.
        b_is_sparse: a hint that `b` holds many zeros.
        name: a name for the operation.

    Returns:
        A float32 matrix.

    Raises:
        ValueError: the inner dimensions differ.
    """
    return sparse_matmul_op(  # type: ignore[no-any-return]
        a, b, transpose_a=transpose_a, transpose_b=transpose_b, a_is_sparse=a_is_sparse,
        b_is_sparse=b_is_sparse, name=name,
    )  # fmt: skip


@extensible
def matvec(
    a: Any, b: Any, transpose_a: bool = False, adjoint_a: bool = False, a_is_sparse: bool = False,
    b_is_sparse: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Multiplies matrix `a` by vector `b`, or batches of both.

    Args:
        a: a tensor of rank 2 or more.
        b: a tensor of the type of `a` whose last dimension matches the columns of `a`.
        transpose_a: transpose `a` first.
        adjoint_a: conjugate and transpose `a` first.
        a_is_sparse: a hint that `a` holds many zeros.
        b_is_sparse: a hint that `b` holds many zeros.
        name: a name for the operation.

    Returns:
        A tensor of the type of `a` and of one dimension less.

    Raises:
        ValueError: both ways to turn the matrix are set, or the dimensions do not match.
    """
    with name_scope(name, "MatVec", [a, b]):
        column = expand_dims(b, axis=-1)
        out = matmul(
            a, column, transpose_a=transpose_a, adjoint_a=adjoint_a, a_is_sparse=a_is_sparse,
            b_is_sparse=b_is_sparse,
        )  # fmt: skip
        return squeeze(out, axis=-1)


@extensible
def trace(x: Any, name: str | None = None) -> Tensor:
    """The sum of the diagonal of each matrix.

    Args:
        x: a numeric tensor of shape [..., M, N].
        name: a name for the operation.

    Returns:
        A tensor of shape [...].
    """
    with name_scope(name, "Trace", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return reduce_sum(matrix_diag_part(x), [-1], name=scope)


@extensible
def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """The conjugate transpose of each matrix.

    Args:
        matrix: a numeric tensor of shape [..., M, N].
        name: a name for the operation.

    Returns:
        A tensor of shape [..., N, M].
    """
    with name_scope(name, "adjoint", [matrix]):
        return matrix_transpose(convert_to_tensor(matrix, name="matrix"), conjugate=True)
