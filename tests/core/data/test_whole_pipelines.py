"""Whole pipelines: dropped half way, over many elements, killed and resumed."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.data import Dataset

EXPERIMENTAL = tf.data.experimental


def ours() -> set[threading.Thread]:
    return {t for t in threading.enumerate() if t.name.startswith("opdock_")}


def open_files(folder: Path) -> list[str]:
    links = [os.path.join("/proc/self/fd", n) for n in os.listdir("/proc/self/fd")]
    targets = [os.readlink(link) for link in links if os.path.islink(link)]
    return [t for t in targets if t.startswith(str(folder))]


def pipelines(path: str) -> list[Any]:
    """Pipelines with threads, files and generators."""

    def numbers() -> Any:
        yield from range(50)

    lines = tf.data.TextLineDataset([path, path]).repeat()
    return [
        lines.map(tf.string_to_number, 3).prefetch(2),
        lines.shuffle(10).batch(3).prefetch(1),
        Dataset.range(4).interleave(lambda _: lines, 2, 1, num_parallel_calls=2).prefetch(1),
        Dataset.range(4).apply(EXPERIMENTAL.parallel_interleave(lambda _: lines, 2)),
        Dataset.from_generator(numbers, tf.int64).map(lambda x: x + 1, 2).prefetch(3),
        lines.apply(EXPERIMENTAL.map_and_batch(lambda x: tf.string_split([x]).values, 2)),
    ]


def drop_half_way(path: str, rounds: int) -> None:
    for turn in range(rounds):
        with tf.Graph().as_default():
            made = [d.make_initializable_iterator() for d in pipelines(path)]
            elements = [iterator.get_next() for iterator in made]
            session = tf.Session()
            session.run([iterator.initializer for iterator in made])
            for element in elements[turn % 2 :: 2]:
                session.run(element)
            if turn % 3:
                session.close()
            del session


@pytest.mark.parametrize("rounds", [4, pytest.param(170, marks=pytest.mark.prove)])
def test_dropped_pipelines_leave_nothing(rounds, tmp_path):
    path = tmp_path / "lines"
    path.write_text("".join(f"{i}\n" for i in range(200)), encoding="utf-8")
    before = ours()
    drop_half_way(str(path), rounds)
    gc.collect()
    for thread in ours() - before:
        thread.join()
    assert open_files(tmp_path) == []


# ---------------------------------------------------------------- memory
def endless() -> dict[str, Any]:
    """Datasets without end, by the transformation that they are about."""
    numbers = Dataset.range(10).repeat()
    rows = numbers.map(lambda x: tf.fill([3], x))
    timed = tf.data.Options()
    timed.experimental_stats.aggregator = EXPERIMENTAL.StatsAggregator()

    def large(x: Any) -> Any:
        return tf.zeros([40, 40]) + tf.cast(x, tf.float32)

    return {
        "repeat": numbers,
        "slices": Dataset.from_tensor_slices(np.ones((5, 3))).repeat(),
        "map": rows,
        "map in batches": rows.batch(8),
        "parallel map": numbers.map(lambda x: x + 1, 2),
        "map in place": numbers.map(large).batch(3),
        "parallel map in place": numbers.map(large, 2).batch(3),
        "filter": numbers.filter(lambda x: x > 3),
        "flat_map": numbers.flat_map(lambda x: Dataset.range(x)),
        "interleave": numbers.interleave(lambda x: Dataset.range(x), 2, 1),
        "parallel interleave": numbers.interleave(lambda x: Dataset.range(x), 2, 1, 2),
        "shuffle": numbers.shuffle(20),
        "batch": numbers.batch(4),
        "padded_batch": numbers.map(lambda x: tf.fill([x], x)).padded_batch(4, [None]),
        "window": numbers.window(4, 1).flat_map(lambda w: w.batch(4)),
        "unbatch": rows.unbatch(),
        "prefetch": numbers.prefetch(3),
        "cache": Dataset.range(10).cache().repeat(),
        "zip": Dataset.zip((numbers, rows)),
        "shard": numbers.shard(3, 1),
        "take and skip": Dataset.range(10).skip(2).take(5).repeat(),
        "scan": numbers.apply(EXPERIMENTAL.scan(np.int64(0), lambda s, x: (s + x, s))),
        "group_by_window": numbers.apply(
            EXPERIMENTAL.group_by_window(lambda x: x % 2, lambda _, w: w.batch(5), 5)
        ),
        "sample": EXPERIMENTAL.sample_from_datasets([numbers, numbers], seed=1),
        "generator": Dataset.from_generator(lambda: iter(range(10)), tf.int64).repeat(),
        "statistics": numbers.apply(EXPERIMENTAL.latency_stats("t")).with_options(timed),
        "ignore_errors": numbers.apply(EXPERIMENTAL.ignore_errors()),
        "map_and_batch": numbers.apply(EXPERIMENTAL.map_and_batch(lambda x: x, 4)),
    }


def blocks_after(session: Any, element: Any, count: int) -> int:
    run = session.make_callable(element)
    for _ in range(count):
        run()
    gc.collect()
    return sys.getallocatedblocks()


MANY = int(os.environ.get("OPDOCK_ELEMENTS", "20000"))
"""A step each; `make soak-input` takes a million of each kind in one step."""


@pytest.mark.parametrize("count", [300, pytest.param(MANY, marks=pytest.mark.prove)])
def test_memory_does_not_grow_with_elements(count, nothing_beside):
    made = {n: d.make_initializable_iterator() for n, d in endless().items()}
    elements = {n: iterator.get_next() for n, iterator in made.items()}
    grown = {}
    with tf.Session() as session:
        session.run([iterator.initializer for iterator in made.values()])
        for name, element in elements.items():
            early = blocks_after(session, element, count // 4)  # tables of what is known fill
            grown[name] = blocks_after(session, element, count) - early
    assert {n: g for n, g in grown.items() if g > 200} == {}


def test_the_tool_that_takes_a_million_tells_what_grew():
    tool = Path(__file__).parents[3] / "tools" / "soak_input.py"
    words = [str(tool), "--elements", "300", "--only", "batch", "--only", "window"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    told = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in told] == ["batch", "window", "nothing has grown"]


# ---------------------------------------------------------------- kill and resume
_EPOCH = """
import sys
import numpy as np
import opdock as tf

