"""Batches in parts for replicas, windows, races, and datasets by TF's internal names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.data import Dataset, by_kind
from opdock.data.experimental.readers import make_tf_record_dataset
from opdock.data.experimental.sharing import (
    PrivateThreadPool,
    auto_sharded,
    choose_fastest,
    non_serializable,
    override_threadpool,
    rebatched,
    sliding_windows,
)
from opdock.mapping import resolve


def lists(values: list[Any]) -> list[Any]:
    return [v.tolist() for v in values]


def test_batches_in_parts(walk: Any) -> None:
    parts = rebatched(Dataset.range(10).batch(8), 4)
    assert lists(walk(parts)) == [[0, 1], [2, 3], [4, 5], [6, 7], [8], [9], [], []]
    assert parts.element_spec.shape.as_list() == [None]
    even = rebatched(Dataset.range(8).batch(4, drop_remainder=True), 2)
    assert even.element_spec.shape.as_list() == [2]
    with pytest.raises(ValueError, match="at least one dimension"):
        rebatched(Dataset.range(3), 2)


def test_a_component_that_is_no_batch_is_named() -> None:
    unknown = Dataset.range(2).map(
        lambda x: (tf.expand_dims(x, 0), tf.placeholder_with_default(x, None))
    )
    element = tf.data.make_initializable_iterator(rebatched(unknown, 2))
    following = element.get_next()
    with tf.Session() as session:
        session.run(element.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError, match="Component 1 is scalar"):
            session.run(following)


def records(folder: Any, files: int = 4) -> Any:
    """A dataset of the names of files with three records each."""
    for i in range(files):
        with tf.io.TFRecordWriter(str(folder / f"{i}.tfrecord")) as writer:
            for j in range(3):
                writer.write(b"%d%d" % (i, j))
    return Dataset.list_files(str(folder / "*.tfrecord"), shuffle=False)


def test_workers_share_out_files(walk: Any, tmp_path: Any) -> None:
    files = records(tmp_path)
    for read in (
        files.flat_map(tf.data.TFRecordDataset),
        files.interleave(tf.data.TFRecordDataset, cycle_length=1, num_parallel_calls=1),
        tf.data.TFRecordDataset(files).map(tf.identity).prefetch(1),
    ):
        assert walk(auto_sharded(read, 2, 1)) == [b"10", b"11", b"12", b"30", b"31", b"32"]
    whole = files.flat_map(tf.data.TFRecordDataset)
    assert walk(auto_sharded(whole, 1, 0)) == walk(whole)
    both = Dataset.zip((whole, whole)).batch(3)
    assert [a.tolist() for a, _ in walk(auto_sharded(both, 4, 2))] == [[b"20", b"21", b"22"]]


def test_files_are_shuffled_after_they_were_shared_out(walk: Any, tmp_path: Any) -> None:
    read = records(tmp_path, 6).shuffle(6).flat_map(tf.data.TFRecordDataset)
    shares = [walk(auto_sharded(read, 3, i)) for i in range(3)]
    assert [{r[:1] for r in share} for share in shares] == [
        {b"0", b"3"}, {b"1", b"4"}, {b"2", b"5"},
    ]  # fmt: skip


def test_workers_share_out_elements_where_files_are_not_all(walk: Any, tmp_path: Any) -> None:
    whole = records(tmp_path, 2).flat_map(tf.data.TFRecordDataset)
    for data in (whole.apply(tf.data.experimental.unique()), whole.concatenate(whole.take(0))):
        assert len(walk(auto_sharded(data, 2, 0))) == 3
    mixed = whole.concatenate(Dataset.from_tensors(b"x"))
    assert walk(auto_sharded(mixed, 2, 1)) == [b"01", b"10", b"12"]
    assert walk(auto_sharded(Dataset.range(5), 2, 1)) == [1, 3]
    assert walk(auto_sharded(Dataset.range(3), 5, 4)) == []
    with pytest.raises(tf.errors.InvalidArgumentError, match="There aren't enough elements"):
        walk(auto_sharded(Dataset.range(3), 5, 0))
    with pytest.raises(tf.errors.InvalidArgumentError, match="num_workers must be"):
        walk(auto_sharded(Dataset.range(3), 2, 2))


def test_windows_overlap(walk: Any) -> None:
    windows = sliding_windows(Dataset.range(6).map(lambda x: (x, 2 * x)), 2, 2, 2)
    found = [tuple(part.tolist() for part in e) for e in walk(windows)]
    assert found == [([0, 2], [0, 4]), ([2, 4], [4, 8])]
    assert [s.shape.as_list() for s in windows.element_spec] == [[2], [2]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Window size must be greater"):
        walk(sliding_windows(Dataset.range(3), 0, 1, 1))


def test_the_same_elements_whichever_input_is_faster(walk: Any) -> None:
    numbers = Dataset.range(20)
    race = choose_fastest(
        [numbers.map(lambda x: x + 1), numbers.prefetch(2).map(lambda x: x + 1)], 3
    )
    assert walk(race) == list(range(1, 21))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have compatible cardinalities"):
        walk(choose_fastest([numbers, Dataset.range(3)]))


@pytest.mark.parametrize(
    "make",
    [
        lambda: rebatched(Dataset.range(10).batch(4), 3),
        lambda: sliding_windows(Dataset.range(6), 3, 1, 1),
        lambda: choose_fastest([Dataset.range(6), Dataset.range(6)], 2),
    ],
)
def test_saved_anywhere_they_go_on(make: Any, resumed: Any, tmp_path: Any) -> None:
    resumed(make, tmp_path, (0, 1, 3))


def test_a_place_that_cannot_be_saved() -> None:
    iterator = tf.data.make_initializable_iterator(Dataset.range(3).apply(non_serializable()))
    saver = tf.train.Saver([tf.data.experimental.make_saveable_from_iterator(iterator)])
    with tf.Session() as session:
        session.run(iterator.initializer)
        with pytest.raises(tf.errors.UnimplementedError, match="does not support serialization"):
            saver.save(session, "unsaved")


def test_pools_of_threads(walk: Any) -> None:
    doubled = Dataset.range(20).map(lambda x: 2 * x, num_parallel_calls=8)
    assert walk(override_threadpool(doubled, PrivateThreadPool(2))) == list(range(0, 40, 2))
    with pytest.raises(tf.errors.InvalidArgumentError, match="num_threads"):
        walk(override_threadpool(doubled, PrivateThreadPool(0)))


def test_datasets_by_kind(walk: Any, tmp_path: Any) -> None:
    for name in ("b", "a"):
        with tf.io.TFRecordWriter(str(tmp_path / f"{name}.tfrecord")) as writer:
            writer.write(name.encode())
    pattern = str(tmp_path / "*.tfrecord")
    files = walk(by_kind.matching_files_dataset(pattern))
    assert [f.decode()[-10:] for f in files] == ["a.tfrecord", "b.tfrecord"]
    assert walk(by_kind.tf_record_dataset(files)) == [b"a", b"b"]
    records = make_tf_record_dataset(pattern, 2, num_epochs=1, shuffle=False)
    assert lists(walk(records)) == [[b"a", b"b"]]
    numbers = by_kind.prefetch_dataset(Dataset.range(3), None, slack_period=2)
    assert walk(by_kind.map_dataset(numbers, lambda x: -x)) == [0, -1, -2]
    assert walk(by_kind.parallel_map_dataset(numbers, lambda x: -x, 2)) == [0, -1, -2]
    chosen = Dataset.from_tensor_slices(np.array([1, 0, 1]))
    assert walk(by_kind.directed_interleave_dataset(chosen, [numbers, numbers])) == [0, 0, 1]
    with pytest.raises(tf.errors.NotFoundError, match="matched files"):
        walk(by_kind.matching_files_dataset(str(tmp_path / "*.none")))


def test_arguments_of_the_wrong_rank_are_refused_where_they_are_written() -> None:
    with pytest.raises(ValueError, match="Shape must be rank 0 but is rank 1"):
        Dataset.range(3).take([1, 2])
    with pytest.raises(ValueError, match="Shape must be at most rank 1 but is rank 2"):
        by_kind.tf_record_dataset([["a"]])


def test_what_is_imported_last_hides_what_came_before() -> None:
    assert resolve.lookup("python.ops.image_ops", "adjust_hue") is tf.image.adjust_hue
    assert resolve.lookup("python.ops.image_ops", "transpose") is tf.image.transpose
