"""Record files: framing, compression, damage."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from opdock import errors, python_io
from opdock.io.record_index import IndexedRecords, index_of, load_index, save_index
from opdock.io.records import RecordReader, new_file, read_records


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


def test_options_are_zlibs(tmp_path: Path) -> None:
    data = [bytes(i * 7919 % 251 for i in range(20_000)), b"abc" * 5000]
    sizes = {}
    for name, options in {
        "usual": {},
        "same": {"input_buffer_size": 4096, "output_buffer_size": 4096, "compression_level": 6},
        "none": {"compression_level": 0},
        "flushed": {"flush_mode": zlib.Z_FULL_FLUSH, "input_buffer_size": 1000},
        "narrow": {"window_bits": 9, "mem_level": 1},
        "huffman": {"compression_strategy": zlib.Z_HUFFMAN_ONLY},
    }.items():
        how = python_io.TFRecordOptions("ZLIB", **options)
        path = tmp_path / name
        with python_io.TFRecordWriter(path, how) as writer:
            for record in data:
                writer.write(record)
        assert list(python_io.tf_record_iterator(path, how)) == data
        sizes[name] = path.stat().st_size
    assert sizes["same"] == sizes["usual"]
    assert min(sizes[n] for n in ("none", "flushed", "narrow", "huffman")) > sizes["usual"]
    with pytest.raises(errors.InvalidArgumentError, match="window_bits=99"):
        python_io.TFRecordWriter(tmp_path / "f", python_io.TFRecordOptions("ZLIB", window_bits=99))
    with (
        python_io.TFRecordWriter(tmp_path / "f") as writer,
        pytest.raises(TypeError, match="expected bytes, str found"),
    ):
        writer.write("text")


def test_streams_that_follow_each_other_are_one(tmp_path: Path) -> None:
    path = tmp_path / "f"
    for record in (b"one", b"two"):
        with python_io.TFRecordWriter(tmp_path / "part", "GZIP") as writer:
            writer.write(record)
        with path.open("ab") as file:
            file.write((tmp_path / "part").read_bytes())
    assert list(read_records(path, "GZIP")) == [b"one", b"two"]


def test_records_by_their_numbers(tmp_path: Path) -> None:
    path, data = tmp_path / "f", [bytes([i]) * i * 100 for i in range(10)]
    with python_io.TFRecordWriter(path) as writer:
        for record in data:
            writer.write(record)
    index = index_of(path)
    save_index(tmp_path / "i", index)
    assert load_index(tmp_path / "i") == index
    with IndexedRecords(path, index) as found:
        assert len(found) == 10
        assert [found[i] for i in (7, 0, -1)] == [data[7], data[0], data[9]]
        assert found[2:8:3] == data[2:8:3]
        with pytest.raises(IndexError):
            found[10]
    with (
        IndexedRecords(path, [(0, 99)]) as wrong,
        pytest.raises(errors.DataLossError, match="no record of 99 bytes at 0"),
    ):
        wrong[0]
    (tmp_path / "i").write_text("0 12\nx\n")
    with pytest.raises(errors.DataLossError, match="line 2"):
        load_index(tmp_path / "i")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(errors.DataLossError, match=f"truncated record at {index[9][0]} in"):
        index_of(path)
    path.write_bytes(b"\xff" * 40)
    with pytest.raises(errors.DataLossError, match="corrupted record at 0"):
        index_of(path)
    for kind in ("ZLIB", "GZIP"):
        with python_io.TFRecordWriter(path, kind) as writer:
            writer.write(b"x")
        with pytest.raises(errors.FailedPreconditionError, match=rf"compressed \({kind}\)"):
            index_of(path)
    with RecordReader(path, "GZIP") as reader, pytest.raises(errors.UnimplementedError):
        reader.seek(0)


def test_a_file_that_is_not_finished_has_no_name(tmp_path: Path) -> None:
    path = tmp_path / "f"
    for kind in ("", "ZLIB"):
        with pytest.raises(KeyError), new_file(str(path), kind) as writer:
            writer.write(b"one")
            raise KeyError
        assert list(tmp_path.iterdir()) == []
    with new_file(str(path), "ZLIB") as writer:
        writer.write(b"one")
    assert list(read_records(path, "ZLIB")) == [b"one"]
