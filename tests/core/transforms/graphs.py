"""Graphs that the tests of transforms rewrite and run."""

from __future__ import annotations

from typing import Any

import numpy as np

import opdock as tf

IMAGES = np.random.RandomState(0).uniform(-1, 1, (2, 8, 8, 3)).astype(np.float32)

LAYERS = (
    "conv", "scaled conv", "product norm", "fused norm", "older norm", "two normal convs", "atrous",
    "resized", "mirrored", "relu", "relu6", "max pool", "mean pool", "identity", "checked", "bias",
    "residual", "constants", "branches",
)  # fmt: skip


class Builder:
    """Puts layers one on the other; all numbers come from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.RandomState(seed)

    def weights(self, *shape: int, low: float = -0.5) -> Any:
        return tf.constant(self.random.uniform(low, 0.5, shape).astype(np.float32))

    def vector(self, size: int, low: float = 0.5) -> Any:
        return tf.constant(self.random.uniform(low, low + 1, size).astype(np.float32))

    def conv(self, x: Any, size: int = 3) -> Any:
        channels = x.shape.as_list()[-1]
        return tf.nn.conv2d(x, self.weights(size, size, channels, 4), [1, 1, 1, 1], "SAME")

    def normal(self, x: Any, older: bool = False) -> Any:
        gamma, beta, mean, variance = (self.vector(4) for _ in range(4))
        if older:
            return tf.raw_ops.BatchNormWithGlobalNormalization(
                t=x, m=mean, v=variance, beta=beta, gamma=gamma, variance_epsilon=0.01,
                scale_after_normalization=True,
            )  # fmt: skip
        return tf.nn.fused_batch_norm(x, gamma, beta, mean, variance, is_training=False)[0]

    def two_normal_convs(self, x: Any) -> Any:
        channels = x.shape.as_list()[-1]
        parts = [
            tf.nn.conv2d(x, self.weights(1, 1, channels, n), [1, 1, 1, 1], "SAME") for n in (1, 3)
        ]
        return self.normal(tf.concat(parts, 3))

    def atrous(self, x: Any) -> Any:
        odd = [size % 2 for size in x.shape.as_list()[1:3]]
        spread = tf.space_to_batch_nd(x, [2, 2], [[2, 2 + more] for more in odd])
        weights = self.weights(3, 3, x.shape.as_list()[-1], 4)
        conv = tf.nn.conv2d(spread, weights, [1, 1, 1, 1], "VALID")
        return tf.batch_to_space_nd(conv, [2, 2], [[0, more] for more in odd])

    def layer(self, kind: str, x: Any) -> Any:
        size = x.shape.as_list()[1]
        made = {
            "conv": lambda: self.conv(x),
            "scaled conv": lambda: self.conv(x) * self.vector(4),
            "product norm": lambda: tf.nn.batch_normalization(
                self.conv(x), *(self.vector(4) for _ in range(4)), variance_epsilon=0.01
            ),
            "fused norm": lambda: self.normal(self.conv(x)),
            "older norm": lambda: self.normal(self.conv(x), older=True),
            "two normal convs": lambda: self.two_normal_convs(x),
            "atrous": lambda: self.atrous(x),
            "resized": lambda: self.conv(tf.image.resize_bilinear(x, [size + 1, size + 2])),
            "mirrored": lambda: self.conv(tf.pad(x, [[0, 0], [1, 1], [1, 0], [0, 0]], "REFLECT")),
            "relu": lambda: tf.nn.relu(x),
            "relu6": lambda: tf.nn.relu6(x),
            "max pool": lambda: tf.nn.max_pool(x, [1, 2, 2, 1], [1, 1, 1, 1], "SAME"),
            "mean pool": lambda: tf.nn.avg_pool(x, [1, 2, 2, 1], [1, 1, 1, 1], "SAME"),
            "identity": lambda: tf.identity(x),
            "checked": lambda: tf.check_numerics(x, "is no number"),
            "bias": lambda: tf.nn.bias_add(x, self.vector(x.shape.as_list()[-1], -0.5)),
            "residual": lambda: x + tf.nn.relu(x),
            "constants": lambda: x * tf.reduce_mean(tf.exp(self.vector(3)) + 1.0),
            "branches": lambda: tf.concat([self.conv(x, 1), self.conv(x, 3)], 3),
        }[kind]  # fmt: skip
        return made()


def network(seed: int, layers: Any) -> Any:
    """A GraphDef from "x", images of 8x8 pixels, to "y", three probabilities for each."""
    builder = Builder(seed)
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 8, 8, 3], name="x")
        for kind in layers:
            x = builder.layer(kind, x)
        means = tf.reduce_mean(x, [1, 2])
        logits = tf.matmul(means, builder.weights(means.shape.as_list()[-1], 3))
        tf.nn.softmax(logits, name="y")
        tf.multiply(logits, 2.0, name="unused")
        return graph.as_graph_def()


def inception() -> Any:
    """A GraphDef of the kind of Inception 2015: JPEG bytes to "softmax", "Mul" the normal image."""
    builder = Builder(7)

    def unit(x: Any, size: int, stride: int = 1, older: bool = True) -> Any:
        channels = x.shape.as_list()[-1]
        kernel = tf.identity(builder.weights(size, size, channels, 4))
        conv = tf.nn.conv2d(x, kernel, [1, stride, stride, 1], "SAME")
        return tf.nn.relu(tf.check_numerics(builder.normal(conv, older), "norm"))

    with tf.Graph().as_default() as graph:
        content = tf.placeholder(tf.string, [], name="DecodeJpeg/contents")
        image = tf.cast(tf.image.decode_jpeg(content, channels=3), tf.float32)
        resized = tf.image.resize_bilinear(tf.expand_dims(image, 0), [8, 8])
        x = tf.multiply(tf.subtract(resized, 128.0), 1 / 128, name="Mul")
        x = tf.reshape(x, [1, 8, 8, 3])
        x = tf.nn.max_pool(unit(x, 3), [1, 3, 3, 1], [1, 2, 2, 1], "SAME")
        for older in (True, False):
            towers = [unit(x, 1, 1, older), unit(unit(x, 1), 3, 1, older)]
            pooled = tf.nn.avg_pool(x, [1, 3, 3, 1], [1, 1, 1, 1], "SAME")
            x = tf.concat([*towers, unit(pooled, 1)], 3)
        pool = tf.nn.avg_pool(x, [1, 4, 4, 1], [1, 1, 1, 1], "VALID")
        flat = tf.reshape(pool, [-1, 12])
        logits = tf.nn.bias_add(tf.matmul(flat, builder.weights(12, 5)), builder.vector(5))
        tf.nn.softmax(logits, name="softmax")
        return graph.as_graph_def()


def ran(graph_def: Any, fetches: Any = "y:0", feeds: Any = None) -> Any:
    """What a GraphDef computes."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph_def, name="")
        return session.run(fetches, {"x:0": IMAGES} if feeds is None else feeds)


def ops(graph_def: Any) -> list[str]:
    """The ops of a GraphDef, sorted."""
    return sorted(node.op for node in graph_def.node)
