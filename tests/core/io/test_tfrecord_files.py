"""Record files: framing, compression, damage."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from opdock import errors, python_io
from opdock.io.records import read_records


@settings(max_examples=30, deadline=None)
@given(st.lists(st.binary(max_size=2000), max_size=8), st.sampled_from(["", "GZIP", "ZLIB"]))
def test_there_and_back(tmp_path_factory, records: list[bytes], kind: str) -> None:
    path = str(tmp_path_factory.mktemp("r") / "f")
    with python_io.TFRecordWriter(path, python_io.TFRecordOptions(kind)) as writer:
        for record in records:
            writer.write(record)
    assert list(python_io.tf_record_iterator(path, python_io.TFRecordOptions(kind))) == records


def test_compression_by_enum(tmp_path: Path) -> None:
    options = python_io.TFRecordOptions(python_io.TFRecordCompressionType.GZIP)
    with python_io.TFRecordWriter(str(tmp_path / "f"), options) as writer:
        writer.write(b"x" * 10_000)
        writer.flush()
    assert os.path.getsize(tmp_path / "f") < 200
    assert list(read_records(tmp_path / "f", "GZIP")) == [b"x" * 10_000]
    with pytest.raises(ValueError, match="LZ4"):
        python_io.TFRecordOptions("LZ4")


def test_missing_file() -> None:
    with pytest.raises(errors.NotFoundError, match="/nope"):
        list(read_records("/nope"))


def test_every_damaged_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with python_io.TFRecordWriter(path) as writer:
        writer.write(b"first")
        writer.write(b"second")
    good = path.read_bytes()
    for at in range(len(good)):
        bad = bytearray(good)
        bad[at] ^= 1
        path.write_bytes(bad)
        with pytest.raises(errors.DataLossError, match="record"):
            list(read_records(path))


def test_a_cut_file_gives_its_whole_records(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with python_io.TFRecordWriter(path) as writer:
        writer.write(b"first")
        writer.write(b"second")
    path.write_bytes(path.read_bytes()[:-3])
    reader = read_records(path)
    assert next(reader) == b"first"
    with pytest.raises(errors.DataLossError, match="truncated record at 21"):
        next(reader)


def test_a_damaged_compressed_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    for kind in ("GZIP", "ZLIB"):
        with python_io.TFRecordWriter(path, kind) as writer:
            writer.write(b"abc" * 100)
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0xFF
        path.write_bytes(data)
        with pytest.raises(errors.DataLossError):
            list(read_records(path, kind))


def test_closed_writer(tmp_path: Path) -> None:
    writer = python_io.TFRecordWriter(tmp_path / "f")
    writer.close()
    with pytest.raises(errors.FailedPreconditionError, match="closed"):
        writer.write(b"x")
