"""Dense columns made of ids: embeddings, embeddings that columns share, and indicators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from opdock import dtypes
from opdock.feature_column.base import (
    CategoricalColumn,
    DenseColumn,
    FeatureTransformationCache,
    IdsAndWeights,
    SequenceAndLengths,
    SequenceDenseColumn,
    StateManager,
)
from opdock.feature_column.categorical import SequenceCategoricalColumn
from opdock.graph.nodes.collections import add_to_collection, get_collection
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.variables.partitioned import PartitionedVariable
from opdock.ops.array import shape
from opdock.ops.cast import cast
from opdock.ops.composed.embedding import safe_embedding_lookup_sparse
from opdock.ops.composed.sparse import sparse_slice, sparse_tensor_to_dense
from opdock.ops.composed.sparse_values import sparse_merge
from opdock.ops.elementary import ceil
from opdock.ops.fill import zeros
from opdock.ops.joining import concat
from opdock.ops.reduce import reduce_sum
from opdock.ops.scatter import scatter_nd
from opdock.ops.segment import segment_max
from opdock.ops.select import one_hot
from opdock.shapes import TensorShape


class OfIds(DenseColumn, SequenceDenseColumn):
    """A dense column over a categorical one, which may be a sequence."""

    categorical_column: CategoricalColumn
    _kind: str  # how messages call it

    @property
    def parents(self) -> list[Any]:
        return [self.categorical_column]

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.categorical_column.parse_example_spec

    def get_dense_tensor(
        self, transformation_cache: FeatureTransformationCache, state_manager: StateManager | None
    ) -> Tensor:
        if isinstance(self.categorical_column, SequenceCategoricalColumn):
            raise ValueError(
                f"In {self._kind}: {self.name}. categorical_column must not be of type "
                "SequenceCategoricalColumn. Suggested fix A: If you wish to use DenseFeatures, "
                "use a non-sequence categorical_column_with_*. Suggested fix B: If you wish to "
                "create sequence input, use SequenceFeatures instead of DenseFeatures. "
                f"Given (type {type(self.categorical_column)}): {self.categorical_column}"
            )
        return self._dense(transformation_cache, state_manager)

    def get_sequence_dense_tensor(
        self, transformation_cache: FeatureTransformationCache, state_manager: StateManager | None
    ) -> SequenceAndLengths:
        if not isinstance(self.categorical_column, SequenceCategoricalColumn):
            raise ValueError(
                f"In {self._kind}: {self.name}. categorical_column must be of type "
                "SequenceCategoricalColumn to use SequenceFeatures. Suggested fix: Use one of "
                "sequence_categorical_column_with_*. "
                f"Given (type {type(self.categorical_column)}): {self.categorical_column}"
            )
        dense = self._dense(transformation_cache, state_manager)
        ids = self.categorical_column.get_sparse_tensors(transformation_cache, state_manager)
        return SequenceAndLengths(dense, sequence_lengths(ids.id_tensor))

    def _dense(self, cache: FeatureTransformationCache, state: StateManager | None) -> Tensor:
        raise NotImplementedError


class _EmbeddingFields(NamedTuple):
    categorical_column: CategoricalColumn
    dimension: int
    combiner: str
    initializer: Callable[..., Any]
    ckpt_to_load_from: Any
    tensor_name_in_ckpt: str | None
    max_norm: float | None
    trainable: bool


class EmbeddingColumn(OfIds, _EmbeddingFields):
    """Rows of a trained table; see `embedding_column`."""

    _kind = "embedding_column"

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_embedding"

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([self.dimension])

    def transform_feature(
        self, transformation_cache: FeatureTransformationCache, state_manager: StateManager | None
    ) -> Any:
        return transformation_cache.get(self.categorical_column, state_manager)

    def create_state(self, state_manager: StateManager) -> None:
        state_manager.create_variable(
            self,
            name="embedding_weights",
            shape=(self.categorical_column.num_buckets, self.dimension),
            dtype=dtypes.float32,
            trainable=self.trainable,
            use_resource=True,
            initializer=self.initializer,
        )

    def _dense(self, cache: FeatureTransformationCache, state: StateManager | None) -> Tensor:
        ids = self.categorical_column.get_sparse_tensors(cache, state)
        assert state is not None, "only a layer knows the table"
        weights = state.get_variable(self, name="embedding_weights")
        restore(weights, self.ckpt_to_load_from, self.tensor_name_in_ckpt)
        return combined(self, ids, weights)


class _SharedFields(NamedTuple):
    categorical_column: CategoricalColumn
    dimension: int
    combiner: str
    initializer: Callable[..., Any]
    shared_embedding_collection_name: str
    ckpt_to_load_from: Any
    tensor_name_in_ckpt: str | None
    max_norm: float | None
    trainable: bool


class SharedEmbeddingColumn(OfIds, _SharedFields):
    """Rows of a table that several columns share; see `shared_embedding_columns`.

    The table lies in the graph's collection `shared_embedding_collection_name`.
    """

    _kind = "embedding_column"

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_shared_embedding"

    @property
    def _var_scope_name(self) -> str:
        return self.shared_embedding_collection_name

    @property
    def _is_v2_column(self) -> bool:
        return False

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([self.dimension])

    def transform_feature(
        self, transformation_cache: FeatureTransformationCache, state_manager: StateManager | None
    ) -> Any:
        return transformation_cache.get(self.categorical_column, state_manager)

    def create_state(self, state_manager: StateManager) -> None:
        wanted = (self.categorical_column.num_buckets, self.dimension)
        collection = self.shared_embedding_collection_name
        tables = get_collection(collection)
        if len(tables) > 1:
            raise ValueError(
                f"Collection {tables} can only contain one variable. Suggested fix A: Choose a "
                "unique name for this collection. Suggested fix B: Do not add any variables to "
                "this collection. The feature_column library already adds a variable under the "
                "hood."
            )
        if not tables:
            table = state_manager.create_variable(
                self,
                name="embedding_weights",
                shape=wanted,
                dtype=dtypes.float32,
                trainable=self.trainable,
                use_resource=True,
                initializer=self.initializer,
            )
            add_to_collection(collection, table)
        elif tables[0].get_shape() != TensorShape(wanted):
            raise ValueError(
                f"Shared embedding collection {collection} contains variable {tables[0].name} of "
                f"shape {tables[0].get_shape()}. Expected shape is {wanted}. Suggested fix A: "
                "Choose a unique name for this collection. Suggested fix B: Do not add any "
                "variables to this collection. The feature_column library already adds a "
                "variable under the hood."
            )

    def _dense(self, cache: FeatureTransformationCache, state: StateManager | None) -> Tensor:
        with name_scope(None, default_name=self.name):
            ids = self.categorical_column.get_sparse_tensors(cache, state)
            (weights,) = get_collection(self.shared_embedding_collection_name)
            restore(weights, self.ckpt_to_load_from, self.tensor_name_in_ckpt)
            return combined(self, ids, weights)


class _IndicatorFields(NamedTuple):
    categorical_column: CategoricalColumn


class IndicatorColumn(OfIds, _IndicatorFields):
    """How often each id occurs; see `indicator_column`."""

    _kind = "indicator_column"

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_indicator"

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([1, self.categorical_column.num_buckets])

    def transform_feature(
        self, transformation_cache: FeatureTransformationCache, state_manager: StateManager | None
    ) -> Tensor:
        ids, weights = self.categorical_column.get_sparse_tensors(
            transformation_cache, state_manager
        )
        buckets = self.categorical_column.num_buckets
        if weights is not None:
            weighted = sparse_merge(sp_ids=ids, sp_values=weights, vocab_size=buckets)
            # Ids below 0 are no entries.
            weighted = sparse_slice(weighted, [0, 0], weighted.dense_shape)
            return scatter_nd(weighted.indices, weighted.values, weighted.dense_shape)
        dense = sparse_tensor_to_dense(ids, default_value=-1)
        hot = one_hot(dense, depth=buckets, on_value=1.0, off_value=0.0)
        return reduce_sum(hot, axis=[-2])

    def _dense(self, cache: FeatureTransformationCache, state: StateManager | None) -> Tensor:
        counts: Tensor = cache.get(self, state)
        return counts


def sequence_lengths(entries: Any, elements: int = 1) -> Tensor:
    """The number of steps of each example, int64.

    Args:
        entries: a SparseTensor of shape [batch, length, ...].
        elements: how many entries of its second dimension make a step.
    """
    with name_scope(None, "sequence_length") as scope:
        lines, places = entries.indices[:, 0], entries.indices[:, 1]
        counts = segment_max(places + 1, segment_ids=lines)
        known = cast(ceil(counts / elements), dtypes.int64)
        # The last examples may have no entries at all.
        missing = shape(entries)[:1] - cast(shape(known)[:1], shape(entries).dtype)
        lengths = concat([known, zeros(missing, dtype=dtypes.int64)], axis=0, name=scope)
        # One for each example, where their number is known: loops over masks of it ask.
        lengths.set_shape(entries.get_shape()[:1])
        return lengths


def combined(column: Any, ids: IdsAndWeights, weights: Any) -> Tensor:
    """What a column makes of the rows of each example."""
    return safe_embedding_lookup_sparse(
        embedding_weights=weights,
        sparse_ids=ids.id_tensor,
        sparse_weights=ids.weight_tensor,
        combiner=column.combiner,
        name=f"{column.name}_weights",
        max_norm=column.max_norm,
    )


def restore(weights: Any, checkpoint: Any, tensor: Any) -> None:
    """Makes a checkpoint's tensor the initial value of a table."""
    if checkpoint is None:
        return
    from opdock.train.checkpoint_initializers import init_from_checkpoint

    target = list(weights) if isinstance(weights, PartitionedVariable) else weights
    init_from_checkpoint(checkpoint, {tensor: target})
