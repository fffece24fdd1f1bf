"""Columns of ids as vectors: one-hot, or embeddings that are learnt, shared or scattered."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from opdock import dtypes
from opdock.contrib.layers.common import model_variable
from opdock.contrib.layers.embedding import safe_embedding_lookup_sparse
from opdock.contrib.layers.feature_column.base import (
    DeepLookup,
    FeatureColumn,
    Get,
    SavedColumn,
    VectorColumn,
    check_saved,
    inner_flatten,
)
from opdock.contrib.layers.feature_column.sparse import SparseColumn, WeightedSparseColumn
from opdock.contrib.layers.scattered import scattered_embedding_lookup_sparse
from opdock.feature_column import base
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.initializers import truncated_normal_initializer
from opdock.graph.variables.partitioned import parts_of
from opdock.ops.array import reshape, shape
from opdock.ops.composed.example_features import VarLenFeature
from opdock.ops.composed.sparse import sparse_slice, sparse_tensor_to_dense
from opdock.ops.composed.sparse_values import sparse_merge
from opdock.ops.fill import zeros_like
from opdock.ops.joining import concat
from opdock.ops.reduce import reduce_sum
from opdock.ops.select import one_hot
from opdock.shapes import TensorShape
from opdock.train.checkpoint_initializers import init_from_checkpoint

MakeVariable = Callable[[str, list[int], Any, bool], Any]


class _OfIds(VectorColumn):
    """A column of what another column's ids stand for."""

    sparse_id_column: Any

    @property
    def length(self) -> int:
        """The number of ids."""
        size: int = self.sparse_id_column.length
        return size

    @property
    def config(self) -> dict[str, Any]:
        spec: dict[str, Any] = self.sparse_id_column.config
        return spec

    def transformed(self, get: Get) -> Any:
        return get(self.sparse_id_column)


class _OneHotFields(NamedTuple):
    sparse_id_column: Any


class OneHotColumn(_OfIds, _OneHotFields):
    """How often each id is there; see `one_hot_column`."""

    @property
    def name(self) -> str:
        return f"{self.sparse_id_column.name}_one_hot"

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([self.length])

    def for_network(self, made: Any, output_rank: int) -> Tensor:
        ids = inner_flatten(self.sparse_id_column.id_tensor(made), output_rank)
        weights = self.sparse_id_column.weight_tensor(made)
        if weights is None:
            dense = sparse_tensor_to_dense(ids, default_value=-1)
            hot = one_hot(dense, depth=self.length, on_value=1.0, off_value=0.0)
            return reduce_sum(hot, axis=[output_rank - 1])
        merged = sparse_merge(sp_ids=ids, sp_values=weights, vocab_size=self.length)
        # Ids beyond the last one are left out by this.
        cut = sparse_slice(merged, zeros_like(merged.dense_shape), merged.dense_shape)
        dense = sparse_tensor_to_dense(cut)
        return reshape(dense, concat([shape(dense)[:-1], [self.length]], axis=0))


def one_hot_column(sparse_id_column: Any) -> OneHotColumn:
    """A column of vectors that say how often each id of another is there.

    Args:
        sparse_id_column: a column of ids; its weights count instead, if it has some.
    """
    return OneHotColumn(sparse_id_column)


class _Looked(VectorColumn):
    """A column that is looked up in a variable."""

    dimension: int

    @property
    def key(self) -> str:
        return self._key_without("initializer")

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([self.dimension])

    def get_dense_tensor(
        self,
        transformation_cache: base.FeatureTransformationCache,
        state_manager: base.StateManager | None,
    ) -> Tensor:
        def make(name: str, size: list[int], initializer: Any, trainable: bool) -> Any:
            if state_manager is None:
                return model_variable(name, size, initializer, trainable)
            return state_manager.create_variable(
                self, name, size, trainable=trainable, use_resource=False, initializer=initializer
            )

        made = transformation_cache.get(self, state_manager)
        return looked_up(self, self._deep_embedding_lookup_arguments(made), make)


class _EmbeddingFields(NamedTuple):
    sparse_id_column: Any
    dimension: int
    combiner: str
    initializer: Any
    ckpt_to_load_from: str | None
    tensor_name_in_ckpt: str | None
    shared_embedding_name: str | None
    shared_vocab_size: int | None
    max_norm: float | None
    trainable: bool


