"""`tf.contrib.data`: older names, and what had no newer one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.data import Dataset

contrib = tf.contrib.data


def elements(dataset: Any) -> list[Any]:
    element = dataset.make_one_shot_iterator().get_next()
    found = []
    with tf.Session() as session, pytest.raises(tf.errors.OutOfRangeError):
        while True:
            found.append(session.run(element))
    return found


def lists(dataset: Any) -> list[Any]:
    return [e.tolist() for e in elements(dataset)]


def test_newer_names_are_the_same():
    for name in ("map_and_batch", "shuffle_and_repeat", "parallel_interleave", "AUTOTUNE"):
        assert getattr(contrib, name) is getattr(tf.data.experimental, name)


def test_what_is_left_at_the_end_is_left_out():
    batches = Dataset.range(5).apply(contrib.batch_and_drop_remainder(2))
    assert lists(batches) == [[0, 1], [2, 3]] and batches.output_shapes.as_list() == [2]
    ragged = Dataset.range(5).map(lambda n: tf.fill([n], n))
    padded = ragged.apply(contrib.padded_batch_and_drop_remainder(2, [None], np.int64(9)))
    assert lists(padded) == [[[9], [1]], [[2, 2, 9], [3, 3, 3]]]


def test_windows_slide():
    six = Dataset.range(6)
    assert lists(six.apply(contrib.sliding_window_batch(4))) == [
        [0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5],
    ]  # fmt: skip
    assert lists(six.apply(contrib.sliding_window_batch(2, stride=3))) == [[0, 1], [3, 4]]
    assert lists(six.apply(contrib.sliding_window_batch(3, window_stride=2))) == [
        [0, 2, 4], [1, 3, 5],
    ]  # fmt: skip
    pairs = Dataset.zip((six, {"x": six})).apply(contrib.sliding_window_batch(5))
    first, second = elements(pairs)
    assert first[0].tolist() == [0, 1, 2, 3, 4] and second[1]["x"].tolist() == [1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="Cannot specify both"):
        contrib.sliding_window_batch(2, stride=1, window_shift=1)


def test_shapes_are_checked():
    ones = Dataset.from_tensors((tf.ones([2, 3]), tf.ones([4])))
    checked = ones.apply(contrib.assert_element_shape(([None, 3], [4])))
    assert checked.output_shapes[0].as_list() == [2, 3]
    with pytest.raises(ValueError, match="not compatible|must be equal"):
        ones.apply(contrib.assert_element_shape(([2, 3], [5])))
    unknown = Dataset.range(2, 4).map(lambda n: tf.ones([n]))
    three = unknown.apply(contrib.assert_element_shape([2]))
    assert three.output_shapes.as_list() == [2]
    element = three.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        session.run(element)
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(element)


def test_datasets_are_reduced_and_interleaved():
    reducer = contrib.Reducer(lambda _: np.int64(1), lambda s, x: s + x, lambda s: s)
    with tf.Session() as session:
        assert session.run(contrib.reduce_dataset(Dataset.range(5), reducer)) == 11
    mixed = Dataset.range(3).apply(contrib.sloppy_interleave(lambda n: Dataset.range(n), 2))
    assert sorted(int(n) for n in elements(mixed)) == [0, 0, 1]


def test_batches_of_features(tmp_path):
    path = str(tmp_path / "examples")
    with tf.python_io.TFRecordWriter(path) as writer:
        for i in range(4):
            example = tf.train.Example()
            example.features.feature["x"].int64_list.value.append(i)
            writer.write(example.SerializeToString())
    features = {"x": tf.FixedLenFeature([], tf.int64)}
    batch = contrib.read_batch_features(path, 2, features, randomize_input=False, num_epochs=1)
    with tf.Session() as session:
        assert [session.run(batch)["x"].tolist() for _ in range(2)] == [[0, 1], [2, 3]]
