"""Sparse tensors combined with each other and with dense ones; their products and softmax."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.array import expand_dims, reshape, shape
from opdock.ops.complex import conj
from opdock.ops.gather import gather, gather_nd
from opdock.ops.joining import concat
from opdock.ops.matrix import transpose
from opdock.ops.reduce import reduce_sum
from opdock.ops.registry import OpSpec, ShapeSig, define_op, get
from opdock.ops.sparse_reduce import sum_op
from opdock.ops.support import array_util, sparse_shapes
from opdock.ops.unsorted_segment import unsorted_segment_sum
from opdock.shapes import Shape

__all__: list[str] = []


def _define(name: str) -> OpSpec:
    spec = define_op(
        name,
        "sp_indices: int64, sp_values: T, sp_shape: int64, dense: T -> output: T",
        "T: numbertype",
    )
    spec.shape(_values_shape)
    return spec


def _values_shape(sig: ShapeSig) -> Shape:
    indices, values, dense_shape, dense = sig.shapes
    cells = shapes.with_rank(indices, 2)
    rank = shapes.merge_dim(cells[1], shapes.with_rank(dense_shape, 1)[0])
    if rank is not None and dense is not None and len(dense) > rank:
        raise ValueError(
            f"SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: "
            f"dense rank {len(dense)}, sparse rank {rank}"
        )
    return shapes.merge((cells[0],), values)


sparse_dense_mul_op = _define("SparseDenseCwiseMul")
sparse_dense_div_op = _define("SparseDenseCwiseDiv")
sparse_dense_add_op = _define("SparseDenseCwiseAdd")
sparse_dense_add_op.not_differentiable()  # TF gives it no gradient either


def _cells(op: Operation) -> tuple[Tensor, Tensor]:
    """The values of the dense operand at the cells, and the index of each in that operand."""
    indices, _, sparse_shape, dense = op.inputs
    dense_shape = get("Shape")(dense, out_type=dtypes.int64)
    # A dense operand of lower rank has its dimensions at the end.
    missing = get("Sub")(get("Size")(sparse_shape), get("Rank")(dense))
    ones = get("Fill")(get("Pack")([missing], axis=0), convert_to_tensor(1, dtypes.int64))
    scale = get("FloorDiv")(sparse_shape, get("ConcatV2")([ones, dense_shape], 0))
    scaled = get("FloorDiv")(indices, scale)
    begin = get("Pack")([convert_to_tensor(0), missing], axis=0)
    inner = get("Slice")(scaled, begin, convert_to_tensor([-1, -1]))
    return get("GatherNd")(dense, inner), inner


@sparse_dense_mul_op.gradient
def _mul_gradient(op: Operation, grad: Any) -> list[Any]:
    values, cells = _cells(op)
    down = grad * _conjugate(op.inputs[1])
    return [None, grad * _conjugate(values), None, _summed(op, cells, down)]


@sparse_dense_div_op.gradient
def _div_gradient(op: Operation, grad: Any) -> list[Any]:
    found, cells = _cells(op)
    values = _conjugate(found)
    down = grad * (-_conjugate(op.inputs[1]) / (values * values))
    return [None, grad / values, None, _summed(op, cells, down)]


def _summed(op: Operation, cells: Tensor, down: Tensor) -> Any:
    """What entries give to the elements of the dense operand, which may be a scalar."""
    full = _shape64(op.inputs[3])
    if op.inputs[3].shape.ndims:
        return get("ScatterNd")(cells, down, full)
    # ScatterNd makes no scalars, so it gets one dimension more.
    within = get("Pad")(cells, [[0, 0], [1, 0]])
    return reshape(get("ScatterNd")(within, down, concat([[1], full], 0)), full)


def _conjugate(tensor: Tensor) -> Any:
    return conj(tensor) if tensor.dtype.is_complex else tensor


def _shape64(tensor: Tensor) -> Any:
    return shape(tensor, out_type=dtypes.int64)


# ---------------------------------------------------------------- sparse with sparse, and products
_BOTH = (
    "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64"
)

add_op = define_op(
    "SparseAdd",
    f"{_BOTH}, thresh: Treal -> sum_indices: int64, sum_values: T, sum_shape: int64",
    "T: numbertype, Treal: realnumbertype",
)
add_grad_op = define_op(
    "SparseAddGrad",
    "backprop_val_grad: T, a_indices: int64, b_indices: int64, sum_indices: int64 "
    "-> a_val_grad: T, b_val_grad: T",
    "T: numbertype",
).not_differentiable()
maximum_op = define_op(
    "SparseSparseMaximum", f"{_BOTH} -> output_indices: int64, output_values: T",
    "T: realnumbertype",
)  # fmt: skip
minimum_op = define_op(
    "SparseSparseMinimum", f"{_BOTH} -> output_indices: int64, output_values: T", "T: numbertype"
)
dense_add_op = define_op(
    "SparseTensorDenseAdd",
    "a_indices: Tindices, a_values: T, a_shape: Tindices, b: T -> output: T",
    "T: numbertype, Tindices: {int32, int64}",
)
matmul_op = define_op(
    "SparseTensorDenseMatMul",
    "a_indices: Tindices, a_values: T, a_shape: int64, b: T -> product: T",
    "T: type, Tindices: {int32, int64} = DT_INT64, "
    "adjoint_a: bool = false, adjoint_b: bool = false",
)
softmax_op = define_op(
    "SparseSoftmax", "sp_indices: int64, sp_values: T, sp_shape: int64 -> output: T",
    "T: {float, double}",
)  # fmt: skip
for _op in (maximum_op, minimum_op):
    array_util.no_gradient(_op)


# ---------------------------------------------------------------- shapes
@add_op.shape
def _add_shape(sig: ShapeSig) -> list[Shape]:
    rank = shapes.with_rank(sig.shapes[2], 1)
    return [(None, rank[0]), (None,), rank]


@add_grad_op.shape
def _add_grad_shape(sig: ShapeSig) -> list[Shape]:
    return [shapes.with_rank(sig.shapes[i], 2)[:1] for i in (1, 2)]


@maximum_op.shape
@minimum_op.shape
def _extreme_shape(sig: ShapeSig) -> list[Shape]:
    sparse_shapes.check_ranks(*sig.shapes[:3])
    sparse_shapes.check_ranks(*sig.shapes[3:])
    return [(None, None), (None,)]


@dense_add_op.shape
def _dense_add_shape(sig: ShapeSig) -> Shape:
    return sig.shapes[3]


@matmul_op.shape
def _matmul_shape(sig: ShapeSig) -> Shape:
    shapes.with_rank(sig.shapes[0], 2)
    shapes.with_rank(sig.shapes[1], 1)
    a, b = shapes.with_rank(sig.const_shape(2), 2), shapes.with_rank(sig.shapes[3], 2)
    if sig.attrs["adjoint_a"]:
        a = a[::-1]
    if sig.attrs["adjoint_b"]:
        b = b[::-1]
    shapes.merge_dim(a[1], b[0])
    return (a[0], b[1])


@softmax_op.shape
def _softmax_shape(sig: ShapeSig) -> Shape:
    sparse_shapes.check_ranks(*sig.shapes)
    return sig.shapes[1]


# ---------------------------------------------------------------- gradients
@add_op.gradient
def _add_gradient(op: Operation, _: Any, grad: Any, _shape: Any) -> list[Any]:
    # What the threshold left out is not among the indices of the sum.
    a, b = add_grad_op(grad, op.inputs[0], op.inputs[3], op.outputs[0])
    a.set_shape(op.inputs[1].raw_shape)
    b.set_shape(op.inputs[4].raw_shape)
    return [None, a, None, None, b, None, None]


@dense_add_op.gradient
def _dense_add_gradient(op: Operation, grad: Any) -> list[Any]:
    return [None, gather_nd(grad, op.inputs[0]), None, grad]


@matmul_op.gradient
def _matmul_gradient(op: Operation, grad: Any) -> list[Any]:
    indices, values, dense_shape, b = op.inputs
    adjoint_a, adjoint_b = op.attrs["adjoint_a"], op.attrs["adjoint_b"]
    if values.dtype.is_complex:
        raise NotImplementedError("SparseTensorDenseMatMul op does not support complex gradients.")
    b_grad = matmul_op(indices, values, dense_shape, grad, adjoint_a=not adjoint_a)
    rows, columns = indices[:, 0], indices[:, 1]
    if adjoint_a:
        rows, columns = columns, rows
    if adjoint_b:
        b_grad, b = transpose(b_grad), transpose(b)
    of_values = reduce_sum(gather(grad, rows) * gather(b, columns), axis=1)
    return [None, of_values, None, b_grad]


@softmax_op.gradient
def _softmax_gradient(op: Operation, grad: Any) -> list[Any]:
    indices, dense_shape, out = op.inputs[0], op.inputs[2], op.outputs[0]
    total = sum_op(indices, out * grad, dense_shape, [-1], keep_dims=True)
    return [None, sparse_dense_add_op(indices, grad, dense_shape, -total) * out, None]


# ---------------------------------------------------------------- decompositions
@matmul_op.decomposition
def _matmul_parts(
    sig: ShapeSig, indices: Tensor, values: Tensor, dense_shape: Tensor, b: Tensor
) -> Tensor:
    rows, columns, count = indices[:, 0], indices[:, 1], dense_shape[0]
    if sig.attrs["adjoint_a"]:
        rows, columns, count, values = columns, rows, dense_shape[1], _conjugate(values)
    if sig.attrs["adjoint_b"]:
        b = _conjugate(transpose(b))
    return unsorted_segment_sum(expand_dims(values, 1) * gather(b, columns), rows, count)


@dense_add_op.decomposition
def _dense_add_parts(
    sig: ShapeSig, indices: Tensor, values: Tensor, dense_shape: Tensor, b: Tensor
) -> Tensor:
    return get("TensorScatterAdd")(b, indices, values)  # type: ignore[no-any-return]
