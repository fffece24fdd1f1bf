"""Sparse tensors as strings, as variants, and in maps that steps share."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock.plugin import DType, KernelTable, NodeSig, as_dtype, cells, checks, dtypes, host_ops

__all__ = ["table"]

Array = cells.Array
dims = checks.dims

table = KernelTable()

Parts = tuple[Array, Array, Array]


# ---------------------------------------------------------------- taking apart
def _rows(indices: Array, values: Array, shape: Array) -> list[Parts]:
    """The sparse tensors along the first dimension."""
    cells.check_parts(indices, values, shape)
    if len(shape) < 2:
        raise checks.invalid(
            f"Rank of input SparseTensor should be > 1, but saw rank: {len(shape)}"
        )
    count, row = int(shape[0]), indices[:, 0]
    bad = (row < 0) | (row >= count)
    if bad.any():
        raise checks.invalid(
            "Received unexpected column 0 value in input SparseTensor: "
            f"{row[int(np.argmax(bad))]} < 0 or >= N (= {count})"
        )
    order = np.argsort(row, kind="stable")
    ends = np.searchsorted(row[order], np.arange(1, count))
    pairs = zip(np.split(indices[order, 1:], ends), np.split(values[order], ends), strict=True)
    return [(cell, value, shape[1:]) for cell, value in pairs][:count]


def _join(parts: Sequence[Parts], lead: tuple[int, ...], word: str) -> Parts:
    """Sparse tensors as the entries of one that has more dimensions; the sizes are the largest."""
    rank = len(parts[0][2])
    # TF counts the dimension that a map adds, and not the one that a batch of strings adds.
    added = int(word == "rank")
    for i, (_, _, shape) in enumerate(parts):
        if len(shape) != rank:
            raise checks.invalid(
                f"Inconsistent {word} across SparseTensors: rank prior to SparseTensor[{i}] was: "
                f"{rank + added} but rank of SparseTensor[{i}] is: {len(shape) + added}"
            )
    counts = [len(values) for _, values, _ in parts]
    entry = np.repeat(np.arange(len(parts)), counts)
    outer = cells.unflat(entry, lead)
    inner = np.concatenate([indices for indices, _, _ in parts])
    sizes = np.max([shape for _, _, shape in parts], axis=0)
    whole = np.concatenate([np.array(lead, np.int64), sizes.astype(np.int64)])
    return np.hstack([outer, inner]), np.concatenate([values for _, values, _ in parts]), whole


def _check_parts(parts: Parts, dtype: DType, i: int, source: str) -> Parts:
    indices, values, shape = parts
    if indices.ndim != 2 or indices.dtype != np.int64:
        raise checks.invalid(
            f"Expected {source}[{i}, 0] to represent an index matrix but received shape "
            f"{dims(indices.shape)}"
        )
    if values.ndim != 1:
        raise checks.invalid(
            f"Expected {source}[{i}, 1] to represent a values vector but received shape "
            f"{dims(values.shape)}"
        )
    if as_dtype(values.dtype).base_dtype is not dtype.base_dtype:
        raise checks.invalid(
            f"Requested SparseTensor of type {dtype.name} but SparseTensor[{i}].values.dtype() == "
            f"{as_dtype(values.dtype).name}"
        )
    if len(indices) != len(values):
        raise checks.invalid(
            f"Expected row counts of SparseTensor[{i}].indices and SparseTensor[{i}].values to "
            f"match but they do not: {len(indices)} vs. {len(values)}"
        )
    if shape.ndim != 1 or shape.dtype != np.int64:
        raise checks.invalid(
            f"Expected {source}[{i}, 1] to be a shape vector but its shape is {dims(shape.shape)}"
        )
    if indices.shape[1] != len(shape):
        raise checks.invalid(
            f"Expected column counts of SparseTensor[{i}].indices to match size of SparseTensor"
            f"[{i}].shape but they do not: {indices.shape[1]} vs. {len(shape)}"
        )
    return parts


# ---------------------------------------------------------------- strings and variants
@table.binder("SerializeSparse", "SerializeManySparse")
def serialize(sig: NodeSig) -> Callable[..., Array]:
    """The three parts as strings or variants, once or for each entry."""
    many, dtype = sig.op == "SerializeManySparse", sig.in_dtypes[1].base_dtype
    as_text = sig.out_dtypes[0].base_dtype is dtypes.string

    def run(indices: Array, values: Array, shape: Array) -> Array:
        if many:
            found = _rows(indices, values, shape)
        else:
            cells.check_parts(indices, values, shape)
            found = [(indices, values, shape)]
        out = np.empty((len(found), 3), object)
        for i, parts in enumerate(found):
            for j, (part, kind) in enumerate(
                zip(parts, (dtypes.int64, dtype, dtypes.int64), strict=True)
            ):
                out[i, j] = host_ops.tensor_to_bytes(part, kind) if as_text else part.copy()
        return out if many else out[0]

    return run


@table.binder("DeserializeSparse", "DeserializeManySparse")
def deserialize(sig: NodeSig) -> Callable[..., Parts]:
    """One sparse tensor of all those that were serialized."""
    dtype = as_dtype(sig.attrs["dtype"])

    def run(serialized: Array) -> Parts:
        if not serialized.ndim:
            raise checks.invalid("Serialized sparse should have non-zero rank []")
        if serialized.shape[-1] != 3:
            raise checks.invalid(
                f"Serialized sparse should have 3 as the last dimension {dims(serialized.shape)}"
            )
        lead = serialized.shape[:-1]
        if not math.prod(lead):
            raise checks.invalid(
                "Serialized sparse should have at least 1 serialized tensor, but has a zero "
                f"dimension {dims(serialized.shape)}"
            )
        found = [
            _check_parts(tuple(map(_read, row)), dtype, i, "serialized_sparse")  # type: ignore[arg-type]
            for i, row in enumerate(serialized.reshape(-1, 3))
        ]
        return _join(found, lead, "shape") if lead else found[0]

    return run


def _read(part: Any) -> Array:
    if isinstance(part, (bytes, str)):
        return host_ops.tensor_from_bytes(part.encode() if isinstance(part, str) else part)
    if isinstance(part, np.ndarray):
        return part
    raise checks.invalid(f"Could not get a tensor from a variant of type {type(part).__name__}")


# ---------------------------------------------------------------- maps
class _TensorsMap:
    """Sparse tensors by handle; each is taken once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.RLock()
        self._numbers = itertools.count()
        self._held: dict[int, Parts] = {}

    def add(self, parts: Parts) -> int:
        """Keeps a sparse tensor, and names it."""
        with self._lock:
            handle = next(self._numbers)
            self._held[handle] = parts
        return handle

    def take(self, handle: int) -> Parts:
        """Gives a sparse tensor away."""
        with self._lock:
            found = self._held.pop(handle, None)
        if found is None:
            raise checks.invalid(f"Unable to find SparseTensor: {handle} in map: {self._name}")
        return found


