"""The area under the ROC curve of two histograms: time and room do not grow with the stream."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.graph.variables.initializers import zeros_initializer
from opdock.graph.variables.variable_scope import get_variable, variable_scope
from opdock.ops.array import rank, shape
from opdock.ops.cast import cast
from opdock.ops.check import Assert
from opdock.ops.compare import equal, logical_not
from opdock.ops.composed.confusion import remove_squeezable_dimensions
from opdock.ops.composed.division import truediv
from opdock.ops.composed.masks import boolean_mask
from opdock.ops.control import group
from opdock.ops.histogram import histogram_fixed_width
from opdock.ops.identity import identity
from opdock.ops.reduce import reduce_sum
from opdock.ops.scan import cumsum
from opdock.ops.sums import add_n
from opdock.ops.tiling import reverse

__all__ = ["auc_using_histogram"]


def auc_using_histogram(
    boolean_labels: Any, scores: Any, score_range: Any, nbins: int = 100, collections: Any = None,
    check_shape: bool = True, name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The area under the ROC curve, of histograms of the scores of what is true and what is not.

    Args:
        boolean_labels: a vector of bools.
        scores: a vector of scores.
        score_range: the least and the largest score.
        nbins: how many bins there are.
        collections: collections for the histograms; LOCAL_VARIABLES if None.
        check_shape: whether it is made sure that they are vectors.
        name: a name for the scope of the variables and operations.

    Returns:
        The area so far, and an operation that adds a batch.

    Raises:
        ValueError: the labels are no bools.
    """
    kept_in = [GraphKeys.LOCAL_VARIABLES] if collections is None else collections
    with variable_scope(name, "auc_using_histogram", [boolean_labels, scores, score_range]):
        labels, scores = remove_squeezable_dimensions(boolean_labels, scores)
        score_range = convert_to_tensor(score_range, name="score_range")
        labels, scores = _checked(labels, scores, check_shape)
        with variable_scope(None, "make_auc_histograms", [labels, scores]):
            batch = {
                kind: histogram_fixed_width(
                    boolean_mask(scores, mask), score_range, nbins, dtypes.int64, f"hist_{kind}"
                )
                for kind, mask in (("true", labels), ("false", logical_not(labels)))
            }
        with variable_scope(None, "hist_accumulate", list(batch.values())):
            held = {
                kind: get_variable(
                    f"hist_{kind}_acc", [nbins], dtypes.int64, zeros_initializer(),
                    trainable=False, collections=kept_in,
                )
                for kind in batch
            }  # fmt: skip
            added = [held[kind].assign_add(counts) for kind, counts in batch.items()]
            update = group(*added, name="update_op")
        return _area(held["true"], held["false"]), update


def _checked(labels: Any, scores: Any, check_shape: bool) -> tuple[Any, Any]:
    labels = convert_to_tensor(labels, name="boolean_labels")
    scores = convert_to_tensor(scores, name="scores")
    if labels.dtype != dtypes.bool_:
        raise ValueError(
            f"Argument boolean_labels should have dtype bool.  Found: {labels.dtype!r}"
        )
    if not check_shape:
        return labels, scores
    with name_scope("_check_labels_and_scores", values=[labels, scores]):
        checks = [
            Assert(
                equal(1, rank(tensor)),
                [f"Argument {kind} should have rank 1.  Found: ", tensor.name, shape(tensor)],
            )
            for kind, tensor in (("boolean_labels", labels), ("scores", scores))
        ]
        with control_dependencies(checks):
            return identity(labels), identity(scores)


def _area(of_true: Any, of_false: Any) -> Any:
    """The trapezoids between the points that the bins' bounds are, from the highest score on."""
    shares = [truediv(counts, reduce_sum(counts)) for counts in (of_true, of_false)]
    up, along = (cast(reverse(share, [0]), dtypes.float32) for share in shares)
    y = cumsum(up)
    return add_n([along[0] * y[0] / 2.0, reduce_sum(along[1:] * (y[1:] + y[:-1]) / 2.0)], "auc")
