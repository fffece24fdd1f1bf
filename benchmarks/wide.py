"""What ops with very many outputs or inputs, and calls with very many fetches or feeds, cost.

    python benchmarks/wide.py [CASE ...] [--size 5000]

Each case is made at a size, twice and four times that, each in a process of its own, and each part
of its life is timed by the processor: building it, its gradients, the first run, a later one, and
`Session.explain`. The collector is off: what it takes would be told of whatever part it falls into.
Cost is linear where the last column, the growth from the middle size to the largest, is about 2; a
part that takes less than 20 ms at the largest size is not judged.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

Feeds = dict[Any, Any]
Made = tuple[Any, Any, Feeds]  # what has a gradient, or None; what is fetched; what is fed
Case = Callable[[Any, int], Made]
PARTS = ("build", "gradients", "first run", "later run", "explain")
TOO_SHORT = 0.02
QUADRATIC = 3.0  # growth that no linear cost has at these sizes, whatever the allocator does


def _rows(n: int) -> Any:
    import numpy as np

    return np.ones([n, 2], np.float32)


def split(tf: Any, n: int) -> Made:
    """One op of n outputs, all fetched."""
    x = tf.placeholder(tf.float32, [n, 2])
    parts = tf.split(x, n)
    return (parts, x), parts, {x: _rows(n)}


def folded(tf: Any, n: int) -> Made:
    """The same of a constant."""
    return None, tf.unstack(tf.constant(_rows(n))), {}


def shape_n(tf: Any, n: int) -> Made:
    """One op of n inputs and n outputs, all fetched."""
    x = tf.placeholder(tf.float32, [None])
    shapes = tf.shape_n([x] * n)
    return None, shapes, {x: [1.0, 2.0]}


def unstack(tf: Any, n: int) -> Made:
    """One op of n outputs, each used by an op of its own."""
    x = tf.placeholder(tf.float32, [n, 2])
    used = [tf.square(part) for part in tf.unstack(x)]
    return (used, x), tf.add_n(used), {x: _rows(n)}


def call(tf: Any, n: int) -> Made:
    """A function with n results."""
    from opdock.python.framework import function

    @function.Defun(tf.float32)
    def many(x: Any) -> Any:
        return [x * float(i) for i in range(n)]

    x = tf.placeholder(tf.float32, [2])
    results = many(x)
    return (results, x), results, {x: [1.0, 2.0]}


def py_func(tf: Any, n: int) -> Made:
    """A Python function with n results."""
    import numpy as np

    results = tf.py_func(lambda: [np.float32(i) for i in range(n)], [], [tf.float32] * n)
    return None, results, {}


def parse_example(tf: Any, n: int) -> Made:
    """One example of n keys."""
    message = tf.train.Example()
    for i in range(n):
        message.features.feature[f"k{i}"].float_list.value.append(float(i))
    keys = {f"k{i}": tf.FixedLenFeature([], tf.float32) for i in range(n)}
    parsed = tf.parse_example([message.SerializeToString()], keys)
    return None, parsed, {}


def add_n(tf: Any, n: int) -> Made:
    """One op of n inputs."""
    x = tf.placeholder(tf.float32, [2])
    terms = [x * float(i) for i in range(n)]
    return (tf.add_n(terms), x), tf.add_n(terms), {x: [1.0, 2.0]}


def stack(tf: Any, n: int) -> Made:
    """One op of n inputs, which come from one op of n outputs."""
    x = tf.placeholder(tf.float32, [n, 2])
    y = tf.stack(tf.unstack(x))
    return (y, x), y, {x: _rows(n)}


def concat(tf: Any, n: int) -> Made:
    """One op of n inputs, all of them constants that the pass `fold` may not fold away."""
    x = tf.placeholder(tf.float32, [1, 2])
    parts = [x + float(i) for i in range(n)]
    y = tf.concat(parts, 0)
    return (y, x), y, {x: [[1.0, 2.0]]}


def lives(tf: Any, n: int) -> Made:
    """2n results in memory at once, of which every second is free for n others."""
    x = tf.placeholder(tf.float32, [4, 4])
    first = [tf.matmul(x, x + float(i)) for i in range(2 * n)]
    half = tf.add_n(first[::2])
    second = tf.add_n([tf.matmul(half, x * float(i)) for i in range(n)])
    return None, tf.add_n([second, *first[1::2]]), {x: [[0.0] * 4] * 4}


def loop(tf: Any, n: int) -> Made:
    """A loop over n variables."""
    x = tf.placeholder(tf.float32, [])
    ends = tf.while_loop(
        lambda i, *_: i < 2, lambda i, *v: (i + 1, *[a * x for a in v]), [0, *[x] * n]
    )
    return (ends[1:], x), ends, {x: 1.0}


def branch(tf: Any, n: int) -> Made:
    """A condition with n results."""
    x = tf.placeholder(tf.float32, [])
    results = tf.cond(
        x > 0, lambda: [x * float(i) for i in range(n)], lambda: [x - float(i) for i in range(n)]
    )
    return (results, x), results, {x: 1.0}


def fetches(tf: Any, n: int) -> Made:
    """A call with n fetches."""
    x = tf.placeholder(tf.float32, [])
    y = [x + float(i) for i in range(n)]
    return (y, x), y, {x: 1.0}


def feeds(tf: Any, n: int) -> Made:
    """A call with n feeds."""
    xs = [tf.placeholder(tf.float32, []) for _ in range(n)]
    y = tf.add_n(xs)
    return (y, xs), y, dict.fromkeys(xs, 1.0)


def variables(tf: Any, n: int) -> Made:
    """As many variables, initialized, then read by one op."""
    with tf.variable_scope("wide", use_resource=True):
        made = [tf.get_variable(f"v{i}", [], initializer=tf.zeros_initializer()) for i in range(n)]
    y = tf.add_n([v.read_value() for v in made])
    with tf.control_dependencies([tf.global_variables_initializer()]):
        return (y, [v.handle for v in made]), tf.no_op(), {}


def group(tf: Any, n: int) -> Made:
    """One op that waits for n others."""
    x = tf.placeholder(tf.float32, [])
    with tf.control_dependencies([tf.Print(x, [x], first_n=0) for _ in range(n)]):
        return None, tf.identity(x), {x: 1.0}


CASES: dict[str, Case] = {
    made.__name__: made
    for made in (
        split, folded, unstack, shape_n, call, py_func, parse_example, add_n, stack, concat,
        lives, loop, branch, fetches, feeds, variables, group,
    )
}  # fmt: skip


def work(name: str, n: int) -> dict[str, float]:
    """The seconds of each part of a case."""
    import opdock as tf

    gc.disable()
    clock = time.process_time
    _, small, given = CASES[name](tf, 8)
    with tf.Session() as session:
        session.run(small, given)  # modules are imported, and definitions read, on first use
    tf.reset_default_graph()
    marks = [clock()]
    differentiable, fetched, fed = CASES[name](tf, n)
    marks.append(clock())
    if differentiable is not None:
        ys, xs = differentiable
        slopes = [g for g in tf.gradients(ys, xs) if g is not None]
        fetched = [fetched, slopes]
    marks.append(clock())
    with tf.Session() as session:
        for _ in range(2):
            session.run(fetched, fed)
            marks.append(clock())
        session.explain(fetched, fed)
        marks.append(clock())
    return {part: b - a for part, (a, b) in zip(PARTS, itertools.pairwise(marks), strict=True)}


def main() -> None:
    """The command."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    p.add_argument("--size", type=int, default=5_000)
    p.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.work:
        print(json.dumps(work(args.cases[0], args.size)))
        return
    bad = []
    print(f"{'ms of the processor':32}", *(f"{args.size * k:>10,}" for k in (1, 2, 4)), "  growth")
    for name in args.cases or CASES:
        found = []
        for k in (1, 2, 4):
            command = [sys.executable, __file__, "--work", name, "--size", str(args.size * k)]
            said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            found.append(json.loads(said))
        for part in PARTS:
            times = [f[part] for f in found]
            growth = times[2] / times[1] if times[2] > TOO_SHORT else 0.0
            if growth > QUADRATIC:
                bad.append(f"{name}: {part}")
            told = f"{growth:8.1f}" if growth else ""
            print(f"{name + ': ' + part:32}", *(f"{t * 1e3:10.1f}" for t in times), told)
    if bad:
        raise SystemExit(f"not linear: {', '.join(bad)}")


if __name__ == "__main__":
    main()
