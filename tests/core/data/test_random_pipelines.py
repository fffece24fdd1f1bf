"""Pipelines of random steps, saved and restored anywhere, give what an undisturbed walk gives."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opdock as tf
from opdock.data import Dataset
from opdock.kernels.data.shuffling import ShuffleDataset

X = tf.data.experimental
MOST = 150
"""Elements of a walk: some pipelines have none, some very many."""

Apply = Callable[[Any], Any]
Step = tuple[str, Apply]


def random_below(limit: int, seed: int) -> Any:
    return tf.random_uniform([], 0, limit, tf.int64, seed=seed)


def failing(value: Any, divisor: int) -> Any:
    """The value; an error where it is divisible."""
    quotient = tf.check_numerics(1.0 / tf.cast(value % divisor, tf.float32), "divisible")
    return value + tf.cast(quotient, tf.int64)


def files(folder: Path, kind: str, count: int) -> Any:
    """Numbers, one after the other, out of two files."""
    path = str(folder / f"{kind}{count}")
    lines = [str(n).encode() for n in range(count)]
    if kind == "text":
        Path(path).write_bytes(b"".join(line + b"\n" for line in lines))
        found = tf.data.TextLineDataset([path, path])
    else:
        with tf.python_io.TFRecordWriter(path, tf.python_io.TFRecordCompressionType.GZIP) as out:
            for line in lines:
                out.write(line)
        reads = 2 if count % 2 else None
        found = tf.data.TFRecordDataset([path, path], "GZIP", num_parallel_reads=reads)
    return found.map(lambda line: tf.string_to_number(line, tf.int64))


@st.composite
def sources(draw: Any) -> tuple[str, Callable[[Path], Any]]:
    count = draw(st.integers(0, 12))
    kind = draw(st.sampled_from(("range", "slices", "text", "records")))
    if kind == "range":
        return f"range({count})", lambda _: Dataset.range(count)
    if kind == "slices":
        return f"slices({count})", lambda _: Dataset.from_tensor_slices(np.arange(count) * 3)
    return f"{kind}({count})", partial(files, kind=kind, count=count)


def steps_of(a: int, b: int, seed: int, threads: int | None, last: bool) -> dict[str, Apply]:
    """Steps from numbers to numbers."""

    def inner(v: Any) -> Any:
        return Dataset.range(v % 5).map(lambda w: w + v)

    def drawn(v: Any) -> Any:
        noisy = Dataset.range(random_below(5, seed))
        return noisy.map(lambda w: w + random_below(50, seed + 1))

    def grouped(make: Apply) -> Apply:
        window = X.group_by_window(lambda v: v % b, lambda _, w: make(w.batch(a)), a)
        return lambda d: d.apply(window).apply(X.unbatch())

    cycle = max(a, threads or 1)
    return {
        "map": lambda d: d.map(lambda v: v * 2 + 1, threads),
        "failing": lambda d: d.map(lambda v: failing(v, a + 1), threads),
        "ignoring": lambda d: d.map(lambda v: failing(v, a), threads).apply(X.ignore_errors()),
        "random": lambda d: d.map(lambda v: v + random_below(50, seed)),
        "random in a branch": lambda d: d.map(
            lambda v: tf.cond(v > 5, lambda: v - random_below(9, seed), lambda: v)
        ),
        "random in a loop": lambda d: d.map(
            lambda v: tf.while_loop(lambda i: i < 9, lambda i: i + 1 + random_below(5, seed), [v])
        ),
        "filter": lambda d: d.filter(lambda v: tf.not_equal(v % a, 0)),
        "random filter": lambda d: d.filter(lambda _: tf.random_uniform([], seed=seed) < 0.7),
        "batch": lambda d: d.batch(a, drop_remainder=last).apply(X.unbatch()),
        "padded": lambda d: d.map(lambda v: tf.range(v % 4)).padded_batch(a, [None]).map(
            tf.reduce_sum
        ),
        "map and batch": lambda d: d.apply(X.map_and_batch(lambda v: v + 1, a, b, last)).apply(
            X.unbatch()
        ),
        "shuffle": lambda d: d.shuffle(2 * a, seed=seed, reshuffle_each_iteration=last),
        "shuffle and repeat": lambda d: d.apply(X.shuffle_and_repeat(a, 2, seed=seed)),
        "repeat": lambda d: d.repeat(a % 3),
        "prefetch": lambda d: d.prefetch(a if last else -1),
        "cache": lambda d: d.cache(),
        "take": lambda d: d.take(a * 3),
        "skip": lambda d: d.skip(a),
        "shard": lambda d: d.shard(a, b % a),
        "window": lambda d: d.window(a, b, 1, last).flat_map(lambda w: w.batch(a)).map(
            tf.reduce_sum
        ),
        "random windows": lambda d: d.window(a, b).flat_map(
            lambda w: w.map(lambda v: v + random_below(50, seed))
        ),
        "groups": grouped(lambda w: w),
        "random groups": grouped(lambda w: w.map(lambda v: v + random_below(50, seed))),
        "flat map": lambda d: d.flat_map(lambda v: inner(v).shuffle(3, seed=seed).repeat(2)),
        "random flat map": lambda d: d.flat_map(drawn),
        "interleave": lambda d: d.interleave(inner, cycle, b, threads),
        "random interleave": lambda d: d.interleave(drawn, a, b),
        "parallel interleave": lambda d: d.apply(X.parallel_interleave(inner, a, b)),
        "scan": lambda d: d.apply(X.scan(np.int64(0), lambda c, v: (c + v, c + v))),
        "take while": lambda d: d.apply(X.take_while(lambda v: v < 20 * a)),
        "unique": lambda d: d.apply(X.unique()),
        "with itself": lambda d: d.concatenate(d),
        "zip": lambda d: Dataset.zip((d, d.skip(1))).map(lambda x, y: x * 3 + y),
        "sample": lambda d: X.sample_from_datasets([d, d.take(3)], [0.4, 0.6], seed=seed),
    }  # fmt: skip


@st.composite
def steps(draw: Any) -> Step:
    a, b, seed = (draw(st.integers(1, most)) for most in (5, 5, 100))
    threads = draw(st.sampled_from((None, 1, 2, 3)))
    found = steps_of(a, b, seed, threads, draw(st.booleans()))
    name = draw(st.sampled_from(sorted(found)))
    return f"{name}({a}, {b}, {seed}, {threads})", found[name]


def walk(
    make: Callable[[], Any], stops: Sequence[int], folder: Path, threads: int, used: int = 0
) -> list[Any]:
    """Elements and errors; after so many each, they are saved, and a new session goes on.

    Args:
        make: the dataset.
        stops: how many each session takes; the last one takes all that is left.
        folder: for checkpoints.
        threads: of each session.
        used: how many elements a session takes before it restores.
    """
    found: list[Any] = []
    path = ""
    for stop in (*stops, MOST):
        with tf.Graph().as_default():
            iterator = tf.data.make_initializable_iterator(make())
            following = iterator.get_next()
            saver = tf.train.Saver([X.make_saveable_from_iterator(iterator)])
            config = tf.ConfigProto(inter_op_parallelism_threads=threads)
            with tf.Session(config=config) as session:
                session.run(iterator.initializer)
                if path:
                    take(session, following, used)
                    saver.restore(session, path)
                found += take(session, following, min(stop, MOST - len(found)))
                path = saver.save(session, str(folder / "at"), write_meta_graph=False)
    return found


def take(session: Any, following: Any, count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count:
        try:
            found.append(int(session.run(following)))
        except tf.errors.OutOfRangeError:
            break
        except tf.errors.InvalidArgumentError as e:
            found.append(e.message.partition(" :")[0])
    return found


def check(source: Any, applied: Sequence[Step], stops: Sequence[int], used: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def make() -> Any:
            dataset = source[1](folder)
            for _, apply in applied:
                dataset = apply(dataset)
            return dataset

        assert walk(make, stops, folder, 4, used) == walk(make, (), folder, 1)


TOGETHER = {"sample", "zip"}
AHEAD = {"map and batch", "parallel interleave", "prefetch"}
AHEAD_ON_THREADS = {"failing", "ignoring", "interleave", "map"}


def is_race(applied: Sequence[Step]) -> bool:
    """Whether chance decides which of two iterators over one dataset draws the next number.

    They draw from the streams of the same function, as in TensorFlow, and what works ahead in
    between makes the order in which they do a matter of threads.
    """
    draws = ahead = False
    for description, _ in applied:
        name, _, arguments = description.partition("(")
        if name in TOGETHER and ahead:
            return True
        threaded = name in AHEAD_ON_THREADS and not arguments.endswith("None)")
        ahead = ahead or (draws and (name in AHEAD or threaded))
        draws = draws or name.startswith("random")
    return False


PIPELINES = {
    "source": sources(),
    "applied": st.lists(steps(), min_size=1, max_size=5).filter(lambda steps: not is_race(steps)),
    "stops": st.lists(st.integers(0, 8), min_size=1, max_size=3),
    "used": st.sampled_from((0, 0, 3)),
}


@given(**PIPELINES)
@settings(max_examples=40)
def test_what_is_saved_anywhere_goes_on(source, applied, stops, used):
    check(source, applied, stops, used)


@pytest.mark.prove
@given(**PIPELINES)
@settings(max_examples=2000)
def test_what_is_saved_anywhere_goes_on_in_very_many_pipelines(source, applied, stops, used):
    check(source, applied, stops, used)


@pytest.mark.parametrize("name", sorted(steps_of(2, 2, 1, None, False)))
def test_every_step_goes_on(name):
    """Saved after each of the first elements, so that no step waits for chance."""
    applied = [(name, steps_of(3, 2, 1, 2, False)[name])]
    check(("range", lambda _: Dataset.range(9)), applied, (1, 1, 1, 2), 0)


# ---------------------------------------------------------------- what once went wrong
def test_an_error_is_passed_over_on_the_way_to_where_a_file_cache_stood(tmp_path):
    """The cache that was not complete is written anew, and the error comes a second time."""

    def make(name: str) -> Any:
        return Dataset.range(8).map(lambda v: failing(v, 3)).cache(str(tmp_path / name))

    whole = walk(lambda: make("whole"), (), tmp_path, 1)
    for stop in range(8):
        assert walk(lambda n=stop: make(f"cut at {n}"), (stop,), tmp_path, 1) == whole


def test_random_numbers_go_on_whose_iterator_has_ended(tmp_path):
    """The shuffle has taken all of its source, and the next walk draws from the same streams."""

    def make() -> Any:
        noisy = Dataset.range(2).map(lambda v: v + random_below(50, 1))
        return noisy.shuffle(2, seed=1).repeat(3)

    whole = walk(make, (), tmp_path, 1)
    for stop in range(1, len(whole)):
        assert walk(make, (stop,), tmp_path, 1) == whole


def test_orders_go_on_of_a_part_that_has_ended(tmp_path):
    """Each walk has another order, also where no iterator of the shuffle was there to be saved."""

    def make() -> Any:
        shuffled = Dataset.range(6).shuffle(6, seed=1, reshuffle_each_iteration=True)
        return shuffled.concatenate(Dataset.range(3)).repeat(3)

    whole = walk(make, (), tmp_path, 1)
    assert whole[:6] != whole[9:15]
    for stop in (5, 6, 7, 9, 10, 17):
        assert walk(make, (stop,), tmp_path, 1) == whole


def test_what_a_function_made_leaves_nothing():
    """Not even the seeds of the next walk through it, since there is none."""
    orders = Dataset.range(50).flat_map(lambda v: Dataset.range(2).shuffle(2, seed=v))
    following = tf.data.make_one_shot_iterator(orders).get_next()
    with tf.Session() as session:
        take(session, following, 100)
        gc.collect()
        assert sum(isinstance(o, ShuffleDataset) for o in gc.get_objects()) < 5


def test_a_file_that_was_closed_in_its_middle_is_at_its_end(tmp_path):
    """The lines that the shorter part of a zip has no need of."""

    def make() -> Any:
        return Dataset.zip((files(tmp_path, "text", 9), Dataset.range(2)))

    def read(dataset: Any) -> Any:
        return dataset.map(lambda x, y: x + y).flat_map(lambda v: Dataset.range(v + 1))

    whole = walk(lambda: read(make()), (), tmp_path, 1)
    assert walk(lambda: read(make()), (2, 1, 1), tmp_path, 1) == whole


def test_an_error_that_waits_is_saved_as_one(tmp_path):
    """The source failed before its turn in the cycle had come: no function is called for it."""

    def make() -> Any:
        numbers = Dataset.range(6).map(lambda v: failing(v, 3))
        return numbers.interleave(lambda v: Dataset.range(v + 2), 3, 1, num_parallel_calls=3)

    whole = walk(make, (), tmp_path, 1)
    assert any(isinstance(v, str) for v in whole)
    for stop in range(len(whole)):
        assert walk(make, (stop,), tmp_path, 1) == whole


@pytest.mark.parametrize(
    "draw",
    [
        lambda v: random_below(100, 3),
        lambda v: tf.cond(v >= 0, lambda: random_below(100, 3), lambda: v),
        lambda v: tf.while_loop(
            lambda i: i < 1, lambda i: i + 1 + random_below(100, 3), [tf.zeros_like(v)]
        ),
    ],
)
def test_random_numbers_of_a_function_begin_anew_with_the_iterator(draw):
    """Wherever the op stands: those in branches and loops went on from epoch to epoch."""
    iterator = tf.data.make_initializable_iterator(Dataset.range(5).map(draw))
    following = iterator.get_next()
    with tf.Session() as session:
        epochs = []
        for _ in range(2):
            session.run(iterator.initializer)
            epochs.append(take(session, following, 9))
    assert epochs[0] == epochs[1] and len(set(epochs[0])) > 1


def test_what_cannot_be_restored_has_to_be_initialized(tmp_path):
    walk(lambda: Dataset.range(9).batch(2).map(lambda v: v[0]), (1,), tmp_path, 1)
    iterator = tf.data.make_initializable_iterator(Dataset.range(9).shuffle(3, seed=1))
    following = iterator.get_next()
    saver = tf.train.Saver([X.make_saveable_from_iterator(iterator)])
    with tf.Session() as session:
        session.run(iterator.initializer)
        with pytest.raises(tf.errors.DataLossError, match="not one of the dataset"):
            saver.restore(session, str(tmp_path / "at"))
        with pytest.raises(tf.errors.FailedPreconditionError, match="initialized"):
            session.run(following)
        session.run(iterator.initializer)
        assert sorted(take(session, following, 20)) == list(range(9))
