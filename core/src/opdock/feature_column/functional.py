"""`input_layer` and `linear_model`: columns by variable scopes, as programs of TF 1 use them."""

from __future__ import annotations

import contextlib
from typing import Any

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
    scope_maker,
    scoped_state,
)
from opdock.feature_column.layers import (
    flat_sequence,
    joined_sequences,
    rows_of,
    weighted_sum,
    with_bias,
)
from opdock.graph.nodes.collections import GraphKeys, get_collection
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.variables.initializers import zeros_initializer
from opdock.graph.variables.partitioned import parts_of
from opdock.graph.variables.template import make_template
from opdock.graph.variables.variable_scope import (
    variable_scope,
)
from opdock.ops.array import reshape, shape
from opdock.ops.joining import concat


def transform_features(
    features: dict[Any, Any], feature_columns: Any, state_manager: Any = None
) -> Any:
    """Column -> its intermediate form, for each of some columns."""
    with name_scope(None, default_name="transform_features", values=list(features.values())):
        cache = FeatureTransformationCache(features)
        made = {}
        for column in normalized(feature_columns):
            with name_scope(None, default_name=column.name):
                made[column] = cache.get(column, state_manager)
        return made


class LazyBuilder:
    """Features, and what columns that need no variables make of them.

    Args:
        features: key -> Tensor or SparseTensor.
    """

    def __init__(self, features: dict[Any, Any]) -> None:
        self._cache = FeatureTransformationCache(features)

    def get(self, key: Any, state_manager: StateManager | None = None) -> Any:
        """The feature of a key, or what a column transforms it to."""
        return self._cache.get(key, state_manager)


def input_layer(
    features: dict[Any, Any],
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
    cols_to_output_tensors: dict[Any, Any] | None = None,
) -> Tensor:
    """One dense tensor [batch, width], float32, from dense columns in the order of their names.

    Args:
        features: key -> Tensor or SparseTensor.
        feature_columns: dense columns.
        weight_collections: collections for the variables, GLOBAL_VARIABLES and MODEL_VARIABLES
            besides.
        trainable: whether variables go to TRAINABLE_VARIABLES.
        cols_to_vars: gets column -> its variables.
        cols_to_output_tensors: gets column -> its part of the result.

    Raises:
        ValueError: a column is not dense, two have one name, or a feature is missing.
    """
    return scoped_input_layer(
        features, feature_columns, weight_collections, trainable, cols_to_vars,
        cols_to_output_tensors=cols_to_output_tensors,
    )  # fmt: skip


def scoped_input_layer(
    features: dict[Any, Any],
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
    scope: Any = None,
    cols_to_output_tensors: dict[Any, Any] | None = None,
    from_template: bool = False,
) -> Tensor:
    """`input_layer` in a variable scope that the caller names, or has opened already.

    Args:
        features, feature_columns, weight_collections, trainable: as for `input_layer`.
        cols_to_vars, cols_to_output_tensors: as for `input_layer`.
        scope: a name or a scope; one that no other has by default.
        from_template: whether variables come into the scope that is open, a template's.

    Raises:
        ValueError: as for `input_layer`.
    """
    opened = variable_scope(scope, default_name="input_layer", values=list(features.values()))
    with contextlib.nullcontext() if from_template else opened:
        return _inputs(
            features, feature_columns, weight_collections, trainable, cols_to_vars,
            cols_to_output_tensors,
        )  # fmt: skip


def _inputs(
    features: dict[Any, Any],
    feature_columns: Any,
    weight_collections: Any,
    trainable: bool,
    cols_to_vars: dict[Any, Any] | None,
    cols_to_output_tensors: dict[Any, Any] | None = None,
) -> Tensor:
    columns = normalized(feature_columns)
    for column in columns:
        if not isinstance(column, DenseColumn):
            raise ValueError(
                "Items of feature_columns must be a _DenseColumn. You can wrap a categorical "
                f"column with an embedding_column or indicator_column. Given: {column}"
            )
    state = scoped_state(weight_collections, trainable)
    cache = FeatureTransformationCache(features)
    tensors = []
    for column in columns:
        with variable_scope(None, default_name=column._var_scope_name) as scope:
            column.create_state(state)
            dense = column.get_dense_tensor(cache, state)
            width = column.variable_shape.num_elements()
            tensor = reshape(dense, shape=(shape(dense)[0], width))
        tensors.append(tensor)
        if cols_to_vars is not None:
            cols_to_vars[column] = get_collection(GraphKeys.GLOBAL_VARIABLES, scope=scope.name)
        if cols_to_output_tensors is not None:
            cols_to_output_tensors[column] = tensor
    check_batches(tensors, columns)
    return concat(tensors, 1)


