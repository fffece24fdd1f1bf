"""Oracle of the string ops, on arrays of bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = Mapping[str, Any]


def _each(fn: Callable[[bytes], Any], values: Array, dtype: Any = object) -> Array:
    array = np.asarray(values, object)
    out = np.empty(array.shape, dtype)
    for where in np.ndindex(*array.shape):
        out[where] = fn(bytes(array[where]))
    return out


@reference("StringJoin")
def string_join(attrs: Attrs, inputs: Sequence[Array]) -> Array:
    """Element by element with the separator between; scalars go with every element."""
    arrays = [np.asarray(a, object) for a in inputs]
    shape = next((a.shape for a in arrays if a.ndim), ())
    spread = [np.broadcast_to(a, shape) for a in arrays]
    out = np.empty(shape, object)
    for where in np.ndindex(*shape):
        out[where] = attrs["separator"].encode().join(a[where] for a in spread)
    return out


def _sparse(rows: list[list[bytes]]) -> tuple[Array, Array, Array]:
    cells = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    values = np.empty(len(cells), object)
    for n, (i, j) in enumerate(cells):
        values[n] = rows[i][j]
    widest = max((len(row) for row in rows), default=0)
    indices = np.array(cells, np.int64).reshape(len(cells), 2)
    return indices, values, np.array([len(rows), widest], np.int64)


@reference("StringSplit")
def string_split(attrs: Attrs, values: Array, delimiter: Array) -> tuple[Array, Array, Array]:
    """A part ends at any byte of the delimiter, or behind each byte if there is none."""
    marks = bytes(np.asarray(delimiter, object).item())
    rows = []
    for text in np.asarray(values, object):
        row, part = [], b""
        for i in range(len(text)):
            byte = text[i : i + 1]
            if not marks:
                row.append(byte)
            elif byte in [marks[k : k + 1] for k in range(len(marks))]:
                row.append(part)
                part = b""
            else:
                part += byte
        if marks and text:
            row.append(part)
        rows.append([p for p in row if p or not attrs["skip_empty"]])
    return _sparse(rows)


@reference("StringSplitV2")
def string_split_v2(attrs: Attrs, values: Array, sep: Array) -> tuple[Array, Array, Array]:
    """What Python does, but that an empty rest counts when the limit is reached."""
    mark, limit = bytes(np.asarray(sep, object).item()), attrs["maxsplit"]
    rows = []
    for text in np.asarray(values, object):
        if limit == 0:
            rows.append([text])
        elif mark:
            rows.append(text.split(mark, limit))
        else:
            words = text.split(None, limit)
            rows.append([*words, b""] if limit > 0 and len(words) == limit else words)
    return _sparse(rows)


@reference("StringStrip")
def string_strip(attrs: Attrs, values: Array) -> Array:
    """Without white space at the ends."""
    return _each(lambda s: s.strip(b" \t\n\r\v\f"), values)


@reference("StringLower")
def string_lower(attrs: Attrs, values: Array) -> Array:
    """ASCII alone, or all of Unicode."""
    return _each(lambda s: s.decode().lower().encode() if attrs["encoding"] else s.lower(), values)


@reference("StringUpper")
def string_upper(attrs: Attrs, values: Array) -> Array:
    """ASCII alone, or all of Unicode."""
    return _each(lambda s: s.decode().upper().encode() if attrs["encoding"] else s.upper(), values)


@reference("StringLength")
def string_length(attrs: Attrs, values: Array) -> Array:
    """Bytes, or characters."""
    in_bytes = attrs["unit"] == "BYTE"
    return _each(lambda s: len(s) if in_bytes else len(s.decode()), values, np.int32)


@reference("Substr")
def substr(attrs: Attrs, values: Array, pos: Array, length: Array) -> Array:
    """A slice of each string, of its bytes or of its characters."""
    texts, starts, sizes = np.broadcast_arrays(np.asarray(values, object), pos, length)
    out = np.empty(texts.shape, object)
    for where in np.ndindex(*texts.shape):
        text: Any = texts[where]
        if attrs["unit"] != "BYTE":
            text = text.decode()
        start = int(starts[where])
        start = start + len(text) if start < 0 else start
        part = text[start : start + int(sizes[where])]
        out[where] = part if isinstance(part, bytes) else part.encode()
    return out


@reference("ReduceJoin")
def reduce_join(attrs: Attrs, values: Array, axes: Array) -> Array:
    """Axis by axis, from the first on: the first changes fastest."""
    array = np.asarray(values, object)
    gone = [int(a) % array.ndim for a in np.reshape(axes, -1)]
    out = np.empty([n for i, n in enumerate(array.shape) if i not in gone], object)
    for where in np.ndindex(*out.shape):
        fixed = iter(where)
        place = [0 if i in gone else next(fixed) for i in range(array.ndim)]
        parts = []
        for inner in np.ndindex(*(array.shape[a] for a in reversed(gone))):
            for axis, index in zip(reversed(gone), inner, strict=True):
                place[axis] = index
            parts.append(array[tuple(place)])
        out[where] = attrs["separator"].encode().join(parts)
    kept = [1 if i in gone else n for i, n in enumerate(array.shape)]
    return out.reshape(kept) if attrs["keep_dims"] else out


@reference("UnsortedSegmentJoin")
def unsorted_segment_join(attrs: Attrs, values: Array, ids: Array, count: Array) -> Array:
    """Joins as it goes; nothing goes before the first string that is not empty."""
    array, ids = np.asarray(values, object), np.asarray(ids)
    out = np.full((int(count), *array.shape[ids.ndim :]), b"", object)
    for where in np.ndindex(*array.shape):
        place = (int(ids[where[: ids.ndim]]), *where[ids.ndim :])
        mark = attrs["separator"].encode() if out[place] else b""
        out[place] = out[place] + mark + array[where]
    return out
