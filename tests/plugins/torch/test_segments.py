"""Segments through torch.compile, which is asked for."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

# PyTorch's compiler uses what PyTorch deprecates.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
DEVICE = "/device:TORCH:0"


def train(device: str) -> tuple[list[float], int]:
    """Losses, and how many ops are in compiled graphs."""
    with tf.Graph().as_default(), tf.device(device):
        x = tf.placeholder(tf.float32, [8, 4])
        start = np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3)
        w = tf.get_variable("w", initializer=start)
        loss = tf.reduce_mean(tf.square(tf.nn.relu(tf.matmul(x, w)) - 1.0))
        step = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
        feed = {x: np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)}
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            losses = [sess.run([loss, step], feed)[0] for _ in range(4)]
            rows = sess.explain([loss, step], feed).rows
            return losses, sum(len(row.members) for row in rows if row.how == "segment")


def test_a_training_step_is_one_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    expected, none = train(DEVICE)
    assert none == 0
    monkeypatch.setenv("OPDOCK_TORCH_COMPILE", "1")
    losses, compiled = train(DEVICE)
    assert compiled > 8
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert losses[-1] < losses[0]


def test_loops_run_between_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_TORCH_COMPILE", "1")
    with tf.Graph().as_default(), tf.device(DEVICE):
        x = tf.placeholder(tf.float32, [3])
        _, y = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.tanh(y) * 2.0), [0, x])
        with tf.Session() as sess:
            got = sess.run(tf.exp(y) + 1.0, {x: [0.1, 0.2, 0.3]})
    value = np.array([0.1, 0.2, 0.3])
    for _ in range(3):
        value = np.tanh(value) * 2
    np.testing.assert_allclose(got, np.exp(value) + 1, rtol=1e-5)
