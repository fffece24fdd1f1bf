"""`tf.contrib.learn`: batches of what is read from files, and `tf.contrib.input_pipeline`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.contrib import input_pipeline, learn
from opdock.contrib.learn.io import queue_parsed_features


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


@pytest.fixture
def lines(tmp_path: Path) -> str:
    for number in range(2):
        (tmp_path / f"{number}.txt").write_text("".join(f"{number}{n}\n" for n in "abc"))
    return str(tmp_path / "*.txt")


def _all(tensor: Any) -> list[Any]:
    found = []
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        try:
            while True:
                found.append(sess.run(tensor))
        except tf.errors.OutOfRangeError:
            coord.request_stop()
        coord.join(threads)
    return found


def test_lines_in_order_with_keys(lines: str) -> None:
    keys, examples = learn.read_keyed_batch_examples(
        lines, 4, tf.TextLineReader, randomize_input=False, num_epochs=1, read_batch_size=2
    )
    found = _all([keys, examples])
    assert [batch.tolist() for _, batch in found] == [[b"0a", b"0b", b"0c", b"1a"], [b"1b", b"1c"]]
    assert found[0][0][0].endswith(b"0.txt:1")


def test_lines_are_shuffled_and_parsed(lines: str) -> None:
    numbers = learn.read_batch_examples(
        lines, 2, tf.TextLineReader, num_epochs=2, queue_capacity=5, seed=3,
        parse_fn=lambda line: {"length": tf.strings.length(line), "line": line},
    )  # fmt: skip
    found = [line for batch in _all(numbers) for line in batch["line"]]
    assert sorted(found) == sorted([f"{n}{c}".encode() for n in range(2) for c in "abc"] * 2)


def test_places_among_files_are_shared(lines: str) -> None:
    examples = learn.read_keyed_batch_examples_shared_queue(
        lines, 3, tf.TextLineReader, randomize_input=False, num_epochs=1
    )[1]
    assert [v.op.name for v in tf.global_variables()] == [
        "obtain_next/obtain_next_counter", "obtain_next/obtain_next_expanded_list",
        "obtain_next/obtain_next_filename_counter",
    ]  # fmt: skip
    assert [b for batch in _all(examples) for b in batch.tolist()] == [
        b"0a", b"0b", b"0c", b"1a", b"1b", b"1c",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"file_pattern": []}, "No files given"),
        ({"file_pattern": "nothing*"}, "No files match nothing"),
        ({"queue_capacity": 0}, "Invalid queue_capacity 0"),
        ({"batch_size": 10000}, "Invalid batch_size 10000"),
        ({"read_batch_size": 0}, "Invalid read_batch_size 0"),
        ({"num_threads": 0}, "Invalid num_threads 0"),
        ({"num_epochs": 0}, "Invalid num_epochs 0"),
    ],
)
def test_what_cannot_be_read(lines: str, given: dict[str, Any], told: str) -> None:
    options = {"file_pattern": lines, "batch_size": 2, "reader": tf.TextLineReader, **given}
    with pytest.raises(ValueError, match=told):
        learn.read_batch_examples(**options)


def test_features_of_records(tmp_path: Path) -> None:
    path = str(tmp_path / "records")
    with tf.python_io.TFRecordWriter(path) as writer:
        for number in range(4):
            example = tf.train.Example()
            example.features.feature["age"].int64_list.value.append(number)
            if number % 2:
                example.features.feature["word"].bytes_list.value.append(b"odd")
            writer.write(example.SerializeToString())
    spec = {"age": tf.FixedLenFeature([], tf.int64), "word": tf.VarLenFeature(tf.string)}
    features = learn.read_batch_record_features(
        path, 2, spec, randomize_input=False, num_epochs=1, reader_num_threads=1
    )
    found = sorted(_all(features), key=lambda batch: int(batch["age"][0]))
    assert [batch["age"].tolist() for batch in found] == [[0, 1], [2, 3]]
    assert [batch["word"].values.tolist() for batch in found] == [[b"odd"], [b"odd"]]
    keys, alone = queue_parsed_features({"x": tf.ones([3])})
    assert keys is None
    assert alone["x"].shape.as_list() == [3]


def test_strings_in_turn() -> None:
    following = input_pipeline.seek_next(["a", "b", "c"])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert [sess.run(following) for _ in range(4)] == [b"a", b"b", b"c", b"a"]
    with tf.Graph().as_default():
        twice = input_pipeline.seek_next(["a", "b", "c"], shuffle=True, seed=5, num_epochs=2)
        found = _all(twice)
    assert sorted(found[:3]) == sorted(found[3:]) == [b"a", b"b", b"c"]


class _Frame:
    """As much of pandas' DataFrame as is asked of it: pandas need not be there."""

    def __init__(self, **columns: np.ndarray) -> None:
        self.columns = list(columns)
        self.dtypes = {name: column.dtype for name, column in columns.items()}
        self.values = np.stack(list(columns.values()), axis=1)


def test_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=_Frame))
    assert learn.extract_pandas_data([1]) == [1]
    one = _Frame(a=np.array([1, 2]))
    frame = _Frame(a=np.array([1, 2]), b=np.array([0.5, 1.5]))
    assert learn.extract_pandas_data(frame).tolist() == [[1.0, 0.5], [2.0, 1.5]]
    assert learn.extract_pandas_matrix(frame) is frame.values
    assert learn.extract_pandas_labels(one).tolist() == [[1], [2]]
    with pytest.raises(ValueError, match="Only one column for labels"):
        learn.extract_pandas_labels(frame)
    with pytest.raises(ValueError, match="must be int, float, or bool. Found: 'a' type='str"):
        learn.extract_pandas_data(_Frame(a=np.array(["x"])))
