"""The feeders of `tf.contrib.learn`: batches of arrays and iterators, labels as one-hot rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.contrib.learn import data_feeder

X = np.array([[1, 2], [3, 4], [5, 6]], np.float32)


@pytest.fixture(autouse=True)
def fresh_graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def batches(feeder: Any, count: int) -> list[tuple[Any, Any]]:
    """What is fed for the features and the labels, as lists."""
    features, labels = feeder.input_builder()
    feed = feeder.get_feed_dict_fn()

    def read(placeholders: Any, fed: dict[str, Any]) -> Any:
        if isinstance(placeholders, dict):
            return {key: read(p, fed) for key, p in placeholders.items()}
        if placeholders is None:
            return None
        assert placeholders.shape.is_compatible_with(np.shape(fed[placeholders.name]))
        return fed[placeholders.name].tolist()

    return [(read(features, fed), read(labels, fed)) for fed in (feed() for _ in range(count))]


def test_batches_go_round_in_epochs() -> None:
    feeder = data_feeder.DataFeeder(X, [7, 8, 9], n_classes=0, batch_size=2, shuffle=False)
    assert batches(feeder, 3) == [
        ([[1, 2], [3, 4]], [7, 8]), ([[5, 6]], [9]), ([[1, 2], [3, 4]], [7, 8]),
    ]  # fmt: skip
    assert feeder.get_feed_params() == {"epoch": 1, "offset": 2, "batch_size": 2}
    once = data_feeder.DataFeeder(X, None, None, shuffle=False, epochs=1)
    epoch = once.make_epoch_variable()
    once.input_builder()
    feed = once.get_feed_dict_fn()
    assert feed()[epoch.name] == [0]
    with pytest.raises(StopIteration):
        feed()


def test_each_epoch_has_its_own_order() -> None:
    feeder = data_feeder.DataFeeder(X, None, None, batch_size=3)
    first, second = (b[0] for b in batches(feeder, 2))
    # NumPy's permutations of seed 42, as TensorFlow draws them.
    drawn = np.random.RandomState(42)
    assert [first, second] == [X[drawn.permutation(3)].tolist() for _ in range(2)]


def test_labels_are_one_hot_rows() -> None:
    feeder = data_feeder.DataFeeder(X, np.array([[1, 0], [2, 1], [0, 0]]), 3, 2, shuffle=False)
    assert batches(feeder, 1)[0][1] == [[[0, 1, 0], [1, 0, 0]], [[0, 0, 1], [0, 1, 0]]]
    named = data_feeder.DataFeeder(
        {"x": X[:, 0]}, {"class": np.array([2, 0, 1]), "size": X[:, 1]}, {"class": 3}, 2,
        shuffle=False,
    )  # fmt: skip
    assert named.input_shape == {"x": [2, 1]}
    assert named.output_shape == {"class": [2, 3], "size": [2]}
    features, labels = batches(named, 1)[0]
    assert features == {"x": [[1], [3]]}
    assert labels == {"class": [[0, 0, 1], [1, 0, 0]], "size": [2, 4]}


def test_iterators_are_read_as_batches_are_asked_for() -> None:
    read = []

    def rows() -> Iterator[Any]:
        for row in X:
            read.append(len(read))
            yield row

    feeder = data_feeder.setup_train_data_feeder(rows(), iter([0, 1, 1]), 2, batch_size=2)
    assert isinstance(feeder, data_feeder.StreamingDataFeeder) and read == [0]
    assert batches(feeder, 1) == [([[1, 2], [3, 4]], [[1, 0], [0, 1]])]
    assert read == [0, 1]
    assert batches(feeder, 1) == [([[5, 6]], [[0, 1]])]
    with pytest.raises(StopIteration):
        feeder.get_feed_dict_fn()()


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(ValueError, match="Invalid batch_size 0"):
        data_feeder.DataFeeder(X, None, None, batch_size=0)
    with pytest.raises(ValueError, match="Both x and y should be iterators"):
        data_feeder.setup_train_data_feeder(iter(X), [1, 2, 3], 2)
    with pytest.raises(IndexError, match="3 is out of bounds"):
        batches(data_feeder.DataFeeder(X, [0, 1, 3], 3, shuffle=False), 1)
    with pytest.raises(ValueError, match="Invalid batch_size -1"):
        data_feeder.setup_predict_data_feeder(X, -1)


@pytest.mark.parametrize("batch_size", [None, 2])
def test_parts_to_predict_from(batch_size: int | None) -> None:
    wanted = [X.tolist()] if batch_size is None else [X[:2].tolist(), X[2:].tolist()]
    for given in (X, iter(X)):
        parts = data_feeder.setup_predict_data_feeder(given, batch_size)
        assert [np.asarray(p).tolist() for p in parts] == wanted
    (named,) = data_feeder.setup_predict_data_feeder(iter([{"a": X[0]}, {"a": X[1]}]))
    assert named["a"].tolist() == X[:2].tolist()
    assert data_feeder.setup_predict_data_feeder(X[:, 0])[0].shape == (3, 1)
