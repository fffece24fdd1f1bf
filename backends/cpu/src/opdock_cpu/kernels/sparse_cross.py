"""Crosses of features, all rows at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, cells, checks
from opdock_cpu.jit.strings import joined
from opdock_cpu.text.arrays import array_of
from opdock_cpu.text.hashing import fingerprint64

__all__ = ["table"]

Array = cells.Array
dims = checks.dims

table = KernelTable()

_MUL: Final = np.uint64(0xC6A4A7935BD1E995)
_SHIFT: Final = np.uint64(47)
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7800)
_TEN: Final = np.uint64(10)
_BETWEEN: Final = b"_X_"
_NO_KEY: Final = 0xDECAFCAFFE  # what hashes start from where the op has none


def _mix(value: Array) -> Array:
    return np.asarray(value ^ (value >> _SHIFT))


def fingerprint_cat(first: Array, second: Array) -> Array:
    """The fingerprint of two fingerprints, uint64: TF's FingerprintCat64."""
    with np.errstate(over="ignore"):
        mixed = (first ^ _MUL ^ (_mix(second * _MUL) * _MUL)) * _MUL
        return _mix(_mix(mixed) * _MUL)


def hash_combine(first: Array, second: Array) -> Array:
    """Two hashes as one, uint64: how TF's SparseFeatureCross does it without a key."""
    with np.errstate(over="ignore"):
        shifted = (first.astype(np.int64) >> 4).astype(np.uint64)  # with its sign
        return np.asarray(first ^ (second + _GOLDEN + (first << _TEN) + shifted))


@table.binder("SparseCross")
@table.binder("SparseFeatureCross")
@table.binder("SparseFeatureCrossV2")
def sparse_cross(sig: NodeSig) -> Callable[..., tuple[Array, Array, Array]]:
    """Every combination of one feature from each column, by row; the last varies fastest."""
    attrs = sig.attrs
    n, hashed = int(attrs["N"]), bool(attrs["hashed_output"])
    buckets = np.uint64(int(attrs["num_buckets"]) or 2**63 - 1)
    key = np.uint64(int(attrs.get("hash_key", _NO_KEY)) % 2**64)
    combine = fingerprint_cat if "hash_key" in attrs else hash_combine

    def run(*inputs: Array) -> tuple[Array, Array, Array]:
        sparse = tuple(zip(inputs[:n], inputs[n : 2 * n], inputs[2 * n : 3 * n], strict=True))
        dense = inputs[3 * n :]
        rows = _check(sparse, dense)
        columns = [_sparse(i, v, rows) for i, v, _ in sparse] + [_dense(d) for d in dense]
        counts = np.ones(rows, np.int64)
        for column in columns:
            counts *= column.counts
        places = np.empty((int(counts.sum()), 2), np.int64)
        places[:, 0] = np.repeat(np.arange(rows), counts)
        places[:, 1] = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        chosen = _chosen(columns, places)
        shape = np.array([rows, int(counts.max(initial=0))], np.int64)
        if not hashed:
            return places, _texts(columns, chosen, len(places)), shape
        found = np.full(len(places), key, np.uint64)
        for column, which in zip(columns, chosen, strict=True):
            found = combine(found, column.hashes()[which])
        return places, (found % buckets).astype(np.int64), shape

    return run


@dataclass(frozen=True)
class _Column:
    """Features of all rows, one row's after the other's.

    Attributes:
        values: the features.
        counts: how many each row has.
    """

    values: Array
    counts: Array

    def hashes(self) -> Array:
        """A number for each feature."""
        if self.values.dtype.hasobject:
            return fingerprint64(self.values.tolist())
        return self.values.astype(np.uint64)

    def texts(self) -> Array:
        """The features as strings."""
        if self.values.dtype.hasobject:
            return self.values
        return array_of([str(v).encode() for v in self.values.tolist()], self.values.shape)


def _sparse(indices: Array, values: Array, rows: int) -> _Column:
    row = indices[:, 0]
    if ((row < 0) | (row >= rows)).any():
        raise checks.invalid(f"Input indices name a row outside of [0, {rows})")
    counts = np.bincount(row, minlength=rows)
    if (row[1:] < row[:-1]).any():
        values = values[np.argsort(row, kind="stable")]
    return _Column(values, counts)


def _dense(values: Array) -> _Column:
    return _Column(values.reshape(-1), np.full(values.shape[0], values.shape[1], np.int64))


def _chosen(columns: Sequence[_Column], places: Array) -> list[Array]:
    """For each column which feature is in each of the combinations at (row, number in it)."""
    row, left = places[:, 0], places[:, 1]
    found = []
    for column in reversed(columns):
        counts = column.counts[row]
        starts = np.cumsum(column.counts) - column.counts
        before = left // counts
        found.append(starts[row] + left - before * counts)
        left = before
    return found[::-1]


def _texts(columns: Sequence[_Column], chosen: Sequence[Array], count: int) -> Array:
    """The features of each combination as one string."""
    parts = [column.texts()[which] for column, which in zip(columns, chosen, strict=True)]
    if not parts:
        return array_of([b""] * count, (count,))
    together = joined(parts, _BETWEEN)
    if together is not None:
        return together
    return array_of(map(_BETWEEN.join, zip(*parts, strict=True)), (count,))


# ---------------------------------------------------------------- checks
def _check(sparse: Sequence[tuple[Array, Array, Array]], dense: Sequence[Array]) -> int:
    """The number of rows; raises InvalidArgumentError unless all columns have it."""
    for i, (indices, values, shape) in enumerate(sparse):
        _check_sparse(indices, values, shape, i)
    for i, column in enumerate(dense):
        if column.ndim != 2:
            raise checks.invalid(
                f"Dense inputs should be a matrix but received shape {dims(column.shape)} at "
                f"position {i}"
            )
    if not sparse and not dense:
        return 0
    rows = int(sparse[0][2][0]) if sparse else dense[0].shape[0]
    for i, (_, _, shape) in enumerate(sparse):
        if shape[0] != rows:
            raise checks.invalid(f"Expected batch size {rows} got {shape[0]} at position {i}")
    for i, column in enumerate(dense):
        if column.shape[0] != rows:
            raise checks.invalid(
                f"Expected batch size {rows} got {column.shape[0]} at dense tensor {i}"
            )
    return rows


def _check_sparse(indices: Array, values: Array, shape: Array, i: int) -> None:
    where = f"at position {i}"
    if indices.ndim != 2:
        raise checks.invalid(
            f"Input indices should be a matrix but received shape {dims(indices.shape)} {where}"
        )
    if indices.shape[1] != 2:
        raise checks.invalid(f"Expected D2 of index to be 2 got {indices.shape[1]} {where}")
    for name, vector in (("values", values), ("shapes", shape)):
        if vector.ndim != 1:
            raise checks.invalid(
                f"Input {name} should be a std::vector but received shape {dims(vector.shape)} "
                f"{where}"
            )
    if len(indices) != len(values):
        raise checks.invalid(
            f"Expected size of values to be {len(indices)} got {len(values)} {where}"
        )
    if len(shape) != 2:
        raise checks.invalid(f"shape should imply a 2D tensor, but got {dims(shape.shape)} {where}")
    cells.sizes(shape)
