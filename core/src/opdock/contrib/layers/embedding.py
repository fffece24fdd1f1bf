"""Embeddings of sequences and sparse ids, and sparse forms of dense tensors."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.contrib.layers.common import finish, variable_getter
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.variables.variable_scope import get_variable, variable_scope
from opdock.ops.array import reshape, shape
from opdock.ops.compare import not_equal
from opdock.ops.composed import embedding
from opdock.ops.composed.check_static import assert_same_float_dtype
from opdock.ops.gather import gather, gather_nd
from opdock.ops.joining import concat
from opdock.ops.select import where
from opdock.ops.sets import unique

__all__ = [
    "dense_to_sparse", "embed_sequence", "embedding_lookup_unique", "safe_embedding_lookup_sparse",
]  # fmt: skip


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str | None = None,
    default_id: int | None = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: float | None = None,
) -> Tensor:
    """`tf.nn.safe_embedding_lookup_sparse`, whose combiner is "mean" by default.

    Args:
        embedding_weights: the table, or a list of tensors among which its rows are divided.
        sparse_ids: a SparseTensor of row numbers; its last dimension is combined.
        sparse_weights: a SparseTensor of weights with the same entries, or None for 1.
        combiner: "sum", "mean" or "sqrtn".
        default_id: the row for lines without entries; zeros by default.
        name: a name for the operations.
        partition_strategy: "div" or "mod".
        max_norm: rows with a larger l2-norm are scaled down before they are combined.

    Raises:
        ValueError: the table is missing, or types differ among its parts and the weights.
    """
    if embedding_weights is None:
        raise ValueError(f"Missing embedding_weights {embedding_weights}.")
    if isinstance(embedding_weights, list):
        assert_same_float_dtype([*embedding_weights, sparse_weights])
    return embedding.safe_embedding_lookup_sparse(
        embedding_weights, sparse_ids, sparse_weights, combiner or "mean", default_id, name,
        partition_strategy, max_norm,
    )  # fmt: skip


def embedding_lookup_unique(
    params: Any, ids: Any, partition_strategy: str = "mod", name: str | None = None
) -> Tensor:
    """`tf.nn.embedding_lookup`, in which each row is looked up once, however often it is named.

    Args:
        params: the table, or a list of tensors among which its rows are divided.
        ids: an integer tensor of row numbers.
        partition_strategy: "mod" or "div".
        name: a prefix for the names of the operations.

    Returns:
        A tensor of shape `ids.shape + params.shape[1:]`.
    """
    with name_scope(name, "EmbeddingLookupUnique", [ids]):
        ids = convert_to_tensor(ids)
        different, which = unique(reshape(ids, [-1]))
        rows = embedding.embedding_lookup(params, different, partition_strategy)
        out = reshape(gather(rows, which), concat([shape(ids), shape(rows)[1:]], 0))
        out.set_shape(ids.shape.concatenate(rows.shape[1:]))
        return out


def embed_sequence(
    ids: Any,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Tensor:
    """Rows of a variable `embeddings` for sequences of ids.

    Args:
        ids: an integer matrix [sequences, positions].
        vocab_size: the number of rows; it may be left out where the variable is reused.
        embed_dim: the length of a row, likewise.
        unique: whether each row is looked up once, however often it is named.
        initializer: makes the variable.
        regularizer: a function from the variable to a loss.
        trainable: whether optimizers update the variable.
        scope: the variable scope; "EmbedSequence" by default.
        reuse: whether to share the variable of `scope`.

    Raises:
        ValueError: a size is missing although the variable is made anew.
    """
    if not (reuse or (vocab_size and embed_dim)):
        raise ValueError("Must specify vocab size and embedding dimension when not reusing.")
    with variable_scope(
        scope, "EmbedSequence", [ids], reuse=reuse, custom_getter=variable_getter()
    ):
        sizes = [vocab_size, embed_dim] if vocab_size and embed_dim else None
        table = get_variable(
            "embeddings", shape=sizes, initializer=initializer, regularizer=regularizer,
            trainable=trainable,
        )  # fmt: skip
        if unique:
            return embedding_lookup_unique(table, ids)
        return embedding.embedding_lookup(table, ids)


def dense_to_sparse(
    tensor: Any, eos_token: Any = 0, outputs_collections: Any = None, scope: str | None = None
) -> SparseTensor:
    """The elements of a dense tensor that are not a given one.

    Args:
        tensor: a tensor.
        eos_token: the element that is left out.
        outputs_collections: collections for the result.
        scope: a prefix for the names of the operations.
    """
    with name_scope(scope, "dense_to_sparse", [tensor]) as sc:
        tensor = convert_to_tensor(tensor)
        left_out = convert_to_tensor(eos_token, tensor.dtype.base_dtype)
        cells = where(not_equal(tensor, left_out))
        found = SparseTensor(cells, gather_nd(tensor, cells), shape(tensor, out_type=dtypes.int64))
        return finish(found, None, outputs_collections, sc)