def sequence_input_layer(
    features: dict[Any, Any], feature_columns: Any, weight_collections: Any = None,
    trainable: bool = True,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """A tensor [batch, length, width] of sequence columns in the order of their names.

    Args:
        features: key -> Tensor or SparseTensor.
        feature_columns: columns with a sequence of dense values.
        weight_collections, trainable: as of `input_layer`.

    Returns:
        The tensor, and the number of steps of each example.

    Raises:
        ValueError: a column has no such sequence, two have one name, or a feature is missing.
    """
    columns = normalized(feature_columns)
    for column in columns:
        if not isinstance(column, SequenceDenseColumn):
            raise ValueError(
                "All feature_columns must be of type _SequenceDenseColumn. You can wrap a "
                "sequence_categorical_column with an embedding_column or indicator_column. "
                f"Given (type {type(column)}): {column}"
            )
    with variable_scope(None, default_name="sequence_input_layer", values=list(features.values())):
        state = scoped_state(weight_collections, trainable)
        cache = FeatureTransformationCache(features)
        tensors, lengths = [], []
        for column in columns:
            with variable_scope(None, default_name=column._var_scope_name):
                column.create_state(state)
                tensor, length = flat_sequence(column, cache, state)
            tensors.append(tensor)
            lengths.append(length)
        return joined_sequences(columns, tensors, lengths)


class InputLayer:
    """`input_layer` with variables of its own, shared between its calls.

    Args:
        feature_columns, weight_collections, trainable, cols_to_vars: as for `input_layer`.
        name: the variable scope.
        create_scope_now: whether to open the scope now or at the first call.
    """

    def __init__(
        self,
        feature_columns: Any,
        weight_collections: Any = None,
        trainable: bool = True,
        cols_to_vars: dict[Any, Any] | None = None,
        name: str = "feature_column_input_layer",
        create_scope_now: bool = True,
    ) -> None:
        self.name = name
        self._template = make_template(
            name,
            _inputs,
            create_scope_now_=create_scope_now,
            feature_columns=feature_columns,
            weight_collections=weight_collections,
            trainable=trainable,
            cols_to_vars=cols_to_vars,
        )

    def __call__(self, features: dict[Any, Any]) -> Tensor:
        """The dense tensor of some features."""
        made: Tensor = self._template(features=features)
        return made

    def __getattr__(self, name: str) -> Any:
        if name.endswith(("variables", "weights")):
            return getattr(self._template, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def linear_model(
    features: dict[Any, Any],
    feature_columns: Any,
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
) -> Tensor:
    """A linear function of columns, float32 of shape [batch, units].

    Args:
        features: key -> Tensor or SparseTensor.
        feature_columns: dense and categorical columns.
        units: the size of the result.
        sparse_combiner: "sum", "mean" or "sqrtn", for examples with several ids.
        weight_collections: collections for the variables, GLOBAL_VARIABLES and MODEL_VARIABLES
            besides.
        trainable: whether variables go to TRAINABLE_VARIABLES.
        cols_to_vars: gets column -> its variables, and "bias" -> the bias.

    Raises:
        ValueError: a column is of another kind, two have one name, or a feature is missing.
    """
    model = ScopedLinearModel(
        feature_columns, units, sparse_combiner, weight_collections, trainable
    )
    result = model(features)
    if cols_to_vars is not None:
        cols_to_vars.update(model.cols_to_vars())
    return result


class ScopedLinearModel:
    """`linear_model` with variables of its own, shared between its calls.

    Args:
        feature_columns, units, sparse_combiner, weight_collections, trainable: as for
            `linear_model`.
        name: the variable scope; one that no other has by default.

    Raises:
        ValueError: two columns have one name; when it is called, as for `linear_model`.
    """

    def __init__(
        self,
        feature_columns: Any,
        units: int = 1,
        sparse_combiner: str = "sum",
        weight_collections: Any = None,
        trainable: bool = True,
        name: str | None = None,
    ) -> None:
        self._columns = normalized(feature_columns)
        self._units = units
        self._combiner = sparse_combiner
        self._make = scope_maker(weight_collections)
        self._trainable = trainable
        # TF finds the scopes of columns outside of the model's own: so a second model has
        # "price_1".
        self.name = _unused("linear_model") if name is None else name
        self._scopes = {column: _unused(column._var_scope_name) for column in self._columns}
        self._variables: dict[Any, Any] = {}

    def cols_to_vars(self) -> dict[Any, Any]:
        """Column -> its variables, and "bias" -> the bias; empty before the first call."""
        return self._variables

    def __call__(self, features: dict[Any, Any]) -> Tensor:
        """The predictions, float32 of shape [batch, units]."""
        for column in self._columns:
            if not isinstance(column, DenseColumn | CategoricalColumn):
                raise ValueError(
                    "Items of feature_columns must be either a _DenseColumn or "
                    f"_CategoricalColumn. Given: {column}"
                )
        found: dict[Any, Any] = {}
        # Variables that a call made are there for the next.
        with variable_scope(self.name, reuse=True if self._variables else None):
            state = KeptState(self._make, self._trainable)
            cache = FeatureTransformationCache(features)
            sums = []
            ordered = sorted(self._columns, key=self._scopes.__getitem__)
            for column in ordered:
                with variable_scope(self._scopes[column]) as scope:
                    sums.append(self._share(column, cache, state))
                found[column] = get_collection(GraphKeys.GLOBAL_VARIABLES, scope=scope.name)
            bias = self._weights("bias_weights", [self._units])
            found["bias"] = parts_of(bias)
            result = with_bias(sums, ordered, bias)
        self._variables.update(found)
        return result

    def _share(
        self, column: FeatureColumn, cache: FeatureTransformationCache, state: KeptState
    ) -> Tensor:
        weights = self._weights("weights", (rows_of(column), self._units))
        column.create_state(state)
        return weighted_sum(column, cache, state, weights, self._combiner)

    def _weights(self, name: str, shape: Any) -> Any:
        return self._make(
            name=name,
            shape=shape,
            initializer=zeros_initializer(),
            trainable=self._trainable,
            use_resource=False,
        )


def _unused(default: str) -> str:
    """The last part of a variable scope that nothing has taken yet; it is taken now."""
    with variable_scope(None, default_name=default) as scope:
        return _last(scope.name)


def _last(name: str) -> str:
    return name.rsplit("/", 1)[-1]
