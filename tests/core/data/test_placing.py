"""Large elements are written into their batch where they are made: batches are as they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.data import Dataset
from opdock.kernels.data.base import Context
from opdock.kernels.data.memory import dataset_of

SIDE = 40
"""So large that a row of SIDE x SIDE is written in its place, and called for by itself."""


def picture(i: Any) -> Any:
    """[SIDE, SIDE] numbers that tell which element it is."""
    return tf.zeros([SIDE, SIDE]) + tf.cast(i, tf.float32) + tf.reshape(tf.range(40.0), [1, SIDE])


def pictures(i: Any) -> Any:
    """Results that are written in place, that are views, constants and one thing twice."""
    made = picture(i)
    kept = tf.constant(np.arange(2.0))
    return {"a": made, "b": (tf.reshape(made, [-1]), made, kept), "label": i}


def plain(found: Any) -> list[Any]:
    return [np.asarray(v).tolist() for v in tf.contrib.framework.nest.flatten(found)]


def outcomes(dataset: Any) -> list[Any]:
    """Elements, and the words of errors in their place."""
    element = dataset.make_one_shot_iterator().get_next()
    found: list[Any] = []
    with tf.Session() as session:
        while len(found) < 100:
            try:
                found.append(plain(session.run(element)))
            except tf.errors.OutOfRangeError:
                break
            except tf.errors.OpError as e:
                found.append((type(e).__name__, e.message.splitlines()[0]))
    return found


def singly(mapped: Any) -> Any:
    """The same, with a step in between through which elements come one by one."""
    return mapped.filter(lambda *_: True)


def unfused(dataset: Any) -> Any:
    """The same without what TF's default rewrites make of maps and batches."""
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    return dataset.with_options(options)


@pytest.mark.parametrize("calls", [None, 1, 3])
@pytest.mark.parametrize("size", [1, 4, 7, 11, 20])
def test_batches_are_those_of_single_elements(calls, size):
    mapped = Dataset.range(11).map(pictures, calls)
    assert outcomes(mapped.batch(size)) == outcomes(singly(mapped).batch(size))


@pytest.mark.parametrize("calls", [None, 1, 5])
def test_sizes_may_differ_from_batch_to_batch(calls):
    variant = tf.data.experimental.to_variant(Dataset.range(40).map(picture, calls))
    with tf.Session() as session:
        walk = dataset_of(session.run(variant)).iterator(Context())
        found: list[int] = []
        for size in (3, 5, 5, 2, 8, 1, 9, 20):
            if size == 1:
                (one,) = walk.next() or ()
                rows = one[None]
            else:
                (rows,) = walk.columns(size) or ()
            found += rows[:, 0, 0].astype(int).tolist()
        walk.close()
    assert found == list(range(40))


@pytest.mark.parametrize("calls", [None, 3])
def test_a_bad_element_takes_its_place(calls):
    def checked(i: Any) -> Any:
        return tf.check_numerics(picture(i) / tf.cast(i % 5 - 3, tf.float32), "bad")

    mapped = Dataset.range(17).map(checked, calls)
    expected = outcomes(singly(mapped).batch(4))
    assert [e[0] == "InvalidArgumentError" for e in expected].count(True) == 3
    assert outcomes(unfused(mapped.batch(4))) == expected
    fused = outcomes(mapped.batch(4))
    assert [len(e[0]) for e in fused if e[0] != "InvalidArgumentError"] == [4, 1]
    assert len(fused) == 5, "an error has the place of its whole batch, as in TF"
    kept = outcomes(mapped.apply(tf.data.experimental.ignore_errors()).batch(4))
    assert sum(len(batch[0]) for batch in kept) == 14


@pytest.mark.parametrize("calls", [None, 3])
def test_the_end_may_come_out_of_the_function(calls):
    def short(i: Any) -> Any:
        def known(n: Any) -> Any:
            if n == 6:
                raise StopIteration
            return np.full([SIDE, SIDE], n, np.float32)

        made = tf.py_func(known, [i], tf.float32)
        made.set_shape([SIDE, SIDE])
        return made

    mapped = Dataset.range(10).map(short, calls)
    found = outcomes(mapped.batch(4))
    assert [len(batch[0]) for batch in found] == [4, 2]
    assert found == outcomes(singly(mapped).batch(4))


@pytest.mark.parametrize("calls", [None, 2])
def test_shapes_that_were_promised_and_not_kept(calls):
    def lying(i: Any) -> Any:
        made = tf.py_func(lambda n: np.full([SIDE + n // 3, SIDE], n, np.float32), [i], tf.float32)
        made.set_shape([SIDE, SIDE])
        return made

    mapped = Dataset.range(7).map(lying, calls)
    found = outcomes(mapped.batch(3))
    assert found == outcomes(singly(mapped).batch(3))
    assert [np.shape(batch) for batch in found] == [(1, 3, 40, 40), (1, 3, 41, 40), (1, 1, 42, 40)]


@pytest.mark.parametrize("calls", [None, 3])
def test_what_waits_is_saved(calls, resumed, tmp_path):
    def make() -> Any:
        return Dataset.range(13).map(picture, calls).batch(3).map(lambda v: v + 1).unbatch()

    resumed(make, tmp_path, (0, 4, 12))


@pytest.mark.parametrize("calls", [None, 2])
def test_batches_are_nobody_elses(calls):
    element = Dataset.range(8).map(pictures, calls).batch(2).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        for turn in range(4):
            found = tf.contrib.framework.nest.flatten(session.run(element))
            assert found[0][:, 0, 0].tolist() == [2 * turn, 2 * turn + 1]
            assert plain(found[0].reshape(2, -1)) == plain(found[1])
            assert plain(found[0]) == plain(found[2])
            for i, part in enumerate(found):
                part[...] = -i - 1
            assert [float(part.reshape(-1)[0]) for part in found] == [-1, -2, -3, -4, -5]


@pytest.mark.parametrize("calls", [None, 3])
def test_batches_that_somebody_holds_are_not_written_again(calls: int | None) -> None:
    rows, size = 12, 1 << 15
    dataset = tf.data.Dataset.range(10 * rows).repeat()
    dataset = dataset.map(lambda i: tf.fill([size], tf.cast(i, tf.float32)), calls)
    batch = tf.data.make_one_shot_iterator(dataset.batch(rows).prefetch(1)).get_next()
    held = []
    with tf.Session() as session:
        for turn in range(20):
            found = session.run(batch)
            if turn % 3 == 0:
                held.append((turn, found[:, 5]))
        for turn, column in held:
            expected = (np.arange(rows) + turn * rows) % (10 * rows)
            np.testing.assert_array_equal(column, expected)
