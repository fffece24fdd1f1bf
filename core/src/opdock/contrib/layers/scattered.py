"""Embeddings whose elements lie scattered in one vector, where hashes of the values say."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.graph.variables.partitioned import parts_of
from opdock.ops.arithmetic import multiply
from opdock.ops.array import expand_dims, reshape, shape
from opdock.ops.cast import cast
from opdock.ops.check import Assert
from opdock.ops.compare import equal
from opdock.ops.composed import embedding
from opdock.ops.composed.sparse import sparse_fill_empty_rows, sparse_tensor_to_dense
from opdock.ops.fill import range as range_
from opdock.ops.gather import gather
from opdock.ops.joining import concat
from opdock.ops.reduce import reduce_all
from opdock.ops.sets import unique
from opdock.ops.sparse_cross import sparse_feature_cross
from opdock.ops.sparse_segment import (
    sparse_segment_mean,
    sparse_segment_sqrt_n,
    sparse_segment_sum,
)
from opdock.ops.tiling import tile
from opdock.ops.unsorted_segment import unsorted_segment_sum
from opdock.shapes import dimension_value

__all__ = [
    "embedding_lookup_sparse_with_distributed_aggregation", "scattered_embedding_lookup",
    "scattered_embedding_lookup_sparse",
]  # fmt: skip

# TF's values for lines without any: which they are decides which parameters such a line reads.
_EMPTY_TEXT = "6ZxWzWOHxZ"
_EMPTY_NUMBER = 1288896567
_COMBINERS = {
    "sum": sparse_segment_sum, "mean": sparse_segment_mean, "sqrtn": sparse_segment_sqrt_n,
}  # fmt: skip


def scattered_embedding_lookup(
    params: Any, values: Any, dimension: int, name: str | None = None, hash_key: int | None = None
) -> Tensor:
    """Embeddings of values: element d of the one of v is `params[hash(d, v)]`.

    Args:
        params: a vector, or a list of vectors among which its elements are divided.
        values: a tensor of integers or strings.
        dimension: the length of an embedding.
        name: a prefix for the names of the operations.
        hash_key: what hashes start from; None is TF's older way to combine them.

    Returns:
        A tensor of shape `values.shape + [dimension]`.

    Raises:
        ValueError: there is no dimension, or the vectors do not divide evenly.
    """
    if dimension is None:
        raise ValueError("You must specify dimension.")
    return sampled_scattered_embedding_lookup(params, values, dimension, None, hash_key, name)


def sampled_scattered_embedding_lookup(
    params: Any,
    values: Any,
    dimension: Any = None,
    sampled_candidates: Any = None,
    hash_key: int | None = None,
    name: str | None = None,
) -> Tensor:
    """`scattered_embedding_lookup` of some elements only, which may differ by value.

    Args:
        params: a vector, or a list of vectors among which its elements are divided.
        values: a tensor of integers or strings.
        dimension: the length of an embedding, without `sampled_candidates`.
        sampled_candidates: numbers of elements, of shape `values.shape + [n]`.
        hash_key: what hashes start from.
        name: a prefix for the names of the operations.

    Raises:
        ValueError: neither a dimension nor candidates are given, or the vectors do not divide
            evenly.
        InvalidArgumentError: when it runs, the candidates have not the shape of the values.
    """
    parts = parts_of(params)
    with name_scope(name, "scattered_embedding_lookup", [*parts, dimension, values]):
        values = convert_to_tensor(values)
        outer = shape(values)
        values = reshape(values, [-1, 1])
        if sampled_candidates is None:
            candidates = _every(dimension, values)
        else:
            candidates, dimension = _checked_candidates(sampled_candidates, outer)
        ids = sparse_feature_cross(
            [candidates, values],
            hashed_output=True,
            num_buckets=_size(parts),
            hash_key=hash_key,
        )
        found = embedding.embedding_lookup(
            parts, sparse_tensor_to_dense(ids), partition_strategy="div"
        )
        return reshape(found, concat([outer, [dimension]], 0))


def _every(dimension: Any, values: Tensor) -> Tensor:
    if dimension is None:
        raise ValueError("You must specify either dimension or sampled_candidates.")
    if dimension <= 0:
        raise ValueError(f"Dimension must be >0. Given is {dimension}")
    return tile(expand_dims(range_(0, dimension), 0), shape(values))


def _checked_candidates(sampled: Any, outer: Tensor) -> tuple[Tensor, Tensor]:
    sampled = convert_to_tensor(sampled)
    found = shape(sampled)
    count = found[-1]
    same = reduce_all(equal(found, concat([outer, reshape(count, [1])], 0)))
    told = [
        "The shape of sampled_candidates: ", found, " does not match the shape of values: ", outer,
    ]  # fmt: skip
    with control_dependencies([Assert(same, told)]):
        return reshape(sampled, [-1, count]), count


def _size(parts: list[Any]) -> int:
    """The number of parameters; each part has to have its even share of them."""
    sizes: list[int] = []
    for part in parts:
        part.shape.assert_has_rank(1)
        part.shape.assert_is_fully_defined()
        sizes.append(dimension_value(part.shape[0]) or 0)
    for i, size in enumerate(sizes):
        expected = (sum(sizes) - i - 1) // len(sizes) + 1
        if size != expected:
            raise ValueError(f"Tensor {i} in params has size {size}, expected {expected}.")
    return sum(sizes)


def scattered_embedding_lookup_sparse(
    params: Any,
    sparse_values: SparseTensor,
    dimension: int,
    combiner: str | None = None,
    default_value: Any = None,
    name: str | None = None,
    hash_key: int | None = None,
) -> Tensor:
    """`scattered_embedding_lookup` of the values of each line of a SparseTensor, combined.

    Args:
        params: a vector, or a list of vectors among which its elements are divided.
        sparse_values: a SparseTensor of integers or strings [lines, values].
        dimension: the length of an embedding.
        combiner: "sum", "mean" or "sqrtn"; "mean" by default.
        default_value: the value of a line without any.
        name: a name for the operations.
        hash_key: what hashes start from.

    Returns:
        A tensor [lines, dimension].

    Raises:
        TypeError: `sparse_values` is no SparseTensor.
        ValueError: the combiner is unknown.
    """
    parts = parts_of(params)
    if not isinstance(sparse_values, SparseTensor):
        raise TypeError("sparse_values must be SparseTensor")
    combine = _COMBINERS.get(combiner or "mean")
    if combine is None:
        raise ValueError("Combiner must be one of 'mean', 'sqrtn' or 'sum'.")
    with name_scope(name, "scattered_embedding_lookup_sparse", [*parts, sparse_values]) as scope:
        if default_value is None:
            text = sparse_values.dtype.base_dtype is dtypes.string
            default_value = _EMPTY_TEXT if text else _EMPTY_NUMBER
        filled, _ = sparse_fill_empty_rows(sparse_values, default_value)
        lines = cast(filled.indices[:, 0], dtypes.int32)
        values, which = unique(filled.values)
        found = scattered_embedding_lookup(parts, values, dimension, hash_key=hash_key)
        return combine(found, which, lines, name=scope)


def sampled_scattered_embedding_lookup_sparse(
    params: Any,
    sp_values: SparseTensor,
    dimension: Any = None,
    sampled_candidates: Any = None,
    hash_key: int | None = None,
    with_sign_hash: bool = False,
    name: str | None = None,
) -> Tensor:
    """Sums of `sampled_scattered_embedding_lookup` over the values of each line.

    Args:
        params: a vector, or a list of vectors among which its elements are divided.
        sp_values: a SparseTensor of integers or strings [lines, values].
        dimension: the length of an embedding, without `sampled_candidates`.
        sampled_candidates: numbers of elements by line, [lines, n].
        hash_key: what hashes start from.
        with_sign_hash: whether another hash gives each element a sign.
        name: a name for the operations.

    Raises:
        TypeError: `sp_values` is no SparseTensor.
    """
    if not isinstance(sp_values, SparseTensor):
        raise TypeError("sp_values must be SparseTensor")
    given = [sp_values, params, dimension, sampled_candidates]
    with name_scope(name, "sampled_scattered_embedding_lookup_sparse", given) as scope:
        lines = sp_values.indices[:, 0]
        if sampled_candidates is not None:
            sampled_candidates = gather(sampled_candidates, lines)

        def looked_up(where: Any, said: str) -> Tensor:
            return sampled_scattered_embedding_lookup(
                where, sp_values.values, dimension, sampled_candidates, hash_key, said
            )

        found = looked_up(params, "values_lookup")
        if with_sign_hash:
            signs = looked_up(constant([-1.0, 1.0]), "signs_lookup")
            found = multiply(signs, found, name="signs_hash")
        count = shape(sp_values)[0]
        return unsorted_segment_sum(found, cast(lines, dtypes.int32), count, name=scope)


def embedding_lookup_sparse_with_distributed_aggregation(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: float | None = None,
) -> Tensor:
    """`tf.nn.embedding_lookup_sparse`, whose combiner is "mean" by default.

    TF added the rows up where each part of the table lies, to send fewer of them; what comes out
    is the same.
    """
    return embedding.embedding_lookup_sparse(
        params, sp_ids, sp_weights, partition_strategy, name, combiner or "mean", max_norm
    )
