"""What deep graphs cost: long chains with their gradient, conditions and loops in one another.

    python benchmarks/deep.py [CASE ...]

Each case is made at three sizes, each in a process of its own, and each part of its life is timed
by the processor: building it, its gradient, the first run and a later one. The last row is by how
much the process has grown at most. The collector is off: what it takes would be told of whatever
part it falls into. Beside a figure stands how much it has grown for each op or body since the one
before: 1.00 is linear. The exit status is 1 where a part of more than 50 ms takes more than half
as long again for each op or body at the largest size as at the smallest.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

Made = tuple[Any, Any]  # a scalar that is fed, and what comes of it
PARTS = ("build", "gradient", "first run", "later run")
TOO_SHORT = 0.05
MOST = 1.5


def chain(tf: Any, n: int) -> Made:
    """Ops that each take what the one before gave."""
    x = y = tf.placeholder(tf.float32, [])
    for i in range(n // 2):
        y = tf.sin(y + float(i % 7))
    return x, y


def conditions(tf: Any, n: int) -> Made:
    """A condition in the branch of a condition, and so on."""
    x = tf.placeholder(tf.float32, [])

    def inner(depth: int) -> Any:
        if not depth:
            return x * 2.0
        return tf.cond(x > float(depth), lambda: x + float(depth), lambda: inner(depth - 1) + 1.0)

    return x, inner(n)


def loops(tf: Any, n: int) -> Made:
    """A loop of one turn in the body of a loop, and so on."""
    x = tf.placeholder(tf.float32, [])

    def inner(depth: int, y: Any) -> Any:
        if not depth:
            return y * 1.5
        turn = lambda i, v: (i + 1, inner(depth - 1, v))
        return tf.while_loop(lambda i, _: i < 1, turn, [0, y])[1]

    return x, inner(n, x)


CASES: dict[str, tuple[Callable[[Any, int], Made], tuple[int, int, int]]] = {
    "chain": (chain, (10_000, 30_000, 100_000)),
    "conditions": (conditions, (75, 150, 300)),
    "loops": (loops, (5, 10, 20)),
}


def work(name: str, n: int) -> dict[str, float]:
    """The seconds of each part of a case, and the MiB that it took."""
    import opdock as tf

    gc.disable()
    make, clock = CASES[name][0], time.process_time
    x, y = make(tf, 2)
    with tf.Session() as session:
        session.run([y, tf.gradients(y, x)], {x: 0.5})  # what is imported on first use
    tf.reset_default_graph()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    marks = [clock()]
    x, y = make(tf, n)
    marks.append(clock())
    slopes = tf.gradients(y, x)
    marks.append(clock())
    with tf.Session() as session:
        for _ in range(2):
            session.run([y, slopes], {x: 0.5})
            marks.append(clock())
    found = {part: b - a for part, (a, b) in zip(PARTS, itertools.pairwise(marks), strict=True)}
    found["memory"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return found


def main() -> None:
    """The command."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    p.add_argument("--work", type=int, metavar="SIZE", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.work:
        print(json.dumps(work(args.cases[0], args.work)))
        return
    bad = []
    for name in args.cases or CASES:
        sizes = CASES[name][1]
        print(f"{name + ', ms of the processor':28}", *(f"{n:>17,}" for n in sizes))
        found = []
        for n in sizes:
            command = [sys.executable, __file__, name, "--work", str(n)]
            said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            found.append(json.loads(said))
        for part in (*PARTS, "memory"):
            cells = [f[part] for f in found]
            each = [c / n for c, n in zip(cells, sizes, strict=True)]
            grown = [b / a if a else 1.0 for a, b in itertools.pairwise(each)]
            shown = cells if part == "memory" else [c * 1e3 for c in cells]
            told = [
                f"{shown[0]:17.1f}",
                *(f"{c:10.1f} x{g:5.2f}" for c, g in zip(shown[1:], grown)),
            ]
            print(f"{part + (', MiB' if part == 'memory' else ''):28}", *told)
            if part != "memory" and cells[-1] > TOO_SHORT and each[-1] > MOST * each[0]:
                bad.append(f"{name}: {part}")
    if bad:
        raise SystemExit(f"not linear: {', '.join(bad)}")


if __name__ == "__main__":
    main()
