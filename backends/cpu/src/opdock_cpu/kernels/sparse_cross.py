"""Crosses of features: strings one by one, hashes for a whole row at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from opdock.plugin import KernelTable, NodeSig, cells, checks
from opdock_cpu.text.hashing import fingerprint64

__all__ = ["table"]

Array = cells.Array
dims = checks.dims

table = KernelTable()

_MUL: Final = np.uint64(0xC6A4A7935BD1E995)
_SHIFT: Final = np.uint64(47)
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7800)
_TEN: Final = np.uint64(10)
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
        turn = _hash_column if hashed else _text_column
        columns = [turn(_split(i, v, rows)) for i, v, _ in sparse]
        columns += [turn(list(d)) for d in dense]
        found = []
        for features in zip(*columns, strict=True):
            found.append(_hashes(features, key, combine) % buckets if hashed else _texts(features))
        counts = np.array([len(f) for f in found], np.int64)
        places = np.empty((int(counts.sum()), 2), np.int64)
        places[:, 0] = np.repeat(np.arange(rows), counts)
        places[:, 1] = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        values = np.concatenate([np.zeros(0, np.uint64 if hashed else object), *found])
        width = int(counts.max(initial=0))
        values = values.astype(np.int64) if hashed else values
        return places, values, np.array([rows, width], np.int64)

    return run


def _hashes(
    features: Sequence[Array], key: np.uint64, combine: Callable[[Array, Array], Array]
) -> Array:
    out = np.full(1, key, np.uint64)
    for column in features:
        out = combine(out[:, None], column[None, :]).reshape(-1)
    return out


def _texts(features: Sequence[Sequence[bytes]]) -> Array:
    crossed = [b"_X_".join(parts) for parts in itertools.product(*features)]
    out = np.empty(len(crossed), object)
    out[:] = crossed
    return out


def _split(indices: Array, values: Array, rows: int) -> list[Array]:
    """The values of each row."""
    row = indices[:, 0]
    if ((row < 0) | (row >= rows)).any():
        raise checks.invalid(f"Input indices name a row outside of [0, {rows})")
    order = np.argsort(row, kind="stable")
    return np.split(values[order], np.searchsorted(row[order], np.arange(1, rows)))[:rows]


def _hash_column(rows: list[Array]) -> list[Array]:
    return [fingerprint64(r.tolist()) if r.dtype.hasobject else r.astype(np.uint64) for r in rows]


def _text_column(rows: list[Array]) -> list[list[bytes]]:
    return [[v if isinstance(v, bytes) else str(v).encode() for v in r.tolist()] for r in rows]


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
