"""Streaming metrics against NumPy: several batches, weights, names, collections, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf

RNG = np.random.RandomState(11)
BATCHES = [
    (RNG.randint(0, 2, n).astype(np.float32), RNG.rand(n).astype(np.float32), RNG.rand(n))
    for n in (7, 4, 9)
]
Y, P, W = (np.concatenate([b[i] for b in BATCHES]) for i in range(3))


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as made:
        yield made


def stream(metric: Any, *, rounded: bool = False, weighted: bool = True) -> Any:
    """The value after all batches; the update op must have said the same."""
    y, p = (tf.placeholder(tf.float32, [None]) for _ in range(2))
    w = tf.placeholder(tf.float32, [None])
    value, update = metric(y, tf.round(p) if rounded else p, w if weighted else None)
    with tf.Session() as s:
        s.run(tf.local_variables_initializer())
        for labels, scores, weights in BATCHES:
            last = s.run(update, {y: labels, p: scores, w: weights})
        found = s.run(value)
    np.testing.assert_allclose(found, last, rtol=1e-5)
    return found


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_means(weighted: bool) -> None:
    w = W if weighted else np.ones_like(W)
    cut = np.round(P)
    m = tf.metrics
    kw = {"weighted": weighted}
    close(stream(lambda y, p, v: m.mean(p, v), **kw), np.average(P, weights=w))
    close(stream(m.accuracy, rounded=True, **kw), np.average(cut == Y, weights=w))
    close(stream(m.mean_squared_error, **kw), np.average((P - Y) ** 2, weights=w))
    close(stream(m.mean_absolute_error, **kw), np.average(np.abs(P - Y), weights=w))
    close(stream(m.root_mean_squared_error, **kw), np.sqrt(np.average((P - Y) ** 2, weights=w)))
    close(stream(lambda y, p, v: m.percentage_below(p, 0.4, v), **kw),
          np.average(P < 0.4, weights=w))  # fmt: skip
    relative = np.where(Y == 0, 0, np.abs(P - Y) / np.where(Y == 0, 1, Y))
    close(stream(lambda y, p, v: m.mean_relative_error(y, p, y, v), **kw),
          np.average(relative, weights=w))  # fmt: skip


@pytest.mark.parametrize("weighted", [False, True])
def test_counts(weighted: bool) -> None:
    w = W if weighted else np.ones_like(W)
    cut, true = np.round(P) == 1, Y == 1
    m = tf.metrics
    kw = {"weighted": weighted, "rounded": True}
    tp, fp = w[cut & true].sum(), w[cut & ~true].sum()
    tn, fn = w[~cut & ~true].sum(), w[~cut & true].sum()
    close(stream(m.true_positives, **kw), tp)
    close(stream(m.false_positives, **kw), fp)
    close(stream(m.true_negatives, **kw), tn)
    close(stream(m.false_negatives, **kw), fn)
    close(stream(m.precision, **kw), tp / (tp + fp))
    close(stream(m.recall, **kw), tp / (tp + fn))


@pytest.mark.parametrize("weighted", [False, True])
def test_thresholds(weighted: bool) -> None:
    w = W if weighted else np.ones_like(W)
    cuts = [0.2, 0.6]
    above, true = [P > c for c in cuts], Y == 1
    wanted = {
        "true_positives": [w[a & true].sum() for a in above],
        "false_positives": [w[a & ~true].sum() for a in above],
        "true_negatives": [w[~a & ~true].sum() for a in above],
        "false_negatives": [w[~a & true].sum() for a in above],
        "precision": [w[a & true].sum() / w[a].sum() for a in above],
        "recall": [w[a & true].sum() / w[true].sum() for a in above],
    }
    for name, expected in wanted.items():
        metric = getattr(tf.metrics, name + "_at_thresholds")
        close(stream(lambda y, p, v, m=metric: m(y, p, cuts, v), weighted=weighted), expected)


def test_auc() -> None:
    pairs = (P[Y == 1][:, None] > P[Y == 0][None, :]).mean()
    assert abs(stream(tf.metrics.auc, weighted=False) - pairs) < 0.01
    low, mid, high = (
        stream(lambda y, p, v, k=k: tf.metrics.auc(y, p, v, summation_method=k))
        for k in ("minoring", "trapezoidal", "majoring")
    )
    rounding = 1e-6
    assert low <= mid + rounding
    assert mid <= high + rounding
    # Area under precision over recall, by the positives in order of score (average precision).
    order = Y[np.argsort(-P)]
    precision = np.cumsum(order) / np.arange(1, order.size + 1)
    careful = stream(
        lambda y, p, v: tf.metrics.auc(
            y, p, curve="PR", summation_method="careful_interpolation", num_thresholds=2000
        ),
    )
    assert abs(careful - (precision * order).sum() / order.sum()) < 0.06
    with pytest.raises(ValueError, match="curve must be either ROC or PR, X unknown"):
        tf.metrics.auc(Y, P, curve="X")
    with pytest.raises(ValueError, match="Invalid summation_method"):
        tf.metrics.auc(Y, P, summation_method="X")
    # What is a constant is found out at once, what is fed when it is.
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"must be in \[0, 1\]"):
        tf.metrics.auc(Y, P + 1)
    fed = tf.placeholder(tf.float32, P.shape)
    _, update = tf.metrics.auc(Y, fed)
    with tf.Session() as s:
        s.run(tf.local_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"must be in \[0, 1\]"):
            s.run(update, {fed: P + 1})


def test_classes() -> None:
    labels, guesses = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 1, 0])
    iou, iou_update = tf.metrics.mean_iou(labels, guesses, 4)
    per, per_update = tf.metrics.mean_per_class_accuracy(labels, guesses, 3)
    with tf.Session() as s:
        s.run(tf.local_variables_initializer())
        assert s.run(iou) == 0.0
        matrix = s.run([iou_update, per_update])[0]
        np.testing.assert_array_equal(
            matrix, [[1, 1, 0, 0], [0, 2, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
        )
        close(s.run(iou), (1 / 3 + 2 / 3 + 0) / 3)
        close(s.run(per), (0.5 + 1 + 0) / 3)


def test_tensors_and_directions() -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    value, update = tf.metrics.mean_tensor(x, weights=[[1.0], [0.0]])
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    distance, move = tf.metrics.mean_cosine_distance(unit, unit[::-1].copy(), dim=1)
    with tf.Session() as s:
        s.run(tf.local_variables_initializer())
        s.run([update, update, move])
        np.testing.assert_array_equal(s.run(value), [[1, 2], [0, 0]])
        close(s.run(distance), 1 - (unit[0] * unit[1]).sum())


def test_names_and_collections() -> None:
    y = tf.placeholder(tf.float32, [None])
    value, update = tf.metrics.accuracy(
        y, y, metrics_collections=["values"], updates_collections=["updates"]
    )
    tf.metrics.accuracy(y, y)
    tf.metrics.mean(y, name="loss")
    assert [v.op.name for v in tf.local_variables()] == [
        "accuracy/total", "accuracy/count", "accuracy_1/total", "accuracy_1/count", "loss/total",
        "loss/count",
    ]  # fmt: skip
    assert tf.get_collection(tf.GraphKeys.METRIC_VARIABLES) == tf.local_variables()
    assert tf.global_variables() == tf.trainable_variables() == []
    assert (value.op.name, update.op.name) == ("accuracy/value", "accuracy/update_op")
    assert tf.get_collection("values") == [value]
    assert tf.get_collection("updates") == [update]


def test_shapes() -> None:
    with pytest.raises(ValueError, match="incompatible"):
        tf.metrics.accuracy(tf.ones([3]), tf.ones([4]))
    with pytest.raises(ValueError, match="weights can not be broadcast"):
        tf.metrics.mean(tf.ones([3, 2]), tf.ones([2, 2]))
    # A last dimension of 1 is dropped.
    _, column = tf.metrics.accuracy(tf.ones([3, 1]), tf.ones([3]), tf.ones([3, 1]))
    scalar, count = tf.metrics.mean(tf.ones([3, 2]), 2.0)
    unknown = tf.placeholder(tf.float32)
    _, later = tf.metrics.mean(unknown, tf.placeholder_with_default([1.0, 0.0], None))
    with tf.Session() as s:
        s.run(tf.local_variables_initializer())
        assert s.run(count) == s.run(scalar) == s.run(column) == 1.0
        assert s.run(later, {unknown: [3.0, 5.0]}) == 3.0


def test_a_fed_placeholder_is_nothing_to_wait_for() -> None:
    x = tf.placeholder(tf.float32, [None])
    _, update = tf.metrics.mean(x)
    with tf.Session() as s:
        s.run(tf.local_variables_initializer())
        assert s.run(update, {x: [2.0, 4.0]}) == 3.0
