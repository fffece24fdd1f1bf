"""Columns as the terms of a linear model: a weight for each id, a weight for each number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock import dtypes
from opdock.api import logging
from opdock.contrib.layers.common import model_variable
from opdock.contrib.layers.embedding import safe_embedding_lookup_sparse
from opdock.contrib.layers.feature_column.base import LinearLookup, reshape_feature, with_values
from opdock.contrib.layers.feature_column.embedded import restore
from opdock.contrib.layers.feature_column.inputs import Transformer, in_order, with_global
from opdock.contrib.layers.feature_column.parsing import check_feature_columns
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.initializers import zeros_initializer
from opdock.graph.variables.partitioned import parts_of
from opdock.graph.variables.variable_scope import variable_scope
from opdock.ops.array import reshape
from opdock.ops.bias import bias_add
from opdock.ops.cast import cast
from opdock.ops.composed.sparse import sparse_concat
from opdock.ops.linalg import matmul
from opdock.ops.sums import add_n

_TermOf = Callable[..., tuple[list[Any], Tensor]]


def weighted_sum_from_feature_columns(
    columns_to_tensors: dict[Any, Any],
    feature_columns: Any,
    num_outputs: int,
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> tuple[Tensor, dict[Any, list[Any]], Any]:
    """A linear model of columns: each has weights of its own, and their sums are added.

    Args:
        columns_to_tensors: features by key, transformed or not; it is not changed.
        feature_columns: numbers, ids, buckets and crosses.
        num_outputs: how many models.
        weight_collections: collections for the variables.
        trainable: whether optimizers update them.
        scope: the variable scope; "weighted_sum_from_feature_columns" by default.

    Returns:
        The sums [examples, num_outputs], column -> the parts of its variable, and the bias.

    Raises:
        ValueError: a column that a linear model cannot have, or that is there twice.
    """
    features = columns_to_tensors.copy()
    check_feature_columns(feature_columns)
    with variable_scope(
        scope, default_name="weighted_sum_from_feature_columns", values=list(features.values())
    ):
        sums = []
        variables = {}
        transformer = Transformer(features)
        for column in in_order(feature_columns):
            made = transformer.transform(column)
            try:
                args = column._wide_embedding_lookup_arguments(made)
            except NotImplementedError:
                term_of: _TermOf = _weighted_numbers
            except ValueError as e:
                raise ValueError(
                    f"Error creating weighted sum for column: {column.name}.\n{e}"
                ) from e
            else:
                term_of, made = _weighted_ids, args
            variable, term = term_of(
                column, made, columns_to_tensors, num_outputs, trainable, weight_collections
            )
            sums.append(reshape(term, (-1, num_outputs)))
            variables[column] = variable
            _tell(variable)
            restore(column._checkpoint_path(), variable)
        total, bias = _with_bias(add_n(sums), num_outputs, trainable, weight_collections)
        return total, variables, bias


def _weighted_ids(
    column: Any, args: LinearLookup, features: dict[Any, Any], num_outputs: int, trainable: bool,
    collections: Any,
) -> tuple[list[Any], Tensor]:  # fmt: skip
    with variable_scope(None, default_name=column.name, values=list(features.values())):
        size = [args.vocab_size, num_outputs]
        table = parts_of(model_variable("weights", size, args.initializer, trainable, collections))
        return table, safe_embedding_lookup_sparse(
            table, args.input_tensor, args.weight_tensor, combiner=args.combiner,
            name=f"{column.name}_weights",
        )  # fmt: skip


def _weighted_numbers(
    column: Any, made: Any, features: dict[Any, Any], num_outputs: int, trainable: bool,
    collections: Any,
) -> tuple[list[Any], Tensor]:  # fmt: skip
    with variable_scope(None, default_name=column.name, values=list(features.values())):
        numbers = reshape_feature(column._to_dense_tensor(made), column.name, output_rank=2)
        size = [numbers.shape[1], num_outputs]
        weight = model_variable("weight", size, zeros_initializer(), trainable, collections)
        return parts_of(weight), matmul(numbers, weight, name="matmul")


def joint_weighted_sum_from_feature_columns(
    columns_to_tensors: dict[Any, Any],
    feature_columns: Any,
    num_outputs: int,
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> tuple[Tensor, list[Any], Any]:
    """A linear model of columns of ids, whose weights are one variable.

    Args:
        columns_to_tensors: features by key, transformed or not; it is not changed.
        feature_columns: ids, buckets and crosses, with the combiner "sum".
        num_outputs: how many models.
        weight_collections: collections for the variables.
        trainable: whether optimizers update them.
        scope: the variable scope; "joint_weighted_sum_from_feature_columns" by default.

    Returns:
        The sums [examples, num_outputs], the parts of the variable, and the bias.

    Raises:
        NotImplementedError: a column of numbers.
        AssertionError: no column, one with weights, or with another combiner.
        ValueError: a column that a linear model cannot have, or that is there twice.
    """
    features = columns_to_tensors.copy()
    check_feature_columns(feature_columns)
    given = list(features.values())
    with variable_scope(
        scope, default_name="joint_weighted_sum_from_feature_columns", values=given
    ):
        transformer = Transformer(features)
        every = []
        for column in in_order(feature_columns):
            made = transformer.transform(column)
            try:
                every.append(column._wide_embedding_lookup_arguments(made))
            except NotImplementedError as e:
                raise NotImplementedError(
                    "Real-valued columns are not supported. "
                    "Use weighted_sum_from_feature_columns instead, or bucketize these columns."
                ) from e
        ids, count = _joined(every)
        with variable_scope(None, default_name="linear_weights", values=given):
            table = parts_of(
                model_variable(
                    "weights", [count, num_outputs], zeros_initializer(), trainable,
                    weight_collections,
                )
            )  # fmt: skip
            total = safe_embedding_lookup_sparse(table, ids, combiner="sum", name="_weights")
        total, bias = _with_bias(total, num_outputs, trainable, weight_collections)
        return total, table, bias


def _joined(every: list[LinearLookup]) -> tuple[SparseTensor, int]:
    """The ids of all columns, those of each behind those of the last, and how many there are."""
    if not every:
        raise AssertionError("At least one column must be in the model.")
    ids, count = [], 0
    for args in every:
        if args.weight_tensor is not None or args.combiner != "sum":
            what = (
                "Joint sums for weighted sparse columns"
                if args.combiner == "sum"
                else ("Combiners other than sum")
            )
            raise AssertionError(
                f"{what} are not supported. Please use weighted_sum_from_feature_columns instead."
            )
        tensor = args.input_tensor
        ids.append(with_values(tensor, cast(tensor.values, dtypes.int64) + count))
        count += args.vocab_size
    return sparse_concat(1, ids), count


def _with_bias(
    total: Tensor, num_outputs: int, trainable: bool, collections: Any
) -> tuple[Tensor, Any]:
    bias = model_variable(
        "bias_weight", [num_outputs], zeros_initializer(), trainable, with_global(collections)
    )
    _tell(parts_of(bias))
    return bias_add(total, bias), bias


def _tell(variable: list[Any]) -> None:
    for part in variable:
        logging.info("Created variable %s, with device=%s", part.name, part.device)