class EmbeddingColumn(SavedColumn, _Looked, _OfIds, _EmbeddingFields):
    """Embeddings of ids; see `embedding_column` and `shared_embedding_columns`."""

    @property
    def name(self) -> str:
        kind = "embedding" if self.shared_embedding_name is None else "shared_embedding"
        return f"{self.sparse_id_column.name}_{kind}"

    @property
    def length(self) -> int:
        """The number of ids."""
        return self.shared_vocab_size or super().length

    def _deep_embedding_lookup_arguments(self, input_tensor: Any) -> DeepLookup:
        return DeepLookup(
            input_tensor=self.sparse_id_column.id_tensor(input_tensor),
            weight_tensor=self.sparse_id_column.weight_tensor(input_tensor),
            vocab_size=self.length, initializer=self.initializer, combiner=self.combiner,
            dimension=self.dimension, shared_embedding_name=self.shared_embedding_name,
            hash_key=None, max_norm=self.max_norm, trainable=self.trainable,
        )  # fmt: skip

    def _wide_embedding_lookup_arguments(self, input_tensor: Any) -> Any:
        raise ValueError(
            f"Column {self} is not supported in linear models. Please use sparse_column."
        )


class _ScatteredFields(NamedTuple):
    column_name: str
    size: int
    dimension: int
    hash_key: int | None
    combiner: str
    initializer: Any


class ScatteredEmbeddingColumn(_Looked, _ScatteredFields):
    """Embeddings that share one vector; see `scattered_embedding_column`."""

    @property
    def name(self) -> str:
        return f"{self.column_name}_scattered_embedding"

    @property
    def config(self) -> dict[str, Any]:
        return {self.column_name: VarLenFeature(dtypes.string)}

    def transformed(self, get: Get) -> Any:
        return get(self.column_name)

    def _deep_embedding_lookup_arguments(self, input_tensor: Any) -> DeepLookup:
        return DeepLookup(
            input_tensor=input_tensor, weight_tensor=None, vocab_size=self.size,
            initializer=self.initializer, combiner=self.combiner, dimension=self.dimension,
            shared_embedding_name=None, hash_key=self.hash_key, max_norm=None, trainable=True,
        )  # fmt: skip


