"""Checkpoint bundles: round trips by property, slices, shards, and damage."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from opdock import dtypes, errors
from opdock.io import bundle_format, crc32c, snappy
from opdock.io.checkpoint_v2 import BundleReader, BundleWriter, merge_bundles
from opdock.io.files import atomic_write
from opdock.io.table import TableBuilder, TableReader
from opdock.io.tensor_slice import TensorSlice, encode_key, parse_shape_and_slice

SAVEABLE = sorted(dtypes.ALL - {dtypes.resource, dtypes.variant}, key=int)
names = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=12)
dims = st.lists(st.integers(0, 4), max_size=3)


@st.composite
def arrays(draw: Any) -> tuple[dtypes.DType, np.ndarray]:
    dtype = draw(st.sampled_from(SAVEABLE))
    shape = tuple(draw(dims))
    count = int(np.prod(shape, dtype=np.int64))
    if dtype == dtypes.string:
        out = np.empty(count, object)
        out[:] = draw(st.lists(st.binary(max_size=300), min_size=count, max_size=count))
        return dtype, out.reshape(shape)
    if dtype.is_bool:
        bits = draw(st.lists(st.booleans(), min_size=count, max_size=count))
        return dtype, np.array(bits, bool).reshape(shape)
    size = dtype.np.itemsize
    raw = draw(st.binary(min_size=count * size, max_size=count * size))
    return dtype, np.frombuffer(raw, dtype.np).reshape(shape).copy()


def same(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype == object:
        return a.tolist() == b.tolist()
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(names, arrays(), max_size=6))
def test_what_is_written_is_read(tmp_path_factory: Any, content: dict[str, Any]) -> None:
    prefix = str(tmp_path_factory.mktemp("b") / "ckpt")
    with BundleWriter(prefix) as writer:
        for name, (dtype, value) in content.items():
            writer.add(name, value, dtype)
    with BundleReader(prefix) as reader:
        assert sorted(reader.names()) == sorted(content)
        for name, (dtype, value) in content.items():
            assert reader.dtype(name) is dtype
            assert reader.shape(name) == value.shape
            assert same(reader.get(name), value)
    left = [f for f in os.listdir(os.path.dirname(prefix)) if "temp" in f]
    assert not left


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_slice_of_any_partition(tmp_path_factory: Any, data: Any) -> None:
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    axis = data.draw(st.integers(0, len(shape) - 1))
    cuts = sorted(data.draw(st.sets(st.integers(1, max(shape[axis] - 1, 1)), max_size=3)))
    edges = [0, *(c for c in cuts if c < shape[axis]), shape[axis]]
    whole = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    prefix = str(tmp_path_factory.mktemp("s") / "ckpt")
    with BundleWriter(prefix) as writer:
        for start, stop in itertools.pairwise(edges):
            extents = [(0, n) for n in shape]
            extents[axis] = (start, stop - start)
            part = TensorSlice(tuple(extents))
            writer.add_slice("v", shape, part, whole[part.index(shape)])
    wanted = []
    for n in shape:
        start = data.draw(st.integers(0, n - 1))
        wanted.append((start, data.draw(st.integers(1, n - start))))
    part = TensorSlice(tuple(wanted))
    with BundleReader(prefix) as reader:
        assert same(reader.get("v"), whole)
        assert same(reader.get_slice("v", part), np.ascontiguousarray(whole[part.index(shape)]))


def write(prefix: Path, **tensors: Any) -> str:
    with BundleWriter(str(prefix)) as writer:
        for name, value in tensors.items():
            writer.add(name, value)
    return str(prefix)


def test_merging_renames_the_shards(tmp_path: Path) -> None:
    parts = [write(tmp_path / f"t/p{i}", **{f"v{i}": np.full(3, i)}) for i in range(3)]
    merge_bundles(parts, str(tmp_path / "all"))
    with BundleReader(str(tmp_path / "all")) as reader:
        assert reader.num_shards == 3
        assert [reader.get(f"v{i}").tolist() for i in range(3)] == [[i] * 3 for i in range(3)]
    assert os.listdir(tmp_path / "t") == []
    assert len([f for f in os.listdir(tmp_path) if "data" in f]) == 3


def test_merging_joins_slices_and_refuses_twins(tmp_path: Path) -> None:
    for i in range(2):
        with BundleWriter(str(tmp_path / f"p{i}")) as writer:
            writer.add_slice("v", [4], TensorSlice(((2 * i, 2),)), np.full(2, i))
    merge_bundles([str(tmp_path / "p0"), str(tmp_path / "p1")], str(tmp_path / "all"))
    with BundleReader(str(tmp_path / "all")) as reader:
        assert reader.get("v").tolist() == [0, 0, 1, 1]
    twins = [write(tmp_path / f"q{i}", v=np.zeros(1)) for i in range(2)]
    with pytest.raises(errors.InvalidArgumentError, match="Duplicate"):
        merge_bundles(twins, str(tmp_path / "no"))


def test_a_save_that_fails_leaves_nothing(tmp_path: Path) -> None:
    prefix = write(tmp_path / "m", v=np.ones(2))
    with pytest.raises(RuntimeError), BundleWriter(prefix) as writer:
        writer.add("v", np.zeros(2))
        raise RuntimeError
    assert sorted(os.listdir(tmp_path)) == ["m.data-00000-of-00001", "m.index"]
    with BundleReader(prefix) as reader:
        assert reader.get("v").tolist() == [1, 1]


def test_bad_additions(tmp_path: Path) -> None:
    writer = BundleWriter(str(tmp_path / "m"))
    writer.add("v", np.ones(2))
    with pytest.raises(errors.InvalidArgumentError, match="duplicate key: v"):
        writer.add("v", np.ones(2))
    with pytest.raises(errors.InvalidArgumentError, match="empty"):
        writer.add("", np.ones(2))
    with pytest.raises(errors.InvalidArgumentError, match="needs shape"):
        writer.add_slice("w", [4], TensorSlice(((0, 2),)), np.ones(3))
    writer.abandon()
    with pytest.raises(errors.NotFoundError):
        BundleWriter(str(tmp_path / "no/such/m"))


# ---------------------------------------------------------------- damage
def damaged(path: str, at: int, change: int = 1) -> None:
    data = bytearray(Path(path).read_bytes())
    data[at] ^= change
    Path(path).write_bytes(data)


def test_missing_things(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFoundError, match="Failed to find any matching files"):
        BundleReader(str(tmp_path / "none"))
    prefix = write(tmp_path / "m", v=np.ones(2))
    with BundleReader(prefix) as reader, pytest.raises(errors.NotFoundError, match="Key w not"):
        reader.get("w")
    os.unlink(bundle_format.data_path(prefix, 0, 1))
    with BundleReader(prefix) as reader, pytest.raises(errors.NotFoundError):
        reader.get("v")


@pytest.mark.parametrize("value", [np.arange(8.0), np.array([b"abc", b"de"], object)])
def test_a_flipped_bit_in_the_data(tmp_path: Path, value: np.ndarray) -> None:
    prefix = write(tmp_path / "m", v=value)
    path = bundle_format.data_path(prefix, 0, 1)
    for at in range(os.path.getsize(path)):
        damaged(path, at)
        with BundleReader(prefix) as reader, pytest.raises(errors.DataLossError):
            reader.get("v")
        damaged(path, at)


def test_cut_files(tmp_path: Path) -> None:
    prefix = write(tmp_path / "m", v=np.arange(8.0))
    path = bundle_format.data_path(prefix, 0, 1)
    os.truncate(path, 10)
    with BundleReader(prefix) as reader, pytest.raises(errors.OutOfRangeError, match="has 10"):
        reader.get("v")
    os.truncate(bundle_format.index_path(prefix), 20)
    with pytest.raises(errors.DataLossError, match="too short"):
        BundleReader(prefix)


def test_any_byte_of_the_index(tmp_path: Path) -> None:
    """Whatever byte is hit, the answer is the right value or a typed error, never a crash."""
    prefix = write(tmp_path / "m", v=np.arange(8.0))
    path = bundle_format.index_path(prefix)
    for at in range(os.path.getsize(path)):
        damaged(path, at, 0x40)
        try:
            with BundleReader(prefix) as reader:
                assert reader.get("v").tolist() == list(range(8))
        except errors.OpError:
            pass
        damaged(path, at, 0x40)


def rewritten(prefix: str, change: Any) -> None:
    """Writes the index again with good checksums and changed entries."""
    from opdock.io import protos

    path = bundle_format.index_path(prefix)
    with TableReader(path) as table:
        entries = dict(table)
    for key, raw in entries.items():
        if key:
            entry = protos.BundleEntryProto.FromString(raw)
            change(entry)
            entries[key] = entry.SerializeToString()
    with atomic_write(path) as file:
        builder = TableBuilder(file)
        for key, raw in entries.items():
            builder.add(key, raw)
        builder.finish()


@pytest.mark.parametrize(
    "change",
    [
        lambda e: setattr(e.shape.dim[0], "size", 2**50),
        lambda e: setattr(e.shape.dim[0], "size", -3),
        lambda e: setattr(e, "size", 2**50),
        lambda e: setattr(e, "offset", 2**50),
        lambda e: setattr(e, "shard_id", 9),
        lambda e: setattr(e, "dtype", 7),
        lambda e: setattr(e, "dtype", 77),
        lambda e: setattr(e, "crc32c", 1),
    ],
)
def test_an_index_that_lies(tmp_path: Path, change: Any) -> None:
    prefix = write(tmp_path / "m", v=np.arange(8.0))
    rewritten(prefix, change)
    with pytest.raises(errors.OpError), BundleReader(prefix) as reader:
        reader.get("v")


# ---------------------------------------------------------------- parts
def test_crc_masks() -> None:
    assert crc32c.value(b"123456789") == 0xE3069283
    for crc in (0, 1, 0xDEADBEEF, 0xFFFFFFFF):
        assert crc32c.unmask(crc32c.mask(crc)) == crc
    assert crc32c.extend(crc32c.value(b"ab"), memoryview(b"cd")) == crc32c.value(b"abcd")


def test_tables_of_many_blocks(tmp_path: Path) -> None:
    entries = {f"key{i:06d}".encode(): os.urandom(40) for i in range(20_000)}
    path = str(tmp_path / "t")
    with atomic_write(path) as file:
        builder = TableBuilder(file)
        for key, value in entries.items():
            builder.add(key, value)
        builder.finish()
    with TableReader(path) as table:
        assert dict(table) == entries
        assert table.get(b"key012345") == entries[b"key012345"]
        assert table.get(b"key0123456") is None
        assert table.get(b"zzz") is None


def test_tables_want_ascending_keys(tmp_path: Path) -> None:
    with pytest.raises(errors.InternalError), atomic_write(str(tmp_path / "t")) as file:
        builder = TableBuilder(file)
        builder.add(b"b", b"")
        builder.add(b"a", b"")
    assert os.listdir(tmp_path) == []


def test_slice_texts() -> None:
    shape, part = parse_shape_and_slice("8 3 0,3:-")
    assert (shape, str(part), part.shape_in(shape)) == ((8, 3), "0,3:-", (3, 3))
    assert TensorSlice.from_proto(part.to_proto()) == part
    for bad in ("8 3", "8", "a 0,1", "8 3 0,9:-", "8 3 0,3", "8 0,x", "8 0,0", ""):
        with pytest.raises(errors.InvalidArgumentError):
            parse_shape_and_slice(bad)


@given(st.lists(st.tuples(st.integers(0, 2**40), st.integers(-1, 2**40)), min_size=1, max_size=4))
def test_slice_keys_sort_as_slices_do(extents: list[tuple[int, int]]) -> None:
    key = encode_key("n", TensorSlice(tuple(extents)))
    later = [*extents[:-1], (extents[-1][0] + 1, extents[-1][1])]
    assert key < encode_key("n", TensorSlice(tuple(later)))


def test_snappy() -> None:
    # "abcd" as a literal, then a copy that overlaps itself.
    assert snappy.decompress(b"\x0c\x0cabcd\x11\x04") == b"abcdabcdabcd"
    for bad in (
        b"\xff\xff\xff\xff\xff\x7f",
        b"\x04\x0cab",
        b"\x0c\x11\x09",
        b"\x02\x0cabcd",
        b"\x09\x0cabcd",
    ):
        with pytest.raises(errors.DataLossError):
            snappy.decompress(bad)


def test_what_was_verified_is_not_summed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = str(tmp_path / "m")
    strings = np.array([b"one", b"two"], object)
    with BundleWriter(prefix) as writer:
        writer.add("a", np.arange(4))
        writer.add("b", np.arange(5))
        writer.add("s", strings)
    summed: list[int] = []
    real = crc32c.extend
    monkeypatch.setattr(crc32c, "extend", lambda c, d: (summed.append(len(d)), real(c, d))[1])
    with BundleReader(prefix) as reader:
        reader.verify(["a", "s"])
        summed.clear()
        assert reader.get("a").tolist() == [0, 1, 2, 3]
        assert not summed
        assert reader.get("b").tolist() == [0, 1, 2, 3, 4] and summed == [40]
        assert reader.get("s").tolist() == strings.tolist()


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="the system takes no such advice")
@pytest.mark.parametrize("taken", [True, False])
def test_what_is_read_to_its_end_is_fetched_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    asked = []

    def advise(file: int, start: int, length: int, advice: int) -> None:
        asked.append((start, length, advice))
        if not taken:
            raise OSError("not here")

    prefix = str(tmp_path / "m")
    with BundleWriter(prefix) as writer:
        writer.add("a", np.arange(4))
        writer.add("b", np.arange(5))
    monkeypatch.setattr(os, "posix_fadvise", advise)
    with BundleReader(prefix) as reader:
        reader.verify(["a", "b"])
        assert reader.get("b").tolist() == [0, 1, 2, 3, 4]
    assert asked == [(0, 0, os.POSIX_FADV_SEQUENTIAL)]
