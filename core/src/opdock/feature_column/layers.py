"""Layers over feature columns, and what tells a parser which features they read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from opdock import dtypes
from opdock.feature_column.base import (
    CategoricalColumn,
    DenseColumn,
    FeatureColumn,
    FeatureTransformationCache,
    KeptState,
    SequenceDenseColumn,
    StateManager,
    check_batches,
    normalized,
)
from opdock.feature_column.serialization import (
    deserialize_feature_columns,
    serialize_feature_columns,
)
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.graph.variables.initializers import zeros_initializer
from opdock.layers.base import Layer
from opdock.ops.array import expand_dims, reshape, shape
from opdock.ops.bias import bias_add
from opdock.ops.check import assert_equal
from opdock.ops.composed.embedding import safe_embedding_lookup_sparse
from opdock.ops.composed.sparse import sparse_reshape
from opdock.ops.identity import identity
from opdock.ops.joining import concat, stack
from opdock.ops.linalg import matmul
from opdock.ops.sums import add_n
from opdock.ops.tiling import tile


def make_parse_example_spec(feature_columns: Any) -> dict[str, Any]:
    """What `tf.parse_example` needs to know to read the features of columns.

    Args:
        feature_columns: the columns.

    Raises:
        ValueError: something is no column, or two columns read a feature differently.
    """
    spec: dict[str, Any] = {}
    for column in feature_columns:
        if not isinstance(column, FeatureColumn):
            raise ValueError(
                f"All feature_columns must be _FeatureColumn instances. Given: {column}"
            )
        for key, value in column.parse_example_spec.items():
            if spec.setdefault(key, value) != value:
                raise ValueError(
                    f"feature_columns contain different parse_spec for key {key}. "
                    f"Given {value} and {spec[key]}"
                )
    return spec


class _FeatureLayer(Layer):
    """A layer whose variables belong to columns.

    Args:
        feature_columns: the columns.
        kinds: the classes that they may have.
        told: what the error says when a column has another.
        trainable, name, **kwargs: as for any layer.
    """

    def __init__(
        self,
        feature_columns: Any,
        kinds: tuple[type, ...],
        told: str,
        trainable: bool,
        name: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable=trainable, name=name, **kwargs)
        self._feature_columns = normalized(feature_columns)
        for column in self._feature_columns:
            if not isinstance(column, kinds):
                raise ValueError(f"Items of feature_columns must be {told} Given: {column}")
        self._building: FeatureColumn | None = None
        self._whole: list[Any] = []
        self._state_manager: StateManager = KeptState(self._make_variable, trainable)

    def get_config(self) -> dict[str, Any]:
        """What `from_config` makes an equal layer of; columns as their classes and fields."""
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": None if self.dtype is None else dtypes.as_dtype(self.dtype).name,
            "feature_columns": serialize_feature_columns(self._feature_columns),
        }

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> Self:
        """The layer of a configuration.

        Args:
            config: what `get_config` returned.
            custom_objects: classes and functions of columns by name, beside opdock's own.

        Raises:
            ValueError: a column's configuration is malformed.
        """
        columns = deserialize_feature_columns(config["feature_columns"], custom_objects)
        return cls(**{**config, "feature_columns": columns})

    @property
    def variables(self) -> list[Any]:
        """The variables; one that is partitioned counts as one."""
        return list(self._whole)

    def _make_variable(self, name: str, **kwargs: Any) -> Any:
        assert self._building is not None
        return self._kept(f"{self._building.name}/{name}", **kwargs)

    def _kept(self, name: str, **kwargs: Any) -> Any:
        variable = self.add_weight(name, **kwargs)
        self._whole.append(variable)
        return variable

    def build(self, _: Any) -> None:
        for column in self._feature_columns:
            self._building = column
            column.create_state(self._state_manager)
            self._build_column(column)
        self._build_rest()
        super().build(None)

    def _build_column(self, column: FeatureColumn) -> None:
        """Makes variables of a column that are the layer's own."""

    def _build_rest(self) -> None:
        """Makes variables that belong to no column."""

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(inputs, dict):
            raise ValueError(f"We expected a dictionary here. Instead we got: {inputs}")
        return super().__call__(inputs, *args, **kwargs)


