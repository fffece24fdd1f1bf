"""The tutorial's model of the digits: two hidden layers, in functions called in turn."""

from __future__ import annotations

import math
from typing import Any, Final

import opdock as tf
from opdock.graph.nodes.operation import Tensor

__all__ = [
    "IMAGE_PIXELS",
    "IMAGE_SIZE",
    "NUM_CLASSES",
    "evaluation",
    "inference",
    "loss",
    "training",
]

NUM_CLASSES: Final = 10
IMAGE_SIZE: Final = 28
IMAGE_PIXELS: Final = IMAGE_SIZE * IMAGE_SIZE


def _layer(name: str, x: Any, size_in: int, size_out: int) -> Any:
    """A linear layer, with the names that the tutorial's checkpoints have."""
    with tf.name_scope(name):
        start = tf.truncated_normal([size_in, size_out], stddev=1.0 / math.sqrt(size_in))
        weights = tf.Variable(start, name="weights")
        biases = tf.Variable(tf.zeros([size_out]), name="biases")
        return tf.matmul(x, weights) + biases


def inference(images: Any, hidden1_units: int, hidden2_units: int) -> Tensor:
    """The logits, [batch, 10], of images, [batch, 784]."""
    hidden1 = tf.nn.relu(_layer("hidden1", images, IMAGE_PIXELS, hidden1_units))
    hidden2 = tf.nn.relu(_layer("hidden2", hidden1, hidden1_units, hidden2_units))
    logits: Tensor = _layer("softmax_linear", hidden2, hidden2_units, NUM_CLASSES)
    return logits


def loss(logits: Any, labels: Any) -> Tensor:
    """The mean cross-entropy of logits and labels, [batch]."""
    found: Tensor = tf.losses.sparse_softmax_cross_entropy(
        labels=tf.cast(labels, tf.int64), logits=logits
    )
    return found


def training(loss: Any, learning_rate: Any) -> Any:
    """The op of a step of gradient descent; it counts the steps and summarizes the loss."""
    tf.summary.scalar("loss", loss)
    global_step = tf.Variable(0, name="global_step", trainable=False)
    optimizer = tf.train.GradientDescentOptimizer(learning_rate)
    return optimizer.minimize(loss, global_step=global_step)


def evaluation(logits: Any, labels: Any) -> Tensor:
    """How many logits are largest at their label."""
    right: Tensor = tf.reduce_sum(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.int32))
    return right
