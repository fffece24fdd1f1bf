"""Crosses of features, one combination at a time."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from opdock.testing.reference._registry import reference

_MASK = 2**64 - 1
_MUL = 0xC6A4A7935BD1E995
# FarmHash's Fingerprint64 of the strings in the samples.
_PRINTS = {
    b"a": 12917804110809363939, b"b": 11795596070477164822, b"c": 11430444447143000872,
    b"x": 13942860475667539970, b"y": 10278709587161705105, b"z": 15605885941449482137,
    b"w": 12348292010337643139,
}  # fmt: skip


def _mix(value: int) -> int:
    return value ^ (value >> 47)


def _cat(first: int, second: int) -> int:
    found = first ^ _MUL
    found ^= _mix(second * _MUL & _MASK) * _MUL & _MASK
    found = found * _MUL & _MASK
    return _mix(_mix(found) * _MUL & _MASK)


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _combine(first: int, second: int) -> int:
    """As TF's SparseFeatureCross does without a key."""
    around = second + 0x9E3779B97F4A7800 + (first << 10) + (_signed(first) >> 4)
    return first ^ (around & _MASK)


def _print(value: Any) -> int:
    return _PRINTS[value] if isinstance(value, bytes) else int(value) & _MASK


def _text(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(int(value)).encode()


@reference("SparseCross")
@reference("SparseFeatureCross")
@reference("SparseFeatureCrossV2")
def sparse_cross(attrs: Any, indices: Any, values: Any, shapes: Any, dense: Any) -> Any:
    """Joins the strings, or the fingerprints, of every combination in each row."""
    rows = int(shapes[0][0]) if len(shapes) else len(dense[0])
    cells: list[list[int]] = []
    found: list[Any] = []
    widest = 0
    for row in range(rows):
        columns = [
            [v for cell, v in zip(places, column, strict=True) if cell[0] == row]
            for places, column in zip(indices, values, strict=True)
        ]
        columns += [list(column[row]) for column in dense]
        crossed = list(itertools.product(*columns))
        widest = max(widest, len(crossed))
        for i, parts in enumerate(crossed):
            cells.append([row, i])
            if not attrs["hashed_output"]:
                found.append(b"_X_".join(map(_text, parts)))
                continue
            number = int(attrs.get("hash_key", 0xDECAFCAFFE)) & _MASK
            join = _cat if "hash_key" in attrs else _combine
            for part in parts:
                number = join(number, _print(part))
            found.append(number % (attrs["num_buckets"] or 2**63 - 1))
    every = np.array(found, np.int64 if attrs["hashed_output"] else object)
    return np.array(cells, np.int64), every, np.array([rows, widest], np.int64)
