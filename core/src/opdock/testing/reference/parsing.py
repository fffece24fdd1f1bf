"""Oracle of parsing: messages field by field, lines of CSV character by character."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.reference._registry import reference

Array = npt.NDArray[Any]
Attrs = Mapping[str, Any]


# ---------------------------------------------------------------- messages
def _varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(number, content) of all fields of a message; each has a length."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        size, at = _varint(data, at)
        yield tag >> 3, data[at : at + size]
        at += size


def _map(data: bytes) -> dict[str, bytes]:
    """A map from strings to messages."""
    pairs = (dict(_fields(entry)) for _, entry in _fields(data))
    return {pair[1].decode(): pair.get(2, b"") for pair in pairs}


def _values(feature: bytes) -> list[Any]:
    out: list[Any] = []
    for kind, content in _fields(feature):
        for _, packed in _fields(content):
            if kind == 1:
                out.append(packed)
            elif kind == 2:
                out += [v for (v,) in struct.iter_unpack("<f", packed)]
            else:
                at = 0
                while at < len(packed):
                    value, at = _varint(packed, at)
                    out.append(value)
    return out


def _part(data: bytes, number: int) -> bytes:
    return dict(_fields(data)).get(number, b"")


def _array(values: Sequence[Any], dtype: Any) -> Array:
    out = np.empty(len(values), dtype)
    out[:] = values
    return out


def _key(key: Any) -> str:
    item = key if isinstance(key, str) else np.asarray(key, object).item()
    return item if isinstance(item, str) else item.decode()


def _sparse(rows: list[Any], dtype: Any) -> tuple[Array, Array, Array]:
    """Of a list of values for each row; None where a row has none."""
    cells = [(i, j) for i, row in enumerate(rows) for j in range(len(row or ()))]
    values = [rows[i][j] for i, j in cells]
    widest = max((len(row or ()) for row in rows), default=0)
    indices = np.array(cells, np.int64).reshape(len(cells), 2)
    return indices, _array(values, dtype), np.array([len(rows), widest], np.int64)


def _dense(rows: list[Any], default: Array, shape: Sequence[Any], dtype: Any) -> Array:
    """Rows of one shape, padded if its first dimension is open."""
    if shape and shape[0] is None:
        longest = max((len(row or ()) for row in rows), default=0)
        pad = [np.asarray(default).item()]
        filled = [[*(row or ()), *pad * (longest - len(row or ()))] for row in rows]
        flat = [v for row in filled for v in row]
        inner = tuple(shape[1:])
        return _array(flat, dtype).reshape(len(rows), longest // int(np.prod(inner)), *inner)
    given = np.asarray(default).reshape(-1).tolist()
    flat = [v for row in rows for v in (given if row is None else row)]
    return _array(flat, dtype).reshape(len(rows), *shape)


def _rows(features: list[dict[str, bytes]], key: str) -> list[Any]:
    return [_values(f[key]) if key in f else None for f in features]


def _flat(columns: Sequence[tuple[Array, ...]]) -> list[list[Array]]:
    return [list(parts) for parts in zip(*columns, strict=True)] if columns else [[], [], []]


@reference("ParseExample")
def parse_example(
    attrs: Attrs, serialized: Array, names: Array, sparse_keys: Any, dense_keys: Any, defaults: Any
) -> Any:
    """Feature by feature over all examples."""
    features = [_map(_part(bytes(s), 1)) for s in serialized]
    sparse = [
        _sparse(_rows(features, _key(k)), t)
        for k, t in zip(sparse_keys, attrs["sparse_types"], strict=True)
    ]
    parts = zip(dense_keys, defaults, attrs["dense_shapes"], strict=True)
    dense = [_dense(_rows(features, _key(k)), d, s, np.asarray(d).dtype) for k, d, s in parts]
    indices, values, shapes = _flat(sparse)
    return (*indices, *values, *shapes, *dense)


@reference("ParseSingleExample")
def parse_single_example(attrs: Attrs, serialized: Array, defaults: Any) -> Any:
    """A batch of one, without its dimension."""
    features = _map(_part(bytes(serialized.item()), 1))
    out: list[Any] = [[], [], []]
    for key, dtype in zip(attrs["sparse_keys"], attrs["sparse_types"], strict=True):
        values = _values(features.get(key, b""))
        out[0].append(np.arange(len(values), dtype=np.int64).reshape(-1, 1))
        out[1].append(_array(values, dtype))
        out[2].append(np.array([len(values)], np.int64))
    dense = []
    for key, default, shape in zip(
        attrs["dense_keys"], defaults, attrs["dense_shapes"], strict=True
    ):
        row = [_values(features[key]) if key in features else None]
        dense.append(_dense(row, default, shape, np.asarray(default).dtype)[0])
    return (*out[0], *out[1], *out[2], *dense)


def _steps(lists: dict[str, bytes], key: str) -> list[list[Any]]:
    return [_values(f) for _, f in _fields(lists.get(key, b""))]


@reference("ParseSequenceExample")
def parse_sequence_example(attrs: Attrs, serialized: Array, names: Array, defaults: Any) -> Any:
    """One feature of each kind."""
    contexts = [_map(_part(bytes(s), 1)) for s in serialized]
    lists = [_map(_part(bytes(s), 2)) for s in serialized]
    found = _sparse(_rows(contexts, attrs["context_sparse_keys"][0]), object)
    rows = _rows(contexts, attrs["context_dense_keys"][0])
    dense = _dense(rows, defaults[0], attrs["context_dense_shapes"][0], np.int64)
    steps = [_steps(found, attrs["feature_list_sparse_keys"][0]) for found in lists]
    cells = [
        (i, t, j) for i, row in enumerate(steps) for t, s in enumerate(row) for j in range(len(s))
    ]
    sizes = [len(s) for row in steps for s in row]
    shape = [len(steps), max(map(len, steps), default=0), max(sizes, default=0)]
    values = _array([steps[i][t][j] for i, t, j in cells], object)
    stacked = [_steps(found, attrs["feature_list_dense_keys"][0]) for found in lists]
    longest = max(map(len, stacked), default=0)
    inner = tuple(attrs["feature_list_dense_shapes"][0])
    out = np.zeros((len(stacked), longest, *inner), np.int64)
    for i, row in enumerate(stacked):
        for t, step in enumerate(row):
            out[i, t] = np.array(step).reshape(inner)
    lengths = np.array([len(row) for row in stacked], np.int64)
    indices = np.array(cells, np.int64).reshape(len(cells), 3)
    return (*found, dense, indices, values, np.array(shape, np.int64), out, lengths)


@reference("ParseSingleSequenceExample")
def parse_single_sequence_example(
    attrs: Attrs, serialized: Array, lacking: Array, context_sparse: Any, context_dense: Any,
    list_sparse: Any, list_dense: Any, defaults: Any, name: Array,
) -> Any:  # fmt: skip
    """One feature of each kind."""
    message = bytes(serialized.item())
    context, lists = _map(_part(message, 1)), _map(_part(message, 2))
    values = _values(context.get(_key(context_sparse[0]), b""))
    key = _key(context_dense[0])
    given = _values(context[key]) if key in context else np.asarray(defaults[0]).reshape(-1)
    dense = np.array(given, np.int64).reshape(attrs["context_dense_shapes"][0])
    steps = _steps(lists, _key(list_sparse[0]))
    stacked = _steps(lists, _key(list_dense[0]))
    inner = tuple(attrs["feature_list_dense_shapes"][0])
    return (
        np.arange(len(values), dtype=np.int64).reshape(-1, 1), _array(values, object),
        np.array([len(values)], np.int64), dense, *_sparse(list(steps), object),
        np.array(stacked, np.int64).reshape(len(stacked), *inner),
    )  # fmt: skip


# ---------------------------------------------------------------- text
def _cells(line: str, mark: str, quotes: bool) -> list[str]:
    cells, cell, quoted, i = [], "", False, 0
    while i < len(line):
        char = line[i]
        if quotes and char == '"':
            if quoted and line[i + 1 : i + 2] == '"':
                cell, i = cell + '"', i + 1
            else:
                quoted = not quoted
        elif char == mark and not quoted:
            cells.append(cell)
            cell = ""
        elif char not in "\r\n" or quoted:
            cell += char
        i += 1
    return [*cells, cell]


@reference("DecodeCSV")
def decode_csv(attrs: Attrs, records: Array, defaults: Any) -> Any:
    """Cell by cell."""
    chosen = attrs["select_cols"]
    out = [np.empty(records.shape, np.asarray(d).dtype) for d in defaults]
    for where in np.ndindex(*records.shape):
        cells = _cells(
            bytes(records[where]).decode(), attrs["field_delim"], attrs["use_quote_delim"]
        )
        cells = [cells[c] for c in chosen] if chosen else cells
        for column, cell, default in zip(out, cells, defaults, strict=True):
            if cell in ("", attrs["na_value"]):
                column[where] = np.asarray(default).item()
            elif column.dtype == object:
                column[where] = cell.encode()
            else:
                column[where] = float(cell) if column.dtype.kind == "f" else int(cell)
    return tuple(out) if len(out) > 1 else out[0]


@reference("DecodeJSONExample")
def decode_json_example(attrs: Attrs, values: Array) -> Array:
    """One feature of one small integer, or none."""
    out = np.empty(values.shape, object)
    for where in np.ndindex(*values.shape):
        named = json.loads(bytes(values[where])).get("features", {}).get("feature", {})
        message = b""
        for key, feature in named.items():
            number = int(feature["int64List"]["value"][0])
            listed = bytes([10, 1, number])
            value = bytes([26, len(listed)]) + listed
            name = bytes([10, len(key)]) + key.encode()
            pair = name + bytes([18, len(value)]) + value
            entry = bytes([10, len(pair)]) + pair
            message = bytes([10, len(entry)]) + entry
        out[where] = message
    return out
