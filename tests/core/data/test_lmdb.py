"""Pairs of LMDB databases."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import opdock as tf
from opdock.io import lmdb_files
from tests.core.io.lmdb_sample import DATABASE, PAIRS

FIRST = [(b"key000", b"value " * 5), (b"key001", b"value " * 5)]


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """A file, and a folder with the same database."""
    (tmp_path / "folder").mkdir()
    for name in ("a.mdb", "folder/data.mdb"):
        (tmp_path / name).write_bytes(DATABASE)
    return [str(tmp_path / "a.mdb"), str(tmp_path / "folder")]


def open_files() -> set[str]:
    return {str(p.readlink()) for p in Path("/proc/self/fd").iterdir() if p.is_symlink()}


def test_pairs_in_the_order_of_files_and_keys(files: list[str]) -> None:
    dataset = tf.contrib.data.LMDBDataset(files).repeat(2)
    assert dataset.output_types == (tf.string, tf.string)
    element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        found = [session.run(element) for _ in range(4 * len(PAIRS))]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(element)
    assert found == 4 * sorted(PAIRS.items())


def test_a_database_is_closed_with_the_iterator(files: list[str]) -> None:
    iterator = tf.contrib.data.LMDBDataset(files[0]).make_initializable_iterator()
    with tf.Session() as session:
        session.run(iterator.initializer)
        assert session.run(iterator.get_next()) == FIRST[0]
        assert files[0] in open_files()
    assert files[0] not in open_files()


def test_an_iterator_goes_on_where_it_was_saved(files: list[str], tmp_path: Path) -> None:
    iterator = tf.contrib.data.LMDBDataset(files).make_one_shot_iterator()
    saveable = tf.data.experimental.make_saveable_from_iterator(iterator)
    tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, saveable)
    saver, element = tf.train.Saver(), iterator.get_next()
    with tf.Session() as session:
        assert session.run(element) == FIRST[0]
        path = saver.save(session, str(tmp_path / "saved"))
        assert session.run(element) == FIRST[1]
    with tf.Session() as session:
        saver.restore(session, path)
        assert session.run(element) == FIRST[1]


def test_what_is_no_database(files: list[str], tmp_path: Path) -> None:
    """What comes after it may still be had."""
    text = tmp_path / "text"
    text.write_bytes(b"no pages " * 5000)
    names = [str(tmp_path / "none"), str(text), files[0]]
    element = tf.contrib.data.LMDBDataset(names).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        with pytest.raises(tf.errors.NotFoundError, match="none"):
            session.run(element)
        with pytest.raises(tf.errors.InvalidArgumentError, match="text: no LMDB database"):
            session.run(element)
        assert session.run(element) == FIRST[0]


def read(path: Path, data: bytes) -> Any:
    path.write_bytes(data)
    return dict(lmdb_files.pairs(str(path)))


def test_one_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    """LMDB's own library ends the process for some of them."""
    path = tmp_path / "a.mdb"
    whole = 0
    for end in range(0, len(DATABASE), 256):
        try:
            whole += read(path, DATABASE[:end]) == PAIRS
        except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as e:
            assert "a.mdb" in str(e)
    assert whole <= len(DATABASE) // 2 // 256  # the end of a file may be free pages


def test_what_is_damaged_is_told(tmp_path: Path) -> None:
    """Bytes at the begin of pages, where their numbers and those of others are."""
    rng, seen = Random(0), set()
    for _ in range(400):
        data = bytearray(DATABASE)
        data[rng.randrange(len(data) // 4096) * 4096 + rng.randrange(200)] = rng.randrange(256)
        try:
            read(tmp_path / "a.mdb", bytes(data))
        except tf.errors.OpError as e:
            seen.add(str(e).partition(": damaged database: ")[2].partition(" ")[0])
    assert {"a", "page", "there"} <= seen


def test_a_page_that_leads_to_itself(tmp_path: Path) -> None:
    data = bytearray(DATABASE)
    for at in range(0, len(data), 4096):
        number, _, kind, end, _ = lmdb_files._HEAD.unpack_from(data, at)
        if kind & lmdb_files._BRANCH:
            (place,) = struct.unpack_from("<H", data, at + end - 2)
            struct.pack_into("<H", data, at + place, number)
    with pytest.raises(tf.errors.DataLossError, match="lead in a circle"):
        read(tmp_path / "a.mdb", bytes(data))


def test_a_page_beyond_all_files(tmp_path: Path) -> None:
    """What coverage led to: a database that says it has more pages than there are bytes."""
    data = bytearray(DATABASE)
    for at in (0, 4096):
        struct.pack_into("<QQ", data, at + 16 + 24 + 48 + 40, 2**62, 2**63)  # its root, last page
    with pytest.raises(tf.errors.DataLossError, match="cut short"):
        read(tmp_path / "a.mdb", bytes(data))


def test_a_reader_gives_the_pairs_of_the_databases_in_a_queue(files: list[str]) -> None:
    queue = tf.FIFOQueue(9, tf.string, shapes=[[]])
    reader = tf.LMDBReader(name="pairs")
    key, value = reader.read(queue)
    with tf.Session() as session:
        session.run(queue.enqueue_many([files]))
        session.run(queue.close())
        found = [session.run((key, value)) for _ in range(2 * len(PAIRS))]
        assert found == 2 * sorted(PAIRS.items())
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(value)
        assert session.run(reader.num_records_produced()) == len(found)
    assert not open_files() & {files[0]}