def _width(columns: Any) -> int:
    return sum(int(column.variable_shape.num_elements()) for column in columns)


class DenseFeatures(_FeatureLayer):
    """One dense tensor [batch, width] from dense columns, in the order of their names.

    Args:
        feature_columns: columns with a dense value.
        trainable, name, **kwargs: as for any layer.

    Raises:
        ValueError: a column is not dense, or two have one name.
    """

    def __init__(
        self, feature_columns: Any, trainable: bool = True, name: Any = None, **kwargs: Any
    ) -> None:
        told = (
            f"a {DenseColumn}. You can wrap a categorical column with an embedding_column or "
            "indicator_column."
        )
        super().__init__(feature_columns, (DenseColumn,), told, trainable, name, **kwargs)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, int]:
        """The shape [batch, width]; the batch is the first dimension of a feature's shape."""
        return input_shape[0], _width(self._feature_columns)

    def call(
        self, features: Any, cols_to_output_tensors: Any = None, training: Any = None
    ) -> Tensor:
        """The tensor.

        Args:
            features: tensors by name.
            cols_to_output_tensors: a dict that gets each column's part of it.
            training: accepted for Keras' models; no column depends on it.
        """
        cache = FeatureTransformationCache(features)
        tensors = []
        for column in self._feature_columns:
            with name_scope(column.name):
                tensor = _flat(column, column.get_dense_tensor(cache, self._state_manager))
            if cols_to_output_tensors is not None:
                cols_to_output_tensors[column] = tensor
            tensors.append(tensor)
        check_batches(tensors, self._feature_columns)
        return concat(tensors, -1)


class SequenceFeatures(_FeatureLayer):
    """A tensor [batch, length, width] and the lengths, from sequence columns.

    Args:
        feature_columns: columns with a sequence of dense values.
        trainable, name, **kwargs: as for any layer.

    Raises:
        ValueError: a column is no sequence, or two have one name.
    """

    def __init__(
        self, feature_columns: Any, trainable: bool = True, name: Any = None, **kwargs: Any
    ) -> None:
        told = (
            f"a {SequenceDenseColumn}. You can wrap a sequence_categorical_column with an "
            "embedding_column or indicator_column."
        )
        super().__init__(feature_columns, (SequenceDenseColumn,), told, trainable, name, **kwargs)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, Any, int]:
        """The shape [batch, length, width] of the first result, for a feature's [batch, length]."""
        return input_shape[0], input_shape[1], _width(self._feature_columns)

    def call(self, features: Any) -> tuple[Tensor, Tensor]:
        """The tensor, and the number of steps of each example."""
        cache = FeatureTransformationCache(features)
        tensors, lengths = [], []
        for column in self._feature_columns:
            with name_scope(column.name):
                tensor, length = flat_sequence(column, cache, self._state_manager)
            tensors.append(tensor)
            lengths.append(length)
        return joined_sequences(self._feature_columns, tensors, lengths)


def flat_sequence(column: Any, cache: FeatureTransformationCache, state: Any) -> Any:
    """The tensor [batch, length, width] of a sequence column, and the lengths."""
    pair = column.get_sequence_dense_tensor(cache, state)
    full = shape(pair.dense_tensor)
    width = column.variable_shape.num_elements()
    return reshape(pair.dense_tensor, stack([full[0], full[1], width])), pair.sequence_length


def joined_sequences(
    columns: Any, tensors: list[Tensor], lengths: list[Tensor]
) -> tuple[Tensor, Tensor]:
    """What sequence columns gave, side by side, and the lengths, which must be the same."""
    check_batches(lengths, columns)
    length = _all_equal(lengths)
    check_batches(tensors, columns)
    return concat(tensors, -1), length


def _all_equal(tensors: list[Tensor]) -> Tensor:
    """The first of the tensors, after a check that the others equal it."""
    with name_scope(None, "assert_all_equal", tensors):
        first, *others = tensors
        if not others:
            return first
        with control_dependencies([assert_equal(first, other) for other in others]):
            return identity(first)


