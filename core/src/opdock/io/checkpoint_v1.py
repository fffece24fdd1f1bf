"""TF's first checkpoint format: one table (or several shards of one), values inside it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any, Self

import numpy as np

from opdock import dtypes, errors
from opdock.dtypes import DType
from opdock.io import filesystems, protos
from opdock.io.files import as_path, atomic_write
from opdock.io.parsing import parsed
from opdock.io.table import TableBuilder, TableReader
from opdock.io.tensor_proto import decode_array, fill_repeated
from opdock.io.tensor_slice import TensorSlice, encode_key, gather

Array = np.ndarray[Any, Any]

__all__ = ["V1Reader", "write_v1"]

_VERSION = 1


def write_v1(
    path: str, tensors: Iterable[tuple[str, tuple[int, ...], TensorSlice, Array, DType]]
) -> None:
    """Writes a checkpoint of the first format, whole or not at all.

    Args:
        path: the file.
        tensors: name, whole shape, slice, value of the slice and type of each piece.

    Raises:
        InvalidArgumentError: a piece repeats, or does not fit its slice.
        NotFoundError: the directory does not exist.
    """
    listing = protos.SavedTensorSlices()
    listing.meta.versions.producer = _VERSION
    known: dict[str, Any] = {}
    data: dict[bytes, bytes] = {}
    for name, shape, part, array, dtype in tensors:
        if array.shape != part.shape_in(shape):
            raise errors.InvalidArgumentError(
                None, None, f"'{name}': slice {part} of {list(shape)} got {list(array.shape)}"
            )
        meta = known.get(name)
        if meta is None:
            meta = known[name] = listing.meta.tensor.add(name=name, type=dtype.as_datatype_enum)
            meta.shape.SetInParent()
            for size in shape:
                meta.shape.dim.add(size=size)
        key = encode_key(name, part)
        if key in data:
            raise errors.InvalidArgumentError(None, None, f"Adding duplicate key: {name} {part}")
        meta.slice.add().CopyFrom(part.to_proto())
        record = protos.SavedTensorSlices()
        record.data.name = name
        record.data.slice.CopyFrom(part.to_proto())
        record.data.data.SetInParent()
        fill_repeated(record.data.data, dtype, array.reshape(-1))
        data[key] = record.SerializeToString()
    with atomic_write(path) as file:
        builder = TableBuilder(file)
        builder.add(b"", listing.SerializeToString())
        for key in sorted(data):
            builder.add(key, data[key])
        builder.finish()


class V1Reader:
    """Reads a V1 checkpoint; the interface of `opdock.io.checkpoint_v2.BundleReader`.

    Args:
        pattern: the file, or a glob such as "model.ckpt-?????-of-00002" for a sharded one.

    Raises:
        NotFoundError: no file matches.
        DataLossError: a file is no table or is damaged.
    """

    def __init__(self, pattern: str) -> None:
        self.prefix = as_path(pattern)
        paths = sorted(p for p in filesystems.matching(self.prefix) if filesystems.isfile(p))
        if not paths:
            raise errors.NotFoundError(
                None,
                None,
                "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for"
                f" {self.prefix}",
            )
        self._types: dict[str, DType] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._where: dict[str, list[tuple[TensorSlice, TableReader]]] = {}
        self._tables: list[TableReader] = []
        try:
            for path in paths:
                self._read_meta(path)
        except BaseException:
            self.close()
            raise

    def _read_meta(self, path: str) -> None:
        table = TableReader(path)
        self._tables.append(table)
        raw = table.get(b"")
        if raw is None:
            raise errors.DataLossError(None, None, f"{path} lists no tensors")
        for tensor in parsed(protos.SavedTensorSlices, raw, f"an entry of {path}").meta.tensor:
            dims = tuple(d.size for d in tensor.shape.dim)
            if any(d < 0 for d in dims) or self._shapes.setdefault(tensor.name, dims) != dims:
                raise errors.DataLossError(
                    None, None, f"{path}: tensor '{tensor.name}' has the shape {list(dims)}"
                )
            self._types[tensor.name] = dtypes.as_dtype(tensor.type)
            self._where.setdefault(tensor.name, []).extend(
                (TensorSlice.from_proto(s), table) for s in tensor.slice
            )

    def missing(self, name: str) -> errors.NotFoundError:
        """The error of a restore that asks for a tensor that is not here."""
        return errors.NotFoundError(
            None, None, f'Tensor name "{name}" not found in checkpoint files {self.prefix}'
        )

    def names(self) -> list[str]:
        """The tensors, sorted."""
        return sorted(self._types)

    def __contains__(self, name: str | bytes) -> bool:
        return _text(name) in self._types

    def dtype(self, name: str | bytes) -> DType:
        """The element type of a tensor."""
        return self._types[self._known(name)]

    def shape(self, name: str | bytes) -> tuple[int, ...]:
        """The whole shape of a tensor."""
        return self._shapes[self._known(name)]

    def get(self, name: str | bytes) -> Array:
        """The value of a tensor.

        Raises:
            NotFoundError: no such tensor.
            DataLossError: the data is damaged.
        """
        return self.get_slice(name, TensorSlice.full(len(self.shape(name))))

    def get_slice(self, name: str | bytes, part: TensorSlice) -> Array:
        """The slice `part` of a tensor, put together from the saved ones."""
        key = self._known(name)
        dims = self._shapes[key]
        pieces = ((p, partial(self._piece, key, p, t)) for p, t in self._where[key])
        found = gather(part, dims, self._types[key].np, pieces)
        if found is None:
            raise errors.NotFoundError(
                None, None, f"Tensor {key}: the saved slices do not cover slice {part}"
            )
        return found

    def verify(self, names: Iterable[str]) -> None:
        """Reads tensors to find out that they can be read; the errors are those of `get`."""
        for name in names:
            self.get(name)

    def _piece(self, name: str, part: TensorSlice, table: TableReader) -> Array:
        raw = table.get(encode_key(name, part))
        if raw is None:
            raise errors.DataLossError(
                None, None, f"Slice {part} of tensor {name} is missing in {table.path}"
            )
        shape = part.shape_in(self._shapes[name])
        # A piece carries its elements alone; type and shape are in the list at the front.
        value = parsed(protos.SavedTensorSlices, raw, f"an entry of {table.path}").data.data
        value.dtype = self._types[name].as_datatype_enum
        del value.tensor_shape.dim[:]
        for size in shape:
            value.tensor_shape.dim.add(size=size)
        try:
            array = decode_array(value)
        except ValueError as e:
            raise errors.DataLossError(None, None, f"{table.path}, tensor {name}: {e}") from None
        if math.prod(shape) > 1 and not any(array.strides):
            raise errors.DataLossError(
                None, None, f"{table.path}: tensor {name} has fewer elements than its shape {shape}"
            )
        return array

    def _known(self, name: str | bytes) -> str:
        key = _text(name)
        if key not in self._types:
            raise errors.NotFoundError(None, None, f"{key} not found in checkpoint file")
        return key

    def close(self) -> None:
        """Closes the files."""
        for table in self._tables:
            table.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name
