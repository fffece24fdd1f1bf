"""Hostile files of records: TFRecord, packed or not, and events."""

from __future__ import annotations

import sqlite3
import struct
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from random import Random

import opdock as tf
from opdock.io import lmdb_files, protos
from opdock.io.records import frame
from tests.core.io import lmdb_sample
from tests.hostile.base import Drained, Format, Wrong, by_message, drain, drained, write
from tests.hostile.mutations import mutate_bytes


def _record_seeds() -> Sequence[bytes]:
    records = [b"", b"a", bytes(300), b"xyz" * 50]
    plain = b"".join(map(frame, records))
    gzip = zlib.compressobj(wbits=31)
    return [
        b"-" + plain, b"z" + zlib.compress(plain), b"g" + gzip.compress(plain) + gzip.flush(),
    ]  # fmt: skip


_COMPRESSIONS = {b"-": "", b"z": "ZLIB", b"g": "GZIP"}


def _mutate_records(rng: Random, data: bytes) -> bytes:
    kind, body = data[:1], data[1:]
    if kind == b"-" or rng.random() < 0.5:
        return kind + mutate_bytes(rng, body)
    # What is compressed is damaged, the compression is sound.
    plain = mutate_bytes(rng, zlib.decompress(body, wbits=47))
    packer = zlib.compressobj(wbits=31 if kind == b"g" else 15)
    return kind + packer.compress(plain) + packer.flush()


def _read_records(data: bytes, folder: Path) -> None:
    kind = _COMPRESSIONS[data[:1]]
    path = write(folder, "records", data[1:])
    options = tf.python_io.TFRecordOptions(kind)
    read = list(tf.python_io.tf_record_iterator(path, options))
    framed = b"".join(map(frame, read))
    if not kind and framed != data[1:]:
        raise Wrong(f"{len(read)} records were read that are not the file's")


def _event_seeds() -> Sequence[bytes]:
    summary = protos.Summary()
    summary.value.add(tag="loss", simple_value=0.5)
    summary.value.add(tag="h").histo.bucket.extend([1.0, 2.0])
    events = [
        protos.Event(wall_time=1.0, file_version="brain.Event:2"),
        protos.Event(wall_time=2.0, step=1, summary=summary),
    ]
    return [b"".join(frame(e.SerializeToString(deterministic=True)) for e in events)]


def _frames(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        yield data[at + 12 : at + 12 + size]
        at += size + 16


def _mutate_events(rng: Random, data: bytes) -> bytes:
    if rng.random() < 0.3:
        return mutate_bytes(rng, data)
    events = list(_frames(data))
    at = rng.randrange(len(events))
    events[at] = by_message(protos.Event, rng, events[at])
    return b"".join(map(frame, events))


def _read_events(data: bytes, folder: Path) -> None:
    for _ in tf.train.summary_iterator(write(folder, "events.out.tfevents.1.x", data)):
        pass


# ---------------------------------------------------------------- text and tables
def _line_seeds() -> Sequence[bytes]:
    text = b'1,a,2.5\n-7,"b ""c"", d",\r\n,,1e3\n9999999999,x,nan'
    gzip = zlib.compressobj(wbits=31)
    return [b"-" + text, b"z" + zlib.compress(text), b"g" + gzip.compress(text) + gzip.flush()]


def _read_lines(data: bytes, folder: Path) -> None:
    kind = _COMPRESSIONS.get(data[:1], "")
    drain(*_line_datasets(write(folder, "lines", data[1:]), kind))


@cache
def _line_datasets(path: str, kind: str) -> Drained:
    """What reads such a file, made once: most of a case would be the making."""
    with tf.Graph().as_default():
        return drained(
            tf.data.TextLineDataset(path, kind),
            tf.data.FixedLengthRecordDataset(path, 5, 1, compression_type=kind),
            tf.data.experimental.CsvDataset(path, [0, "", 0.0], compression_type=kind or None),
        )


def _database_seeds() -> Sequence[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/d"
        with closing(sqlite3.connect(path)) as database:
            database.execute("pragma page_size=512")
            database.execute("create table t (i integer, f real, s text)")
            database.executemany("insert into t values (?, ?, ?)", [(1, 0.5, "a"), (2, None, "b")])
            database.commit()
        return [Path(path).read_bytes()]


def _read_database(data: bytes, folder: Path) -> None:
    with suppress(tf.errors.UnknownError):  # TF's for a table that there is not
        drain(*_rows(write(folder, "database", data)))


@cache
def _rows(path: str) -> Drained:
    """What reads such a file, made once."""
    types = (tf.int32, tf.float64, tf.string)
    with tf.Graph().as_default():
        return drained(
            tf.data.experimental.SqlDataset("sqlite", path, "select i, f, s from t", types)
        )


_PAGE, _HEAD = 4096, 200


def _read_lmdb(data: bytes, folder: Path) -> None:
    for _ in lmdb_files.pairs(write(folder, "lmdb", data)):
        pass


def _mutate_lmdb(rng: Random, data: bytes) -> bytes:
    """Bytes anywhere, or at the begin of a page, where it says what is in it."""
    if rng.random() < 0.3:
        return mutate_bytes(rng, data)
    at = rng.randrange(len(data) // _PAGE) * _PAGE
    head = mutate_bytes(rng, data[at : at + _HEAD])[:_HEAD].ljust(_HEAD, b"\0")
    return data[:at] + head + data[at + _HEAD :]


FORMATS = {
    "records": Format(_record_seeds, _mutate_records, _read_records),
    "events": Format(_event_seeds, _mutate_events, _read_events),
    "lines": Format(_line_seeds, mutate_bytes, _read_lines),
    "database": Format(_database_seeds, mutate_bytes, _read_database),
    "lmdb": Format(lambda: [lmdb_sample.DATABASE], _mutate_lmdb, _read_lmdb),
}
