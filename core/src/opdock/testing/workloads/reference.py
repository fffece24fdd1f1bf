"""The right answers, in float64: forward passes in NumPy, gradients by central differences.

A gradient that nobody derived can not repeat a mistake of one that somebody did. It takes two
forward passes a number, so sizes are tiny.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

STEP = 1e-5


def double(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Copies in float64."""
    return [np.array(a, np.float64) for a in arrays]


def gradients(f: Callable[..., float], arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The derivative of f(*arrays) by each number of each array."""
    out = []
    for a in arrays:
        d = np.zeros_like(a)
        for i in np.ndindex(a.shape):
            kept = a[i]
            a[i] = kept + STEP
            above = f(*arrays)
            a[i] = kept - STEP
            below = f(*arrays)
            a[i] = kept
            d[i] = (above - below) / (2 * STEP)
        out.append(d)
    return out


def train(
    loss: Callable[..., float],
    parameters: Sequence[np.ndarray],
    update: Callable[[list[np.ndarray], list[np.ndarray]], None],
    batches: Sequence[tuple[np.ndarray, ...]],
    steps: int,
) -> list[Any]:
    """The loss before each update; `loss` takes the parameters, then a batch."""
    parameters = double(parameters)
    losses = []
    for i in range(steps):
        batch = batches[i % len(batches)]

        def f(*p: np.ndarray, batch: tuple[np.ndarray, ...] = batch) -> float:
            return loss(p, *batch)

        losses.append([f(*parameters)])
        update(parameters, gradients(f, parameters))
    return losses


def descent(rate: float) -> Callable[[list[np.ndarray], list[np.ndarray]], None]:
    """Plain gradient descent."""

    def update(parameters: list[np.ndarray], slopes: list[np.ndarray]) -> None:
        for p, g in zip(parameters, slopes):
            p -= rate * g

    return update


def momentum(rate: float, keep: float) -> Callable[[list[np.ndarray], list[np.ndarray]], None]:
    """Gradient descent along a decaying sum of gradients."""
    sums: list[np.ndarray] = []

    def update(parameters: list[np.ndarray], slopes: list[np.ndarray]) -> None:
        sums[:] = [keep * s + g for s, g in zip(sums, slopes)] if sums else slopes
        for p, s in zip(parameters, sums):
            p -= rate * s

    return update


def adam(rate: float) -> Callable[[list[np.ndarray], list[np.ndarray]], None]:
    """Adam with its usual constants, and epsilon where TensorFlow adds it."""
    first: list[np.ndarray] = []
    second: list[np.ndarray] = []
    count = 0

    def update(parameters: list[np.ndarray], slopes: list[np.ndarray]) -> None:
        nonlocal count
        count += 1
        if not first:
            first.extend(np.zeros_like(p) for p in parameters)
            second.extend(np.zeros_like(p) for p in parameters)
        for p, g, m, v in zip(parameters, slopes, first, second):
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            p -= rate * np.sqrt(1 - 0.999**count) / (1 - 0.9**count) * m / (np.sqrt(v) + 1e-8)

    return update


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x))."""
    return np.asarray(1 / (1 + np.exp(-x)))


def relu(x: np.ndarray) -> np.ndarray:
    """max(x, 0)."""
    return np.asarray(np.maximum(x, 0))


def cross_entropy(logits: np.ndarray, labels: np.ndarray) -> float:
    """Mean over the rows of -log softmax(logits)[label]."""
    rows = np.arange(len(labels))
    return float(np.mean(np.log(np.exp(logits).sum(axis=1)) - logits[rows, labels]))


def windows(x: np.ndarray, size: int, stride: int, fill: float) -> np.ndarray:
    """SAME windows of NHWC images: [N, H', W', C, size, size]."""
    pads = []
    for n in x.shape[1:3]:
        total = max((-(-n // stride) - 1) * stride + size - n, 0)
        pads.append((total // 2, total - total // 2))
    x = np.pad(x, [(0, 0), *pads, (0, 0)], constant_values=fill)
    return np.lib.stride_tricks.sliding_window_view(x, (size, size), (1, 2))[:, ::stride, ::stride]


def conv(x: np.ndarray, w: np.ndarray, stride: int = 1) -> np.ndarray:
    """Convolution of NHWC images with an HWIO kernel, SAME."""
    return np.asarray(np.einsum("nhwcij,ijco->nhwo", windows(x, w.shape[0], stride, 0.0), w))


def max_pool(x: np.ndarray, size: int, stride: int) -> np.ndarray:
    """Maximum of SAME windows."""
    return np.asarray(windows(x, size, stride, -np.inf).max(axis=(-1, -2)))