def _map_of(sig: NodeSig) -> _TensorsMap:
    name = _text(sig.attrs["shared_name"]) or sig.name
    assert sig.resources is not None
    found: _TensorsMap = sig.resources.get_or_create(
        "sparse_tensors_map", _text(sig.attrs["container"]), name, lambda: _TensorsMap(name)
    )
    return found


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value or "")


@table.binder("AddSparseToTensorsMap", "AddManySparseToTensorsMap")
def add_to_map(sig: NodeSig) -> Callable[..., Array]:
    """Handles of the sparse tensor, or of each entry."""
    many, held = sig.op == "AddManySparseToTensorsMap", _map_of(sig)

    def run(indices: Array, values: Array, shape: Array) -> Array:
        if many:
            found = _rows(indices, values, shape)
            return np.array([held.add(_copied(parts)) for parts in found], np.int64)
        cells.check_parts(indices, values, shape)
        return np.array(held.add(_copied((indices, values, shape))), np.int64)

    return run


def _copied(parts: Parts) -> Parts:
    indices, values, shape = parts
    return indices.copy(), values.copy(), shape.copy()


@table.binder("TakeManySparseFromTensorsMap")
def take_from_map(sig: NodeSig) -> Callable[..., Parts]:
    """One sparse tensor of those that the handles name."""
    dtype, held = as_dtype(sig.attrs["dtype"]), _map_of(sig)

    def run(handles: Array) -> Parts:
        if handles.ndim != 1:
            raise checks.invalid(
                f"sparse_handles should be a vector but received shape {dims(handles.shape)}"
            )
        if not len(handles):
            raise checks.invalid(
                "Must have at least 1 serialized SparseTensor, but input matrix has 0 rows"
            )
        found = [
            _check_parts(held.take(int(handle)), dtype, i, "sparse_handles")
            for i, handle in enumerate(handles)
        ]
        return _join(found, (len(found),), "rank")

    return run