class LinearModel(_FeatureLayer):
    """A linear function of columns, [batch, units]: weights for each, and a bias.

    Args:
        feature_columns: dense and categorical columns.
        units: the size of the result.
        sparse_combiner: "sum", "mean" or "sqrtn", for examples with several ids.
        trainable, name, **kwargs: as for any layer.

    Attributes:
        bias: the variable of shape [units].

    Raises:
        ValueError: a column is neither dense nor categorical, or two have one name.
    """

    _KINDS: ClassVar = (DenseColumn, CategoricalColumn)

    def __init__(
        self,
        feature_columns: Any,
        units: int = 1,
        sparse_combiner: str = "sum",
        trainable: bool = True,
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        told = "either a DenseColumn or CategoricalColumn."
        super().__init__(feature_columns, self._KINDS, told, trainable, name, **kwargs)
        self._units = units
        self._sparse_combiner = sparse_combiner
        self.bias: Any = None

    def get_config(self) -> dict[str, Any]:
        """What `from_config` makes an equal model of."""
        return {
            **super().get_config(),
            "units": self._units,
            "sparse_combiner": self._sparse_combiner,
        }

    @property
    def layer(self) -> LinearModel:
        """What holds the variables: the model itself, where TF 1.15 has a layer in it."""
        return self

    def _build_column(self, column: FeatureColumn) -> None:
        self._state_manager.create_variable(
            column,
            name="weights",
            shape=(rows_of(column), self._units),
            dtype=dtypes.float32,
            initializer=zeros_initializer(),
        )

    def _build_rest(self) -> None:
        self.bias = self._kept(
            "bias_weights",
            shape=[self._units],
            dtype=dtypes.float32,
            initializer=zeros_initializer(),
            use_resource=True,
        )

    def call(self, features: Any) -> Tensor:
        """The predictions."""
        cache = FeatureTransformationCache(features)
        sums = []
        for column in self._feature_columns:
            with name_scope(column.name):
                weights = self._state_manager.get_variable(column, "weights")
                made = weighted_sum(
                    column, cache, self._state_manager, weights, self._sparse_combiner
                )
            sums.append(made)
        return with_bias(sums, self._feature_columns, self.bias)


def rows_of(column: Any) -> int:
    """How many weights a unit of a linear model has for a column."""
    if isinstance(column, CategoricalColumn):
        return column.num_buckets
    elements: int = column.variable_shape.num_elements()
    return elements


def weighted_sum(
    column: Any,
    cache: FeatureTransformationCache,
    state: StateManager,
    weights: Any,
    combiner: str,
) -> Tensor:
    """A column's share of a linear model, [batch, units]."""
    if not isinstance(column, CategoricalColumn):
        dense = _flat(column, column.get_dense_tensor(cache, state))
        return matmul(dense, weights, name="weighted_sum")
    ids, factors = column.get_sparse_tensors(cache, state)
    if factors is not None:
        factors = sparse_reshape(factors, [shape(factors)[0], -1])
    return safe_embedding_lookup_sparse(
        weights,
        sparse_reshape(ids, [shape(ids)[0], -1]),
        sparse_weights=factors,
        combiner=combiner,
        name="weighted_sum",
    )


def with_bias(sums: list[Tensor], columns: list[FeatureColumn], bias: Any) -> Tensor:
    """The sum over columns, and the bias."""
    check_batches(sums, columns)
    return bias_add(add_n(sums, name="weighted_sum_no_bias"), bias, name="weighted_sum")


def _flat(column: Any, tensor: Tensor) -> Tensor:
    return reshape(tensor, (shape(tensor)[0], column.variable_shape.num_elements()))


def concatenate_context_input(context_input: Tensor, sequence_input: Tensor) -> Tensor:
    """Appends a tensor [batch, d1] to every step of one of shape [batch, length, d0].

    Raises:
        ValueError: the ranks are not 2 and 3, or a type is not float32.
    """
    for tensor, what, rank in (
        (sequence_input, "sequence_input", 3),
        (context_input, "context_input", 2),
    ):
        if tensor.dtype != dtypes.float32:
            raise TypeError(f"{what} must have dtype float32; got {tensor.dtype}.")
        if tensor.shape.ndims not in (None, rank):
            raise ValueError(f"{what} must have rank {rank}, has shape {tensor.shape}")
    steps = shape(sequence_input)[1]
    repeated = tile(expand_dims(context_input, 1), stack([1, steps, 1]))
    return concat([sequence_input, repeated], 2)
