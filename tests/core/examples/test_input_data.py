"""`tf.examples.tutorials.mnist`: files, batches and the model."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

import opdock as tf
from opdock.examples.tutorials.mnist import input_data, mnist


def write(folder: Path, part: str, count: int, pack=gzip.compress, suffix=".gz") -> np.ndarray:
    images = np.random.RandomState(0).randint(0, 256, (count, 28, 28)).astype(np.uint8)
    labels = np.arange(count, dtype=np.uint8) % 10
    for name, head, data in (
        ("images-idx3", struct.pack(">4I", 2051, count, 28, 28), images),
        ("labels-idx1", struct.pack(">2I", 2049, count), labels),
    ):
        (folder / f"{part}-{name}-ubyte{suffix}").write_bytes(pack(head + data.tobytes()))
    return images


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "train", 30)
    write(tmp_path, "t10k", 5)
    return tmp_path


def test_the_parts_their_types_and_shapes(folder: Path) -> None:
    found = input_data.read_data_sets(str(folder), one_hot=True, validation_size=10)
    assert [d.num_examples for d in found] == [20, 10, 5]
    assert found.train.images.shape == (20, 784) and found.train.images.dtype == np.float32
    assert found.train.labels.shape == (20, 10) and found.train.labels[0].tolist()[0] == 1
    assert 0 <= found.train.images.min() and found.train.images.max() <= 1
    raw = input_data.read_data_sets(folder, dtype=tf.uint8, reshape=False, validation_size=0)
    assert raw.train.images.shape == (30, 28, 28, 1) and raw.train.labels.shape == (30,)
    with pytest.raises(ValueError, match="between 0 and 30"):
        input_data.read_data_sets(folder, validation_size=31)
    with pytest.raises(TypeError, match="Invalid image dtype"):
        input_data.read_data_sets(folder, dtype=tf.int32, validation_size=0)


def test_batches_go_through_every_example_and_over_the_end(folder: Path) -> None:
    train = input_data.read_data_sets(folder, validation_size=0, seed=3).train
    seen = [train.next_batch(12)[1] for _ in range(5)]
    assert all(len(s) == 12 for s in seen) and train.epochs_completed == 1
    first = np.concatenate(seen)[:30]
    assert sorted(first.tolist()) == sorted((np.arange(30) % 10).tolist())
    np.random.seed(3)
    order = np.arange(30)
    again = input_data.read_data_sets(folder, validation_size=0, seed=3).train
    np.testing.assert_array_equal(again.next_batch(12)[1], seen[0])
    plain = input_data.read_data_sets(folder, validation_size=0).train
    np.testing.assert_array_equal(plain.next_batch(12, shuffle=False)[1], order[:12] % 10)


def test_made_up_data_reads_nothing() -> None:
    found = input_data.read_data_sets("absent", fake_data=True, one_hot=True)
    images, labels = found.train.next_batch(2, fake_data=True)
    assert np.shape(images) == (2, 784) and labels[0] == [1] + [0] * 9
    assert found.test.num_examples == 10000


def test_what_is_absent_is_fetched_and_unpacked_files_serve_too(folder: Path, tmp_path) -> None:
    there = tmp_path / "there"
    found = input_data.read_data_sets(there, source_url=f"{folder.as_uri()}/", validation_size=5)
    assert found.train.num_examples == 25 and len(list(there.iterdir())) == 4
    with pytest.raises(tf.errors.UnavailableError, match="cannot be fetched"):
        input_data.read_data_sets(tmp_path / "no", source_url=f"{folder.as_uri()}/no/")
    plain = tmp_path / "plain"
    plain.mkdir()
    for part in ("train", "t10k"):
        write(plain, part, 6, pack=bytes, suffix="")
    assert input_data.read_data_sets(plain, validation_size=2).train.num_examples == 4


@pytest.mark.parametrize(
    "head, said",
    [
        (struct.pack(">4I", 2049, 1, 28, 28) + bytes(784), "magic number 2049"),
        (struct.pack(">4I", 2051, 2**31, 28, 28) + bytes(784), "has 784 bytes"),
        (b"\0\0", "ends within its head"),
        (struct.pack(">4I", 2051, 0, 2**32 - 1, 2**32 - 1), "has 0 bytes for shape"),
    ],
    ids=["magic", "short", "head", "none of many"],
)
def test_broken_files(folder: Path, head: bytes, said: str) -> None:
    (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(head))
    with pytest.raises(ValueError, match=said):
        input_data.read_data_sets(folder)


def test_the_model_trains() -> None:
    images = np.random.RandomState(1).rand(10, 784).astype(np.float32)
    labels = np.arange(10) % 10
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.set_random_seed(1)
        logits = mnist.inference(tf.constant(images), 16, 8)
        loss = mnist.loss(logits, labels)
        step = mnist.training(loss, 0.1)
        right = mnist.evaluation(logits, labels)
        sess.run(tf.global_variables_initializer())
        first = sess.run(loss)
        for _ in range(100):
            sess.run(step)
        assert sess.run(loss) < first and 0 <= sess.run(right) <= 10
        assert "hidden1/weights" in [v.op.name for v in tf.trainable_variables()]
