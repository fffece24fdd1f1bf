"""What a program costs before its steps are fast: building, compiling, and sessions in a row.

    python benchmarks/first_steps.py [PROGRAM ...] --sizes 1000 20000 --write docs/benchmarks.md
    python benchmarks/first_steps.py --sessions 1000

Each program is made at each size in a process of its own, and its parts are timed by the
processor, all threads together. A size is a number of ops of the graph that a step needs, gradients
and updates included: what the compiler gets. "Compile" is the first run less a later one; cold with
an empty folder for generated code, all of which is waited for, and warm with what the run before
has left.
`--sessions` makes and trains so many small graphs one after the other in one process.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Made = tuple[Any, Any, dict[Any, Any]]  # the loss, what is run, what is fed
SIZES = (1_000, 5_000, 20_000, 50_000)


def _dense(tf: Any, x: Any, units: int, name: str) -> Any:
    w = tf.get_variable(f"{name}_w", [int(x.shape[-1]), units])
    b = tf.get_variable(f"{name}_b", [units], initializer=tf.zeros_initializer())
    return tf.matmul(x, w) + b


def _mean_of_squares(tf: Any, x: Any) -> Any:
    return tf.reduce_mean(tf.square(x))


def perceptron(tf: Any, layers: int) -> Made:
    """Dense layers with Adam: two variables a layer, and two slots for each."""
    import numpy as np

    x = h = tf.placeholder(tf.float32, [8, 8])
    for i in range(layers):
        h = tf.nn.relu(_dense(tf, h, 8, f"l{i}"))
    loss = _mean_of_squares(tf, h)
    return loss, tf.train.AdamOptimizer().minimize(loss), {x: np.ones([8, 8])}


def resnet(tf: Any, layers: int) -> Made:
    """Residual blocks of two convolutions with batch normalization, and momentum."""
    import numpy as np

    x = h = tf.placeholder(tf.float32, [1, 8, 8, 4])

    def convolved(h: Any, name: str) -> Any:
        h = tf.nn.conv2d(h, tf.get_variable(f"{name}_k", [3, 3, 4, 4]), [1, 1, 1, 1], "SAME")
        scale = tf.get_variable(f"{name}_s", [4], initializer=tf.ones_initializer())
        shift = tf.get_variable(f"{name}_b", [4], initializer=tf.zeros_initializer())
        return tf.nn.fused_batch_norm(h, scale, shift)[0]

    for i in range(layers):
        h = tf.nn.relu(h + convolved(tf.nn.relu(convolved(h, f"a{i}")), f"b{i}"))
    loss = _mean_of_squares(tf, h)
    return loss, tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss), {x: np.ones([1, 8, 8, 4])}


def transformer(tf: Any, layers: int) -> Made:
    """Attention and two dense layers, each normalized, with Adam."""
    import numpy as np

    batch, length, width, heads = 2, 4, 8, 2
    x = tf.placeholder(tf.float32, [batch, length, width])
    h = tf.reshape(x, [-1, width])

    def normalized(h: Any, name: str) -> Any:
        scale = tf.get_variable(f"{name}_s", [width], initializer=tf.ones_initializer())
        shift = tf.get_variable(f"{name}_b", [width], initializer=tf.zeros_initializer())
        mean, variance = tf.nn.moments(h, [-1], keep_dims=True)
        return (h - mean) * tf.rsqrt(variance + 1e-6) * scale + shift

    for i in range(layers):
        split = [batch, length, heads, width // heads]
        q, k, v = (
            tf.transpose(tf.reshape(_dense(tf, h, width, f"{p}{i}"), split), [0, 2, 1, 3])
            for p in "qkv"
        )
        seen = tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * 0.5), v)
        seen = tf.reshape(tf.transpose(seen, [0, 2, 1, 3]), [-1, width])
        h = normalized(h + _dense(tf, seen, width, f"o{i}"), f"n{i}")
        inner = tf.nn.relu(_dense(tf, h, 2 * width, f"f{i}"))
        h = normalized(h + _dense(tf, inner, width, f"g{i}"), f"m{i}")
    loss = _mean_of_squares(tf, h)
    fed = np.random.default_rng(0).random([batch, length, width])
    return loss, tf.train.AdamOptimizer().minimize(loss), {x: fed}


def lstm(tf: Any, layers: int) -> Made:
    """One cell unrolled over that many steps, with gradient descent."""
    import numpy as np

    x = tf.placeholder(tf.float32, [layers, 4, 8])
    w = tf.get_variable("w", [16, 32])
    c = h = tf.zeros([4, 8])
    for t in tf.unstack(x):
        i, j, f, o = tf.split(tf.matmul(tf.concat([t, h], 1), w), 4, 1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
    loss = _mean_of_squares(tf, h)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    return loss, train, {x: np.ones([layers, 4, 8])}


def soup(tf: Any, layers: int) -> Made:
    """Elementwise ops of whatever came shortly before, without a gradient."""
    import numpy as np

    rng = np.random.default_rng(0)
    x = tf.placeholder(tf.float32, [16, 16])
    one, two = (tf.tanh, tf.sigmoid, tf.square, tf.abs, tf.nn.relu), (tf.add, tf.multiply)
    made = [x]
    for _ in range(layers):
        a, b = (made[-1 - int(rng.integers(min(len(made), 30)))] for _ in range(2))
        made += [two[int(rng.integers(2))](a, b), one[int(rng.integers(5))](made[-1])]
    loss = tf.reduce_sum(tf.add_n(made[-40:]))
    return loss, loss, {x: np.full([16, 16], 0.1)}


def variables(tf: Any, layers: int) -> Made:
    """Many small variables, each with an update."""
    held = [tf.get_variable(f"v{i}", [3 + i % 5]) for i in range(layers)]
    x = tf.placeholder(tf.float32, [])
    loss = tf.add_n([tf.reduce_sum(v * x) for v in held])
    return loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss), {x: 1.0}


PROGRAMS: dict[str, Callable[[Any, int], Made]] = {
    p.__name__: p for p in (perceptron, resnet, transformer, lstm, soup, variables)
}


def _needed(fetches: Any, fed: dict[Any, Any]) -> int:
    """How many ops a step needs."""
    from opdock.compiler.clean.prune import prune

    tensors = [f for f in [fetches] if hasattr(f, "dtype")]
    targets = [f for f in [fetches] if not hasattr(f, "dtype")]
    feeds = [(t, t.dtype, tuple(t.shape.as_list())) for t in fed]
    return len(prune(tensors, targets, feeds).nodes)


def work(name: str, size: int) -> None:
    """Makes a program of a size, runs it, and prints what its parts took of the processor."""
    import opdock as tf

    clock, program = time.process_time, PROGRAMS[name]
    few = []
    for layers in (50, 100):
        with tf.Graph().as_default():
            _, fetched, fed = program(tf, layers)
            few.append(_needed(fetched, fed))
    with tf.Graph().as_default(), tf.Session() as session:  # op definitions and kernels are there
        _, fetched, fed = program(tf, 4)
        session.run(tf.global_variables_initializer())
        session.run(fetched, fed)
    layers = round((size - 2 * few[0] + few[1]) / (few[1] - few[0]) * 50)
    with tf.Graph().as_default() as graph:
        begin = clock()
        loss, fetched, fed = program(tf, layers)
        built, made = clock() - begin, len(graph.get_operations())
        start = tf.global_variables_initializer()
        found = {"layers": layers, "ops": _needed(fetched, fed), "forward": _needed(loss, fed)}
        with tf.Session() as session:
            session.run(start)
            times = []
            for _ in range(4):
                begin = clock()
                session.run(fetched, fed)
                times.append(clock() - begin)
    compiled = times[0] - statistics.median(times[1:])
    print(json.dumps({**found, "build": built / made, "compile": compiled / found["ops"]}))


def measure(name: str, size: int) -> dict[str, Any]:
    """A program at a size: cold, then warm."""
    with tempfile.TemporaryDirectory() as folder:
        runs = []
        for _ in ("cold", "warm"):
            told = subprocess.run(
                [sys.executable, __file__, "--work", name, str(size)],
                capture_output=True, text=True, check=False,
                env={**os.environ, "OPDOCK_CACHE": folder, "OPDOCK_JIT": "sync"},
            )  # fmt: skip
            if told.returncode:
                raise SystemExit(f"{name} failed at {size}:\n{told.stderr}")
            runs.append(json.loads(told.stdout))
    cold, warm = runs
    return {**warm, "cold": cold["compile"], "build": min(r["build"] for r in runs)}


def sessions(count: int) -> str:
    """A table of what a small graph and its session take, for each tenth of so many."""
    import numpy as np
    from report import rows_of

    import opdock as tf

    rows = []
    begin = time.process_time()
    for i in range(1, count + 1):
        tf.reset_default_graph()
        x = tf.placeholder(tf.float32, [8, 4])
        loss = _mean_of_squares(tf, _dense(tf, x, 2, "dense"))
        train = tf.train.AdamOptimizer().minimize(loss)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                session.run(train, {x: np.ones([8, 4])})
        if i % max(1, count // 10) == 0:
            spent = (time.process_time() - begin) / max(1, count // 10)
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
            resident = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
            gc.collect()
            objects = len(gc.get_objects())
            rows.append([f"{i:,}", f"{spent * 1e3:.1f}", f"{resident:.0f}", f"{objects:,}"])
            begin = time.process_time()
    return rows_of(["sessions", "ms of the processor each", "resident, MB", "objects"], rows)


def table(found: Sequence[tuple[str, dict[str, Any]]]) -> str:
    """A Markdown table in microseconds an op."""
    from report import rows_of

    body = []
    for name, figures in found:
        ops, forward = figures["ops"], figures["forward"]
        shown = [figures["build"], figures["cold"], figures["compile"]]
        shown.append(figures["compile"] * ops / forward)
        body.append([name, f"{ops:,}", f"{forward:,}", *(f"{v * 1e6:.1f}" for v in shown)])
    head = ["µs of the processor an op", "ops", "of them forward", "build", "compile, cold"]
    return rows_of([*head, "compile, warm", "the same by forward op"], body)


def main(words: Sequence[str]) -> None:
    """Reads the command line, measures and prints."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("program", nargs="*", default=[], help=", ".join(PROGRAMS))
    p.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    p.add_argument("--sessions", type=int, metavar="COUNT")
    p.add_argument("--write", type=Path, help="the page to put the table into")
    p.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    args = p.parse_args(words)
    if args.work:
        work(args.work[0], int(args.work[1]))
        return
    from options import chosen, quoted
    from report import line, machine, replace

    key, shown = "sessions", ""
    if args.sessions:
        shown = sessions(args.sessions)
    else:
        names = chosen(args.program, list(PROGRAMS))
        found = [(name, measure(name, size)) for name in names for size in args.sizes]
        key, shown = "first steps", table(found)
    command = quoted(words, "first_steps.py")
    about = {**machine(), "date": time.strftime("%Y-%m-%d"), "command": command}
    text = f"{line(about, {})}\n\n{shown}"
    print(text)
    if args.write:
        replace(args.write, {f"benchmarks: {key}": text})


if __name__ == "__main__":
    main(sys.argv[1:])
