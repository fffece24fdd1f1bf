"""The confusion matrix of a classifier."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.array import rank, squeeze
from opdock.ops.cast import cast
from opdock.ops.fill import ones_like
from opdock.ops.identity import identity
from opdock.ops.joining import stack
from opdock.ops.reduce import reduce_max
from opdock.ops.registry import get
from opdock.ops.scatter import scatter_nd

__all__ = ["confusion_matrix"]


def remove_squeezable_dimensions(
    labels: Any, predictions: Any, expected_rank_diff: int = 0, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Drops the last dimension of labels or predictions when it is 1 and the other has none.

    Args:
        labels: a tensor.
        predictions: a tensor.
        expected_rank_diff: rank(predictions) - rank(labels) that needs no squeezing.
        name: a name for the operations.

    Returns:
        (labels, predictions).
    """
    with name_scope(name, "remove_squeezable_dimensions", [labels, predictions]):
        predictions = convert_to_tensor(predictions)
        labels = convert_to_tensor(labels)
        p, y = predictions.raw_shape, labels.raw_shape
        if p is not None and y is not None:
            difference = len(p) - len(y)
            if difference == expected_rank_diff + 1:
                predictions = squeeze(predictions, [-1])
            elif difference == expected_rank_diff - 1:
                labels = squeeze(labels, [-1])
            return labels, predictions
        from opdock.ops.control import cond

        excess = rank(predictions) - rank(labels)
        if p is None or p[-1:] in ((1,), (None,)):
            full = predictions
            predictions = cond(
                get("Equal")(expected_rank_diff + 1, excess),
                lambda: squeeze(full, [-1]),
                lambda: full,
            )
        if y is None or y[-1:] in ((1,), (None,)):
            whole = labels
            labels = cond(
                get("Equal")(expected_rank_diff - 1, excess),
                lambda: squeeze(whole, [-1]),
                lambda: whole,
            )
        return labels, predictions


@extensible
def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
    weights: Any = None,
) -> Tensor:
    """Counts how often label `i` (the row) was predicted as `j` (the column).

    Args:
        labels: a 1-D tensor of classes.
        predictions: a 1-D tensor of classes.
        num_classes: the number of classes; one more than the largest by default.
        dtype: the type of the counts.
        name: a name for the operations.
        weights: a weight for each prediction, 1 by default.

    Returns:
        A tensor of shape [num_classes, num_classes].

    Raises:
        tf.errors.InvalidArgumentError: at run time, for a negative or too large class.
    """
    from opdock.ops.check import assert_less, assert_non_negative

    with name_scope(name, "confusion_matrix", [predictions, labels, num_classes, weights]):
        labels, predictions = remove_squeezable_dimensions(
            convert_to_tensor(labels, name="labels"),
            convert_to_tensor(predictions, name="predictions"),
        )
        predictions, labels = cast(predictions, dtypes.int64), cast(labels, dtypes.int64)
        labels = _after(
            assert_non_negative(labels, message="`labels` contains negative values"), labels
        )
        predictions = _after(
            assert_non_negative(predictions, message="`predictions` contains negative values"),
            predictions,
        )
        if num_classes is None:
            largest = get("Maximum")(reduce_max(predictions), reduce_max(labels))
            count = largest + 1
        else:
            count = cast(convert_to_tensor(num_classes), dtypes.int64)
            labels = _after(assert_less(labels, count, message="`labels` out of bound"), labels)
            predictions = _after(
                assert_less(predictions, count, message="`predictions` out of bound"), predictions
            )
        if weights is None:
            values = ones_like(predictions, dtype)
        else:
            weights = convert_to_tensor(weights, name="weights")
            predictions.shape.assert_is_compatible_with(weights.shape)
            values = cast(weights, dtype)
        cells = stack([labels, predictions], axis=1)
        return scatter_nd(cells, values, stack([count, count]))


def _after(check: Operation, tensor: Tensor) -> Tensor:
    """The tensor, once the check has passed."""
    with control_dependencies([check]):
        return identity(tensor)
