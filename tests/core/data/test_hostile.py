"""Input that is broken, or means harm: typed errors that say where, and nothing left behind."""

from __future__ import annotations

import gzip
import itertools
import threading
import tracemalloc
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.data import Dataset
from opdock.data.experimental import ignore_errors, parallel_interleave
from tests.threads import WAIT

WORDS = [b"", b"one", b"twice"]


def outcomes(dataset: Any, limit: int = 50) -> list[Any]:
    """Elements as Python's values, and errors in their places, until the end."""
    element, found = dataset.make_one_shot_iterator().get_next(), []
    with tf.Session() as session:
        for _ in range(limit):
            try:
                value = session.run(element)
                found.append(value.tolist() if isinstance(value, np.ndarray) else value)
            except tf.errors.OutOfRangeError:
                return found
            except tf.errors.OpError as e:
                found.append(e)
    raise AssertionError("it does not end")


def values(found: list[Any]) -> list[Any]:
    return [v for v in found if not isinstance(v, Exception)]


def records(path: Path, kind: str = "") -> bytes:
    with tf.python_io.TFRecordWriter(str(path), kind) as writer:
        for word in WORDS:
            writer.write(word)
    return path.read_bytes()


# ---------------------------------------------------------------- files
def test_a_file_that_ends_anywhere(tmp_path):
    whole = records(tmp_path / "whole")
    ends = [0, *itertools.accumulate(16 + len(word) for word in WORDS)]
    names = []
    for size in range(len(whole)):
        names.append(str(tmp_path / f"cut{size}"))
        Path(names[-1]).write_bytes(whole[:size])
    found = iter(outcomes(tf.data.TFRecordDataset(names), 4 * len(names)))
    for size, name in enumerate(names):
        complete = sum(end <= size for end in ends[1:])
        assert [next(found) for _ in range(complete)] == WORDS[:complete]
        if size not in ends:
            error = next(found)
            assert isinstance(error, tf.errors.DataLossError)
            assert f"truncated record at {ends[complete]} in {name}" in error.message
    assert next(found, None) is None


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_a_compressed_file_that_ends_anywhere(kind, tmp_path):
    whole = records(tmp_path / "whole", kind)
    names = [str(tmp_path / f"cut{size}") for size in range(1, len(whole))]
    for size, name in enumerate(names, 1):
        Path(name).write_bytes(whole[:size])
    dataset = tf.data.TFRecordDataset([*names, str(tmp_path / "whole")], kind)
    found = outcomes(dataset, 5 * len(names))
    assert values(found)[-3:] == WORDS
    broken = [e for e in found if isinstance(e, Exception)]
    assert {type(e) for e in broken} == {tf.errors.DataLossError}
    ends = {0, *itertools.accumulate(16 + len(word) for word in WORDS)}
    cuts = [whole[:size] for size in range(1, len(whole))]
    unpacked = [len(zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(cut)) for cut in cuts]
    assert len(broken) == sum(size not in ends for size in unpacked)
    assert values(outcomes(dataset.apply(ignore_errors()), 5 * len(names))) == values(found)


def test_a_length_that_no_file_has(tmp_path):
    from opdock.io.crc32c import masked
    from opdock.io.records import HEADER

    length = (1 << 62).to_bytes(8, "little")
    path = tmp_path / "long"
    path.write_bytes(HEADER.pack(1 << 62, masked(length)) + b"few")
    (error,) = outcomes(tf.data.TFRecordDataset(str(path)))
    assert isinstance(error, tf.errors.DataLossError)
    assert f"truncated record at 0 in {path}" in error.message


@pytest.mark.parametrize("kind", ["lines", "records", "pieces"])
def test_what_is_not_asked_for_is_not_unpacked(kind, tmp_path, nothing_beside):
    path = tmp_path / "bomb"
    with gzip.open(path, "wb") as file:
        file.write(records(tmp_path / "few") if kind == "records" else b"\0" * 8 + b"\n")
        for _ in range(64):
            file.write(bytes(1 << 20))
    dataset = {
        "lines": tf.data.TextLineDataset(str(path), "GZIP"),
        "records": tf.data.TFRecordDataset(str(path), "GZIP"),
        "pieces": tf.data.FixedLengthRecordDataset(str(path), 8, compression_type="GZIP"),
    }[kind]
    first = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        tracemalloc.start()
        try:
            assert session.run(first) in (b"\0" * 8, b"")
            assert tracemalloc.get_traced_memory()[1] < 16 << 20
        finally:
            tracemalloc.stop()


def test_files_that_have_vanished(tmp_path):
    (tmp_path / "a").write_bytes(b"1\n")
    (tmp_path / "c").write_bytes(b"2\n")
    names = [str(tmp_path / name) for name in "abc"]
    found = outcomes(tf.data.TextLineDataset(names))
    assert values(found) == [b"1", b"2"]
    assert isinstance(found[1], tf.errors.NotFoundError) and names[1] in found[1].message
    before = threads()
    read = parallel_interleave(tf.data.TextLineDataset, cycle_length=3)
    spread = Dataset.from_tensor_slices(names).apply(read).apply(ignore_errors()).prefetch(2)
    assert sorted(outcomes(spread)) == [b"1", b"2"]
    assert threads() <= before


