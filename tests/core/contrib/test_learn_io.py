"""`tf.contrib.learn.io`: examples from files, in batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.mapping import resolve

learn_io = tf.contrib.learn.io
FEATURES = {"x": tf.FixedLenFeature([2], tf.float32), "words": tf.VarLenFeature(tf.string)}


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


@pytest.fixture
def files(tmp_path: Path) -> str:
    """Two files of four examples each, numbered from 0 to 7."""
    for name, numbers in (("a", range(4)), ("b", range(4, 8))):
        with tf.python_io.TFRecordWriter(str(tmp_path / f"{name}.records")) as writer:
            for n in numbers:
                x = tf.train.Feature(float_list=tf.train.FloatList(value=[n, -n]))
                words = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"w"] * (n % 3)))
                feature = tf.train.Features(feature={"x": x, "words": words})
                writer.write(tf.train.Example(features=feature).SerializeToString())
    return str(tmp_path / "*.records")


def batches(fetches: Any) -> list[Any]:
    """All batches, until the files end."""
    found = []
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coord)
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                found.append(sess.run(fetches))
        coord.request_stop()
        coord.join(threads)
    return found


def test_features_in_order_with_keys(files: str) -> None:
    keys, features = learn_io.read_keyed_batch_features(
        files, 3, FEATURES, tf.TFRecordReader, randomize_input=False, num_epochs=1,
        num_enqueue_threads=1,
    )  # fmt: skip
    assert features["x"].shape.as_list() == [None, 2]
    found = batches([keys, features])
    assert [len(k) for k, _ in found] == [3, 3, 2]
    x = np.concatenate([f["x"] for _, f in found])
    np.testing.assert_array_equal(x[:, 0], np.arange(8))
    assert found[0][0][0].endswith(b"a.records:0")
    assert found[0][1]["words"].dense_shape.tolist() == [3, 2]


def test_features_in_random_order_come_once_an_epoch(files: str) -> None:
    features = tf.contrib.learn.read_batch_record_features(files, 4, FEATURES, num_epochs=2)
    x = np.concatenate(batches(features["x"]))[:, 0]
    assert sorted(x.tolist()) == sorted([*range(8), *range(8)])


@pytest.mark.parametrize("many", [1, 3])
def test_examples_as_a_program_parses_them(files: str, many: int) -> None:
    def parse(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        whole = tf.reshape(examples, [-1])
        x = tf.parse_example(whole, FEATURES)["x"][:, 0]
        return {"x": x if many > 1 else x[0]}

    parsed = tf.contrib.learn.read_batch_examples(
        files, 4, tf.TFRecordReader, randomize_input=False, num_epochs=1, read_batch_size=many,
        parse_fn=parse,
    )  # fmt: skip
    found = batches(parsed)
    assert np.concatenate([f["x"] for f in found]).tolist() == list(range(8))


@pytest.mark.parametrize(
    "given, match",
    [
        ({"file_pattern": "no_such_file"}, "No files match"),
        ({"file_pattern": []}, "No files given"),
        ({"queue_capacity": 0}, "Invalid queue_capacity"),
        ({"batch_size": 20, "queue_capacity": 10}, "Invalid batch_size"),
        ({"num_threads": 0}, "Invalid num_threads"),
        ({"num_epochs": -1}, "Invalid num_epochs"),
        ({"read_batch_size": None}, "Invalid read_batch_size"),
    ],
)
def test_what_makes_no_sense(files: str, given: dict[str, Any], match: str) -> None:
    arguments = {"file_pattern": files, "batch_size": 2, "reader": tf.TFRecordReader, **given}
    with pytest.raises(ValueError, match=match):
        learn_io.read_batch_examples(**arguments)


def test_the_internal_name_is_the_same() -> None:
    name = "contrib.learn.python.learn.learn_io.graph_io"
    assert resolve.lookup(name, "read_batch_features") is learn_io.read_batch_features


@pytest.mark.parametrize("given", [{}, {"shuffle": False}])
def test_input_of_arrays_shuffles_where_nothing_else_is_said(given: dict[str, Any]) -> None:
    x = np.arange(100.0)
    made = learn_io.numpy_input_fn({"x": x}, 2 * x, batch_size=100, **given)()
    ((features, labels),) = batches(made)
    assert sorted(features["x"]) == x.tolist()
    np.testing.assert_array_equal(labels, 2 * features["x"])
    assert (features["x"].tolist() == x.tolist()) == bool(given)


def test_input_of_frames_shuffles_where_nothing_else_is_said(monkeypatch: Any) -> None:
    monkeypatch.setattr(tf.estimator.inputs, "pandas_input_fn", lambda **given: given)
    given = learn_io.pandas_input_fn(1, 2)
    assert (given["x"], given["y"], given["shuffle"]) == (1, 2, True)
    assert learn_io.pandas_input_fn(1, shuffle=False)["shuffle"] is False
