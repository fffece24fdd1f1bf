"""`tf.contrib.losses`: the losses before `tf.losses`, with weights of a lower rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.contrib import losses
from opdock.contrib.framework import arg_scope

X = np.array([[0.1, 0.7, 0.4], [0.9, 0.2, 0.6]], np.float32)
Y = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]], np.float32)


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def _run(value: Any) -> Any:
    with tf.Session() as sess:
        return sess.run(value)


@pytest.mark.parametrize(
    ("loss", "each"),
    [
        (losses.absolute_difference, np.abs(X - Y)),
        (losses.mean_squared_error, (X - Y) ** 2),
        (losses.log_loss, -Y * np.log(X + 1e-7) - (1 - Y) * np.log(1 - X + 1e-7)),
        (losses.sigmoid_cross_entropy, np.log1p(np.exp(X)) - X * Y),
    ],
)
@pytest.mark.parametrize("weights", [1.0, 2.0, 0.0, [3.0, 0.0], [[1.0, 0.0, 2.0], [0.0, 0.0, 1.0]]])
def test_weights_are_of_the_dimensions_that_they_have(
    loss: Callable[..., Any], each: Any, weights: Any
) -> None:
    value = loss(tf.constant(X), tf.constant(Y), weights)
    given = np.array(weights)
    wide = np.broadcast_to(given.reshape(given.shape + (1,) * (2 - given.ndim)), X.shape)
    wanted = (each * wide).sum() / max((wide != 0).sum(), 1)
    assert _run(value) == pytest.approx(wanted, rel=1e-5)
    assert losses.get_losses() == [value]


def test_classes_and_smoothing() -> None:
    logits = tf.constant([[0.0, 10.0], [10.0, 0.0]])
    dense = losses.softmax_cross_entropy(logits, tf.constant([[0, 1], [0, 1]]), [1.0, 0.5])
    sparse = losses.sparse_softmax_cross_entropy(logits, tf.constant([[1], [1]]), [1.0, 0.5])
    smooth = losses.softmax_cross_entropy(
        tf.constant([[100.0, 0.0]]), tf.constant([[1, 0]]), label_smoothing=0.2
    )
    found = _run([dense, sparse, smooth])
    assert found[0] == pytest.approx(found[1])
    assert found[0] == pytest.approx(2.5, rel=1e-3)
    assert found[2] == pytest.approx(10.0)
    with pytest.raises(ValueError, match="more dimensions than the losses"):
        losses.softmax_cross_entropy(logits, tf.constant([[0, 1], [0, 1]]), tf.ones([2, 2]))


def test_pairs_angles_and_hinges() -> None:
    pairs = losses.mean_pairwise_squared_error(tf.constant(X + 5), tf.constant(Y))
    diffs = X - Y
    wanted = sum(
        2 * (row**2).mean() - 2 * row.sum() ** 2 / row.size**2 for row in diffs.astype(float)
    )
    assert _run(pairs) == pytest.approx(wanted, rel=1e-4)
    unit = tf.constant([[1.0, 0.0], [0.0, 1.0]])
    assert _run(losses.cosine_distance(unit, tf.constant([[1.0, 0.0], [1.0, 0.0]]), 1)) == 0.5
    with pytest.raises(ValueError, match="You must specify 'axis'"):
        losses.cosine_distance(unit, unit)
    hinge = losses.hinge_loss(tf.constant([0.3, -2.0]), tf.constant([1, 0]))
    np.testing.assert_allclose(_run(hinge), [0.7, 0.0], rtol=1e-6)
    assert len(losses.get_losses()) == 2


def test_losses_are_collected_and_summed() -> None:
    with arg_scope([losses.add_loss], loss_collection=None):
        losses.mean_squared_error(tf.constant(X), tf.constant(Y))
    assert losses.get_losses() == []
    losses.add_loss(tf.constant(2.0, name="mine"))
    tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, tf.constant(3.0))
    assert losses.get_losses("min")[0].op.name == "mine"
    assert _run([losses.get_total_loss(), losses.get_total_loss(False)]) == [5.0, 2.0]
