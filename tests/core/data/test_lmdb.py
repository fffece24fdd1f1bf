"""Pairs of LMDB databases. A module of the package's name stands for it: it need not be there."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import opdock as tf

DATABASES = {"a.mdb": {b"k1": b"v1", b"k2": b"v2"}, "empty.mdb": {}, "b.mdb": {b"k3": b"v3"}}


class LMDBError(Exception):
    """What the package raises."""


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is open, in a package that has the databases."""
    opened: list[str] = []

    @contextmanager
    def open_(path: str, **options: Any) -> Iterator[Any]:
        assert options == {"subdir": False, "readonly": True, "lock": False, "create": False}
        if path not in DATABASES:
            raise LMDBError("No such file or directory")
        opened.append(path)

        @contextmanager
        def begin() -> Iterator[Any]:
            yield types.SimpleNamespace(cursor=lambda: iter(sorted(DATABASES[path].items())))

        try:
            yield types.SimpleNamespace(begin=begin)
        finally:
            opened.remove(path)

    module: Any = types.ModuleType("lmdb")
    module.open, module.Error = open_, LMDBError
    monkeypatch.setitem(sys.modules, "lmdb", module)
    return opened


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def test_pairs_in_the_order_of_files_and_keys(library: list[str]) -> None:
    dataset = tf.contrib.data.LMDBDataset(list(DATABASES)).repeat(2)
    assert dataset.output_types == (tf.string, tf.string)
    element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        found = [session.run(element) for _ in range(6)]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(element)
    assert found == [(b"k1", b"v1"), (b"k2", b"v2"), (b"k3", b"v3")] * 2
    assert not library


def test_a_database_is_closed_with_the_iterator(library: list[str]) -> None:
    element = tf.contrib.data.LMDBDataset("a.mdb").make_one_shot_iterator().get_next()
    with tf.Session() as session:
        session.run(element)
        assert library == ["a.mdb"]
    assert not library


def test_an_iterator_goes_on_where_it_was_saved(library: list[str], tmp_path: Any) -> None:
    iterator = tf.contrib.data.LMDBDataset(list(DATABASES)).make_initializable_iterator()
    element = iterator.get_next()
    saver = tf.train.Saver({"it": tf.data.experimental.make_saveable_from_iterator(iterator)})
    with tf.Session() as session:
        session.run(iterator.initializer)
        session.run(element)
        path = saver.save(session, str(tmp_path / "model"), write_meta_graph=False)
    with tf.Session() as session:
        session.run(iterator.initializer)
        saver.restore(session, path)
        assert [session.run(element) for _ in range(2)] == [(b"k2", b"v2"), (b"k3", b"v3")]


def test_a_file_that_is_no_database(library: list[str]) -> None:
    dataset = tf.contrib.data.LMDBDataset(["none.mdb", "b.mdb"])
    element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"none.mdb: No such file"):
            session.run(element)
        assert session.run(element) == (b"k3", b"v3")


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lmdb", None)
    element = tf.contrib.data.LMDBDataset("a.mdb").make_one_shot_iterator().get_next()
    with tf.Session() as session:
        with pytest.raises(tf.errors.UnimplementedError, match="pip install lmdb"):
            session.run(element)


def test_a_reader_gives_the_pairs_of_the_databases_in_a_queue(library: list[str]) -> None:
    queue = tf.FIFOQueue(9, tf.string, shapes=[[]])
    reader = tf.LMDBReader(name="pairs")
    key, value = reader.read(queue)
    with tf.Session() as session:
        session.run(queue.enqueue_many([["a.mdb", "empty.mdb", "b.mdb"]]))
        session.run(queue.close())
        found = [session.run((key, value)) for _ in range(3)]
        assert found == [(b"k1", b"v1"), (b"k2", b"v2"), (b"k3", b"v3")]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(value)
        assert session.run(reader.num_records_produced()) == 3
    assert not library
