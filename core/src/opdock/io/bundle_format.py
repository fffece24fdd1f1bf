"""How tensors lie in the data files of a checkpoint bundle, and what the files are called."""

from __future__ import annotations

import io
import struct
import sys
from typing import Any, BinaryIO, Final

import numpy as np

from opdock import dtypes, errors
from opdock.dtypes import DType
from opdock.io import crc32c
from opdock.io.varint import read_varint, write_varint

_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
_U32_MAX = 0xFFFFFFFF
Array = np.ndarray[Any, Any]
FRAMED: Final = frozenset({dtypes.string, dtypes.variant})
"""Types whose elements have lengths of their own, so that their checksum is not that of the bytes
alone."""
_CHUNK: Final = 1 << 18  # what a processor's cache holds, so that memory is read but once


def index_path(prefix: str) -> str:
    """The file that lists the tensors of the checkpoint `prefix`."""
    return f"{prefix}.index"


def data_path(prefix: str, shard: int, shards: int) -> str:
    """The data file `shard` of `shards` of the checkpoint `prefix`."""
    return f"{prefix}.data-{shard:05d}-of-{shards:05d}"


def write_array(file: BinaryIO, array: Array, dtype: DType) -> tuple[int, int]:
    """Appends a tensor; returns (bytes written, unmasked CRC)."""
    if dtype == dtypes.string:
        return _write_strings(file, array)
    if dtype == dtypes.variant:
        return _write_variants(file, array)
    flat = np.ascontiguousarray(array).reshape(-1)
    if sys.byteorder == "big":
        flat = flat.byteswap()
    raw = flat.view(np.uint8)
    crc = 0
    for start in range(0, raw.nbytes, _CHUNK):
        part = raw[start : start + _CHUNK]
        crc = crc32c.extend(crc, part)
        file.write(part.data)
    return raw.nbytes, crc


def _write_strings(file: BinaryIO, array: Array) -> tuple[int, int]:
    values = [v.encode() if isinstance(v, str) else bytes(v) for v in array.reshape(-1)]
    lengths = bytearray()
    fixed = bytearray()
    for v in values:
        write_varint(lengths, len(v))
        fixed += _fixed_length(len(v))
    crc = crc32c.value(fixed)
    check = _U32.pack(crc32c.mask(crc))
    crc = crc32c.extend(crc, check)
    file.write(lengths)
    file.write(check)
    size = len(lengths) + 4
    for v in values:
        file.write(v)
        crc = crc32c.extend(crc, v)
        size += len(v)
    return size, crc


def _write_variants(file: BinaryIO, array: Array) -> tuple[int, int]:
    """Appends variants, each a serialized VariantTensorDataProto."""
    size, crc = 0, 0
    for data in np.asarray(array, object).reshape(-1):
        if not isinstance(data, bytes):
            raise errors.UnimplementedError(
                None, None, f"A variant of type {type(data).__name__} cannot be saved"
            )
        length = bytearray()
        write_varint(length, len(data))
        crc = crc32c.extend(crc32c.extend(crc, _U64.pack(len(data))), data)
        check = _U32.pack(crc32c.mask(crc))
        crc = crc32c.extend(crc, check)
        for part in (length, data, check):
            size += file.write(part)
    return size, crc


def _fixed_length(length: int) -> bytes:
    # The checksum covers lengths as numbers of fixed width, not as they are stored.
    return _U32.pack(length) if length <= _U32_MAX else _U64.pack(length)


def read_array(
    file: BinaryIO, dtype: DType, count: int, offset: int, size: int, swap: bool,
    known: bool = False,
) -> tuple[Array, int]:  # fmt: skip
    """Reads `count` elements from `size` bytes at `offset`; returns (flat array, unmasked CRC).

    The caller has checked that the bytes are inside the file, and may not ask for the CRC of plain
    ones that are `known` to be whole.
    """
    file.seek(offset)
    if dtype == dtypes.string:
        return _read_strings(file.read(size), count)
    if dtype == dtypes.variant:
        return _read_variants(file.read(size), count)
    if isinstance(file, io.BufferedReader):
        raw = np.fromfile(file, np.uint8, size)
    else:  # of another file system
        raw = np.frombuffer(bytearray(file.read(size)), np.uint8)
    if raw.nbytes != size:
        raise errors.DataLossError(None, None, f"{size} bytes expected, {raw.size} found")
    crc = 0 if known else crc32c.value(raw)
    flat = raw.view(dtype.np)
    if swap != (sys.byteorder == "big"):
        flat = flat.byteswap()
    return flat, crc


def checksum(file: BinaryIO, offset: int, size: int) -> int:
    """The unmasked CRC of `size` bytes at `offset`, which are inside the file."""
    file.seek(offset)
    crc, left = 0, size
    buffer = np.empty(min(size, _CHUNK), np.uint8)
    while left:
        part = buffer[: min(left, _CHUNK)]
        got = file.readinto(part)  # type: ignore[attr-defined]
        if not got:
            raise errors.DataLossError(None, None, f"{size} bytes expected, {size - left} found")
        crc = crc32c.extend(crc, part[:got])
        left -= got
    return crc


def _read_strings(data: bytes, count: int) -> tuple[Array, int]:
    at = 0
    lengths = []
    fixed = bytearray()
    for _ in range(count):
        length, at = read_varint(data, at, "string length")
        lengths.append(length)
        fixed += _fixed_length(length)
    crc = crc32c.value(fixed)
    if at + 4 + sum(lengths) != len(data):
        raise errors.DataLossError(
            None, None, f"string lengths sum to {sum(lengths)}, {len(data) - at - 4} bytes follow"
        )
    check = data[at : at + 4]
    if _U32.unpack(check)[0] != crc32c.mask(crc):
        raise errors.DataLossError(None, None, "the length checksum does not match")
    at += 4
    crc = crc32c.extend(crc, check)
    out = np.empty(count, object)
    for i, length in enumerate(lengths):
        out[i] = data[at : at + length]
        crc = crc32c.extend(crc, out[i])
        at += length
    return out, crc


def _read_variants(data: bytes, count: int) -> tuple[Array, int]:
    at, crc = 0, 0
    out = np.empty(count, object)
    for i in range(count):
        length, at = read_varint(data, at, "variant length")
        end = at + length
        if end + 4 > len(data):
            raise errors.DataLossError(
                None, None, f"variant {i} of {length} bytes does not fit the {len(data)} there are"
            )
        out[i], check = data[at:end], data[end : end + 4]
        crc = crc32c.extend(crc32c.extend(crc, _U64.pack(length)), out[i])
        if _U32.unpack(check)[0] != crc32c.mask(crc):
            raise errors.DataLossError(
                None, None, f"The checksum after Variant {i} does not match."
            )
        crc = crc32c.extend(crc, check)
        at = end + 4
    return out, crc


def element_size(dtype: DType) -> int:
    """Bytes per element on disk; 0 for strings and variants, whose size varies."""
    return 0 if dtype in FRAMED else dtype.np.itemsize
