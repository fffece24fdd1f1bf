"""Crosses of features: every combination of one value from each column, by row."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.operation import Tensor
from opdock.ops.cast import cast
from opdock.ops.registry import ShapeSig, define_op
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__: list[str] = []

sparse_cross_op = define_op(
    "SparseCross",
    "indices: N * int64, values: sparse_types, shapes: N * int64, dense_inputs: dense_types "
    "-> output_indices: int64, output_values: out_type, output_shape: int64",
    "N: int >= 0, hashed_output: bool, num_buckets: int >= 0, hash_key: int, "
    "sparse_types: list({int64, string}) >= 0, dense_types: list({int64, string}) >= 0, "
    "out_type: {int64, string}, internal_type: {int64, string}",
)
array_util.no_gradient(sparse_cross_op)

_HASH_KEY = 0xDECAFCAFFE
"""TF's own where none is given, so that crosses keep their numbers."""


@sparse_cross_op.shape
def _cross_shape(sig: ShapeSig) -> list[Shape]:
    return [(None, 2), (None,), (2,)]


def sparse_cross(inputs: Any, name: str | None = None) -> SparseTensor:
    """Crosses columns of features to strings such as `a_X_b`.

    Args:
        inputs: a list of SparseTensors and Tensors [rows, features], int64 or strings.
        name: a name for the operation.

    Returns:
        A SparseTensor of strings [rows, combinations].

    Raises:
        TypeError: `inputs` is no list, or holds something else.
    """
    return _cross(inputs, False, 0, None, name)


def sparse_cross_hashed(
    inputs: Any, num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> SparseTensor:
    """Crosses columns of features to numbers: a hash of each combination.

    Args:
        inputs: a list of SparseTensors and Tensors [rows, features], int64 or strings.
        num_buckets: hashes are taken modulo this, unless it is 0.
        hash_key: what the hash starts from.
        name: a name for the operation.

    Returns:
        A SparseTensor of int64 [rows, combinations].

    Raises:
        TypeError: `inputs` is no list, or holds something else.
    """
    return _cross(inputs, True, num_buckets, hash_key, name)


def _cross(
    inputs: Any, hashed: bool, num_buckets: int, hash_key: int | None, name: str | None
) -> SparseTensor:
    if not isinstance(inputs, list):
        raise TypeError("Inputs must be a list")
    if not all(isinstance(i, (SparseTensor, Tensor)) for i in inputs):
        raise TypeError("All inputs must be SparseTensors")
    sparse = [i for i in inputs if isinstance(i, SparseTensor)]
    dense = [_column(i) for i in inputs if not isinstance(i, SparseTensor)]
    values = [_column(i.values) for i in sparse]
    numbers = any(v.dtype.base_dtype is not dtypes.string for v in (*values, *dense))
    parts = sparse_cross_op(
        [i.indices for i in sparse], values, [i.dense_shape for i in sparse], dense,
        hashed_output=hashed, num_buckets=num_buckets, hash_key=hash_key or _HASH_KEY,
        out_type=dtypes.int64 if hashed else dtypes.string,
        internal_type=dtypes.int64 if numbers else dtypes.string, name=name,
    )  # fmt: skip
    return SparseTensor(*parts)


def _column(values: Tensor) -> Tensor:
    if values.dtype.base_dtype is dtypes.string:
        return values
    return cast(values, dtypes.int64)  # type: ignore[no-any-return]
