"""Batch normalization in training, forward and backward: as one op, and written out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from . import reference
from .spec import CHECKED, Program, Workload, normal, random

EPSILON = 0.001


def data(shape: tuple[int, ...]) -> SimpleNamespace:
    """Images, scale and offset, and what weighs the result, so that its gradient is not zero."""
    rng = random(21)
    return SimpleNamespace(
        x=normal(rng, *shape) + np.float32(0.5),
        scale=normal(rng, shape[-1], scale=0.1) + np.float32(1),
        offset=normal(rng, shape[-1], scale=0.1),
        weight=normal(rng, *shape, scale=0.02),
    )


def program(tf: Any, data: SimpleNamespace, fused: bool) -> Program:
    """The weighted sum and its gradients by images, scale and offset."""
    x, scale, offset = (tf.Variable(v) for v in (data.x, data.scale, data.offset))
    weight = tf.Variable(data.weight, trainable=False)
    if fused:
        y = tf.nn.fused_batch_norm(x, scale, offset, epsilon=EPSILON)[0]
    else:
        mean, variance = tf.nn.moments(x, axes=[0, 1, 2])
        y = tf.nn.batch_normalization(x, mean, variance, offset, scale, EPSILON)
    total = tf.reduce_sum(y * weight)
    return Program([total, *tf.gradients(total, [x, scale, offset])])


def answer(data: SimpleNamespace) -> list[Any]:
    """The same in NumPy."""

    def total(x: np.ndarray, scale: np.ndarray, offset: np.ndarray) -> float:
        mean, variance = x.mean(axis=(0, 1, 2)), x.var(axis=(0, 1, 2))
        y = (x - mean) / np.sqrt(variance + EPSILON) * scale + offset
        return float((y * data.weight).sum())

    arrays = reference.double([data.x, data.scale, data.offset])
    return [[total(*arrays), *reference.gradients(total, arrays)]] * CHECKED


def workload(name: str, how: str, fused: bool) -> Workload:
    """One of the two."""
    return Workload(
        name,
        f"batch norm by {how}, forward and backward, {{shape}}",
        {"shape": (24, 64, 64, 48)},
        {"shape": (2, 3, 3, 4)},
        data,
        lambda tf, data: program(tf, data, fused),
        answer,
        tolerance=2e-4,
    )


WORKLOADS = (
    workload("bn_fused", "fused_batch_norm", fused=True),
    workload("bn_unfused", "moments and batch_normalization", fused=False),
)
