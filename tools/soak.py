"""Opens and drops sessions, graphs, iterators and threads, and looks at what is left: `make soak`.

    python tools/soak.py --rounds 10000
    python tools/soak.py --minutes 60
    python tools/soak.py --rounds 1100 --only reading

After the first tenth, in which caches fill, memory may grow by 32 MB, and neither threads, file
handles nor child processes by any. Rounds close what they open in turn, or drop it for the
collector to find.
"""

from __future__ import annotations

import argparse
import functools
import gc
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import opdock as tf
from opdock.eager.graph import EagerGraph
from opdock.eager.modes import eager_graph

GROWTH = 32 << 20
"""Bytes: what allocators keep, a hundredth of what a leak of 10,000 small graphs would be."""


@dataclass(frozen=True)
class Level:
    """What a process holds."""

    memory: int
    threads: int
    handles: int
    children: int

    @classmethod
    def now(cls) -> Level:
        """That of this process, garbage collected."""
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        handles = len(os.listdir("/proc/self/fd"))
        size = pages * os.sysconf("SC_PAGE_SIZE")
        return cls(size, threading.active_count(), handles, len(_children()))

    def over(self, start: Level) -> str:
        """What has grown since; empty if nothing has."""
        found = []
        if self.memory > start.memory + GROWTH:
            found.append(f"memory from {start.memory >> 20} to {self.memory >> 20} MB")
        if self.threads > start.threads:
            found.append(f"threads from {start.threads} to {self.threads}")
        if self.handles > start.handles:
            found.append(f"file handles from {start.handles} to {self.handles}")
        if self.children > start.children:
            found.append(f"child processes from {start.children} to {self.children}")
        return ", ".join(found)


def _children() -> list[str]:
    """The processes that threads of this one have started and that are still there."""
    lists = Path("/proc/self/task").glob("*/children")
    return [child for found in lists for child in found.read_text(encoding="ascii").split()]


