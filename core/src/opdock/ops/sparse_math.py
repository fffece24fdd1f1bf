"""A sparse tensor combined with a dense one, element by element, at the sparse one's cells."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.registry import OpSpec, ShapeSig, define_op, get
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
    dense = get("ScatterNd")(cells, down, _shape64(op.inputs[3]))
    return [None, grad * _conjugate(values), None, dense]


@sparse_dense_div_op.gradient
def _div_gradient(op: Operation, grad: Any) -> list[Any]:
    found, cells = _cells(op)
    values = _conjugate(found)
    down = grad * (-_conjugate(op.inputs[1]) / (values * values))
    return [None, grad / values, None, get("ScatterNd")(cells, down, _shape64(op.inputs[3]))]


def _conjugate(tensor: Tensor) -> Any:
    return get("Conj")(tensor) if tensor.dtype.is_complex else tensor


def _shape64(tensor: Tensor) -> Any:
    return get("Shape")(tensor, out_type=dtypes.int64)
