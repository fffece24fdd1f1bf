"""An LSTM cell in a `tf.while_loop`, and the gradient through the loop."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from . import reference
from .spec import CHECKED, Program, Workload, normal, random


def data(steps: int, batch: int, width: int) -> SimpleNamespace:
    """A sequence, and the kernel and bias of the four gates side by side."""
    rng = random(51)
    return SimpleNamespace(
        sequence=normal(rng, steps, batch, width),
        kernel=normal(rng, 2 * width, 4 * width, scale=0.7 * width**-0.5),
        bias=normal(rng, 4 * width, scale=0.1),
    )


def program(tf: Any, data: SimpleNamespace, train: bool) -> Program:
    """The mean square of the last output, with it or with the gradients of the weights."""
    steps, batch, width = data.sequence.shape
    sequence = tf.placeholder(tf.float32, data.sequence.shape)
    kernel, bias = tf.Variable(data.kernel), tf.Variable(data.bias)

    def cell(t: Any, memory: Any, output: Any) -> tuple[Any, Any, Any]:
        z = tf.matmul(tf.concat([sequence[t], output], axis=1), kernel) + bias
        keep, take, new, show = tf.split(z, 4, axis=1)
        memory = tf.sigmoid(keep + 1.0) * memory + tf.sigmoid(take) * tf.tanh(new)
        return t + 1, memory, tf.sigmoid(show) * tf.tanh(memory)

    zeros = tf.zeros([batch, width])
    start = (tf.constant(0), zeros, zeros)
    output = tf.while_loop(lambda t, *_: t < steps, cell, start)[2]
    loss = tf.reduce_mean(tf.square(output))
    rest = tf.gradients(loss, [kernel, bias]) if train else [output]
    return Program([loss, *rest], [{sequence: data.sequence}])


def answer(data: SimpleNamespace, train: bool) -> list[Any]:
    """The same in NumPy."""
    sequence, *parameters = reference.double([data.sequence, data.kernel, data.bias])

    def last(kernel: np.ndarray, bias: np.ndarray) -> np.ndarray:
        memory = output = np.zeros(sequence.shape[1:])
        for x in sequence:
            keep, take, new, show = np.split(np.hstack([x, output]) @ kernel + bias, 4, axis=1)
            memory = reference.sigmoid(keep + 1) * memory
            memory = memory + reference.sigmoid(take) * np.tanh(new)
            output = reference.sigmoid(show) * np.tanh(memory)
        return output

    def loss(kernel: np.ndarray, bias: np.ndarray) -> float:
        return float(np.mean(last(kernel, bias) ** 2))

    rest = reference.gradients(loss, parameters) if train else [last(*parameters)]
    return [[loss(*parameters), *rest]] * CHECKED


def workload(name: str, train: bool) -> Workload:
    """The loop alone or with its gradient."""
    return Workload(
        name,
        "LSTM of {steps} steps, batch {batch}, width {width}, "
        + ("forward and backward" if train else "forward"),
        {"steps": 80, "batch": 24, "width": 144},
        {"steps": 4, "batch": 2, "width": 3},
        data,
        lambda tf, data: program(tf, data, train),
        lambda data: answer(data, train),
        tolerance=3e-4,
    )


WORKLOADS = (workload("lstm_loop", train=False), workload("lstm_loop_grad", train=True))
