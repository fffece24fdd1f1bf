"""Embedding columns over a table of their own, whichever layers use them: `shared_embeddings`.

Those of `shared_embedding_columns` leave the table to the layer or function that takes them first.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from opdock import dtypes
from opdock.feature_column.base import (
    CategoricalColumn,
    FeatureTransformationCache,
    StateManager,
)
from opdock.feature_column.embedding import OfIds, combined, restore
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.variables.variable_scope import get_variable
from opdock.shapes import TensorShape

__all__ = ["SharedColumn", "SharedTable"]


class SharedTable:
    """A trained table that several columns share, one in each graph.

    Args:
        dimension: the length of a row.
        initializer: of the rows.
        ckpt_to_load_from, tensor_name_in_ckpt: where the rows come from at first, if anywhere.
        num_buckets: the number of rows.
        trainable: whether optimizers change it.
        name: of the variable.
    """

    def __init__(
        self, dimension: int, initializer: Callable[..., Any], ckpt_to_load_from: Any,
        tensor_name_in_ckpt: str | None, num_buckets: int, trainable: bool, name: str,
    ) -> None:  # fmt: skip
        self.dimension = dimension
        self._initializer, self._trainable, self._name = initializer, trainable, name
        self._from, self._num_buckets = (ckpt_to_load_from, tensor_name_in_ckpt), num_buckets
        self._made: weakref.WeakKeyDictionary[Graph, Any] = weakref.WeakKeyDictionary()

    @property
    def embedding_weights(self) -> Any:
        """The variable in the default graph."""
        graph = get_default_graph()
        if graph not in self._made:
            made = get_variable(
                self._name, (self._num_buckets, self.dimension), dtypes.float32,
                initializer=self._initializer, trainable=self._trainable,
            )  # fmt: skip
            restore(made, *self._from)
            self._made[graph] = made
        return self._made[graph]


class _Fields(NamedTuple):
    categorical_column: CategoricalColumn
    shared_embedding_column_creator: SharedTable
    combiner: str
    max_norm: float | None


class SharedColumn(OfIds, _Fields):
    """Rows of a table that several columns share; see `shared_embeddings`."""

    _kind = "embedding_column"

    @property
    def name(self) -> str:
        """By the column's that it is made of."""
        return f"{self.categorical_column.name}_shared_embedding"

    @property
    def variable_shape(self) -> TensorShape:
        """A row of the table."""
        return TensorShape([self.shared_embedding_column_creator.dimension])

    def transform_feature(
        self, transformation_cache: FeatureTransformationCache, state_manager: StateManager | None
    ) -> Any:
        """The ids."""
        return transformation_cache.get(self.categorical_column, state_manager)

    def _dense(self, cache: FeatureTransformationCache, state: StateManager | None) -> Tensor:
        with name_scope(None, default_name=self.name):
            ids = self.categorical_column.get_sparse_tensors(cache, state)
            return combined(self, ids, self.shared_embedding_column_creator.embedding_weights)
