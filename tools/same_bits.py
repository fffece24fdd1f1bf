"""Whether programs give the same bits in every process, for any number of threads.

    python tools/same_bits.py --device /device:CPU:0 --threads 1,2,3,1 --programs 24

Each number of threads has a process with `TF_DETERMINISTIC_OPS=1`, of which the first finds nothing
compiled and the others what it left. They train networks, run ops that add up much in several
types, and random programs of `random_programs.py`; what all give is compared to the bit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import random_programs

import opdock as tf

Array = np.ndarray[Any, Any]
Case = Callable[[], Sequence[Array]]


def numbers(*shape: int) -> Array:
    """The same for a shape, always."""
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32)


def places(count: int, *shape: int) -> Array:
    """Whole numbers below `count`, the same for a shape."""
    return np.random.default_rng(shape).integers(0, count, shape, np.int32)


def convolutions() -> Any:
    """The loss of a network with batch normalization and dropout."""
    x = tf.constant(numbers(16, 32, 32, 3))
    for channels in (32, 64):
        x = tf.layers.conv2d(x, channels, 3, padding="same")
        x = tf.nn.relu(tf.layers.batch_normalization(x, training=True))
        x = tf.layers.max_pooling2d(x, 2, 2)
    x = tf.layers.separable_conv2d(x, 32, 3)
    x = tf.layers.conv2d_transpose(x, 16, 3)
    x = tf.nn.dropout(tf.layers.flatten(x), 0.5)
    x = tf.layers.dense(tf.layers.dense(x, 256, tf.nn.relu), 10)
    return tf.losses.sparse_softmax_cross_entropy(places(10, 16), x)


def volumes() -> Any:
    """The loss of convolutions in three dimensions."""
    return tf.nn.l2_loss(tf.layers.conv3d(tf.constant(numbers(4, 8, 16, 16, 3)), 16, 3))


def recurrence() -> Any:
    """The loss of an LSTM."""
    cell = tf.nn.rnn_cell.LSTMCell(64)
    out, _ = tf.nn.dynamic_rnn(cell, tf.constant(numbers(16, 20, 32)), dtype=tf.float32)
    return tf.reduce_mean(tf.square(out))


def attention() -> Any:
    """The loss of attention over embedded words, some of which come often."""
    table = tf.get_variable("table", [500, 128])
    x = tf.nn.embedding_lookup(table, places(500, 8, 64))
    q, k, v = (tf.layers.dense(x, 128) for _ in range(3))
    shares = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 11.0)
    return tf.reduce_mean(tf.square(tf.contrib.layers.layer_norm(tf.matmul(shares, v))))


def sums(dtype: str) -> list[Any]:
    """Results that are sums of much, in an element type, of what is fed."""
    x = tf.placeholder_with_default(numbers(3000, 500).astype(dtype), [None, 500])
    ids = places(50, 3000)
    return [
        tf.reduce_sum(x), tf.reduce_sum(x, 0), tf.reduce_mean(x, 1), tf.nn.l2_loss(x),
        tf.reduce_logsumexp(x), *tf.nn.moments(x, [0]), tf.cumsum(x), tf.cumsum(x, 1),
        tf.unsorted_segment_sum(x, ids, 50), tf.scatter_nd(ids[:, None], x, [50, 500]),
        tf.matmul(x, x[:500], transpose_b=True), tf.matmul(x, x, transpose_a=True),
        tf.matmul(x, x[:1], transpose_b=True), tf.matmul(x[:1], x[:700], transpose_b=True),
    ]  # fmt: skip


def solutions() -> list[Any]:
    """Results of linear algebra and of Fourier transforms."""
    x = tf.placeholder_with_default(numbers(300, 300), [300, 300])
    square = tf.matmul(x, x, transpose_b=True) + 300 * tf.eye(300)
    return [
        tf.linalg.inv(x), tf.cholesky(square), tf.matrix_solve(square, x),
        tf.svd(x, compute_uv=False), tf.matrix_determinant(x / 20),
        tf.abs(tf.fft2d(tf.cast(x, tf.complex64))),
    ]  # fmt: skip


def drawn() -> list[Any]:
    """Random numbers."""
    return [
        tf.random_normal([1000, 100]), tf.random_uniform([1000, 100]), tf.random_gamma([1000], 2.0),
        tf.random_shuffle(numbers(1000, 50)), tf.multinomial(numbers(100, 500), 5),
    ]  # fmt: skip


class Programs:
    """What is run on a device.

    Args:
        device: its name.
        threads: that a session may have.
    """

    def __init__(self, device: str, threads: int) -> None:
        self.device = device
        self.config = tf.ConfigProto(
            allow_soft_placement=True, intra_op_parallelism_threads=threads
        )

    def trained(self, loss: Callable[[], Any]) -> list[Array]:
        """Losses of four steps, and the weights after them."""
        with tf.Graph().as_default(), tf.device(self.device):
            tf.set_random_seed(1)
            made = loss()
            step = tf.train.MomentumOptimizer(0.01, 0.9).minimize(made)
            with tf.Session(config=self.config) as session:
                session.run(tf.global_variables_initializer())
                losses = [session.run([made, step])[0] for _ in range(4)]
                return losses + session.run(tf.trainable_variables())

    def computed(self, results: Callable[[], list[Any]]) -> list[Array]:
        """What the results of a program are, twice."""
        with tf.Graph().as_default(), tf.device(self.device):
            tf.set_random_seed(1)
            made = results()
            with tf.Session(config=self.config) as session:
                return [*session.run(made), *session.run(made)]

    def random(self, number: int, dtype: str) -> list[Array]:
        """What a random program gives, in one of the ways to run it."""
        ways = list(random_programs.WAYS.values())
        run, rewritten = ways[number % len(ways)]
        return run(random_programs.program(7, number, dtype, rewritten), self.device)

    def cases(self, programs: int) -> dict[str, Case]:
        """All of them by name, with so many random programs."""
        found: dict[str, Case] = {}
        for loss in (convolutions, volumes, recurrence, attention):
            found[loss.__name__] = lambda loss=loss: self.trained(loss)
        for dtype in ("float32", "float64", "float16"):
            found[f"sums of {dtype}"] = lambda dtype=dtype: self.computed(lambda: sums(dtype))
        found["solutions"] = lambda: self.computed(solutions)
        found["drawn"] = lambda: self.computed(drawn)
        for number in range(programs):
            for dtype in ("float32", "float16"):
                name = f"random program {number} of {dtype}"
                found[name] = lambda n=number, dtype=dtype: self.random(n, dtype)
        return found


def told(device: str, threads: int, programs: int) -> dict[str, str]:
    """A sum of the bits that each case gives, in this process."""
    found = {}
    for name, case in Programs(device, threads).cases(programs).items():
        taken = hashlib.sha256()
        for value in case():
            taken.update(np.ascontiguousarray(value).tobytes())
        found[name] = taken.hexdigest()
    return found


def asked(device: str, threads: int, programs: int, cache: str) -> dict[str, str]:
    """The same of a new process, which keeps compiled code in the folder `cache`."""
    count = str(threads)
    surroundings = {
        **os.environ, "TF_DETERMINISTIC_OPS": "1", "OPDOCK_CACHE": cache,
        # PoCL and XLA have no such limit for a session.
        "OMP_NUM_THREADS": count, "POCL_CPU_MAX_CU_COUNT": count, "NPROC": count,
    }  # fmt: skip
    words = ["--device", device, "--threads", count, "--programs", str(programs), "--told"]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, *words],
        check=True, stdout=subprocess.PIPE, env=surroundings,
    )  # fmt: skip
    found: dict[str, str] = json.loads(done.stdout)
    return found


def main() -> int:
    """Compares the processes; 1 when two of them differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="/device:CPU:0")
    parser.add_argument("--threads", default="1,2,3,1")
    parser.add_argument("--programs", type=int, default=24)
    parser.add_argument("--told", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    counts = [int(count) for count in args.threads.split(",")]
    if args.told:
        print(json.dumps(told(args.device, counts[0], args.programs)))
        return 0
    with tempfile.TemporaryDirectory() as cache:
        runs = [asked(args.device, count, args.programs, cache) for count in counts]
    differing = [name for name in runs[0] if len({run[name] for run in runs}) > 1]
    print(
        f"{args.device}: {len(runs[0])} programs in processes of {args.threads} "
        f"threads; {len(differing)} differ{''.join(f'{chr(10)}  {name}' for name in differing)}"
    )
    return bool(differing)


if __name__ == "__main__":
    sys.exit(main())
