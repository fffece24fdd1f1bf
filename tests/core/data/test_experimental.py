"""`tf.data.experimental`, and the order of shuffled elements."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.data import Dataset

x = tf.data.experimental


def ints(values):
    return [int(v) for v in values]


def test_transformations(walk):
    ten = Dataset.range(10)
    cases = {
        "scan": (ten.apply(x.scan(np.int64(0), lambda s, v: (s + v, s + v))).take(4), [0, 1, 3, 6]),
        "take_while": (ten.apply(x.take_while(lambda v: v < 3)), [0, 1, 2]),
        "unique": (Dataset.from_tensor_slices([1, 2, 1, 3]).apply(x.unique()), [1, 2, 3]),
        "Counter": (x.Counter(2, 3).take(3), [2, 5, 8]),
        "unbatch": (ten.batch(4).apply(x.unbatch()), list(range(10))),
        "copy_to_device": (ten.take(2).apply(x.copy_to_device("/cpu:0")), [0, 1]),
        "prefetch_to_device": (ten.take(2).apply(x.prefetch_to_device("/cpu:0")), [0, 1]),
        "ignore_errors": (
            Dataset.from_tensor_slices([1.0, np.nan, 3.0])
            .map(lambda v: tf.check_numerics(v, ""))
            .apply(x.ignore_errors()),
            [1, 3],
        ),
        "parallel_interleave": (
            Dataset.range(1, 3).apply(
                x.parallel_interleave(lambda v: Dataset.from_tensors(v).repeat(2), 2)
            ),
            [1, 2, 1, 2],
        ),
        "choose_from_datasets": (
            x.choose_from_datasets(
                [Dataset.from_tensors(np.int64(i)).repeat() for i in range(3)],
                Dataset.from_tensor_slices(np.array([2, 0, 1], np.int64)),
            ),
            [2, 0, 1],
        ),
    }
    for name, (dataset, expected) in cases.items():
        assert ints(walk(dataset)) == expected, name


def test_groups(walk):
    reducer = x.Reducer(lambda _: np.int64(0), lambda s, v: s + v, lambda s: s)
    assert ints(walk(Dataset.range(6).apply(x.group_by_reducer(lambda v: v % 2, reducer)))) == [
        6,
        9,
    ]
    windows = x.group_by_window(lambda v: v % 2, lambda _, d: d.batch(2), window_size=2)
    assert [b.tolist() for b in walk(Dataset.range(5).apply(windows))] == [[0, 2], [1, 3], [4]]
    rows = Dataset.range(1, 6).map(lambda v: tf.fill([v], v))
    buckets = x.bucket_by_sequence_length(lambda v: tf.shape(v)[0], [3], [2, 3])
    assert [b.shape for b in walk(rows.apply(buckets))] == [(2, 2), (3, 5)]
    with pytest.raises(ValueError, match="window_size or window_size_func"):
        x.group_by_window(lambda v: v, lambda _, d: d)


def test_batches_of_a_map_and_of_sparse_tensors(walk):
    squares = Dataset.range(5).apply(x.map_and_batch(lambda v: v * v, 2, drop_remainder=True))
    assert squares.output_shapes.as_list() == [2]
    assert [b.tolist() for b in walk(squares)] == [[0, 1], [4, 9]]
    rows = Dataset.range(3).map(lambda v: tf.fill([v], v))
    (batch,) = walk(rows.apply(x.dense_to_sparse_batch(3, [4])))
    assert batch.dense_shape.tolist() == [3, 4] and batch.values.tolist() == [1, 2, 2]
    with pytest.raises(tf.errors.DataLossError, match="larger than the row shape"):
        walk(rows.apply(x.dense_to_sparse_batch(3, [1])))


def test_cardinality_and_single_elements():
    cases = [
        (Dataset.range(7).batch(2), 4), (Dataset.range(7).repeat(), x.INFINITE_CARDINALITY),
        (Dataset.range(7).filter(lambda v: v > 1), x.UNKNOWN_CARDINALITY),
        (Dataset.zip((Dataset.range(3), Dataset.range(5))), 3),
        (Dataset.range(7).window(3, 2, 1, True), 3),
    ]  # fmt: skip
    with tf.Session() as session:
        for dataset, expected in cases:
            assert session.run(x.cardinality(dataset)) == expected
        assert session.run(x.get_single_element(Dataset.from_tensors((1, "a")))) == (1, b"a")
        for dataset, told in ((Dataset.range(0), "was empty"), (Dataset.range(2), "more than one")):
            with pytest.raises(tf.errors.InvalidArgumentError, match=told):
                session.run(x.get_single_element(dataset))


def test_samples_follow_weights_and_classes(walk):
    parts = [Dataset.from_tensors(np.int64(i)).repeat() for i in range(2)]
    drawn = ints(walk(x.sample_from_datasets(parts, [0.9, 0.1], seed=1).take(300)))
    assert 10 <= sum(drawn) <= 60
    labels = Dataset.from_tensor_slices(np.array([0, 0, 0, 1] * 100, np.int32))
    made = labels.apply(x.rejection_resample(lambda v: v, [0.5, 0.5], [0.75, 0.25], seed=1))
    classes = [int(c) for c, _ in walk(made)]
    assert 0.35 < np.mean(classes) < 0.65


# As TensorFlow gives them.
ORDERS = {
    "fixed": (
        lambda: Dataset.range(10).shuffle(4, 7, reshuffle_each_iteration=False).repeat(2),
        [3, 4, 0, 5, 1, 8, 2, 7, 6, 9] * 2,
    ),
    "again": (
        lambda: Dataset.range(6).shuffle(6, seed=7).repeat(3),
        [4, 0, 2, 3, 5, 1, 1, 4, 3, 2, 0, 5, 1, 0, 4, 3, 2, 5],
    ),
    "words": (lambda: x.RandomDataset(5).take(3), [3568415791, 2798973839, 2476249224]),
}


@pytest.mark.parametrize("name", ORDERS)
def test_random_order_is_that_of_tensorflow(name, walk):
    make, expected = ORDERS[name]
    assert ints(walk(make())) == expected
