"""tf.losses: weights, reductions, the collection, and the checks of arguments."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


LABELS = [[1.0, 2.0], [3.0, 4.0]]
GUESSES = [[1.5, 2.0], [1.0, 8.0]]  # squared errors .25, 0, 4, 16


def mse(weights=1.0, **kwargs):
    return tf.losses.mean_squared_error(LABELS, GUESSES, weights, **kwargs)


def test_reductions():
    weights = [[2.0, 0.0], [1.0, 1.0]]
    kinds = tf.losses.Reduction
    for reduction, want in (
        (kinds.NONE, [[0.5, 0.0], [4.0, 16.0]]),
        (kinds.SUM, 20.5),
        (kinds.MEAN, 20.5 / 4),
        (kinds.SUM_OVER_BATCH_SIZE, 20.5 / 4),
        (kinds.SUM_BY_NONZERO_WEIGHTS, 20.5 / 3),
        (kinds.SUM_OVER_NONZERO_WEIGHTS, 20.5 / 3),
    ):
        np.testing.assert_allclose(run(mse(weights, reduction=reduction)), want, rtol=1e-6)
    with pytest.raises(ValueError, match="Invalid ReductionKey best"):
        mse(reduction="best")


def test_weights_broadcast():
    assert run(mse(2.0)) == pytest.approx(2 * 20.25 / 4)
    assert run(mse([[1.0], [0.0]])) == pytest.approx(0.25 / 2)
    assert run(mse(0.0)) == 0.0
    with pytest.raises(ValueError, match=r"can not be broadcast to values. .*weights.rank=1"):
        mse([1.0, 2.0])
    with pytest.raises(ValueError, match="Mismatch at dim"):
        mse([[1.0], [2.0], [3.0]])


def test_weights_of_unknown_shape_are_checked_when_run():
    weights = tf.placeholder(tf.float32)
    loss = mse(weights)
    assert run(loss, {weights: 1.0}) == pytest.approx(20.25 / 4)
    assert run(loss, {weights: [[1.0], [0.0]]}) == pytest.approx(0.25 / 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="weights can not be broadcast"):
        run(loss, {weights: [1.0, 2.0]})


def test_names_and_collections(graph):
    loss = mse(scope="mine")
    assert loss.op.name.startswith("mine/")
    assert mse().op.name == "mean_squared_error/value"
    assert tf.losses.get_losses("mine") == [loss]
    assert len(tf.losses.get_losses()) == 2
    assert mse(loss_collection=None) not in tf.losses.get_losses()
    names = {op.name for op in graph.get_operations()}
    assert "mine/assert_broadcastable/static_scalar_check_success" in names


def test_total_and_regularization_losses():
    mse()
    assert run(tf.losses.get_regularization_loss()) == 0.0
    tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, tf.constant(0.5))
    assert run(tf.losses.get_total_loss()) == pytest.approx(20.25 / 4 + 0.5)
    assert run(tf.losses.get_total_loss(False)) == pytest.approx(20.25 / 4)
    assert run(tf.losses.get_regularization_loss()) == 0.5
    tf.losses.add_loss(tf.constant(1.0))
    assert tf.losses.get_total_loss().op.name.startswith("total_loss")
    assert run(tf.losses.get_total_loss()) == pytest.approx(20.25 / 4 + 1.5)


def test_arguments_are_required_and_compatible():
    with pytest.raises(ValueError, match="labels must not be None"):
        tf.losses.mean_squared_error(None, GUESSES)
    with pytest.raises(ValueError, match="predictions must not be None"):
        tf.losses.absolute_difference(LABELS, None)
    with pytest.raises(ValueError, match="are incompatible"):
        tf.losses.huber_loss(LABELS, [1.0, 2.0])
    with pytest.raises(ValueError, match="You must specify 'axis'"):
        tf.losses.cosine_distance(LABELS, GUESSES)


def test_label_smoothing():
    logits = np.array([[2.0, 0.0, -1.0]], np.float32)
    hot = np.array([[1.0, 0.0, 0.0]], np.float32)
    logs = logits - np.log(np.exp(logits).sum())
    smooth = hot * 0.7 + 0.3 / 3
    loss = tf.losses.softmax_cross_entropy(hot, logits, label_smoothing=0.3)
    assert run(loss) == pytest.approx(-(smooth * logs).sum(), rel=1e-5)
    spread = tf.losses.sigmoid_cross_entropy(hot, logits, label_smoothing=0.5)
    soft = hot * 0.5 + 0.25
    want = np.maximum(logits, 0) - logits * soft + np.log1p(np.exp(-abs(logits)))
    assert run(spread) == pytest.approx(want.mean(), rel=1e-5)


def test_sparse_labels_and_weights_are_squeezed():
    logits = np.array([[2.0, 0.0], [0.0, 1.0]], np.float32)
    flat = tf.losses.sparse_softmax_cross_entropy([0, 0], logits, [1.0, 0.5])
    deep = tf.losses.sparse_softmax_cross_entropy([[0], [0]], logits, [[1.0], [0.5]])
    a, b = run([flat, deep])
    assert a == pytest.approx(b)


def test_pairwise_error_ignores_a_constant_shift():
    x = np.array([[1.0, 5.0, 2.0], [0.0, 3.0, 1.0]], np.float32)
    shifted = tf.losses.mean_pairwise_squared_error(x, x + [[2.0], [-1.0]])
    assert run(shifted) == pytest.approx(0.0, abs=1e-5)
    y = x.copy()
    y[0] = [2.0, 5.0, 2.0]
    d = (y - x)[0]
    pairs = [(d[i] - d[j]) ** 2 for i in range(3) for j in range(i)]
    loss = tf.losses.mean_pairwise_squared_error(x, y)
    assert run(loss) == pytest.approx(sum(pairs) / len(pairs), rel=1e-5)


def test_gradients_flow_through_every_loss():
    x = tf.constant([[0.3, 0.7], [0.6, 0.2]])
    target = tf.constant([[0.0, 1.0], [1.0, 0.0]])
    for loss in (
        tf.losses.absolute_difference(target, x), tf.losses.huber_loss(target, x, delta=0.3),
        tf.losses.log_loss(target, x), tf.losses.hinge_loss(target, x),
        tf.losses.cosine_distance(target, x, axis=1), tf.losses.sigmoid_cross_entropy(target, x),
        tf.losses.softmax_cross_entropy(target, x),
    ):  # fmt: skip
        (grad,) = tf.gradients(loss, x)
        assert np.isfinite(run(grad)).all() and np.abs(run(grad)).max() > 0
