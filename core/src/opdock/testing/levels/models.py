"""NumPy models of the training programs of level L4: forward, backward and update by hand.

Written for reading and independent of the framework under test: each class holds its parameters in
float64 and makes one step of its optimizer per call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["AdamMlp", "ConvNet", "EmbeddingModel", "LinearRegression"]

Array = npt.NDArray[Any]


def softmax_cross_entropy(logits: Array, labels: Array) -> tuple[float, Array]:
    """Mean loss over the rows and its derivative by the logits; labels are class numbers."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    probability = np.exp(shifted)
    probability /= probability.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    loss = float(-np.log(probability[rows, labels]).mean())
    gradient = probability.copy()
    gradient[rows, labels] -= 1.0
    return loss, gradient / len(labels)


class LinearRegression:
    """y = x w + b, mean squared error, gradient descent."""

    def __init__(self, inputs: int, rate: float) -> None:
        self.w, self.b, self.rate = np.zeros((inputs, 1)), np.zeros(1), rate

    def step(self, x: Array, y: Array) -> float:
        """One update; the loss before it."""
        error = x @ self.w + self.b - y
        self.w = self.w - self.rate * 2.0 * x.T @ error / len(x)
        self.b = self.b - self.rate * 2.0 * error.mean(axis=0)
        return float((error**2).mean())


class AdamMlp:
    """Two dense layers with tanh between them, softmax cross entropy, Adam."""

    def __init__(self, parameters: dict[str, Array], rate: float) -> None:
        self.p = {k: v.astype(np.float64) for k, v in parameters.items()}
        self.m = {k: np.zeros_like(v) for k, v in self.p.items()}
        self.v = {k: np.zeros_like(v) for k, v in self.p.items()}
        self.rate, self.steps = rate, 0

    def step(self, x: Array, labels: Array) -> float:
        """One update; the loss before it."""
        p = self.p
        hidden = np.tanh(x @ p["w1"] + p["b1"])
        loss, d_logits = softmax_cross_entropy(hidden @ p["w2"] + p["b2"], labels)
        d_hidden = (d_logits @ p["w2"].T) * (1.0 - hidden**2)
        self._adam("w2", hidden.T @ d_logits)
        self._adam("b2", d_logits.sum(axis=0))
        self._adam("w1", x.T @ d_hidden)
        self._adam("b1", d_hidden.sum(axis=0))
        self.steps += 1
        return loss

    def _adam(self, name: str, gradient: Array) -> None:
        beta1, beta2, epsilon = 0.9, 0.999, 1e-8
        self.m[name] = beta1 * self.m[name] + (1 - beta1) * gradient
        self.v[name] = beta2 * self.v[name] + (1 - beta2) * gradient**2
        time = self.steps + 1
        rate = self.rate * np.sqrt(1 - beta2**time) / (1 - beta1**time)
        self.p[name] = self.p[name] - rate * self.m[name] / (np.sqrt(self.v[name]) + epsilon)


class ConvNet:
    """3x3 convolution (SAME), bias, relu, 2x2 max pooling, dense layer; momentum."""

    def __init__(self, parameters: dict[str, Array], rate: float, momentum: float) -> None:
        self.p = {k: v.astype(np.float64) for k, v in parameters.items()}
        self.velocity = {k: np.zeros_like(v) for k, v in self.p.items()}
        self.rate, self.momentum = rate, momentum

    def step(self, images: Array, labels: Array) -> float:
        """One update; the loss before it."""
        p = self.p
        patches = _patches(images)
        before = patches @ p["filter"].reshape(-1, p["filter"].shape[-1]) + p["bias"]
        active = np.maximum(before, 0.0)
        batch, height, width, channels = active.shape
        blocks = active.reshape(batch, height // 2, 2, width // 2, 2, channels)
        blocks = blocks.transpose(0, 1, 3, 5, 2, 4).reshape(
            batch, height // 2, width // 2, channels, 4
        )
        winner = blocks.argmax(axis=-1)
        flat = blocks.max(axis=-1).reshape(batch, -1)
        loss, d_logits = softmax_cross_entropy(flat @ p["dense"], labels)

        d_pooled = (d_logits @ p["dense"].T).reshape(winner.shape)
        d_blocks = np.where(np.arange(4) == winner[..., None], d_pooled[..., None], 0.0)
        d_active = d_blocks.reshape(batch, height // 2, width // 2, channels, 2, 2)
        d_active = d_active.transpose(0, 1, 4, 2, 5, 3).reshape(active.shape)
        d_before = np.where(before > 0, d_active, 0.0)
        gradients = {
            "dense": flat.T @ d_logits,
            "bias": d_before.sum(axis=(0, 1, 2)),
            "filter": np.einsum("bhwp,bhwc->pc", patches, d_before).reshape(p["filter"].shape),
        }
        for name, gradient in gradients.items():
            self.velocity[name] = self.momentum * self.velocity[name] + gradient
            p[name] = p[name] - self.rate * self.velocity[name]
        return loss


def _patches(images: Array) -> Array:
    """The 3x3 neighbourhood of every pixel as a vector, zeros beyond the border."""
    _, height, width, _ = images.shape
    padded = np.pad(images.astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
    shifted = [padded[:, i : i + height, j : j + width] for i in range(3) for j in range(3)]
    return np.concatenate(shifted, axis=-1)


class EmbeddingModel:
    """Rows of a table, looked up, averaged and compared with a target; Adagrad on the rows used."""

    def __init__(self, table: Array, rate: float, initial: float) -> None:
        self.table = table.astype(np.float64)
        self.accumulator = np.full_like(self.table, initial)
        self.rate = rate

    def step(self, rows: Array, target: Array) -> float:
        """One update; the loss before it."""
        error = self.table[rows].mean(axis=1) - target
        gradient = np.zeros_like(self.table)
        share = 2.0 * error / error.size / rows.shape[1]
        np.add.at(gradient, rows, share[:, None, :])
        used = np.unique(rows)
        self.accumulator[used] += gradient[used] ** 2
        self.table[used] -= self.rate * gradient[used] / np.sqrt(self.accumulator[used])
        return float((error**2).mean())