def training(closes: bool) -> None:
    """A graph with variables, trained for two steps."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 4])
        loss = tf.reduce_mean(tf.square(tf.layers.dense(x, 3, tf.nn.relu)))
        train = tf.train.AdamOptimizer().minimize(loss)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
        for size in (2, 3):
            session.run(train, {x: np.ones((size, 4), np.float32)})
        if closes:
            session.close()


def iterating(closes: bool) -> None:
    """An iterator with threads that is left in the middle."""
    with tf.Graph().as_default():
        data = tf.data.Dataset.range(100).map(lambda v: v * 2, 2).prefetch(2)
        following = tf.data.make_one_shot_iterator(data).get_next()
        session = tf.Session()
        for _ in range(3):
            session.run(following)
        if closes:
            session.close()


@functools.cache
def _files() -> tuple[tempfile.TemporaryDirectory[str], list[str]]:
    """A folder, which is there as long as the process, and files of 50 records in it."""
    folder = tempfile.TemporaryDirectory()
    names = [f"{folder.name}/{i}.tfrecord" for i in range(4)]
    for name in names:
        with tf.python_io.TFRecordWriter(name) as writer:
            for number in range(50):
                writer.write(b"%d" % number)
    return folder, names


def reading(closes: bool) -> None:
    """A pipeline over files, several of which are open, that is left in the middle."""
    _, names = _files()
    with tf.Graph().as_default():
        files = tf.data.Dataset.from_tensor_slices(names)
        records = files.interleave(tf.data.TFRecordDataset, 2, 1, num_parallel_calls=2)
        data = records.shuffle(20).map(tf.strings.length, 2).batch(10).prefetch(2)
        following = tf.data.make_one_shot_iterator(data).get_next()
        session = tf.Session()
        for _ in range(10):
            session.run(following)
        if closes:
            session.close()


def queueing(closes: bool) -> None:
    """A queue with the threads that fill it."""
    with tf.Graph().as_default():
        queue = tf.train.range_input_producer(4, shuffle=False)
        item = queue.dequeue()
        with tf.Session() as session:
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, coordinator)
            session.run(item)
            coordinator.request_stop()
            if closes:
                coordinator.join(threads)
        coordinator.join(threads)


def failing(closes: bool) -> None:
    """A step that fails, and one that is cut short."""
    with tf.Graph().as_default():
        bad = tf.reshape(tf.placeholder_with_default(np.ones(3, np.float32), [None]), [2])
        session = tf.Session()
        try:
            session.run(bad)
        except tf.errors.InvalidArgumentError as e:
            del e
        if closes:
            session.close()


def saving(closes: bool) -> None:
    """A checkpoint, an event file, and what reads them."""
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default() as graph:
        tf.get_variable("v", initializer=np.arange(8.0))
        saver = tf.train.Saver()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            path = saver.save(session, f"{folder}/m")
            saver.restore(session, path)
        tf.train.NewCheckpointReader(path).get_tensor("v")
        tf.summary.FileWriter(folder, graph).close()


def evaluating(closes: bool) -> None:
    """A metric of several batches with its summaries, in the default graph, which is made anew."""
    tf.reset_default_graph()
    x = tf.data.make_one_shot_iterator(tf.data.Dataset.range(8).batch(2)).get_next()
    mean, update = tf.metrics.mean(x)
    tf.summary.scalar("mean", mean)
    tf.summary.histogram("x", x)
    with tempfile.TemporaryDirectory() as folder:
        session = tf.Session()
        writer = tf.summary.FileWriter(folder, session.graph)
        session.run(tf.local_variables_initializer())
        for step in range(2):
            session.run(update)
            writer.add_summary(session.run(tf.summary.merge_all()), step)
        writer.close()
        if closes:
            session.close()


def eager(closes: bool) -> None:
    """A training whose operations run as they are made, over a dataset; with devices of its own."""
    with (EagerGraph() if closes else eager_graph()).as_default():
        w = tf.Variable(tf.zeros([4, 1]))
        optimizer = tf.train.MomentumOptimizer(0.1, 0.5)
        for x in tf.data.Dataset.from_tensors(tf.ones([2, 4])).repeat(3).prefetch(1):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 3.0))
            optimizer.apply_gradients([(tape.gradient(loss, w), w)])


def rewriting(closes: bool) -> None:
    """Functions whose Python depends on tensors, of a step and of a dataset."""

    def until(x: Any) -> Any:
        while tf.reduce_sum(x) < 10.0:
            if x[0] > 2.0:
                x = x + 1.0
            else:
                x = x * 2.0
        return x

    with tf.Graph().as_default():
        data = tf.data.Dataset.from_tensors(np.ones(2, np.float32)).repeat().map(until)
        following = tf.data.make_one_shot_iterator(data).get_next()
        y = tf.function(until)(following * 0.25)
        session = tf.Session()
        session.run(y)
        if closes:
            session.close()


ROUNDS: Sequence[Callable[[bool], Any]] = (
    training, iterating, reading, queueing, failing, saving, evaluating, eager, rewriting,
)  # fmt: skip


def soak(rounds: int, minutes: float, kinds: Sequence[Callable[[bool], Any]] = ROUNDS) -> str:
    """Takes the rounds of some kinds, or so many as fit into the time; what has grown."""
    begin = time.monotonic()
    end, warm_end = begin + 60 * minutes, begin + 6 * minutes
    warm = max(rounds // 10, 20)
    start = None
    for number in range(rounds):
        kinds[number % len(kinds)](number // len(kinds) % 2 == 0)
        late = number >= 20 and time.monotonic() > warm_end
        if start is None and (number == warm or late):
            start = Level.now()
            print(f"after {number} rounds: {start}", flush=True)
        if time.monotonic() > end:
            break
    if start is None:
        return "too few rounds to tell"
    last = Level.now()
    print(f"after {number + 1} rounds: {last}", flush=True)
    return last.over(start)


def main() -> int:
    """Soaks; 1 when something has grown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    by_name = {kind.__name__: kind for kind in ROUNDS}
    parser.add_argument("--only", action="append", choices=by_name)
    args = parser.parse_args()
    grown = soak(args.rounds, args.minutes, [by_name[name] for name in args.only or by_name])
    print(grown or "nothing has grown")
    return bool(grown)


if __name__ == "__main__":
    sys.exit(main())
