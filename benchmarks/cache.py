"""What a session keeps of ever new fetches and shapes: the figures that must not grow.

    python benchmarks/cache.py                              # 100,000 sets of fetches, 10,000 shapes
    python benchmarks/cache.py --sets 5000 --shapes 1000    # the same, shortly
    python benchmarks/cache.py --size 3                     # with generated code for each set
    python benchmarks/cache.py --trace                      # with Python's own memory, much slower

The sets are of 500 tensors, two or `--size` at a time. Every 100th step is one that comes again,
whose program has to stay. Ten lines are printed for each part. The exit status is 1 when that
program goes, when more programs are kept than there is room for, or when the process is larger at
the end of a part than after its half, by more than a few MiB.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import opdock as tf
from opdock.runtime.cache import programs

TENSORS = 500  # of which there are 124,750 pairs
SLACK = 8  # MiB by which the allocator may differ


def resident() -> float:
    """MiB of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def sets(size: int) -> Iterator[tuple[int, ...]]:
    """Which of the tensors to fetch, so many at a time and never the same twice."""
    return itertools.combinations(range(TENSORS), size)


class Meter:
    """Prints figures of a session and judges them.

    Args:
        session: the session.
        part: what is going on.
        total: how many steps the part has.
    """

    def __init__(self, session: Any, part: str, total: int) -> None:
        self._session = session
        self._part = part
        self._every = max(total // 10, 1)
        self._resident: list[float] = []
        self.good = True

    def step(self, done: int) -> None:
        """Says how it stands, after every tenth of the part."""
        if done % self._every:
            return
        gc.collect()
        kept = len(self._session._cache.entries())
        self._resident.append(resident())
        traced = f"{tracemalloc.get_traced_memory()[0] / 2**20:8.1f} MiB traced"
        print(
            f"{self._part} {done:7,}: {kept:5,} programs {self._resident[-1]:8.1f} MiB resident",
            traced if tracemalloc.is_tracing() else "",
            flush=True,
        )
        half = self._resident[len(self._resident) // 2]
        self.good = kept <= programs._PROGRAMS and self._resident[-1] - half < SLACK


def fetches(session: Any, total: int, size: int) -> bool:
    """Steps of which each fetches another set."""
    x = tf.placeholder(tf.float32, [])
    tensors = [x + float(i) for i in range(TENSORS)]
    again, one = tensors[0] * 2.0, np.array(1, np.float32)
    session.run(again, {x: one})
    (first,) = session._cache.entries()
    meter = Meter(session, "sets", total)
    for done, chosen in enumerate(itertools.islice(sets(size), total), 1):
        got = session.run([tensors[i] for i in chosen], {x: one})
        if got != [1 + i for i in chosen]:
            raise SystemExit(f"wrong: {got}")
        if done % 100 == 0:
            session.run(again, {x: one})
        meter.step(done)
    return meter.good and first in session._cache.entries()


def shapes(session: Any, total: int) -> bool:
    """Steps of which each is fed another shape."""
    x = tf.placeholder(tf.float32, [None])
    y = tf.reduce_sum(tf.nn.relu(x * 2.0))
    meter = Meter(session, "shapes", total)
    for done in range(1, total + 1):
        if session.run(y, {x: np.ones(done, np.float32)}) != 2 * done:
            raise SystemExit(f"wrong for {done}")
        meter.step(done)
    return meter.good


def main() -> int:
    """Runs both parts on one session."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--sets", type=int, default=100_000)
    parser.add_argument("--shapes", type=int, default=10_000)
    parser.add_argument("--size", type=int, default=2, help="how many tensors to a set")
    parser.add_argument("--trace", action="store_true", help="count what Python allocates")
    args = parser.parse_args()
    if args.trace:
        tracemalloc.start()
    with tf.Session() as session:
        good = [fetches(session, args.sets, args.size), shapes(session, args.shapes)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    raise SystemExit(main())
