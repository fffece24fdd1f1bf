"""Products, convolutions and training steps on one device, beside the peers that are installed.

    python benchmarks/gpu.py [--device /device:CUDA:0] [--quick]

A step is timed in a loop that waits once at its end, so queued work overlaps as in training.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable, Iterator

import numpy as np

import opdock as tf

Row = tuple[str, float, str, float | None]


def per_call(step: Callable[[], object], wait: Callable[[], object], count: int) -> float:
    """Seconds a call, over `count` calls behind one another."""
    for _ in range(5):
        step()
    wait()
    begin = time.perf_counter()
    for _ in range(count):
        step()
    wait()
    return (time.perf_counter() - begin) / count


def product(size: int, device: str, count: int) -> float:
    """TFLOP/s of a float32 product of two square matrices that stay on the device."""
    with tf.Graph().as_default(), tf.device(device), tf.Session() as session:
        a = tf.Variable(tf.random_uniform([size, size], seed=1))
        step = tf.matmul(a, a)[0, 0]
        session.run(tf.global_variables_initializer())
        run = session.make_callable(step)
        return 2 * size**3 / per_call(run, run, count) / 1e12


def convolution(batch: int, device: str, count: int) -> float:
    """Milliseconds of a 3x3 convolution of 64 channels and both of its gradients."""
    with tf.Graph().as_default(), tf.device(device), tf.Session() as session:
        x = tf.Variable(tf.random_uniform([batch, 56, 56, 64], seed=1))
        w = tf.Variable(tf.random_uniform([3, 3, 64, 64], seed=2))
        y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")
        grads = tf.gradients(tf.reduce_sum(y * y), [x, w])
        step = tf.reduce_sum(grads[0]) + tf.reduce_sum(grads[1])
        session.run(tf.global_variables_initializer())
        run = session.make_callable(step)
        return per_call(run, run, count) * 1e3


def training(width: int, device: str, count: int) -> float:
    """Milliseconds of a step of Adam on a network of three layers; it can be recorded."""
    rng = np.random.default_rng(0)
    data, labels = rng.normal(size=(64, width)).astype(np.float32), rng.integers(0, 10, 64)
    with tf.Graph().as_default(), tf.device(device), tf.Session() as session:
        x = tf.placeholder(tf.float32, [64, width])
        y = tf.placeholder(tf.int32, [64])
        hidden = tf.layers.dense(tf.layers.dense(x, width, tf.nn.relu), width, tf.nn.relu)
        targets = tf.one_hot(y, 10)
        logits = tf.layers.dense(hidden, 10)
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(targets, logits))
        train = tf.train.AdamOptimizer().minimize(loss)
        session.run(tf.global_variables_initializer())
        feed = {x: data, y: labels}
        return (
            per_call(lambda: session.run(train, feed), lambda: session.run(loss, feed), count) * 1e3
        )


def torch_product(size: int, count: int) -> float:
    """The same product by PyTorch."""
    import torch

    where = "cuda" if torch.cuda.is_available() else "cpu"
    a = torch.rand(size, size, device=where)
    wait = torch.cuda.synchronize if where == "cuda" else lambda: None
    return 2 * size**3 / per_call(lambda: a @ a, wait, count) / 1e12


def rows(device: str, quick: bool) -> Iterator[Row]:
    """The measurements."""
    sizes, count = ((256,), 3) if quick else ((1024, 4096, 8192), 30)
    for size in sizes:
        yield f"product {size}", product(size, device, count), "TFLOP/s", None
        if importlib.util.find_spec("torch") is not None:
            yield f"product {size}, PyTorch", torch_product(size, count), "TFLOP/s", None
    batch, width = (1, 32) if quick else (32, 1024)
    yield "convolution and gradients", convolution(batch, device, count), "ms", None
    yield "training step", training(width, device, count), "ms", None


def main() -> None:
    """Prints one line a measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="/device:CUDA:0")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    args = parser.parse_args()
    for name, value, unit, _ in rows(args.device, args.quick):
        print(f"{name:32} {value:12.4g} {unit}", flush=True)


if __name__ == "__main__":
    main()