# ---------------------------------------------------------------- examples
@pytest.mark.parametrize("calls", [None, 2])
def test_features_of_the_wrong_kind_number_or_name(calls):
    def example(name: str, kind: str, *given: Any) -> bytes:
        made = tf.train.Example()
        getattr(made.features.feature[name], kind).value.extend(given)
        return made.SerializeToString()

    good = example("x", "float_list", 1, 2)
    texts = [
        good, example("x", "int64_list", 1, 2), example("x", "float_list", 1),
        example("y", "float_list", 1, 2), good[:-1], b"\xff" * 9, b"", good,
    ]  # fmt: skip
    features = {"x": tf.FixedLenFeature([2], tf.float32)}
    dataset = Dataset.from_tensor_slices(texts).map(
        lambda text: tf.parse_single_example(text, features)["x"], calls
    )
    found = outcomes(dataset)
    assert len(found) == len(texts) and values(found) == [[1.0, 2.0]] * 2
    for error in found[1:-1]:
        assert isinstance(error, tf.errors.InvalidArgumentError)
        assert f"defined at {__file__}" in str(error)
    assert "Key: x" in found[2].message and "Feature: x" in found[3].message
    assert values(outcomes(dataset.apply(ignore_errors()).batch(2))) == [[[1.0, 2.0]] * 2]


# ---------------------------------------------------------------- generators
class Endless:
    """Counts, and raises where it is told to; unlike a generator it goes on."""

    def __init__(self, **errors: Exception) -> None:
        self.errors = {int(at[1:]): error for at, error in errors.items()}
        self.at = -1

    def __iter__(self) -> Endless:
        return self

    def __next__(self) -> int:
        self.at += 1
        if self.at in self.errors:
            raise self.errors[self.at]
        return self.at


@pytest.mark.parametrize(
    ("error", "cls"),
    [
        (ValueError("lost"), tf.errors.InvalidArgumentError),
        (TypeError("lost"), tf.errors.InvalidArgumentError),
        (KeyError("lost"), tf.errors.UnknownError),
        (MemoryError("lost"), tf.errors.ResourceExhaustedError),
        (NotImplementedError("lost"), tf.errors.UnimplementedError),
    ],
)
def test_a_generator_that_raises(error, cls):
    def generator() -> Any:
        yield 1
        raise error

    one, raised = outcomes(Dataset.from_generator(generator, tf.int64, []))
    assert one == 1 and isinstance(raised, cls)
    assert "lost" in raised.message and "in generator\n    raise error" in raised.message
    assert f"defined at {__file__}" in str(raised)
    on = Dataset.from_generator(lambda: Endless(e1=error), tf.int64, []).apply(ignore_errors())
    assert outcomes(on.take(3)) == [0, 2, 3]


def test_a_generator_that_gives_something_else():
    given = [1, "two", [3], None, 4.5, (5, 6), 7]
    found = outcomes(Dataset.from_generator(lambda: iter(given), tf.int64, []))
    assert len(found) == len(given) and found[0] == 1 and found[-1] == 7
    for error in (e for e in found if isinstance(e, Exception)):
        assert isinstance(error, tf.errors.InvalidArgumentError)
        assert "`generator` yielded an element" in error.message
    kept = Dataset.from_generator(lambda: iter(given), tf.int64, []).apply(ignore_errors())
    assert outcomes(kept) == values(found)


def test_a_generator_that_cannot_begin():
    def refuses() -> Any:
        raise ValueError("not today")

    dataset = Dataset.from_generator(refuses, tf.int64, [])
    (error,) = outcomes(dataset)
    assert isinstance(error, tf.errors.InvalidArgumentError) and "not today" in error.message
    assert outcomes(dataset.apply(ignore_errors())) == []


def threads() -> set[threading.Thread]:
    """Those that run, but for the ones that are kept for a while for Python functions."""
    return {t for t in threading.enumerate() if t.name not in ("opdock-user", "opdock-shelter")}


def test_what_never_ends_is_over_with_its_session():
    before = threads()
    busy = threading.Event()

    def forever() -> Any:
        while True:
            busy.set()
            yield 0

    dataset = Dataset.from_generator(forever, tf.int64, [])
    for never in (
        dataset.filter(lambda x: tf.greater(x, 0)),
        dataset.map(lambda x: tf.check_numerics(1 / tf.cast(x, tf.float32), "bad"), 2)
        .apply(ignore_errors())
        .prefetch(1),
    ):
        busy.clear()
        session, element = tf.Session(), never.make_one_shot_iterator().get_next()
        with ThreadPoolExecutor(1) as asking:
            asked = asking.submit(session.run, element)
            assert busy.wait(WAIT)
            session.close()
            with pytest.raises(tf.errors.CancelledError):
                asked.result(WAIT)
    assert threads() <= before  # those of earlier tests may have ended
