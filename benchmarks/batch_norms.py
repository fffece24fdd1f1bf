"""Whether `tf.nn.fused_batch_norm` is ever slower than the same written out.

    python benchmarks/batch_norms.py [WORDS ...]

Both are computed for six sizes of images, in training and inference, in both data formats, with
float32 and float16 images: the result, its gradients, and the gradients of its square. A figure is
the least processor time of a step in many short bursts, by turns, on one thread: what disturbs one
burst does not count, as long as one of each was left alone. WORDS choose the rows that have all of
them in their names. The exit status is 1 where a row's ratio is above 1.1, which is about what two
measurements of one program differ by on a busy machine.
"""

from __future__ import annotations

import argparse
import functools
import gc
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import opdock as tf

SIZES = (
    (32, 28, 28, 64), (64, 7, 7, 256), (8, 56, 56, 3), (4, 14, 14, 16), (2, 4, 4, 8),
    (16, 8, 8, 1000),
)  # fmt: skip
BURST = 0.012
MOST = 1.1


def cases(
    data_format: str, dtype: Any, size: tuple[int, ...], training: bool
) -> Iterator[tuple[str, Any, Any, dict[Any, Any]]]:
    """What is asked for, by the op, written out, and what is fed."""
    batch, *space, channels = size
    first = data_format == "NCHW"
    shape = [batch, channels, *space] if first else [batch, *space, channels]
    axes = [0, 2, 3] if first else [0, 1, 2]
    x, above = tf.placeholder(dtype, shape), tf.placeholder(dtype, shape)
    scale, offset = tf.Variable(tf.ones([channels])), tf.Variable(tf.zeros([channels]))
    wide = tf.cast(x, tf.float32)
    if training:
        mean, variance = tf.nn.moments(wide, axes)
        given = {}
    else:
        mean, variance = tf.Variable(tf.zeros([channels])), tf.Variable(tf.ones([channels]))
        given = {"mean": mean, "variance": variance}
    op, *_ = tf.nn.fused_batch_norm(
        x, scale, offset, data_format=data_format, is_training=training, **given
    )
    vectors = [mean, variance, offset, scale]
    if first:
        vectors = [tf.reshape(v, [1, -1, 1, 1]) for v in vectors]
    written = tf.cast(tf.nn.batch_normalization(wide, *vectors, 1e-3), dtype)
    sources = [x, scale, offset]
    feeds = {x: np.random.default_rng(1).random(shape).astype(dtype.as_numpy_dtype)}
    yield "result", op, written, feeds
    yield "square", *(tf.gradients(tf.square(y), sources) for y in (op, written)), feeds
    both = (tf.gradients(y, sources, above) for y in (op, written))
    yield "gradients", *both, {**feeds, above: feeds[x]}


def least(calls: list[Callable[[], Any]], rounds: int) -> list[float]:
    """The least processor time of each call, in bursts by turns."""
    for _ in range(30):
        for call in calls:
            call()
    time.sleep(0.3)  # code that is generated in the meantime comes to be used
    found = [math.inf] * len(calls)
    begin = time.thread_time()
    for call in calls:
        call()
    count = max(2, int(BURST * len(calls) / (time.thread_time() - begin + 1e-6)))
    for turn in range(rounds):
        for i in (0, 1) if turn % 2 else (1, 0):
            begin = time.thread_time()
            for _ in range(count):
                calls[i]()
            found[i] = min(found[i], (time.thread_time() - begin) / count)
    return found


def main() -> None:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("words", nargs="*")
    p.add_argument("--rounds", type=int, default=60, help="bursts of each")
    args = p.parse_args()
    gc.disable()
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    ratios = []
    for data_format, dtype, size, training in itertools.product(
        ("NHWC", "NCHW"), (tf.float32, tf.float16), SIZES, (True, False)
    ):
        about = f"{data_format} {dtype.name} {size} {'training' if training else 'inference'}"
        with tf.Graph().as_default():
            for what, *fetches, feeds in cases(data_format, dtype, size, training):
                name = f"{about} {what}"
                if not all(word in name for word in args.words):
                    continue
                with tf.Session(config=config) as session:
                    session.run(tf.global_variables_initializer())
                    made = [session.make_callable(f, list(feeds)) for f in fetches]
                    values = list(feeds.values())
                    one, other = least([functools.partial(c, *values) for c in made], args.rounds)
                ratios.append(one / other)
                print(f"{name:56} {one * 1e3:8.4f} {other * 1e3:8.4f} ms {ratios[-1]:6.2f}")
                sys.stdout.flush()
    slower = sum(ratio > MOST for ratio in ratios)
    mean = math.exp(sum(map(math.log, ratios)) / max(len(ratios), 1))
    print(f"{len(ratios)} rows, geometric mean {mean:.3f}, above {MOST}: {slower}")
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()
