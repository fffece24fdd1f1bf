"""ResNet-18, inference. The network is written once, over a few functions that a library brings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from . import reference
from .spec import CHECKED, Program, Workload, normal, random, weights

EPSILON = 0.001
STRIDES = (1, 1, 2, 1, 2, 1, 2, 1)  # of the eight blocks; a stride of 2 doubles the width


def layer(rng: np.random.RandomState, size: int, inputs: int, outputs: int) -> dict[str, Any]:
    """A convolution and the batch norm after it."""
    return {
        "kernel": weights(rng, size, size, inputs, outputs),
        "scale": np.abs(normal(rng, outputs, scale=0.2)) + np.float32(0.4),
        "offset": normal(rng, outputs, scale=0.1),
        "mean": normal(rng, outputs, scale=0.1),
        "variance": np.abs(normal(rng, outputs, scale=0.2)) + np.float32(0.8),
    }


def data(image: int, batch: int, width: int, classes: int) -> SimpleNamespace:
    """The network's parameters, nested as `network` walks them, and a batch of images."""
    rng = random(31)
    blocks = []
    outputs = width
    for stride in STRIDES:
        inputs, outputs = outputs, outputs * stride
        blocks.append(
            {
                "first": layer(rng, 3, inputs, outputs),
                "second": layer(rng, 3, outputs, outputs),
                "short": layer(rng, 1, inputs, outputs) if stride > 1 else None,
            }
        )
    parameters = {
        "stem": layer(rng, 7, 3, width),
        "blocks": blocks,
        "dense": (weights(rng, outputs, classes), np.zeros(classes, np.float32)),
    }
    return SimpleNamespace(parameters=parameters, images=normal(rng, batch, image, image, 3))


def network(lib: Any, p: Any, images: Any) -> Any:
    """The logits. `lib` brings conv(x, kernel, stride), norm(x, layer), relu(x),
    max_pool(x, size, stride), mean(x) over height and width, and dense(x, w, b).
    """

    def unit(x: Any, layer: Any, stride: int) -> Any:
        return lib.norm(lib.conv(x, layer["kernel"], stride), layer)

    h = lib.max_pool(lib.relu(unit(images, p["stem"], 2)), 3, 2)
    for stride, block in zip(STRIDES, p["blocks"]):
        way = unit(lib.relu(unit(h, block["first"], stride)), block["second"], 1)
        short = unit(h, block["short"], stride) if block["short"] is not None else h
        h = lib.relu(way + short)
    return lib.dense(lib.mean(h), *p["dense"])


def nested(f: Any, p: Any) -> Any:
    """The parameters with `f` applied to each array."""
    if isinstance(p, dict):
        return {k: nested(f, v) for k, v in p.items()}
    if isinstance(p, (list, tuple)):
        return type(p)(nested(f, v) for v in p)
    return None if p is None else f(p)


def program(tf: Any, data: SimpleNamespace) -> Program:
    """The logits of fed images."""

    def norm(x: Any, p: Any) -> Any:
        moments = {"mean": p["mean"], "variance": p["variance"]}
        return tf.nn.fused_batch_norm(
            x, p["scale"], p["offset"], epsilon=EPSILON, is_training=False, **moments
        )[0]

    lib = SimpleNamespace(
        conv=lambda x, w, s: tf.nn.conv2d(x, w, strides=[1, s, s, 1], padding="SAME"),
        norm=norm,
        relu=tf.nn.relu,
        max_pool=lambda x, n, s: tf.nn.max_pool(
            x, ksize=[1, n, n, 1], strides=[1, s, s, 1], padding="SAME"
        ),
        mean=lambda x: tf.reduce_mean(x, axis=[1, 2]),
        dense=lambda x, w, b: tf.matmul(x, w) + b,
    )
    images = tf.placeholder(tf.float32, data.images.shape)
    parameters = nested(lambda v: tf.Variable(v, trainable=False), data.parameters)
    return Program(network(lib, parameters, images), [{images: data.images}])


def answer(data: SimpleNamespace) -> list[Any]:
    """The same over the NumPy functions."""
    lib = SimpleNamespace(
        conv=reference.conv,
        norm=lambda x, p: (
            (x - p["mean"]) / np.sqrt(p["variance"] + EPSILON) * p["scale"] + p["offset"]
        ),
        relu=reference.relu,
        max_pool=reference.max_pool,
        mean=lambda x: x.mean(axis=(1, 2)),
        dense=lambda x, w, b: x @ w + b,
    )
    wide = nested(lambda v: v.astype(np.float64), data.parameters)
    return [[network(lib, wide, data.images.astype(np.float64))]] * CHECKED


WORKLOADS = tuple(
    Workload(
        f"resnet_infer_b{batch}",
        "ResNet-18, batch {batch}, images of {image}x{image}x3, {classes} classes",
        {"image": 192, "batch": batch, "width": 64, "classes": 1000},
        {"image": 34, "batch": 1 + batch // 8, "width": 4, "classes": 5},
        data,
        program,
        answer,
        tolerance=3e-4,
    )
    for batch in (1, 8)
)
