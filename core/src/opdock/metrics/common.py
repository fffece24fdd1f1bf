"""What the metrics share: their variables, squeezed inputs and collected results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock import dtypes
from opdock.distribute.modes import has_strategy
from opdock.graph.nodes.collections import GraphKeys, add_to_collections
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.replication import is_first_replica
from opdock.graph.nodes.scopes import refuse_eagerly
from opdock.graph.variables.flavour import VariableAggregation, VariableSynchronization
from opdock.graph.variables.variable import Variable
from opdock.graph.variables.variable_scope import variable_scope
from opdock.ops.array import expand_dims, rank, squeeze
from opdock.ops.cast import cast
from opdock.ops.composed.confusion import remove_squeezable_dimensions
from opdock.ops.control import cond
from opdock.ops.fill import zeros
from opdock.ops.identity import identity
from opdock.ops.support.nn_util import emit

Metric = tuple[Tensor, Tensor]
"""The value so far, and the operation that takes in a batch."""
WORDS = {
    "labels": "a tensor.",
    "predictions": "a tensor of its shape.",
    "weights": "a tensor that broadcasts against `labels`, or None.",
    "metrics_collections": "collections for the value.",
    "updates_collections": "collections for the update operation.",
    "name": "a name for the scope of the variables and operations.",
}
"""What the arguments of the metrics are."""


def metric_variable(shape: Any, dtype: Any, name: str, validate_shape: bool = True) -> Any:
    """A variable of zeros that is neither trained nor saved.

    It is in LOCAL_VARIABLES, so `tf.local_variables_initializer()` starts the metric afresh, and
    in METRIC_VARIABLES.

    Args:
        shape: its shape.
        dtype: its type.
        name: its name in the metric's scope.
        validate_shape: whether the shape must be known.
    """
    refuse_eagerly(
        "tf.metrics is not supported when eager execution is enabled: its metrics are two nodes "
        "of a graph. Use tf.contrib.eager.metrics instead."
    )
    return Variable(
        lambda: zeros(shape, dtype), trainable=False, name=name, validate_shape=validate_shape,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES],
        synchronization=VariableSynchronization.ON_READ, aggregation=VariableAggregation.SUM,
    )  # fmt: skip


def across(value: Callable[[], Tensor]) -> Tensor:
    """What a function makes of a metric's variables, those of all replicas taken together."""
    if not has_strategy():
        return value()
    from opdock.distribute.context import get_replica_context

    found: Tensor = get_replica_context().merge_call(lambda _: value())
    return found


def scope(name: str | None, title: str, *given: Any) -> variable_scope:
    """A metric's scope, for its variables and operations; what is None is not given."""
    return variable_scope(name, title, [v for v in given if v is not None])


def collected(
    value: Any, update: Any, metrics_collections: Any, updates_collections: Any
) -> Metric:
    """A metric, once it is in the user's collections."""
    if metrics_collections and is_first_replica():
        add_to_collections(metrics_collections, value)  # which all replicas have in common
    if updates_collections:
        add_to_collections(updates_collections, update)
    return value, update


def aligned(predictions: Any, labels: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Predictions, labels and weights without a last dimension of 1 that the others lack.

    Args:
        predictions: a tensor.
        labels: a tensor, or None.
        weights: a tensor, or None.
    """
    predictions = convert_to_tensor(predictions)
    if labels is not None:
        labels, predictions = remove_squeezable_dimensions(labels, predictions)
        predictions.shape.assert_is_compatible_with(labels.shape)
    if weights is None:
        return predictions, labels, None
    weights = convert_to_tensor(weights)
    have, wanted = weights.raw_shape, predictions.raw_shape
    if have == ():
        return predictions, labels, weights
    if have is not None and wanted is not None:
        if len(have) - len(wanted) == 1:
            weights = squeeze(weights, [-1])
        elif len(wanted) - len(have) == 1:
            weights = expand_dims(weights, [-1])
        return predictions, labels, weights
    return predictions, labels, _aligned_later(weights, predictions)


def _aligned_later(weights: Tensor, predictions: Tensor) -> Any:
    excess = rank(weights) - rank(predictions)
    given = weights

    def same_or_longer() -> Any:
        return cond(emit("Equal", excess, -1), lambda: expand_dims(given, [-1]), lambda: given)

    if given.raw_shape is not None and given.raw_shape[-1] not in (None, 1):
        fitted = same_or_longer
    else:

        def fitted() -> Any:
            return cond(emit("Equal", excess, 1), lambda: squeeze(given, [-1]), same_or_longer)

    return cond(emit("Equal", rank(given), 0), lambda: given, fitted)


def safe_div(numerator: Any, denominator: Any, name: str | None = None) -> Any:
    """`numerator / denominator`, 0 where the denominator is 0."""
    denominator = convert_to_tensor(denominator)
    return emit("DivNoNan", numerator, emit("Maximum", denominator, _zero(denominator)), name=name)


def _zero(like: Any) -> Any:
    return convert_to_tensor(0, dtype=like.dtype.base_dtype)


def aggregate_variable(variable: Any, collections: Any) -> Any:
    """The value of a metric's variable, once it is in the user's collections."""
    value = identity(variable)
    if collections:
        add_to_collections(collections, value)
    return value


def to_float(value: Any) -> Any:
    """`value` as float32."""
    return cast(value, dtypes.float32)
