"""Training steps: batches are fed in turn, the loss before the update is fetched."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np

from . import reference
from .spec import CHECKED, Program, Workload, labelled, normal, random, weights


def logreg_data(features: int, batch: int) -> SimpleNamespace:
    """Points on two sides of a plane."""
    rng = random(11)
    plane = normal(rng, features, 1)
    points = [normal(rng, batch, features) for _ in range(6)]
    return SimpleNamespace(
        parameters=[normal(rng, features, 1, scale=0.2), np.zeros(1, np.float32)],
        batches=[(x, (x @ plane > 0.5).astype(np.float32)) for x in points],
        rate=0.5,
    )


def logreg_program(tf: Any, data: SimpleNamespace) -> Program:
    """Logistic regression by gradient descent."""
    x = tf.placeholder(tf.float32, [None, data.batches[0][0].shape[1]])
    y = tf.placeholder(tf.float32, [None, 1])
    w, b = (tf.Variable(p) for p in data.parameters)
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=tf.matmul(x, w) + b)
    return minimized(tf, tf.reduce_mean(losses), ("GradientDescent", data.rate), x, y, data)


def logreg_answer(data: SimpleNamespace) -> list[Any]:
    """-log of the probability of what was true."""

    def loss(p: Any, x: np.ndarray, y: np.ndarray) -> float:
        chance = reference.sigmoid(x @ p[0] + p[1])
        return float(-np.mean(np.log(np.where(y > 0, chance, 1 - chance))))

    update = reference.descent(data.rate)
    return reference.train(loss, data.parameters, update, data.batches, CHECKED)


def minimized(
    tf: Any, loss: Any, optimizer: tuple[Any, ...], x: Any, y: Any, data: SimpleNamespace
) -> Program:
    """A step of the named optimizer."""
    name, *arguments = optimizer
    train = getattr(tf.train, f"{name}Optimizer")(*arguments).minimize(loss)
    return Program([train, loss], [{x: a, y: b} for a, b in data.batches])


def mlp_data(widths: tuple[int, ...], batch: int, optimizer: tuple[Any, ...]) -> SimpleNamespace:
    """Weights and biases in turn, and four batches with labels."""
    rng = random(12)
    parameters = []
    for a, b in itertools.pairwise(widths):
        parameters += [weights(rng, a, b), np.zeros(b, np.float32)]
    batches = labelled(rng, 4, (batch, widths[0]), widths[-1])
    return SimpleNamespace(parameters=parameters, batches=batches, optimizer=optimizer)


def mlp_program(tf: Any, data: SimpleNamespace) -> Program:
    """Fully connected layers with relu between them, softmax cross entropy."""
    x = tf.placeholder(tf.float32, [None, data.parameters[0].shape[0]])
    y = tf.placeholder(tf.int32, [None])
    h = x
    for i in range(0, len(data.parameters), 2):
        w, b = (tf.Variable(p) for p in data.parameters[i : i + 2])
        h = tf.matmul(tf.nn.relu(h) if i else h, w) + b
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=h)
    return minimized(tf, tf.reduce_mean(loss), data.optimizer, x, y, data)


def mlp_answer(data: SimpleNamespace) -> list[Any]:
    """The same in NumPy."""

    def loss(p: Any, x: np.ndarray, y: np.ndarray) -> float:
        h = x
        for i in range(0, len(p), 2):
            h = (reference.relu(h) if i else h) @ p[i] + p[i + 1]
        return reference.cross_entropy(h, y)

    name, *arguments = data.optimizer
    update = {"GradientDescent": reference.descent, "Adam": reference.adam}[name](*arguments)
    return reference.train(loss, data.parameters, update, data.batches, CHECKED)


def convnet_data(
    image: int, channels: tuple[int, ...], batch: int, classes: int
) -> SimpleNamespace:
    """Kernels and biases in turn, the last two of the dense layer, and four batches of images."""
    rng = random(13)
    parameters = []
    for a, b in zip((3, *channels), channels):
        parameters += [weights(rng, 3, 3, a, b), normal(rng, b, scale=0.1)]
    flat = (image // 2) ** 2 * channels[-1]
    parameters += [weights(rng, flat, classes), np.zeros(classes, np.float32)]
    batches = labelled(rng, 4, (batch, image, image, 3), classes)
    return SimpleNamespace(parameters=parameters, batches=batches, rate=0.002, keep=0.9)


def convnet_program(tf: Any, data: SimpleNamespace) -> Program:
    """3x3 convolutions with bias and relu, a max pool, a dense layer; Momentum."""
    x = tf.placeholder(tf.float32, [None, *data.batches[0][0].shape[1:]])
    y = tf.placeholder(tf.int32, [None])
    *layers, w, b = (tf.Variable(p) for p in data.parameters)
    h = x
    for kernel, bias in zip(layers[::2], layers[1::2]):
        h = tf.nn.conv2d(h, kernel, strides=[1, 1, 1, 1], padding="SAME")
        h = tf.nn.relu(tf.nn.bias_add(h, bias))
    h = tf.nn.max_pool(h, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    logits = tf.matmul(tf.reshape(h, [-1, w.shape[0]]), w) + b
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    optimizer = ("Momentum", data.rate, data.keep)
    return minimized(tf, tf.reduce_mean(loss), optimizer, x, y, data)


def convnet_answer(data: SimpleNamespace) -> list[Any]:
    """The same in NumPy."""

    def loss(p: Any, x: np.ndarray, y: np.ndarray) -> float:
        h = x
        for kernel, bias in zip(p[:-2:2], p[1:-2:2]):
            h = reference.relu(reference.conv(h, kernel) + bias)
        h = reference.max_pool(h, 2, 2).reshape(len(x), -1)
        return reference.cross_entropy(h @ p[-2] + p[-1], y)

    update = reference.momentum(data.rate, data.keep)
    return reference.train(loss, data.parameters, update, data.batches, CHECKED)


WORKLOADS = (
    Workload(
        "logreg_train",
        "logistic regression, {features} features, batch {batch}, gradient descent",
        {"features": 16, "batch": 128},
        {"features": 4, "batch": 7},
        logreg_data,
        logreg_program,
        logreg_answer,
        changes=True,
    ),
    Workload(
        "mlp_train_small",
        "layers of {widths}, batch {batch}, {optimizer[0]}",
        {"widths": (512, 192, 10), "batch": 48, "optimizer": ("GradientDescent", 0.02)},
        {"widths": (5, 4, 3), "batch": 6},
        mlp_data,
        mlp_program,
        mlp_answer,
        changes=True,
    ),
    Workload(
        "mlp_train_large",
        "layers of {widths}, batch {batch}, {optimizer[0]}",
        {"widths": (1280, 1792, 1792, 20), "batch": 384, "optimizer": ("Adam", 0.0002)},
        {"widths": (4, 5, 5, 3), "batch": 6},
        mlp_data,
        mlp_program,
        mlp_answer,
        tolerance=5e-4,
        changes=True,
    ),
    Workload(
        "convnet_train",
        "{batch} images of {image}x{image}x3, 3x3 convolutions to {channels}, max pool, "
        "{classes} classes, Momentum",
        {"image": 32, "channels": (32, 48, 64), "batch": 48, "classes": 10},
        {"image": 4, "channels": (2, 3, 2), "batch": 3, "classes": 3},
        convnet_data,
        convnet_program,
        convnet_answer,
        tolerance=3e-4,
        changes=True,
    ),
)
