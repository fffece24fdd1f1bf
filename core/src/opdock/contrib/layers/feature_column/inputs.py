"""Columns as the input of a network: parsed, transformed, put side by side."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from opdock.api import logging
from opdock.contrib.layers.common import model_variable
from opdock.contrib.layers.feature_column.base import FeatureColumn, reshape_feature
from opdock.contrib.layers.feature_column.crossed import CrossedColumn
from opdock.contrib.layers.feature_column.embedded import (
    EmbeddingColumn,
    OneHotColumn,
    ScatteredEmbeddingColumn,
    looked_up,
)
from opdock.contrib.layers.feature_column.numeric import (
    BucketizedColumn,
    RealValuedColumn,
    RealValuedVarLenColumn,
    real_valued_column,
)
from opdock.contrib.layers.feature_column.parsing import (
    check_feature_columns,
    create_feature_spec_for_parsing,
    create_sequence_feature_spec_for_parsing,
)
from opdock.contrib.layers.feature_column.sparse import WeightedSparseColumn
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.variable_scope import variable_scope
from opdock.ops.array import reshape
from opdock.ops.composed.example_features import parse_example, parse_single_sequence_example
from opdock.ops.joining import concat
from opdock.util import nest

_FOR_SEQUENCES = (OneHotColumn, EmbeddingColumn, RealValuedColumn, RealValuedVarLenColumn)
_NOT_FOR_SEQUENCES = (ScatteredEmbeddingColumn, BucketizedColumn, CrossedColumn)


class Transformer:
    """What columns make of features, each of it once.

    Args:
        columns_to_tensors: features by key; what columns make is added.
    """

    def __init__(self, columns_to_tensors: dict[Any, Any]) -> None:
        self._columns_to_tensors = columns_to_tensors

    def transform(self, feature_column: FeatureColumn) -> Any:
        """What a column makes of the features.

        Raises:
            ValueError: a feature is not there.
        """
        logging.debug("Transforming feature_column %s", feature_column)
        if feature_column not in self._columns_to_tensors:
            feature_column.insert_transformed_feature(self._columns_to_tensors)
        return self._columns_to_tensors[feature_column]


def in_order(feature_columns: Iterable[Any]) -> list[Any]:
    """The columns in the order in which their variables and values stand."""
    return sorted(set(feature_columns), key=lambda column: column.key)


def with_global(collections: Any) -> Any:
    """The collections of a variable, with that of all variables; None for the usual ones."""
    return [*{*collections, GraphKeys.GLOBAL_VARIABLES}] if collections else collections


def input_from_feature_columns(
    columns_to_tensors: dict[Any, Any],
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    cols_to_outs: dict[Any, Tensor] | None = None,
) -> Tensor:
    """The values of columns side by side, as the input of a network.

    Args:
        columns_to_tensors: features by key, transformed or not; it is not changed.
        feature_columns: numbers, buckets, one-hot vectors and embeddings.
        weight_collections: collections for the variables.
        trainable: whether optimizers update them.
        scope: the variable scope; "input_from_feature_columns" by default.
        cols_to_outs: a dictionary in which each column's own part is put.

    Returns:
        A matrix [examples, the sum of the columns' lengths].

    Raises:
        ValueError: a column that has no such value, or is there twice.
    """
    if cols_to_outs is not None and not isinstance(cols_to_outs, dict):
        raise ValueError("cols_to_outs must be a dict unless None")
    features = columns_to_tensors.copy()
    check_feature_columns(feature_columns)
    return _input(
        features, feature_columns, with_global(weight_collections), trainable, scope, 2,
        "input_from_feature_columns", cols_to_outs,
    )  # fmt: skip


def sequence_input_from_feature_columns(
    columns_to_tensors: dict[Any, Any],
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Tensor:
    """`input_from_feature_columns` for features of sequences.

    Returns:
        A tensor [examples, steps, the sum of the columns' lengths].

    Raises:
        ValueError: a column that sequences cannot have, or that is there twice.
    """
    for column in feature_columns:
        if not isinstance(column, _FOR_SEQUENCES):
            raise ValueError(
                f"FeatureColumn type _{type(column).__name__} is not currently supported for "
                "sequence data."
            )
    for column in _with_parents(feature_columns):
        if isinstance(column, _NOT_FOR_SEQUENCES):
            raise ValueError(
                f"Column {column.name} is of type _{type(column).__name__}, which is not currently "
                "supported for sequences."
            )
    check_feature_columns(feature_columns)
    return _input(
        columns_to_tensors.copy(), feature_columns, with_global(weight_collections), trainable,
        scope, 3, "sequence_input_from_feature_columns", None,
    )  # fmt: skip


def _with_parents(columns: Iterable[Any]) -> list[Any]:
    found = list(columns)
    for column in found:  # it grows
        parents: tuple[Any, ...] = ()
        if isinstance(column, (WeightedSparseColumn, OneHotColumn, EmbeddingColumn)):
            parents = (column.sparse_id_column,)
        elif isinstance(column, CrossedColumn):
            parents = column.columns
        found += [p for p in parents if p not in found]
    return found


def _input(
    features: dict[Any, Any], feature_columns: Any, collections: Any, trainable: bool, scope: Any,
    output_rank: int, default_name: str, parts: dict[Any, Tensor] | None,
) -> Tensor:  # fmt: skip
    given = list(features.values())
    with variable_scope(scope, default_name=default_name, values=given):
        outputs = []
        transformer = Transformer(features)
        for column in in_order(feature_columns):
            with variable_scope(None, default_name=column.name, values=given):
                made = transformer.transform(column)
                if output_rank == 3:
                    fit = functools.partial(
                        reshape_feature, column_name=column.name, output_rank=output_rank
                    )
                    made = nest.map_structure(fit, made)
                outputs.append(_part(column, made, collections, trainable, output_rank))
            if parts is not None:
                parts[column] = outputs[-1]
        return concat(outputs, output_rank - 1)


def _part(column: Any, made: Any, collections: Any, trainable: bool, output_rank: int) -> Tensor:
    """A column's part of the input: looked up, or what it has itself."""
    try:
        args = column._deep_embedding_lookup_arguments(made)
    except NotImplementedError as not_looked_up:
        try:
            own: Tensor = column._to_dnn_input_layer(
                made, collections, trainable, output_rank=output_rank
            )
        except ValueError as e:
            raise ValueError(
                f"Error creating input layer for column: {column.name}.\n{e}, {not_looked_up}"
            ) from e
        return own

    def make(name: str, size: list[int], initializer: Any, its_own: bool) -> Any:
        return model_variable(name, size, initializer, trainable and its_own, collections)

    return looked_up(column, args, make, output_rank)


# ---------------------------------------------------------------- parsed and transformed features
def transform_features(features: dict[Any, Any], feature_columns: Any) -> dict[Any, Any]:
    """Column -> what it makes of the features.

    Args:
        features: features by key.
        feature_columns: the columns.

    Raises:
        ValueError: a column is there twice, or a feature is not there.
    """
    made = features.copy()
    check_feature_columns(feature_columns)
    transformer = Transformer(made)
    for column in in_order(feature_columns):
        transformer.transform(column)
    return {key: value for key, value in made.items() if key in feature_columns}


def parse_feature_columns_from_examples(
    serialized: Any, feature_columns: Any, name: str | None = None, example_names: Any = None
) -> dict[Any, Any]:
    """The features of examples by key, and by column what the columns make of them.

    Args:
        serialized: a vector of serialized `Example`s.
        feature_columns: the columns, of which the features follow.
        name: a name for the operation.
        example_names: a vector of the examples' names, for messages.

    Raises:
        ValueError: a column is there twice.
    """
    check_feature_columns(feature_columns)
    spec = create_feature_spec_for_parsing(feature_columns)
    features = parse_example(
        serialized=serialized, features=spec, name=name, example_names=example_names
    )
    transformer = Transformer(features)
    for column in in_order(feature_columns):
        transformer.transform(column)
    return features


def parse_feature_columns_from_sequence_examples(
    serialized: Any,
    context_feature_columns: Any,
    sequence_feature_columns: Any,
    name: str | None = None,
    example_name: Any = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The features of a sequence example: of the whole, and of its steps.

    Args:
        serialized: one serialized `SequenceExample`.
        context_feature_columns: columns of features of the whole, or None.
        sequence_feature_columns: columns of features of each step, or None.
        name: a name for the operation.
        example_name: the example's name, for messages.

    Raises:
        ValueError: more than one example, or a column is there twice.
    """
    try:
        serialized = reshape(serialized, [])
    except ValueError as e:
        raise ValueError(
            "serialized must contain as single sequence example. Batching must be done after "
            f"parsing for sequence examples. Error: {e}"
        ) from e
    context, steps = context_feature_columns or [], sequence_feature_columns or []
    check_feature_columns(context)
    check_feature_columns(steps)
    found: tuple[dict[str, Any], dict[str, Any]] = parse_single_sequence_example(
        serialized,
        create_feature_spec_for_parsing(context),
        create_sequence_feature_spec_for_parsing(steps),
        example_name,
        name,
    )
    return found


def infer_real_valued_columns(features: Any) -> list[RealValuedColumn]:
    """Columns of numbers for dense features.

    Args:
        features: a tensor, whose column has the name "", or tensors by key.

    Raises:
        ValueError: a feature is sparse, or holds no numbers.
    """
    by_key = features if isinstance(features, dict) else {"": features}
    return [_inferred(key, tensor) for key, tensor in by_key.items()]


def _inferred(key: str, tensor: Any) -> RealValuedColumn:
    what = None
    if isinstance(tensor, SparseTensor):
        what = "SparseTensor is"
    elif not (tensor.dtype.is_integer or tensor.dtype.is_floating):
        what = "Non integer or non floating types are"
    if what is not None:
        raise ValueError(
            f"{what} not supported for auto detection. Please define corresponding FeatureColumn "
            f"for tensor {key} {tensor}."
        )
    dimension = 1
    for size in tensor.shape.as_list()[1:]:
        dimension *= size
    return real_valued_column(key, dimension=dimension, dtype=tensor.dtype)
