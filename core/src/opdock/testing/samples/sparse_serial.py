"""Samples of serialized sparse tensors; a TensorProto is written by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opdock.dtypes import float32, int32, int64
from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

_CELLS = np.array([[0, 1], [1, 0], [1, 2]], np.int64)
_SIZE = np.array([2, 3], np.int64)
_KINDS = {"float32": 1, "int32": 3, "int64": 9}


def _field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2, len(data)]) + data


def _proto(array: Any) -> bytes:
    """A TensorProto: its type, its shape, its content; all of them shorter than 128 bytes."""
    shape = b"".join(_field(2, bytes([1 << 3, size])) for size in array.shape)
    kind = bytes([1 << 3, _KINDS[array.dtype.name]])
    return kind + _field(2, shape) + _field(4, array.tobytes())


def _row(cells: Any, values: Any, size: Any) -> Any:
    return np.array([_proto(cells), _proto(values), _proto(size)], object)


@samples("SerializeSparse", "SerializeManySparse")
def written(dtype: Any, rng: Sampler) -> Iterator[Sample]:
    """What is written depends on the writer: its size does not."""
    yield Sample([_CELLS, rng.normal((3,)), _SIZE], {}, "plain", grad=False, shape_only=True)
    none = [_CELLS[:0], rng.normal((0,)), _SIZE]
    yield Sample(none, {}, "empty", grad=False, shape_only=True)


@samples("DeserializeSparse", "DeserializeManySparse", vary="dtype", types=(float32, int32, int64))
def read(dtype: Any, rng: Sampler) -> Iterator[Sample]:
    """Several of one size, and of different sizes."""
    first, second = (_row(_CELLS, rng.normal((3,)), _SIZE) for _ in range(2))
    wider = _row(_CELLS[:1] * 4, rng.normal((1,)), _SIZE + 3)
    for rows, tag in (
        ([first, second], "alike"),
        ([first, wider, second], "wider"),
        ([first], "one"),
    ):
        joined = np.empty((len(rows), 3), object)
        joined[:] = rows
        yield Sample([joined], {"dtype": np.dtype(dtype)}, tag, grad=False)


@error_samples("DeserializeSparse")
def unreadable() -> Iterator[ErrorSample]:
    """Bytes that are no tensor, another type, parts that do not fit."""
    values = np.ones(3, np.float32)
    kind = {"dtype": np.dtype(np.float32)}
    bad = np.array([b"\xff\xff", b"", b""], object)
    yield ErrorSample([bad], kind, match="Could not parse serialized proto")
    for row, match in (
        (_row(_CELLS, values.astype(np.int32), _SIZE), "Requested SparseTensor of type float"),
        (_row(_CELLS, values[:2], _SIZE), "Expected row counts of SparseTensor"),
        (_row(_CELLS, values, _SIZE[:1]), "Expected column counts of SparseTensor"),
        (_row(_SIZE, values, _SIZE), "to represent an index matrix"),
    ):
        yield ErrorSample([row], kind, match=match)
    whole = np.empty((2, 3), object)
    whole[:] = [_row(_CELLS, values, _SIZE), _row(_CELLS[:, :1], values, _SIZE[:1])]
    yield ErrorSample([whole], kind, match="Inconsistent shape across SparseTensors")


@error_samples("SerializeManySparse")
def bad_rows() -> Iterator[ErrorSample]:
    """A vector, a row outside."""
    values = np.ones(3, np.float32)
    vector = [_CELLS[:, :1], values, _SIZE[:1]]
    yield ErrorSample(vector, match="Rank of input SparseTensor should be > 1, but saw rank: 1")
    yield ErrorSample([_CELLS * 2, values, _SIZE], match="unexpected column 0 value")
