"""Crosses of features: every combination of one value from each column, by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from opdock import dtypes
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.operation import Tensor
from opdock.ops.cast import cast
from opdock.ops.registry import ShapeSig, define_op
from opdock.ops.support import array_util
from opdock.shapes import Shape

__all__: list[str] = []

_INPUTS = (
    "indices: N * int64, values: sparse_types, shapes: N * int64, dense: dense_types "
    "-> output_indices: int64, output_values: out_type, output_shape: int64"
)
_HASHING = "N: int >= 0, hashed_output: bool, num_buckets: int >= 0, "
_TYPES = (
    "sparse_types: list({int64, string}) >= 0, dense_types: list({int64, string}) >= 0, "
    "out_type: {int64, string}, internal_type: {int64, string}"
)

sparse_cross_op = define_op(
    "SparseCross",
    _INPUTS.replace("dense:", "dense_inputs:"),
    f"{_HASHING}hash_key: int, {_TYPES}",
)
array_util.no_gradient(sparse_cross_op)

# The ops of tf.contrib.layers: the first combines hashes in a way of its own, without a key.
sparse_feature_cross_op = define_op("SparseFeatureCross", _INPUTS, _HASHING + _TYPES)
sparse_feature_cross_v2_op = define_op(
    "SparseFeatureCrossV2", _INPUTS, f"{_HASHING}hash_key: int, {_TYPES}"
)
array_util.no_gradient(sparse_feature_cross_op)
array_util.no_gradient(sparse_feature_cross_v2_op)

# What programs give `sparse_feature_cross`, so that all of them have the same numbers.
SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY: Final = 956888297470
HASH_KEY: Final = 0xDECAFCAFFE
"""TF's own where none is given, so that crosses keep their numbers."""


@sparse_cross_op.shape
@sparse_feature_cross_op.shape
@sparse_feature_cross_v2_op.shape
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
    return _cross(sparse_cross_op, inputs, False, 0, name, hash_key=HASH_KEY)


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
    return _cross(sparse_cross_op, inputs, True, num_buckets, name, hash_key=hash_key or HASH_KEY)


def sparse_feature_cross(
    inputs: Any,
    hashed_output: bool = False,
    num_buckets: int = 0,
    name: str | None = None,
    hash_key: int | None = None,
) -> SparseTensor:
    """`sparse_cross` and `sparse_cross_hashed` as tf.contrib.layers had them.

    Args:
        inputs: a list of SparseTensors and Tensors [rows, features], of integers or strings.
        hashed_output: whether to give hashes rather than strings such as `a_X_b`.
        num_buckets: hashes are taken modulo this, unless it is 0.
        name: a name for the operation.
        hash_key: what the hash starts from; without one, hashes are combined in an older way.

    Returns:
        A SparseTensor of strings or int64 [rows, combinations].

    Raises:
        TypeError: `inputs` is no list, or holds something else.
    """
    if hash_key:
        op = sparse_feature_cross_v2_op
        return _cross(op, inputs, hashed_output, num_buckets, name, hash_key=hash_key)
    return _cross(sparse_feature_cross_op, inputs, hashed_output, num_buckets, name)


def _cross(
    op: Callable[..., Any],
    inputs: Any,
    hashed: bool,
    num_buckets: int,
    name: str | None,
    **key: int,
) -> SparseTensor:
    if not isinstance(inputs, list):
        raise TypeError("Inputs must be a list")
    if not all(isinstance(i, (SparseTensor, Tensor)) for i in inputs):
        raise TypeError("All inputs must be SparseTensors")
    sparse = [i for i in inputs if isinstance(i, SparseTensor)]
    dense = [_column(i) for i in inputs if not isinstance(i, SparseTensor)]
    values = [_column(i.values) for i in sparse]
    numbers = any(v.dtype.base_dtype is not dtypes.string for v in (*values, *dense))
    parts = op(
        [i.indices for i in sparse], values, [i.dense_shape for i in sparse], dense,
        hashed_output=hashed, num_buckets=num_buckets, **key,
        out_type=dtypes.int64 if hashed else dtypes.string,
        internal_type=dtypes.int64 if numbers else dtypes.string, name=name,
    )  # fmt: skip
    return SparseTensor(*parts)


def _column(values: Tensor) -> Tensor:
    if values.dtype.base_dtype is dtypes.string:
        return values
    return cast(values, dtypes.int64)  # type: ignore[no-any-return]
