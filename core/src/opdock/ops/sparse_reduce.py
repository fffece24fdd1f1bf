"""Reductions of sparse tensors: absent cells are left out, not taken for zeros."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.operation import Operation
from opdock.ops.array import reshape
from opdock.ops.cast import cast
from opdock.ops.gather import gather_nd
from opdock.ops.reduce import reduced_shape
from opdock.ops.registry import OpSpec, ShapeSig, define_op
from opdock.ops.support import array_util, common_shapes
from opdock.shapes import Shape

__all__: list[str] = []


def _define(name: str, results: str, types: str) -> OpSpec:
    return define_op(
        name,
        "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32 "
        f"-> {results}",
        f"keep_dims: bool = false, T: {types}",
    )


_PARTS = "output_indices: int64, output_values: T, output_shape: int64"
max_op = _define("SparseReduceMax", "output: T", "realnumbertype")
max_sparse_op = _define("SparseReduceMaxSparse", _PARTS, "realnumbertype")
sum_op = _define("SparseReduceSum", "output: T", "numbertype")
sum_sparse_op = _define("SparseReduceSumSparse", _PARTS, "numbertype")
for _op in (max_op, max_sparse_op, sum_sparse_op):
    array_util.no_gradient(_op)
for _op in (max_sparse_op, sum_sparse_op):
    _op.shape(common_shapes.unknown)


@max_op.shape
@sum_op.shape
def _reduced_shape(sig: ShapeSig) -> Shape:
    sizes, axes = sig.const(2), array_util.const_ints(sig, 3)
    if sizes is None or axes is None or not sizes.ndim or (axes and not len(sizes)):
        return None  # what is no vector is the kernel's to refuse
    gone = {axis % len(sizes) for axis in axes}
    keep = sig.attrs["keep_dims"]
    return tuple(1 if i in gone else int(n) for i, n in enumerate(sizes) if keep or i not in gone)


@sum_op.gradient
def _sum_gradient(op: Operation, grad: Any) -> list[Any]:
    indices, _, dense_shape, axes = op.inputs
    kept = reduced_shape(dense_shape, axes)
    scale = dense_shape // cast(kept, dtypes.int64)
    return [None, gather_nd(reshape(grad, kept), indices // scale), None, None]
