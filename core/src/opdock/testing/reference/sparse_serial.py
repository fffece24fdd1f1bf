"""Serialized sparse tensors, read by a parser that knows a few fields of a TensorProto."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock.testing.reference._registry import reference

_KINDS = {1: np.float32, 3: np.int32, 9: np.int64}


def _fields(data: bytes) -> list[tuple[int, Any]]:
    """The fields of a message: numbers, and strings of fewer than 128 bytes."""
    found: list[tuple[int, Any]] = []
    at = 0
    while at < len(data):
        number, wire = data[at] >> 3, data[at] & 7
        if wire == 0:
            found.append((number, data[at + 1]))
            at += 2
        else:
            end = at + 2 + data[at + 1]
            found.append((number, data[at + 2 : end]))
            at = end
    return found


def _read(data: bytes) -> Any:
    kind: Any = np.float32
    shape: list[int] = []
    content = b""
    for number, value in _fields(data):
        if number == 1:
            kind = _KINDS[value]
        elif number == 2:
            shape = [dict(_fields(dim)).get(1, 0) for _, dim in _fields(value)]
        elif number == 4:
            content = value
    return np.frombuffer(content, kind).reshape(shape)


@reference("DeserializeSparse", "DeserializeManySparse")
def deserialize(attrs: Any, rows: Any) -> Any:
    """Puts the number of the row before each cell."""
    cells, values, sizes = [], [], []
    for i, row in enumerate(rows):
        indices, part, shape = (_read(data) for data in row)
        cells += [[i, *cell] for cell in indices.tolist()]
        values += part.tolist()
        sizes.append(shape)
    whole = np.array([len(rows), *np.max(sizes, axis=0)], np.int64)
    return np.array(cells, np.int64).reshape(-1, len(whole)), np.array(values), whole


@reference("SerializeSparse")
def serialize(attrs: Any, indices: Any, values: Any, shape: Any) -> Any:
    """Three strings, whatever is in them."""
    return np.array([b"", b"", b""], object)


@reference("SerializeManySparse")
def serialize_many(attrs: Any, indices: Any, values: Any, shape: Any) -> Any:
    """Three strings a row, whatever is in them."""
    return np.full((int(shape[0]), 3), b"", object)
