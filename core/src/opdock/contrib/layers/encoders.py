"""Encoders of text: bags of words."""

from __future__ import annotations

from typing import Any

from opdock.contrib.layers.common import model_variable
from opdock.contrib.layers.embedding import safe_embedding_lookup_sparse
from opdock.contrib.layers.sparse_ops import dense_to_sparse_tensor
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.variable_scope import variable_scope
from opdock.ops.composed.embedding import embedding_lookup
from opdock.ops.reduce import reduce_mean

__all__ = ["bow_encoder"]


def bow_encoder(
    ids: Any,
    vocab_size: int,
    embed_dim: int,
    sparse_lookup: bool = True,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Tensor:
    """The mean of the embeddings of each document's words.

    Args:
        ids: a matrix of ids [documents, words], or a SparseTensor of them.
        vocab_size: the number of ids.
        embed_dim: the length of an embedding.
        sparse_lookup: whether 0 in a matrix is no word; then a document without words has the
            embedding of the id 0.
        initializer: makes the variable `embeddings`.
        regularizer: a function from the variable to a loss.
        trainable: whether optimizers update the variable.
        scope: the variable scope; "bow_encoder" by default.
        reuse: whether to share the variable of `scope`.

    Returns:
        A matrix [documents, embed_dim].

    Raises:
        ValueError: a size is missing.
        TypeError: `ids` is sparse, and `sparse_lookup` is False.
    """
    if not vocab_size or not embed_dim:
        raise ValueError("Must specify vocab size and embedding dimension")
    with variable_scope(scope, "bow_encoder", [ids], reuse=reuse):
        embeddings = model_variable(
            "embeddings", [vocab_size, embed_dim], initializer, trainable, regularizer=regularizer
        )
        if sparse_lookup:
            sparse = ids if isinstance(ids, SparseTensor) else dense_to_sparse_tensor(ids)
            return safe_embedding_lookup_sparse([embeddings], sparse, combiner="mean", default_id=0)
        if isinstance(ids, SparseTensor):
            raise TypeError(f"ids are expected to be dense Tensor, got: {ids}")
        return reduce_mean(embedding_lookup(embeddings, ids), axis=1)
