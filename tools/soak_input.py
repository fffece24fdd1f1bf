"""Takes very many elements of each kind of dataset, and looks at memory: `make soak-input`.

    python tools/soak_input.py --elements 1000000
    python tools/soak_input.py --only shuffle --only window

Each dataset without end is walked through in one step, first for a tenth of the elements, in which
tables and buffers fill. The most memory that the process ever held may grow by 4 MB after that:
four bytes an element, if there are a million.
"""

from __future__ import annotations

import argparse
import gc
import resource
import sys
import time
from typing import Any

import numpy as np

import opdock as tf

GROWTH = 4 << 10
"""Kilobytes."""


def endless() -> dict[str, Any]:
    """Datasets without end, by the transformation that they are about."""
    experimental = tf.data.experimental
    numbers = tf.data.Dataset.range(10).repeat()
    rows = numbers.map(lambda x: tf.fill([3], x))
    timed = tf.data.Options()
    timed.experimental_stats.aggregator = experimental.StatsAggregator()
    any_order = tf.data.Options()
    any_order.experimental_deterministic = False
    several = numbers.interleave(tf.data.Dataset.range, 2, 1, num_parallel_calls=2)

    def large(x: Any) -> Any:
        return tf.zeros([40, 40]) + tf.cast(x, tf.float32)

    def by_parity(x: Any) -> Any:
        return x % 2

    return {
        "repeat": numbers,
        "slices": tf.data.Dataset.from_tensor_slices(np.ones((5, 3))).repeat(),
        "map": rows,
        "map of batches": rows.batch(8),
        "map in place": numbers.map(large).batch(3),
        "parallel map": numbers.map(lambda x: x + 1, 2),
        "filter": numbers.filter(lambda x: x > 3),
        "flat_map": numbers.flat_map(tf.data.Dataset.range),
        "interleave": numbers.interleave(tf.data.Dataset.range, 2, 1),
        "parallel interleave": several,
        "interleave in any order": several.with_options(any_order),
        "shuffle": numbers.shuffle(20),
        "shuffle_and_repeat": tf.data.Dataset.range(10).apply(
            experimental.shuffle_and_repeat(4, seed=1)
        ),
        "batch": numbers.batch(4),
        "padded_batch": numbers.map(lambda x: tf.fill([x], x)).padded_batch(4, [None]),
        "window": numbers.window(4, 1).flat_map(lambda w: w.batch(4)),
        "unbatch": rows.unbatch(),
        "prefetch": numbers.prefetch(3),
        "cache": tf.data.Dataset.range(10).cache().repeat(),
        "zip": tf.data.Dataset.zip((numbers, rows)),
        "enumerate": numbers.enumerate(),
        "shard": numbers.shard(3, 1),
        "take and skip": tf.data.Dataset.range(10).skip(2).take(5).repeat(),
        "concatenate": tf.data.Dataset.range(3).concatenate(tf.data.Dataset.range(4)).repeat(),
        "scan": numbers.apply(experimental.scan(np.int64(0), lambda s, x: (s + x, s))),
        "group_by_window": numbers.apply(
            experimental.group_by_window(by_parity, lambda _, w: w.batch(5), 5)
        ),
        "bucket_by_sequence_length": rows.apply(
            experimental.bucket_by_sequence_length(tf.size, [2, 5], [2, 2, 2])
        ),
        "sample_from_datasets": experimental.sample_from_datasets([numbers, numbers], seed=1),
        "from_generator": tf.data.Dataset.from_generator(
            lambda: iter(range(10)), tf.int64
        ).repeat(),
        "statistics": numbers.apply(experimental.latency_stats("t")).with_options(timed),
        "ignore_errors": numbers.apply(experimental.ignore_errors()),
        "unique": tf.data.Dataset.range(9).apply(experimental.unique()).repeat(),
        "map_and_batch": numbers.apply(experimental.map_and_batch(lambda x: x, 4)),
        "random": tf.data.experimental.RandomDataset(seed=1),
    }


def most() -> int:
    """The most memory that the process held, in kilobytes."""
    gc.collect()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def walked(name: str, count: int) -> int:
    """By how many kilobytes memory grew once a tenth of so many elements was taken."""
    with tf.Graph().as_default(), tf.Session() as session:
        dataset = endless()[name]
        found = []
        for elements in (count // 10, count):
            following = tf.data.make_initializable_iterator(dataset.skip(elements - 1).take(1))
            session.run(following.initializer)
            session.run(following.get_next())
            found.append(most())
    return found[1] - found[0]


def main() -> int:
    """Soaks; 1 when memory has grown with elements."""
    with tf.Graph().as_default():
        names = list(endless())
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--elements", type=int, default=1_000_000)
    parser.add_argument("--only", action="append", choices=names)
    args = parser.parse_args()
    grown = []
    for name in args.only or names:
        begin = time.process_time()
        growth = walked(name, args.elements)
        seconds = time.process_time() - begin
        micros = seconds / args.elements / 1.1 * 1e6
        print(f"{name}: {growth} KB, {micros:.1f} us an element", flush=True)
        if growth > GROWTH:
            grown.append(name)
    print(f"memory grows with elements: {', '.join(grown)}" if grown else "nothing has grown")
    return bool(grown)


if __name__ == "__main__":
    sys.exit(main())
