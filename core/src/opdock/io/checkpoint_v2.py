"""Checkpoint bundles, TF's V2 format: `prefix.index` and `prefix.data-00000-of-0000N`.

The index is a sorted table (`opdock.io.table`) of one entry a tensor: type, shape, shard, offset,
size, checksum. A tensor saved in pieces has an entry that lists its slices and one entry a slice.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO, Self

import numpy as np

from opdock import dtypes, errors
from opdock.dtypes import DType
from opdock.io import bundle_format, crc32c, filesystems, protos
from opdock.io.bundle_format import Array, data_path, index_path
from opdock.io.checkpoint_commit import HEADER_KEY, VERSION, commit, give_up
from opdock.io.files import Temporary, local_path, make_directory, tf_errors
from opdock.io.parsing import parsed
from opdock.io.table import TableReader
from opdock.io.tensor_slice import TensorSlice, encode_key, gather
from opdock.nearest import meant

__all__ = ["BundleReader", "BundleWriter", "merge_bundles"]


class BundleWriter:
    """Writes one bundle with one data file.

    Tensors go to a temporary file; `finish` makes it and the index the bundle at once, so that the
    old one or the new one is there at any time. Without `finish` nothing remains.

    Args:
        prefix: path and start of the file names; its directory is created when only it is missing.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = local_path(prefix)
        self._entries: dict[bytes, Any] = {}
        self._offset = 0
        directory = filesystems.parent(self.prefix)
        if directory:
            make_directory(directory)
        try:
            self._data = Temporary(data_path(self.prefix, 0, 1))
        except BaseException:
            give_up(self.prefix)
            raise

    def add(self, name: str | bytes, array: Any, dtype: DType | None = None) -> None:
        """Adds a whole tensor.

        Raises:
            InvalidArgumentError: the name is empty or was added before.
            UnimplementedError: tensors of this type cannot be saved.
        """
        array = np.asarray(array)
        self._append(_key(name), array, _dtype_of(array, dtype))

    def add_slice(
        self, name: str | bytes, shape: Iterable[int], part: TensorSlice, array: Any,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        """Adds the slice `part` of the tensor `name`, which has `shape` as a whole."""
        array = np.asarray(array)
        dims = tuple(shape)
        dtype = _dtype_of(array, dtype)
        if array.shape != part.shape_in(dims):
            raise errors.InvalidArgumentError(
                None,
                None,
                f"Slice {part} of {list(dims)} of '{_text(name)}' needs shape"
                f" {list(part.shape_in(dims))}, got {list(array.shape)}",
            )
        if part.is_full or array.shape == dims:
            self.add(name, array, dtype)
            return
        key = _key(name)
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _entry(dtype, dims)
        elif not entry.slices:
            raise errors.InvalidArgumentError(None, None, f"Adding duplicate key: {_text(name)}")
        elif entry.dtype != dtype.as_datatype_enum or _dims(entry) != dims:
            raise errors.InvalidArgumentError(
                None, None, f"Slices of '{_text(name)}' disagree on type or shape: {list(dims)}"
            )
        entry.slices.append(part.to_proto())
        self._append(encode_key(key, part), array, dtype)

    def _append(self, key: bytes, array: Array, dtype: DType) -> None:
        if key in self._entries:
            raise errors.InvalidArgumentError(None, None, f"Adding duplicate key: {_text(key)}")
        entry = _entry(dtype, array.shape)
        with tf_errors(self._data.name):
            entry.size, crc = bundle_format.write_array(self._data.file, array, dtype)
        entry.offset = self._offset
        entry.crc32c = crc32c.mask(crc)
        self._offset += entry.size
        self._entries[key] = entry

    def finish(self) -> None:
        """Writes the index and makes both files the bundle."""
        try:
            with tf_errors(self._data.name):
                self._data.sync()
            commit(self.prefix, [self._data.name], self._entries)
            with tf_errors(self._data.path):
                self._data.file.close()
        except BaseException:
            self.abandon()
            raise

    def abandon(self) -> None:
        """Removes the temporary file, and what was saved already of the same sharded checkpoint."""
        self._data.discard()
        give_up(self.prefix)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self.finish()
        else:
            self.abandon()


class BundleReader:
    """Reads a bundle.

    Args:
        prefix: as given to the writer, without `.index`.

    Raises:
        NotFoundError: there is no such bundle.
        DataLossError: the index is damaged.
        UnimplementedError: a future version wrote it.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = local_path(prefix)
        path = index_path(self.prefix)
        if not filesystems.exists(path):
            raise errors.NotFoundError(
                None,
                None,
                "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for"
                f" {self.prefix}",
            )
        with TableReader(path) as table:
            raw = dict(table)
        header = raw.pop(HEADER_KEY, None)
        if header is None:
            raise errors.DataLossError(None, None, f"Unable to read the header of {path}")
        self._header = parsed(protos.BundleHeaderProto, header, f"an entry of {path}")
        if self._header.version.min_consumer > VERSION:
            raise errors.UnimplementedError(
                None,
                None,
                f"{path} needs a checkpoint reader of version {self._header.version.min_consumer},"
                f" this one has {VERSION}",
            )
        self._whole: set[bytes] = set()  # what `verify` has read
        self._swap = self._header.endianness == protos.BundleHeaderProto.BIG
        self._entries = {
            key: parsed(protos.BundleEntryProto, v, f"an entry of {path}") for key, v in raw.items()
        }
        self._slice_keys = {
            encode_key(key, TensorSlice.from_proto(s))
            for key, e in self._entries.items()
            for s in e.slices
        }
        self._files: dict[int, BinaryIO] = {}

    # ------------------------------------------------------------ what there is
    def names(self) -> list[str]:
        """The tensors, sorted; a sliced one counts once."""
        return [_text(k) for k in self._entries if k not in self._slice_keys]

    def __contains__(self, name: str | bytes) -> bool:
        return _key(name) in self._entries

    def dtype(self, name: str | bytes) -> DType:
        """The element type of a tensor."""
        return dtypes.as_dtype(self._entry(name).dtype)

    def shape(self, name: str | bytes) -> tuple[int, ...]:
        """The whole shape of a tensor."""
        return _dims(self._entry(name))

    def slices(self, name: str | bytes) -> list[TensorSlice]:
        """The pieces of a tensor that was saved in pieces; empty for a whole one."""
        return [TensorSlice.from_proto(s) for s in self._entry(name).slices]

    @property
    def num_shards(self) -> int:
        """How many data files the bundle has."""
        return int(self._header.num_shards)

    def _entry(self, name: str | bytes) -> Any:
        entry = self._entries.get(_key(name))
        if entry is None:
            raise self.missing(_text(name))
        return entry

    def missing(self, name: str) -> errors.NotFoundError:
        """The error of a look-up or a restore that asks for a tensor that is not here."""
        told = f"Key {name} not found in checkpoint{meant(name, self.names())}"
        return errors.NotFoundError(None, None, told)

    # ------------------------------------------------------------ values
    def get(self, name: str | bytes) -> Array:
        """The value of a tensor, put together from its slices if it has any.

        Raises:
            NotFoundError: no such tensor.
            DataLossError: the data is damaged.
        """
        entry = self._entry(name)
        if entry.slices:
            return self.get_slice(name, TensorSlice.full(len(_dims(entry))))
        return self._value(_key(name), entry)

    def get_slice(self, name: str | bytes, part: TensorSlice) -> Array:
        """The slice `part` of a tensor.

        Raises:
            NotFoundError: no such tensor, or what was saved does not cover the slice.
            InvalidArgumentError: the slice does not fit the tensor's shape.
            DataLossError: the data is damaged.
        """
        entry = self._entry(name)
        dims = _dims(entry)
        if not entry.slices:
            return np.array(self._value(_key(name), entry)[part.index(dims)])
        key = _key(name)
        pieces = [TensorSlice.from_proto(p) for p in entry.slices]
        found = gather(
            part,
            dims,
            dtypes.as_dtype(entry.dtype).np,
            ((p, partial(self._piece, encode_key(key, p))) for p in pieces),
        )
        if found is None:
            raise errors.NotFoundError(
                None, None, f"Key {_text(name)}: the saved slices do not cover slice {part}"
            )
        return found

    def _piece(self, key: bytes) -> Array:
        if key not in self._entries:
            raise self._lost(key)
        return self._value(key, self._entries[key])

    def verify(self, names: Iterable[str]) -> None:
        """Reads tensors, and all slices of those that were saved in slices, to check them.

        Little of them is in memory at a time. When they are read afterwards, from the same open
        files, they are not checked again.

        Raises:
            NotFoundError: no such tensor.
            DataLossError: the data is damaged.
        """
        pieces: dict[bytes, Any] = {}
        for name in names:
            entry = self._entry(name)
            keys = [encode_key(_key(name), TensorSlice.from_proto(p)) for p in entry.slices]
            for key in keys or [_key(name)]:
                if key not in self._entries:
                    raise self._lost(key)
                pieces[key] = self._entries[key]
        for key, piece in sorted(pieces.items(), key=lambda p: (p[1].shard_id, p[1].offset)):
            if self._dtype(key, piece) in bundle_format.FRAMED:
                self._value(key, piece)
            else:
                file, _ = self._place(key, piece)
                self._check(key, piece, bundle_format.checksum(file, piece.offset, piece.size))
                self._whole.add(key)

    def _value(self, key: bytes, entry: Any) -> Array:
        file, count = self._place(key, entry)
        whole = key in self._whole
        flat, crc = bundle_format.read_array(
            file, self._dtype(key, entry), count, entry.offset, entry.size, self._swap, whole
        )
        if not whole:
            self._check(key, entry, crc)
        return flat.reshape(_dims(entry))

    def _dtype(self, key: bytes, entry: Any) -> DType:
        try:
            dtype = dtypes.as_dtype(entry.dtype)
        except TypeError:
            dtype = dtypes.resource
        if dtype is dtypes.resource:
            raise errors.UnimplementedError(
                None, None, f"Key {_text(key)} has type {entry.dtype}, which cannot be read"
            )
        return dtype

    def _place(self, key: bytes, entry: Any) -> tuple[BinaryIO, int]:
        """The file in which a tensor lies, for sure with all its bytes, and how many elements."""
        dtype = self._dtype(key, entry)
        count = math.prod(_dims(entry))
        width = bundle_format.element_size(dtype)
        file, available = self._shard(entry.shard_id)
        # A string takes at least the byte that stores its length.
        plausible = count * width == entry.size if width else count + 4 <= entry.size
        if not plausible:
            raise errors.DataLossError(
                None,
                None,
                f"Key {_text(key)}: {count} elements of type {dtype.name} do not fit"
                f" {entry.size} bytes",
            )
        if entry.offset < 0 or entry.size < 0 or entry.offset + entry.size > available:
            raise errors.OutOfRangeError(
                None,
                None,
                f"Read fewer bytes than requested: key {_text(key)} needs bytes {entry.offset} to"
                f" {entry.offset + entry.size}, shard {entry.shard_id} has {available}",
            )
        return file, count

    def _check(self, key: bytes, entry: Any, crc: int) -> None:
        if crc32c.mask(crc) != entry.crc32c:
            raise errors.DataLossError(
                None,
                None,
                f"TensorBundle at {self.prefix} shard {entry.shard_id} ({entry.size} bytes):"
                f" Checksum does not match: stored {entry.crc32c:08x} vs. calculated on the"
                f" restored bytes {crc32c.mask(crc):08x} (key {_text(key)})",
            )

    def _lost(self, key: bytes) -> errors.DataLossError:
        return errors.DataLossError(
            None, None, f"Slice {_text(key)} is missing in {self.prefix}.index"
        )

    def _shard(self, shard: int) -> tuple[BinaryIO, int]:
        if not 0 <= shard < self.num_shards:
            raise errors.DataLossError(
                None, None, f"Shard {shard} of {self.num_shards} named in {self.prefix}.index"
            )
        file = self._files.get(shard)
        if file is None:
            path = data_path(self.prefix, shard, self.num_shards)
            with tf_errors(path):
                file = filesystems.open_bytes(path)
            filesystems.read_ahead(file)
            self._files[shard] = file
        return file, file.seek(0, os.SEEK_END)

    def close(self) -> None:
        """Closes the files."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def merge_bundles(prefixes: Iterable[str], merged: str) -> None:
    """Makes one bundle out of several; their data files are renamed, not copied.

    Args:
        prefixes: the bundles, each of which ceases to exist.
        merged: prefix of the bundle to make.

    Raises:
        InvalidArgumentError: a tensor is whole in two of them.
    """
    given = list(prefixes)
    try:
        _merge(given, local_path(merged))
    except BaseException:
        for prefix in given:
            give_up(prefix)
        raise


def _merge(prefixes: Sequence[str], merged: str) -> None:
    readers = []
    for prefix in prefixes:
        with BundleReader(prefix) as reader:
            readers.append(reader)
    entries: dict[bytes, Any] = {}
    sources: list[str] = []
    first = 0
    for reader in readers:
        for key, entry in reader._entries.items():
            entry.shard_id += first
            known = entries.setdefault(key, entry)
            if known is entry:
                continue
            if not (known.slices and entry.slices):
                raise errors.InvalidArgumentError(None, None, f"Duplicate key: {_text(key)}")
            known.slices.extend(entry.slices)
        sources += [
            data_path(reader.prefix, i, reader.num_shards) for i in range(reader.num_shards)
        ]
        first += reader.num_shards
    directory = filesystems.parent(merged)
    if directory:
        make_directory(directory)
    commit(merged, sources, entries)
    for reader in readers:
        path = index_path(reader.prefix)
        with suppress(OSError):
            filesystems.of(path).remove(path)


def _key(name: str | bytes) -> bytes:
    key = name.encode() if isinstance(name, str) else bytes(name)
    if not key:
        raise errors.InvalidArgumentError(None, None, "A checkpoint key must not be empty")
    return key


def _text(key: str | bytes) -> str:
    return key if isinstance(key, str) else key.decode("utf-8", "backslashreplace")


def _dtype_of(array: Array, dtype: DType | None) -> DType:
    found = dtypes.as_dtype(array.dtype) if dtype is None else dtype.base_dtype
    if found is dtypes.resource:
        raise errors.UnimplementedError(None, None, f"Tensors of type {found.name} cannot be saved")
    return found


def _entry(dtype: DType, shape: Iterable[int]) -> Any:
    entry = protos.BundleEntryProto(dtype=dtype.as_datatype_enum)
    # An empty shape message is still present on the wire.
    entry.shape.SetInParent()
    for size in shape:
        entry.shape.dim.add(size=size)
    return entry


def _dims(entry: Any) -> tuple[int, ...]:
    dims = tuple(d.size for d in entry.shape.dim)
    if any(d < 0 for d in dims):
        raise errors.DataLossError(None, None, f"A saved tensor has the shape {list(dims)}")
    return dims