folder = sys.argv[1]
files = tf.data.Dataset.from_tensor_slices([f"{folder}/{i}.txt" for i in range(4)])
numbers = files.interleave(tf.data.TextLineDataset, 3, 2).shuffle(30, seed=7)
numbers = numbers.map(lambda line: tf.string_to_number(line, tf.int64), 2)
iterator = numbers.batch(5).prefetch(2).make_initializable_iterator()
batch = iterator.get_next()
seen = tf.Variable(np.zeros(200, np.int32), trainable=False)
count = tf.scatter_add(seen, batch, tf.ones_like(batch, tf.int32))
saver = tf.train.Saver([seen, tf.data.experimental.make_saveable_from_iterator(iterator)])
with tf.Session() as session:
    session.run([iterator.initializer, seen.initializer])
    if (last := tf.train.latest_checkpoint(folder)) is not None:
        saver.restore(session, last)
    step = 0
    try:
        while True:
            session.run(count)
            step += 1
            if step % 3 == 0:
                saver.save(session, f"{folder}/model", step, write_meta_graph=False)
                print("saved", flush=True)
    except tf.errors.OutOfRangeError:
        print("seen", sorted(set(session.run(seen).tolist())), flush=True)
"""


def test_an_epoch_that_is_killed_goes_on_where_it_was_saved(tmp_path):
    for i in range(4):
        lines = "".join(f"{n}\n" for n in range(i, 200, 4))
        (tmp_path / f"{i}.txt").write_text(lines, encoding="utf-8")
    for saves in (1, 2):
        with subprocess.Popen(
            [sys.executable, "-c", _EPOCH, str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            for _ in range(saves):
                assert process.stdout.readline() == "saved\n"
            process.send_signal(signal.SIGKILL)
    done = subprocess.run(
        [sys.executable, "-c", _EPOCH, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "seen [1]"


def test_lists_of_datasets_are_elements() -> None:
    parts = [tf.data.Dataset.range(i, i + 2) for i in (0, 10, 20)]
    ways = [
        tf.data.Dataset.from_tensor_slices(parts),
        tf.data.Dataset.from_tensors(parts).flat_map(tf.data.Dataset.from_tensor_slices),
        tf.data.Dataset.from_tensors([parts[:2], parts[1:]]).unbatch().unbatch(),
    ]
    expected = [[0, 1, 10, 11, 20, 21]] * 2 + [[0, 1, 10, 11, 10, 11, 20, 21]]
    with tf.Session() as session:
        for way, numbers in zip(ways, expected, strict=True):
            element = way.flat_map(lambda part: part).make_one_shot_iterator().get_next()
            assert [session.run(element) for _ in numbers] == numbers
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(element)
