"""`tf.contrib.data`: the names of `tf.data.experimental`, and batches of one size."""

from __future__ import annotations

import opdock as tf

data = tf.contrib.data


def walked(dataset: tf.data.Dataset) -> list[list[int]]:
    found = []
    element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as sess:
        while True:
            try:
                found.append(sess.run(element).tolist())
            except tf.errors.OutOfRangeError:
                return found


def test_a_smaller_last_batch_is_dropped() -> None:
    five = tf.data.Dataset.range(5)
    assert walked(five.apply(data.batch_and_drop_remainder(2))) == [[0, 1], [2, 3]]
    rows = five.map(lambda n: tf.fill([tf.cast(n, tf.int32)], 7))
    padded = rows.apply(data.padded_batch_and_drop_remainder(3, [None], 1))
    assert walked(padded) == [[[1, 1], [7, 1], [7, 7]]]


def test_what_became_experimental() -> None:
    assert data.map_and_batch is tf.data.experimental.map_and_batch
    batches = tf.data.Dataset.range(4).apply(data.map_and_batch(lambda n: n * n, 2))
    assert walked(batches) == [[0, 1], [4, 9]]
    mixed = tf.data.Dataset.range(2).apply(
        data.sloppy_interleave(lambda n: tf.data.Dataset.from_tensors(n).repeat(2), 2)
    )
    assert sorted(walked(mixed)) == [0, 0, 1, 1]
