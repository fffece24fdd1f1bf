"""Mean intersection over union of a segmentation."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.docstrings import explained
from opdock.graph.nodes.operation import Tensor
from opdock.metrics.common import WORDS, across, collected, metric_variable, scope, to_float
from opdock.ops.cast import cast
from opdock.ops.composed.confusion import confusion_matrix
from opdock.ops.diag import diag_part
from opdock.ops.reduce import reduce_sum
from opdock.ops.select import where
from opdock.ops.state import assign_add
from opdock.ops.support.nn_util import emit


def _flat(values: Any) -> Any:
    rank = values.shape.ndims
    return values if rank is not None and rank <= 1 else emit("Reshape", values, [-1])


def streaming_confusion_matrix(
    labels: Any, predictions: Any, num_classes: int, weights: Any = None
) -> tuple[Any, Tensor]:
    """A variable that counts which classes were predicted for which labels, and its update.

    Args:
        labels: class indices.
        predictions: class indices of the same shape.
        num_classes: how many classes there are.
        weights: a tensor of the same shape, or None.

    Returns:
        The variable [num_classes, num_classes] of float64 and an operation that adds a batch.
    """
    total = metric_variable([num_classes, num_classes], dtypes.float64, "total_confusion_matrix")
    matrix = confusion_matrix(
        _flat(cast(labels, dtypes.int64)), _flat(cast(predictions, dtypes.int64)), num_classes,
        dtype=dtypes.float64,
        weights=None if weights is None else _flat(cast(weights, dtypes.float64)),
    )  # fmt: skip
    return total, assign_add(total, matrix)


@explained(
    WORDS, labels="class indices.", predictions="class indices of the same shape.",
    num_classes="the number of classes.", weights="a tensor of the same shape, or None.",
    returns=(
        "The mean so far, over the classes that occur, and an operation that adds a batch and "
        "returns the confusion matrix."
    ),
    raises="ValueError: the shapes do not fit.",
)  # fmt: skip
def mean_iou(
    labels: Any, predictions: Any, num_classes: int, weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The mean over classes of true positives over what is labelled or predicted as the class."""
    with scope(name, "mean_iou", predictions, labels, weights):
        predictions = cast(predictions, dtypes.int64)
        labels = cast(labels, dtypes.int64)
        predictions.shape.assert_is_compatible_with(labels.shape)
        total, update = streaming_confusion_matrix(labels, predictions, num_classes, weights)
        value = across(lambda: _mean_iou(total))
        return collected(value, update, metrics_collections, updates_collections)


def _mean_iou(total: Any) -> Any:
    predicted = to_float(reduce_sum(total, 0))
    labelled = to_float(reduce_sum(total, 1))
    both = to_float(diag_part(total))
    union = predicted + labelled - both
    present = emit("Greater", union, 0.0)
    classes = reduce_sum(to_float(present))
    iou = emit("RealDiv", both, where(present, union, emit("OnesLike", union)))
    summed = reduce_sum(iou, name="mean_iou")
    return where(emit("Greater", classes, 0.0), summed / classes, 0.0)
