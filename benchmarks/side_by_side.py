"""Inference on several threads of one process, each step on one thread: how steps a second grow.

    python side_by_side.py [--seconds S] [--threads 1,2,4]

Every thread has a session of its own with `intra_op_parallelism_threads=1`. It prints, for each
program and number of threads, how many times the steps of one thread they make together: as many
as threads at best, while there are cores.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import opdock as tf

Program = Callable[[], tuple[Any, Any, np.ndarray]]


def mlp() -> tuple[Any, Any, np.ndarray]:
    """Three layers over a batch of 32."""
    x = tf.placeholder(tf.float32, [32, 784])
    y = x
    for units in (512, 512, 10):
        y = tf.layers.dense(y, units, activation=tf.nn.relu)
    return x, y, np.ones((32, 784), np.float32)


def resnet() -> tuple[Any, Any, np.ndarray]:
    """Four residual blocks over eight small images."""
    x = tf.placeholder(tf.float32, [8, 16, 16, 32])
    y = x
    for _ in range(4):
        short = y
        for _ in range(2):
            y = tf.layers.conv2d(y, 32, 3, padding="same", use_bias=False)
            y = tf.nn.relu(tf.layers.batch_normalization(y))
        y += short
    return x, tf.reduce_mean(y, [1, 2]), np.ones((8, 16, 16, 32), np.float32)


class Runner:
    """A session and its steps.

    Args:
        program: what it computes.
    """

    def __init__(self, program: Program) -> None:
        with tf.Graph().as_default() as graph:
            x, self._fetch, value = program()
            config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
            self._session = tf.Session(graph=graph, config=config)
            self._session.run(tf.global_variables_initializer())
        self._feed = {x: value}
        self.steps = 0
        for _ in range(3):
            self._session.run(self._fetch, self._feed)

    def run(self, end: threading.Event) -> None:
        """Steps until the end."""
        while not end.is_set():
            self._session.run(self._fetch, self._feed)
            self.steps += 1


def rate(program: Program, count: int, seconds: float) -> float:
    """Steps a second of so many threads together."""
    runners, end = [Runner(program) for _ in range(count)], threading.Event()
    threads = [threading.Thread(target=r.run, args=(end,)) for r in runners]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    end.wait(seconds)
    end.set()
    for thread in threads:
        thread.join()
    return sum(r.steps for r in runners) / (time.perf_counter() - begin)


def main() -> None:
    """Prints a line for each program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--threads", default="1,2,4")
    args = parser.parse_args()
    counts = [int(text) for text in args.threads.split(",")]
    for program in (mlp, resnet):
        alone = rate(program, 1, args.seconds)
        found = [f"{n} threads {rate(program, n, args.seconds) / alone:.2f}" for n in counts]
        print(f"{program.__name__}: {', '.join(found)}", flush=True)


if __name__ == "__main__":
    main()
