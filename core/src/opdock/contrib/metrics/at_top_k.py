"""Precision and recall among classes that are given, the best first."""

from __future__ import annotations

from typing import Any

from opdock.contrib.metrics.renamed import streaming_mean
from opdock.docstrings import explained
from opdock.graph.nodes.scopes import name_scope
from opdock.metrics import at_k
from opdock.metrics.common import WORDS, Metric, to_float
from opdock.ops.loss import in_top_k

__all__ = [
    "sparse_recall_at_top_k", "streaming_recall_at_k",
    "streaming_sparse_average_precision_at_top_k", "streaming_sparse_precision_at_top_k",
]  # fmt: skip

_WORDS = WORDS | {
    "labels": "class numbers of each example, dense or sparse.",
    "top_k_predictions": "class numbers in descending order of their scores.",
    "class_id": "the only class that counts, or None for all.",
    "returns": "The value so far, and an operation that adds a batch and returns the new value.",
}


def _title(name: str, class_id: int | None) -> str:
    return f"{name}_at_k" if class_id is None else f"{name}_at_k_class{class_id}"


@explained(_WORDS)
def streaming_sparse_precision_at_top_k(
    top_k_predictions: Any, labels: Any, class_id: int | None = None, weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The part of the predicted classes that are labels."""
    given = [top_k_predictions, labels, weights]
    with name_scope(name, _title("precision", class_id), given) as scope:
        return at_k.precision_at_top_k(
            labels, top_k_predictions, None, class_id, weights, metrics_collections,
            updates_collections, scope,
        )  # fmt: skip


@explained(_WORDS)
def sparse_recall_at_top_k(
    labels: Any, top_k_predictions: Any, class_id: int | None = None, weights: Any = None,
    metrics_collections: Any = None, updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The part of the labels that are predicted."""
    given = [top_k_predictions, labels, weights]
    with name_scope(name, _title("recall", class_id), given) as scope:
        return at_k.recall_at_top_k(
            labels, top_k_predictions, None, class_id, weights, metrics_collections,
            updates_collections, scope,
        )  # fmt: skip


@explained(_WORDS)
def streaming_sparse_average_precision_at_top_k(
    top_k_predictions: Any, labels: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The mean over examples of the average precision among the predicted classes."""
    return at_k.average_precision_at_top_k(
        labels, top_k_predictions, weights, metrics_collections, updates_collections, name
    )


@explained(
    _WORDS, predictions="scores [examples, classes].", labels="the class of each example.",
    k="how many classes count as predicted.",
)  # fmt: skip
def streaming_recall_at_k(
    predictions: Any, labels: Any, k: int, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Metric:  # fmt: skip
    """The part of the examples whose class is among the `k` of the highest scores."""
    hits = to_float(in_top_k(predictions, labels, k))
    title = name or f"recall_at_{k}"
    return streaming_mean(hits, weights, metrics_collections, updates_collections, title)  # type: ignore[no-any-return]
