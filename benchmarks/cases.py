"""The basics that every program pays for. Each case returns seconds (or bytes) as it measured them.

A case is a function that takes nothing and returns rows `(name, value, unit, target or None)`.
`run.py` calls each in a process of its own, so that no case warms another's caches.
"""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

Row = tuple[str, float, str, float | None]
GRAPH_OPS = 20_000
CHAIN = 1_000


def median_time(step: Callable[[], object], seconds: float = 1.5, warm: int = 50) -> float:
    """Median seconds of one call, over as many calls as fit into `seconds`."""
    for _ in range(warm):
        step()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        step()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def resident() -> int:
    """Bytes of memory that this process holds now."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    return 0


def import_time() -> Iterator[Row]:
    """`import opdock` in a fresh interpreter, NumPy's own share told apart."""
    code = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"

    def one(module: str) -> float:
        runs = [
            float(
                subprocess.run(
                    [sys.executable, "-c", code.format(module)], check=True, capture_output=True
                ).stdout
            )
            for _ in range(7)
        ]
        return statistics.median(runs)

    yield "import numpy (for comparison)", one("numpy") * 1e3, "ms", None
    yield "import opdock", one("opdock") * 1e3, "ms", 150.0


def build_graph() -> Iterator[Row]:
    """A graph of 20,000 ops: 10,000 adds, 9,999 tanh and a placeholder."""
    import opdock as tf

    def make() -> tf.Graph:
        graph = tf.Graph()
        with graph.as_default():
            x = tf.placeholder(tf.float32, [])
            t = x
            for _ in range((GRAPH_OPS - 1) // 2):
                t = tf.tanh(tf.add(t, x))
            tf.add(t, x)
        return graph

    with tf.Graph().as_default():  # the op definitions are parsed on first use
        tf.tanh(tf.add(tf.placeholder(tf.float32, []), 1.0))
    times, sizes = [], []
    kept = []  # a graph that is kept can not lend its memory to the next one
    for _ in range(5):
        gc.collect()
        before, start = resident(), time.perf_counter()
        kept.append(make())
        times.append(time.perf_counter() - start)
        sizes.append((resident() - before) / GRAPH_OPS)
    yield f"build a graph of {GRAPH_OPS:,} ops", statistics.median(times), "s", 2.0
    yield "memory of a graph", statistics.median(sizes), "bytes/op", 5_000.0


def run_add() -> Iterator[Row]:
    """One add, fed and fetched; the same fetched through make_callable."""
    import numpy as np

    import opdock as tf

    x = tf.placeholder(tf.float32, [])
    y = tf.add(x, x)
    feed = {x: np.float32(0.5)}
    with tf.Session() as sess:
        yield "Session.run of one add", median_time(lambda: sess.run(y, feed)) * 1e6, "µs", 15.0
        call = sess.make_callable(y, [x])
        value = np.float32(0.5)
        yield "the same through make_callable", median_time(lambda: call(value)) * 1e6, "µs", None


def run_chain() -> Iterator[Row]:
    """1,000 chained scalar adds, the last one fetched."""
    import numpy as np

    import opdock as tf

    x = tf.placeholder(tf.float32, [])
    t = x
    for _ in range(CHAIN):
        t = tf.add(t, x)
    feed = {x: np.float32(0.5)}
    with tf.Session() as sess:
        value = sess.run(t, feed)
        if abs(value - 0.5 * (CHAIN + 1)) > 1e-3 * CHAIN:
            raise SystemExit(f"the chain gave {value}")
        yield (
            f"Session.run of {CHAIN:,} chained adds",
            median_time(lambda: sess.run(t, feed)) * 1e6,
            "µs",
            250.0,
        )


def first_step() -> Iterator[Row]:
    """A small network's first training step (compiled then) beside a steady one."""
    import numpy as np

    import opdock as tf

    random = np.random.RandomState(0)
    x = tf.placeholder(tf.float32, [None, 64])
    y = tf.placeholder(tf.int64, [None])
    w1 = tf.get_variable("w1", [64, 128])
    b1 = tf.get_variable("b1", [128], initializer=tf.zeros_initializer())
    w2 = tf.get_variable("w2", [128, 10])
    logits = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    train = tf.train.AdamOptimizer(0.001).minimize(loss)
    feed = {x: random.randn(64, 64).astype(np.float32), y: random.randint(0, 10, 64)}
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        start = time.perf_counter()
        sess.run([train, loss], feed)
        first = time.perf_counter() - start
        steady = median_time(lambda: sess.run([train, loss], feed))
    yield "first training step of a small network", first * 1e3, "ms", 2 * steady * 1e3 + 50.0
    yield "steady training step of it", steady * 1e3, "ms", None


CASES: dict[str, Callable[[], Iterator[Row]]] = {
    case.__name__: case for case in (import_time, build_graph, run_add, run_chain, first_step)
}
