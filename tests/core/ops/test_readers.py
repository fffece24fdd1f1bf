"""Readers: what they give of files of each kind, where they wait, and what they say of damage."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

import pytest

import opdock as tf
from tests.threads import start


def write(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


def records(path: Path, *data: bytes, kind: str = "") -> str:
    with tf.python_io.TFRecordWriter(str(path), kind) as writer:
        for record in data:
            writer.write(record)
    return str(path)


def everything(reader: tf.ReaderBase, *names: str) -> list[tuple[bytes, bytes]]:
    """What a reader gives of files, until there is no more."""
    queue = tf.FIFOQueue(99, tf.string, shapes=[[]])
    pair = reader.read(queue)
    found = []
    with tf.Session() as sess:
        sess.run(queue.enqueue_many([list(names)]))
        sess.run(queue.close())
        with pytest.raises(tf.errors.OutOfRangeError, match="insufficient elements"):
            while True:
                found.append(tuple(sess.run(pair)))
    return found


# ---------------------------------------------------------------- kinds
def test_lines_lose_their_ends_and_headers_are_left_out(tmp_path: Path) -> None:
    a = write(tmp_path / "a", b"head\r\none\r\n\r\nlast")
    b, c = write(tmp_path / "b", b"head\n"), write(tmp_path / "c", b"")
    found = everything(tf.TextLineReader(skip_header_lines=1), a, b, c)
    names = [f"{a}:{n}".encode() for n in (2, 3, 4)]
    assert found == list(zip(names, [b"one", b"", b"last"], strict=True))


def test_whole_files(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a", b"\0one\n"), write(tmp_path / "b", b"")
    found = everything(tf.WholeFileReader(), a, b)
    assert found == [(a.encode(), b"\0one\n"), (b.encode(), b"")]


@pytest.mark.parametrize("pack", [bytes, zlib.compress, gzip.compress])
@pytest.mark.parametrize("hop", [0, 2, 5])
def test_pieces_of_one_length(tmp_path: Path, pack: Any, hop: int) -> None:
    body = bytes(range(20))
    name = write(tmp_path / "a", pack(b"HH" + body + b"F"))
    encoding = {zlib.compress: "ZLIB", gzip.compress: "GZIP"}.get(pack, "")
    reader = tf.FixedLengthRecordReader(3, 2, 1, hop, encoding=encoding)
    starts = range(0, len(body) - 3 + 1, hop or 3)
    assert everything(reader, name) == [
        (f"{name}:{i}".encode(), body[at : at + 3]) for i, at in enumerate(starts)
    ]


@pytest.mark.parametrize("kind", ["", "ZLIB", "GZIP"])
def test_records_are_known_by_their_place(tmp_path: Path, kind: str) -> None:
    name = records(tmp_path / "a", b"one", b"", b"three", kind=kind)
    reader = tf.TFRecordReader(options=tf.python_io.TFRecordOptions(kind))
    keys = [f"{name}:{at}".encode() for at in (0, 19, 35)]
    assert everything(reader, name) == list(zip(keys, [b"one", b"", b"three"], strict=True))


def test_several_records_are_of_one_file(tmp_path: Path) -> None:
    names = [write(tmp_path / c, f"{c}1\n{c}2\n{c}3\n".encode()) for c in "ab"]
    reader, queue = tf.TextLineReader(), tf.FIFOQueue(9, tf.string, shapes=[[]])
    _, values = reader.read_up_to(queue, 2)
    counts = reader.num_records_produced(), reader.num_work_units_completed()
    with tf.Session() as sess:
        sess.run(queue.enqueue_many([names]))
        found = [sess.run(values).tolist() for _ in range(4)]
        assert found == [[b"a1", b"a2"], [b"a3"], [b"b1", b"b2"], [b"b3"]]
        assert sess.run(counts) == (6, 2)
        sess.run(reader.reset())
        assert sess.run(counts) == (0, 0)


# ---------------------------------------------------------------- state
def test_a_state_is_taken_on_by_another_session() -> None:
    reader, queue = tf.IdentityReader(), tf.FIFOQueue(9, tf.string, shapes=[[]])
    read, save, count = reader.read(queue), reader.serialize_state(), reader.num_records_produced()
    state = tf.placeholder(tf.string, [])
    restore = reader.restore_state(state)
    assert reader.supports_serialize
    assert not tf.TextLineReader().supports_serialize
    with tf.Session() as sess:
        sess.run(queue.enqueue_many([["a", "b"]]))
        sess.run(read)
        saved = sess.run(save)
    with tf.Session() as sess:
        sess.run(restore, {state: saved})
        assert sess.run(count) == 1
        for bad in (saved[:-1], b"no" + saved):
            with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse state for"):
                sess.run(restore, {state: bad})
        with pytest.raises(tf.errors.InvalidArgumentError, match="Inconsistent work started"):
            sess.run(restore, {state: b"\x08\x05"})
        assert sess.run(count) == 0
        with pytest.raises(tf.errors.UnimplementedError, match="TextLineReader"):
            sess.run(tf.TextLineReader().serialize_state())


# ---------------------------------------------------------------- waiting
def test_a_reader_waits_for_names_and_others_for_their_turn(tmp_path: Path) -> None:
    name = write(tmp_path / "a", b"1\n2\n3\n")
    reader, queue = tf.TextLineReader(), tf.FIFOQueue(9, tf.string, shapes=[[]])
    _, value = reader.read(queue)
    with tf.Session() as sess:
        waiting = [start(lambda: sess.run(value)) for _ in range(3)]
        sess.run(queue.enqueue(name))
        assert sorted(join() for join in waiting) == [b"1", b"2", b"3"]
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(value, options=tf.RunOptions(timeout_in_ms=50))
        waiting = [start(lambda: sess.run(value)) for _ in range(2)]
        sess.run(queue.close())
        assert all(isinstance(join(), tf.errors.OutOfRangeError) for join in waiting)


def test_a_session_that_closes_ends_the_waiting() -> None:
    reader, queue = tf.TextLineReader(), tf.FIFOQueue(9, tf.string, shapes=[[]])
    pair, size = reader.read(queue), queue.size()
    sess = tf.Session()
    waiting = [start(lambda: sess.run(pair)) for _ in range(2)]
    sess.run(size)
    sess.close()
    assert all(isinstance(join(), (tf.errors.CancelledError, RuntimeError)) for join in waiting)


# ---------------------------------------------------------------- mistakes
def test_a_missing_file_is_passed_over_and_a_damaged_one_is_not(tmp_path: Path) -> None:
    good = records(tmp_path / "good", b"good")
    bad = records(tmp_path / "bad", b"one", b"two")
    data = bytearray(Path(bad).read_bytes())
    data[-6] ^= 1
    Path(bad).write_bytes(data)
    reader, queue = tf.TFRecordReader(), tf.FIFOQueue(9, tf.string, shapes=[[]])
    _, value = reader.read(queue)
    with tf.Session() as sess:
        sess.run(queue.enqueue_many([[str(tmp_path / "no"), good, bad, good]]))
        with pytest.raises(tf.errors.NotFoundError, match=str(tmp_path / "no")):
            sess.run(value)
        assert [sess.run(value) for _ in range(2)] == [b"good", b"one"]
        for _ in range(2):
            with pytest.raises(tf.errors.DataLossError, match=f"corrupted record at 19 in {bad}"):
                sess.run(value)
        sess.run(reader.reset())
        assert sess.run(value) == b"good"


def test_a_whole_file_that_is_missing_is_tried_again(tmp_path: Path) -> None:
    reader, queue = tf.WholeFileReader(), tf.FIFOQueue(9, tf.string, shapes=[[]])
    _, value = reader.read(queue)
    with tf.Session() as sess:
        sess.run(queue.enqueue(str(tmp_path / "late")))
        for _ in range(2):
            with pytest.raises(tf.errors.NotFoundError, match="late"):
                sess.run(value)
        write(tmp_path / "late", b"here")
        assert sess.run(value) == b"here"
        assert sess.run(reader.num_work_units_completed()) == 1


def test_what_makes_no_reader_or_reads_no_names() -> None:
    with pytest.raises(ValueError, match="LZ4"):
        tf.TFRecordReader(options="LZ4")
    with pytest.raises(ValueError, match="rank 0"):
        tf.IdentityReader().restore_state(["a", "b"])
    invalid = tf.errors.InvalidArgumentError
    names, numbers = tf.FIFOQueue(9, tf.string), tf.FIFOQueue(9, tf.int32)
    with tf.Session() as sess:
        for reader, text in (
            (tf.TextLineReader(-1), "skip_header_lines must be >= 0 not -1"),
            (tf.FixedLengthRecordReader(-2), "record_bytes must be >= 0 not -2"),
            (tf.FixedLengthRecordReader(0), "record_bytes must be > 0"),
        ):
            with pytest.raises(invalid, match=text):
                sess.run(reader.read(names))
        with pytest.raises(invalid, match="Expected queue with single string component"):
            sess.run(tf.IdentityReader().read(numbers))
        sess.run(names.enqueue([["a", "b"]]))
        with pytest.raises(invalid, match="one-element string tensor"):
            sess.run(tf.IdentityReader().read(names))


def test_the_older_ops_of_graphs_that_were_saved(tmp_path: Path) -> None:
    """A reader and a queue whose handles are references, and a queue of today for such a reader."""
    raw, name = tf.raw_ops, write(tmp_path / "a", b"one\ntwo\n")
    reader = raw.TextLineReader(name="r")
    old = raw.FIFOQueue(component_types=[tf.string], shapes=[[]], name="q")
    new = tf.FIFOQueue(9, tf.string, shapes=[[]])
    put = raw.QueueEnqueue(handle=old, components=[tf.constant(name)])
    values = [
        raw.ReaderRead(reader_handle=reader, queue_handle=queue).value
        for queue in (old, raw.FakeQueue(resource=new.queue_ref))
    ]
    graph = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default(), tf.Session() as sess:
        names = [put.name, *(v.name for v in values)]
        put, *values = tf.import_graph_def(graph, return_elements=names, name="")
        sess.run(put)
        assert [sess.run(v) for v in values] == [b"one", b"two"]
        assert sess.run("q:0").tolist() == [b"localhost", b"q"]
        assert sess.run("r:0").tolist()[1] == b"r"
