"""Sparse tensors as elements of dense ones: serialized, or kept in a map and named by a handle."""

from __future__ import annotations

from opdock import shapes
from opdock.ops.registry import OpSpec, ShapeSig, define_op
from opdock.ops.support import array_util, sparse_shapes
from opdock.shapes import Shape

__all__: list[str] = []

_SPARSE = "sparse_indices: int64, sparse_values: T, sparse_shape: int64"
_RESULT = "sparse_indices: int64, sparse_values: dtype, sparse_shape: int64"
_OUT = "T: type, out_type: {string, variant} = DT_STRING"
_MAP = "T: type, container: string = '', shared_name: string = ''"

serialize_op = define_op("SerializeSparse", f"{_SPARSE} -> serialized_sparse: out_type", _OUT)
serialize_many_op = define_op(
    "SerializeManySparse", f"{_SPARSE} -> serialized_sparse: out_type", _OUT
)
deserialize_op = define_op(
    "DeserializeSparse", f"serialized_sparse: Tserialized -> {_RESULT}",
    "dtype: type, Tserialized: {string, variant} = DT_STRING",
)  # fmt: skip
deserialize_many_op = define_op(
    "DeserializeManySparse", f"serialized_sparse: string -> {_RESULT}", "dtype: type"
)
add_to_map_op = define_op(
    "AddSparseToTensorsMap", f"{_SPARSE} -> sparse_handle: int64", _MAP, stateful=True
)
add_many_to_map_op = define_op(
    "AddManySparseToTensorsMap", f"{_SPARSE} -> sparse_handles: int64", _MAP, stateful=True
)
take_from_map_op = define_op(
    "TakeManySparseFromTensorsMap", f"sparse_handles: int64 -> {_RESULT}",
    _MAP.replace("T:", "dtype:"), stateful=True,
)  # fmt: skip
for _op in (
    serialize_op, serialize_many_op, deserialize_op, deserialize_many_op, add_to_map_op,
    add_many_to_map_op, take_from_map_op,
):  # fmt: skip
    array_util.no_gradient(_op)

_RESULT_SHAPES: list[Shape] = [(None, None), (None,), (None,)]


def _shaped(spec: OpSpec, shape: Shape) -> None:
    def fixed(sig: ShapeSig) -> Shape:
        sparse_shapes.check_ranks(*sig.shapes)
        return shape

    spec.shape(fixed)


_shaped(serialize_op, (3,))
_shaped(serialize_many_op, (None, 3))
_shaped(add_to_map_op, ())
_shaped(add_many_to_map_op, (None,))


@deserialize_op.shape
def _deserialize_shape(sig: ShapeSig) -> list[Shape]:
    known = shapes.with_rank_at_least(sig.shapes[0], 1)
    if known is not None:
        array_util.with_dim(known[-1], 3)
    return _RESULT_SHAPES


@deserialize_many_op.shape
def _deserialize_many_shape(sig: ShapeSig) -> list[Shape]:
    array_util.with_dim(shapes.with_rank(sig.shapes[0], 2)[1], 3)
    return _RESULT_SHAPES


@take_from_map_op.shape
def _take_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[0], 1)
    return _RESULT_SHAPES
