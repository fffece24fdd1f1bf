"""`tf.contrib.metrics`: metrics by old names, rates, correlation, and streams kept whole."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.contrib import metrics

RNG = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def _stream(metric: tuple[Any, Any], feeds: list[dict[Any, Any]]) -> Any:
    value, update = metric
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        for feed in feeds:
            sess.run(update, feed)
        return sess.run(value, feeds[-1])


def _batches(count: int, size: int) -> tuple[Any, Any, list[Any], list[Any]]:
    scores, labels = tf.placeholder(tf.float64, [size]), tf.placeholder(tf.int64, [size])
    truth = [RNG.integers(0, 2, size) for _ in range(count)]
    given = [np.clip(0.3 * t + 0.7 * RNG.random(size), 0, 1) for t in truth]
    return scores, labels, given, truth


def _area(scores: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> float:
    """The part of pairs of a true and a false example that are in order."""
    yes, no = truth == 1, truth == 0
    order = (scores[yes, None] > scores[None, no]) + 0.5 * (scores[yes, None] == scores[None, no])
    pairs = weights[yes, None] * weights[None, no]
    return float((order * pairs).sum() / pairs.sum())


def test_arguments_are_in_the_old_order() -> None:
    names = inspect.getfullargspec(metrics.streaming_auc).args
    assert names == [
        "predictions", "labels", "weights", "num_thresholds", "metrics_collections",
        "updates_collections", "curve", "name",
    ]  # fmt: skip
    assert metrics.streaming_accuracy.__name__ == "streaming_accuracy"
    recall = metrics.streaming_recall([1, 1, 0, 0], [1, 1, 1, 1])
    precision = metrics.streaming_precision(predictions=[1, 1, 0, 0], labels=[1, 0, 1, 1])
    assert [_stream(m, [{}]) for m in (recall, precision)] == [0.5, 0.5]
    with pytest.raises(TypeError, match="missing a required argument: 'labels'"):
        metrics.streaming_accuracy([1])
    values, updates = metrics.aggregate_metric_map({"recall": recall, "precision": precision})
    assert list(values) == list(updates) == ["recall", "precision"]
    assert metrics.aggregate_metrics(recall, precision)[1] == [recall[1], precision[1]]


def test_rates() -> None:
    predictions, labels = [1, 1, 0, 0, 1], [1, 0, 1, 0, 0]
    assert _stream(metrics.streaming_false_positive_rate(predictions, labels), [{}]) == (
        pytest.approx(2 / 3)
    )
    assert _stream(metrics.streaming_false_negative_rate(predictions, labels), [{}]) == 0.5
    scores = tf.constant([-1.0, 0.2, 0.6, 3.0])
    truth = tf.constant([0, 1, 0, 1])
    rates = metrics.streaming_false_positive_rate_at_thresholds(scores, truth, [0.0, 0.7])
    np.testing.assert_allclose(_stream(rates, [{}]), [0.5, 0.0], atol=1e-6)
    found = metrics.streaming_true_positives_at_thresholds(scores, truth, [0.0, 0.7])
    assert _stream(found, [{}]).tolist() == [2, 1]
    points = metrics.streaming_curve_points(truth, tf.sigmoid(scores), num_thresholds=3, curve="PR")
    assert _stream(points, [{}]).shape == (3, 2)


def test_recall_at_a_precision_and_the_other_way_round() -> None:
    scores, truth = [0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]
    assert _stream(metrics.recall_at_precision(truth, scores, 1.0), [{}]) == pytest.approx(0.5)
    strict = metrics.recall_at_precision([1, 0], [0.1, 0.9], 0.9, strict_mode=True)
    assert _stream(strict, [{}]) == 0.0
    assert _stream(metrics.precision_at_recall(truth, scores, 0.9), [{}]) == pytest.approx(2 / 3)
    data, update = metrics.precision_recall_at_equal_thresholds(
        tf.constant([False, True, True]), tf.constant([0.1, 0.4, 0.9]), num_thresholds=3
    )
    found = _stream((data, update), [{}])
    assert found.tp.tolist() == [2, 1, 0]
    assert found.fp.tolist() == [1, 0, 0]
    assert found.thresholds.tolist() == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("weighed", [False, True])
def test_correlation_of_a_stream(weighed: bool) -> None:
    x, y = (tf.placeholder(tf.float32, [5]) for _ in range(2))
    w = tf.placeholder(tf.float32, [5])
    feeds = [
        {x: RNG.normal(size=5), y: RNG.normal(size=5), w: RNG.integers(1, 4, 5)} for _ in "123"
    ]
    metric = metrics.streaming_pearson_correlation(x, y, w if weighed else None)
    every = {key: np.concatenate([feed[key] for feed in feeds]) for key in (x, y, w)}
    repeats = every[w].astype(int) if weighed else 1
    wanted = np.corrcoef(np.repeat(every[x], repeats), np.repeat(every[y], repeats))[0, 1]
    assert _stream(metric, feeds) == pytest.approx(wanted, rel=1e-4)
    assert np.isnan(_stream(metrics.streaming_covariance(tf.ones([1]), tf.ones([1])), [{}]))


def test_counts_and_agreement() -> None:
    assert _stream(metrics.count(tf.ones([2, 3])), [{}, {}]) == 12
    assert _stream(metrics.count(tf.ones([2, 2]), [[1.0], [0.5]]), [{}]) == 3
    kappa = metrics.cohen_kappa(tf.constant([0, 0, 1, 1]), tf.constant([0, 1, 1, 1]), 2)
    assert _stream(kappa, [{}]) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="`num_classes` must be >= 2"):
        metrics.cohen_kappa([0], [0], 1)


def test_a_stream_is_kept_whole() -> None:
    fed = tf.placeholder(tf.int32, [2, None])
    parts = [np.arange(2 * n).reshape(2, n) + 10 * n for n in (1, 3, 2, 7)]
    whole = _stream(metrics.streaming_concat(fed, axis=1), [{fed: part} for part in parts])
    np.testing.assert_array_equal(whole, np.concatenate(parts, 1))
    first = metrics.streaming_concat(fed, axis=-1, max_size=5)
    np.testing.assert_array_equal(
        _stream(first, [{fed: part} for part in parts]), np.concatenate(parts, 1)[:, :5]
    )
    with pytest.raises(ValueError, match="axis = 2 not in"):
        metrics.streaming_concat(fed, axis=2)
    with pytest.raises(ValueError, match="must have statically known size"):
        metrics.streaming_concat(fed, axis=0)


@pytest.mark.parametrize("weighed", [False, True])
def test_areas_under_curves_of_a_stream(weighed: bool) -> None:
    scores, labels, given, truth = _batches(6, 7)
    weights = [RNG.uniform(0.5, 2.0, 7) for _ in truth] if weighed else [np.ones(7)] * 6
    w = tf.placeholder(tf.float64, [7])
    feeds = [{scores: s, labels: t, w: v} for s, t, v in zip(given, truth, weights, strict=True)]
    wanted = _area(*(np.concatenate(parts) for parts in (given, truth, weights)))
    exact = metrics.streaming_dynamic_auc(labels, scores, weights=w if weighed else None)
    assert _stream(exact, feeds) == pytest.approx(wanted)
    data, update = metrics.auc_with_confidence_intervals(
        labels, tf.cast(scores, tf.float32), tf.cast(w, tf.float32) if weighed else None
    )
    found = _stream((data, update), feeds)
    assert found.auc == pytest.approx(wanted, rel=1e-4)
    assert found.lower < found.auc < found.upper


def test_areas_of_histograms_and_of_what_cannot_be_told() -> None:
    scores, labels, given, truth = _batches(20, 50)
    metric = metrics.auc_using_histogram(
        tf.cast(labels, tf.bool), tf.cast(scores, tf.float32), [0.0, 1.0], nbins=1000
    )
    feeds = [{scores: s, labels: t} for s, t in zip(given, truth, strict=True)]
    wanted = _area(np.concatenate(given), np.concatenate(truth), np.ones(1000))
    assert _stream(metric, feeds) == pytest.approx(wanted, abs=2e-3)
    nothing = metrics.streaming_dynamic_auc(tf.zeros([3], tf.int64), tf.ones([3]))
    assert _stream(nothing, [{}]) == 0.0
    with pytest.raises(ValueError, match="curve must be either ROC or PR"):
        metrics.streaming_dynamic_auc(labels, scores, curve="X")
    with pytest.raises(ValueError, match="should have dtype bool"):
        metrics.auc_using_histogram(labels, scores, [0.0, 1.0])


def test_classes_that_are_given() -> None:
    best = tf.constant([[1, 2], [0, 2]], tf.int64)
    labels = tf.constant([[1], [2]], tf.int64)
    assert _stream(metrics.streaming_sparse_precision_at_top_k(best, labels), [{}]) == 0.5
    assert _stream(metrics.sparse_recall_at_top_k(labels, best), [{}]) == 1.0
    average = metrics.streaming_sparse_average_precision_at_top_k(best, labels)
    assert _stream(average, [{}]) == 0.75
    hits = metrics.streaming_recall_at_k(tf.constant([[0.1, 0.9], [0.8, 0.2]]), [1, 1], 1)
    assert _stream(hits, [{}]) == 0.5