# ---------------------------------------------------------------- the public functions
def embedding_column(
    sparse_id_column: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> EmbeddingColumn:
    """A column of embeddings of the ids of another.

    Args:
        sparse_id_column: a column of ids, with weights or without.
        dimension: the length of an embedding.
        combiner: how the embeddings of one example are joined: "sum", "mean" or "sqrtn".
        initializer: makes the variable; normal with a deviation of 1 / sqrt(ids) by default.
        ckpt_to_load_from: a checkpoint from which the variable is taken.
        tensor_name_in_ckpt: its name there.
        max_norm: embeddings with a larger l2-norm are scaled down to it.
        trainable: whether optimizers update the variable.

    Raises:
        ValueError: the initializer is no function, or half of what a checkpoint needs.
    """
    return _embedding(
        sparse_id_column, dimension, combiner, initializer, ckpt_to_load_from,
        tensor_name_in_ckpt, None, None, max_norm, trainable,
    )  # fmt: skip


def _embedding(
    column: Any, dimension: int, combiner: str, initializer: Any, *others: Any
) -> EmbeddingColumn:
    if initializer is not None and not callable(initializer):
        raise ValueError(
            f"initializer must be callable if specified. Embedding of column_name: {column.name}"
        )
    check_saved(others[0], others[1])
    if initializer is None:
        deviation = 1 / math.sqrt(column.length)
        initializer = truncated_normal_initializer(mean=0.0, stddev=deviation)
    return EmbeddingColumn(column, dimension, combiner, initializer, *others)


def shared_embedding_columns(
    sparse_id_columns: Any,
    dimension: int,
    combiner: str = "mean",
    shared_embedding_name: str | None = None,
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> Sequence[EmbeddingColumn]:
    """Columns of embeddings that are looked up in one variable.

    Args:
        sparse_id_columns: a list or tuple of columns with the same ids.
        dimension: the length of an embedding.
        combiner: how the embeddings of one example are joined: "sum", "mean" or "sqrtn".
        shared_embedding_name: the variable's name; made of the columns' names by default.
        initializer: makes the variable; normal with a deviation of 1 / sqrt(ids) by default.
        ckpt_to_load_from: a checkpoint from which the variable is taken.
        tensor_name_in_ckpt: its name there.
        max_norm: embeddings with a larger l2-norm are scaled down to it.
        trainable: whether optimizers update the variable.

    Raises:
        TypeError: no list of columns of ids.
        ValueError: there is no column, or they have other ids.
    """
    columns = _checked_columns(sparse_id_columns)
    size = None
    if len(columns) > 1:
        shared_embedding_name = shared_embedding_name or _shared_name(columns)
        size = columns[0].length
    made = [
        _embedding(
            column, dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt,
            shared_embedding_name, size, max_norm, trainable,
        )
        for column in columns
    ]  # fmt: skip
    return made if len(made) == 1 else tuple(made)


def _checked_columns(columns: Any) -> Sequence[Any]:
    if not isinstance(columns, Sequence) or isinstance(columns, str):
        raise TypeError(
            "sparse_id_columns must be a non-string sequence (ex: list or tuple) "
            f"instead of type {type(columns)}."
        )
    if not columns:
        raise ValueError("The input sparse_id_columns should have at least one element.")
    for column in columns:
        if not isinstance(column, (SparseColumn, WeightedSparseColumn)):
            raise TypeError(
                "Elements of sparse_id_columns must be _SparseColumn or _WeightedSparseColumn, "
                f"but {column} is not."
            )
    first = columns[0]
    for column in columns[1:]:
        weighted = isinstance(first, WeightedSparseColumn)
        alike = first.is_compatible(column) if weighted else column.is_compatible(first)
        if not alike:
            raise ValueError("The input sparse id columns are not compatible.")
    return columns


def _shared_name(columns: Sequence[Any]) -> str:
    plain = [c for c in columns if isinstance(c, SparseColumn)]
    weighted = [c for c in columns if not isinstance(c, SparseColumn)]
    names = [c.name for c in sorted(plain, key=tuple)]
    names += sorted(c.name for c in weighted)
    more = f"_plus_{len(names) - 3}_others" if len(names) > 3 else ""
    return f"{'_'.join(names[:3])}{more}_shared_embedding"


def scattered_embedding_column(
    column_name: str,
    size: int,
    dimension: int,
    hash_key: int | None,
    combiner: str = "mean",
    initializer: Any = None,
) -> ScatteredEmbeddingColumn:
    """A column of embeddings whose elements are where hashes say, in one vector for all values.

    Args:
        column_name: the key of a feature of strings.
        size: the length of the vector.
        dimension: the length of an embedding.
        hash_key: what hashes start from.
        combiner: how the embeddings of one example are joined: "sum", "mean" or "sqrtn".
        initializer: makes the vector; normal with a deviation of 0.1 by default.

    Raises:
        ValueError: a length is not positive, the combiner is unknown, or the initializer is no
            function.
    """
    if dimension < 1 or size < 1:
        raise ValueError(
            "Dimension and size must be greater than 0. "
            f"dimension: {dimension}, size: {size}, column_name: {column_name}"
        )
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError(
            "Combiner must be one of 'mean', 'sqrtn' or 'sum'. "
            f"combiner: {combiner}, column_name: {column_name}"
        )
    if initializer is not None and not callable(initializer):
        raise ValueError(f"initializer must be callable if specified. column_name: {column_name}")
    initializer = initializer or truncated_normal_initializer(mean=0.0, stddev=0.1)
    return ScatteredEmbeddingColumn(column_name, size, dimension, hash_key, combiner, initializer)


# ---------------------------------------------------------------- the look-up
def looked_up(
    column: FeatureColumn, args: DeepLookup, make: MakeVariable, output_rank: int = 2
) -> Tensor:
    """The embeddings of a column, in a variable of the scope or in the one that it shares.

    Args:
        column: the column.
        args: what it looks up.
        make: makes a variable of a name, a shape, an initializer, and whether it is trained.
        output_rank: the rank of the result.

    Raises:
        ValueError: the shared variable has another shape.
    """
    ids = inner_flatten(args.input_tensor, output_rank)
    if args.hash_key:
        vector = make("weights", [args.vocab_size], args.initializer, args.trainable)
        return scattered_embedding_lookup_sparse(
            vector, ids, args.dimension, combiner=args.combiner, name="lookup",
            hash_key=args.hash_key,
        )  # fmt: skip
    weights = None
    if args.weight_tensor is not None:
        weights = inner_flatten(args.weight_tensor, output_rank)
    table = parts_of(_table(args, make))
    restore(column._checkpoint_path(), table)
    return safe_embedding_lookup_sparse(
        table, ids, weights, combiner=args.combiner, name=f"{column.name}weights",
        max_norm=args.max_norm,
    )  # fmt: skip


def _table(args: DeepLookup, make: MakeVariable) -> Any:
    size = [args.vocab_size, args.dimension]
    name = args.shared_embedding_name
    if name is None:
        return make("weights", size, args.initializer, args.trainable)
    key = f"SHARED_EMBEDDING_COLLECTION_{name.upper()}"
    shared = get_default_graph().get_collection_ref(key)
    if len(shared) > 1:
        raise ValueError(f"Collection {key} can only contain one (partitioned) variable.")
    if not shared:
        shared.append(make(name, size, args.initializer, args.trainable))
    elif shared[0].get_shape() != size:
        raise ValueError(
            f"The embedding variable with name {name} already exists, but its shape does not "
            f"match required embedding shape here ({shared[0].get_shape()}, not {size}). Please "
            "make sure to use different shared_embedding_name for different shared embeddings."
        )
    return shared[0]


def restore(path: tuple[str, str] | None, variable: list[Any]) -> None:
    """Has a variable, given by its parts, start from a tensor of a checkpoint."""
    if path is not None:
        checkpoint, name = path
        whole = variable[0] if len(variable) == 1 else variable
        init_from_checkpoint(checkpoint, {name: whole})
