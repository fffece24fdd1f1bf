"""Stochastic dual coordinate ascent: it arrives where linear models are best."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf


def train(steps: int, table: Any, labels: Any, **attrs: Any) -> tuple[Any, Any]:
    """Weights and the state of the examples after steps of `SdcaOptimizerV2`."""
    rows, columns = table.shape
    weights, state = np.zeros(columns, np.float32), np.zeros((rows, 4), np.float32)
    fed = tf.placeholder(tf.float32, [columns]), tf.placeholder(tf.float32, [rows, 4])
    step = tf.raw_ops.SdcaOptimizerV2(
        sparse_example_indices=[], sparse_feature_indices=[], sparse_feature_values=[],
        dense_features=[table.astype(np.float32)], example_weights=np.ones(rows, np.float32),
        example_labels=np.asarray(labels, np.float32), sparse_indices=[], sparse_weights=[],
        dense_weights=[fed[0]], example_state_data=fed[1], num_inner_iterations=1,
        **{"num_loss_partitions": 1, "l1": 0.0, **attrs},
    )  # fmt: skip
    with tf.Session() as session:
        for _ in range(steps):
            found = session.run(step, dict(zip(fed, (weights, state), strict=True)))
            state, weights = (
                found.out_example_state_data,
                weights + found.out_delta_dense_weights[0],
            )
    return weights, state


@pytest.mark.parametrize("adaptive", [False, True])
def test_squared_losses_end_at_ridge_regression(adaptive: bool) -> None:
    rng = np.random.RandomState(5)
    table, labels = rng.randn(12, 3), rng.randn(12)
    weights, _ = train(60, table, labels, loss_type="squared_loss", l2=2.0, adaptive=adaptive)
    best = np.linalg.solve(table.T @ table + 2.0 * np.eye(3), table.T @ labels)
    np.testing.assert_allclose(weights, best, atol=1e-4)


@pytest.mark.parametrize("loss", ["logistic_loss", "hinge_loss", "smooth_hinge_loss"])
def test_the_duality_gap_closes(loss: str) -> None:
    rng = np.random.RandomState(2)
    table = rng.randn(20, 4)
    labels = (table @ [1.0, -2.0, 0.5, 0.0] > 0).astype(np.float32)
    weights, state = train(40, table, labels, loss_type=loss, l2=1.0)
    # What the state has of duals is from before the last step, as its losses are.
    gap = state[:, 1].sum() + state[:, 2].sum() + weights @ weights
    assert abs(gap) < 1e-2 * state[:, 1].sum()


def test_weights_shrink_in_place() -> None:
    first = tf.Variable([0.5, -0.1, -2.0], use_resource=False)
    second = tf.Variable([[0.2]], use_resource=False)
    shrink = tf.raw_ops.SdcaShrinkL1(weights=[first._ref(), second._ref()], l1=0.3, l2=1.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(shrink)
        np.testing.assert_allclose(session.run(first), [0.2, 0.0, -1.7], rtol=1e-6)
        assert session.run(second).tolist() == [[0.0]]


def test_fingerprints_are_tensorflows() -> None:
    texts = [bytes((7 * i + n) % 251 for i in range(n)) for n in (0, 5, 20, 100, 200)]
    with tf.Session() as session:
        found = session.run(tf.train.sdca_fprint(texts))
    assert found.tolist() == [
        [4463240938071824939, 4374473821787594281], [-3885347967039884842, 6641893299761880429],
        [-2828167650625398775, -8908425172389491879], [4100667015247877156, 4153699353780770998],
        [65575247285395715, 5699243832483706094],
    ]  # fmt: skip
