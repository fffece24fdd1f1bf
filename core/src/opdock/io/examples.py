"""Batches of serialized Examples as arrays.

Protobuf's C parser reads each message once; a feature of all examples is then one column: its
values in a row, and how many of them each example has. Arrays are made of columns, so NumPy's
calls are as many as features, however many examples there are. What comes in is not trusted: the
parser checks lengths, and no size is taken from a message without its values.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

import numpy as np
from google.protobuf.message import DecodeError

from opdock import dtypes, errors, shapes
from opdock.dtypes import DType
from opdock.io import protos
from opdock.shapes import Shape

Array = np.ndarray[Any, Any]

_FIELDS: Final = {
    dtypes.int64: "int64_list", dtypes.float32: "float_list", dtypes.string: "bytes_list",
}  # fmt: skip
_TYPES: Final = {name: dtype for dtype, name in _FIELDS.items()}
UNKNOWN: Final = "<unknown>"


@dataclass(frozen=True)
class Sparse:
    """A feature of any number of values.

    Attributes:
        key: its name in the messages.
        dtype: int64, float32 or string.
    """

    key: str
    dtype: DType


@dataclass(frozen=True)
class Dense:
    """A feature with a shape; its first dimension may be open.

    Attributes:
        key: its name in the messages.
        dtype: int64, float32 or string.
        shape: of the values of one example.
        default: the values of examples that lack it (empty: none may), or what to pad with if the
            first dimension is open.
    """

    key: str
    dtype: DType
    shape: Shape
    default: Array = field(compare=False)

    @property
    def open(self) -> bool:
        """Whether the number of values may differ."""
        return bool(self.shape) and self.shape is not None and self.shape[0] is None

    @property
    def stride(self) -> int:
        """The number of values, or of those that belong together if the dimension is open."""
        assert self.shape is not None
        return math.prod(d or 0 for d in (self.shape[1:] if self.open else self.shape))

    def check_default(self, index: int) -> None:
        """InvalidArgumentError unless the default fits the shape."""
        assert self.shape is not None
        found = self.default.shape
        if self.open:
            if self.default.size != 1:
                fail(
                    f"dense_shape[{index}] is a variable length shape: {shapes.text(self.shape)}, "
                    f"therefore def_value[{index}] must contain a single element (the padding "
                    f"element).  But its shape is: {shapes.text(found)}"
                )
        elif self.default.size and not shapes.is_compatible(self.shape, found):
            fail(
                f"def_value[{index}].shape() == {shapes.text(found)} is not compatible with "
                f"dense_shapes_[{index}] == {shapes.text(self.shape)}"
            )


def fail(message: str) -> NoReturn:
    """Raises InvalidArgumentError."""
    raise errors.InvalidArgumentError(None, None, message)


@dataclass
class Column:
    """One feature of all examples: their values in a row, how many each has, and which have it."""

    dtype: DType
    values: list[Any]
    counts: list[int]
    found: list[bool]

    def array(self) -> Array:
        """All values in a row."""
        if self.dtype is dtypes.string:
            out = np.empty(len(self.values), object)
            out[:] = self.values
            return out
        with np.errstate(over="ignore"):
            return np.array(self.values, self.dtype.np)


class Wrong(Exception):
    """A feature of another type than was asked for.

    Attributes:
        index: of the example.
        dtype: the type that it has.
    """

    def __init__(self, index: int, dtype: DType) -> None:
        super().__init__(index, dtype)
        self.index, self.dtype = index, dtype


def column(features: Iterable[Mapping[str, Any]], key: str, dtype: DType) -> Column:
    """A feature of all examples; one that is there without a kind counts as missing.

    Raises:
        Wrong: an example has it with another type.
    """
    return column_of((found.get(key) for found in features), dtype)


def column_of(messages: Iterable[Any], dtype: DType) -> Column:
    """`column` of Feature messages, or None for those that are missing."""
    wanted = _FIELDS[dtype]
    items_of = operator.attrgetter(f"{wanted}.value")
    features = list(messages)
    items = [() if feature is None else items_of(feature) for feature in features]
    counts = list(map(len, items))
    values: list[Any] = []
    for some in items:
        values += some[:]  # protobuf gives a slice at once, but single values one by one
    found = [True] * len(counts)
    if 0 in counts:  # there is no such feature or value, or it is of no kind, or of another kind
        for i, feature in enumerate(features):
            kind = None if feature is None or counts[i] else feature.WhichOneof("kind")
            if kind not in (wanted, None):
                raise Wrong(i, _TYPES[kind])
            found[i] = bool(counts[i]) or kind is not None
    return Column(dtype, values, counts, found)


def read(serialized: Sequence[bytes], message: str = "Example") -> list[Any]:
    """The messages in strings.

    Raises:
        InvalidArgumentError: one is malformed.
    """
    parse = getattr(protos, message).FromString
    out: list[Any] = []
    try:
        for text in serialized:
            out.append(parse(text))
    except DecodeError:
        shown = serialized[len(out)][:1000].decode("utf-8", "replace")
        fail(f"Could not parse example input, value: '{shown}'")
    return out


# ---------------------------------------------------------------- batches
def parse_batch(
    serialized: Sequence[bytes], names: Sequence[str], sparse: Sequence[Sparse],
    dense: Sequence[Dense],
) -> list[Array]:  # fmt: skip
    """What `ParseExample` gives: indices, values and shapes of sparse features, dense ones.

    Args:
        serialized: the messages.
        names: for error messages; as many, or none.
        sparse: features of any length.
        dense: features with a shape.

    Raises:
        InvalidArgumentError: a message is malformed, lacks a feature that has no default, or has
            one of another type or size.
    """
    for d, want in enumerate(dense):
        want.check_default(d)
    features = [example.features.feature for example in read(serialized)]
    columns = [sparse_arrays(_column(features, w, names, _SPARSE_TYPES)) for w in sparse]
    filled = [_dense(features, w, names) for w in dense]
    return [*(part for parts in zip(*columns, strict=True) for part in parts), *filled]


def _name(names: Sequence[str], index: int) -> str:
    return names[index] if names else UNKNOWN


def _where(names: Sequence[str], key: str, index: int) -> str:
    return f"Name: {_name(names, index)}, Key: {key}, Index: {index}.  "


_DENSE_TYPES = "Data types don't match. Data type: {found} but expected type: {wanted}"
_OPEN_TYPES = "Data types don't match. Expected type: {wanted}"
_SPARSE_TYPES = "Data types don't match. Expected type: {wanted}, Actual type: {found}"


def _column(
    features: Sequence[Mapping[str, Any]], want: Sparse | Dense, names: Sequence[str], told: str
) -> Column:
    try:
        return column(features, want.key, want.dtype)
    except Wrong as e:
        text = told.format(found=dtypes.proto_name(e.dtype), wanted=dtypes.proto_name(want.dtype))
        fail(_where(names, want.key, e.index) + text)


def sparse_arrays(found: Column) -> tuple[Array, Array, Array]:
    """Indices, values and dense shape of a feature of a batch."""
    counts = np.array(found.counts, np.int64)
    indices = np.stack([np.repeat(np.arange(len(counts)), counts), _steps(counts)], 1)
    return indices, found.array(), np.array([len(counts), counts.max(initial=0)], np.int64)


def _steps(counts: Array) -> Array:
    """0, 1, 2, ... as far as each count goes."""
    firsts: Array = np.repeat(np.cumsum(counts) - counts, counts)
    return np.subtract(np.arange(len(firsts), dtype=np.int64), firsts)


def _dense(features: Sequence[Mapping[str, Any]], want: Dense, names: Sequence[str]) -> Array:
    found = _column(features, want, names, _OPEN_TYPES if want.open else _DENSE_TYPES)
    assert want.shape is not None
    kind = _FIELDS[want.dtype].removesuffix("_list")
    counts = np.array(found.counts, np.int64)
    if want.open:
        bad = np.flatnonzero(counts % want.stride) if want.stride else np.flatnonzero(counts)
        if len(bad):
            fail(
                _where(names, want.key, int(bad[0])) + f"Number of {kind} values is not a multiple "
                f"of stride length. Saw {counts[bad[0]]} values but output shape is: "
                f"{shapes.text(want.shape)}"
            )
        return padded(found.array(), counts, want)
    there = np.array(found.found, np.bool_)
    bad = np.flatnonzero(there & (counts != want.stride))
    if len(bad):
        fail(
            _where(names, want.key, int(bad[0])) + f"Number of {kind} values != expected.  Values "
            f"size: {counts[bad[0]]} but output shape: {shapes.text(want.shape)}"
        )
    shape = tuple(d or 0 for d in want.shape)
    if there.all():
        return found.array().reshape(len(counts), *shape)
    if not want.default.size:
        missing = _name(names, int(np.argmin(there)))
        fail(f"Name: {missing}, " + required(want))
    out = np.empty((len(counts), want.stride), want.dtype.np)
    out[there] = found.array().reshape(-1, want.stride)
    out[~there] = np.broadcast_to(want.default, shape).reshape(-1)
    return out.reshape(len(counts), *shape)


def required(want: Dense) -> str:
    """What is said of a feature that is missing and has no default."""
    kind = dtypes.proto_name(want.dtype)
    return f"Feature: {want.key} (data type: {kind}) is required but could not be found."


def padded(values: Array, counts: Array, want: Dense) -> Array:
    """The rows of a feature with an open dimension, filled up to the longest."""
    assert want.shape is not None
    inner = tuple(d or 0 for d in want.shape[1:])
    longest = int(counts.max(initial=0))
    out = np.empty((len(counts), longest), want.dtype.np)
    out[...] = want.default.reshape(-1)[0]
    out[np.arange(longest) < counts[:, None]] = values
    return out.reshape(len(counts), longest // want.stride if want.stride else 0, *inner)


# ---------------------------------------------------------------- single ones
def parse_one(serialized: bytes, sparse: Sequence[Sparse], dense: Sequence[Dense]) -> list[Array]:
    """What `ParseSingleExample` gives; as `parse_batch`, without the batch dimension."""
    for d, want in enumerate(dense):
        want.check_default(d)
    features = [read([serialized])[0].features.feature]
    columns = []
    for wanted in sparse:
        found = _one(features, wanted, _SPARSE_TYPES)
        count = len(found.values)
        indices = np.arange(count, dtype=np.int64).reshape(count, 1)
        columns.append((indices, found.array(), np.array([count], np.int64)))
    filled = [_dense_one(features, want) for want in dense]
    return [*(part for parts in zip(*columns, strict=True) for part in parts), *filled]


def _one(features: Sequence[Mapping[str, Any]], want: Sparse | Dense, told: str) -> Column:
    try:
        return column(features, want.key, want.dtype)
    except Wrong as e:
        text = told.format(found=dtypes.proto_name(e.dtype), wanted=dtypes.proto_name(want.dtype))
        fail(f"Key: {want.key}.  {text}")


def _dense_one(features: Sequence[Mapping[str, Any]], want: Dense) -> Array:
    found = _one(features, want, _DENSE_TYPES)
    assert want.shape is not None
    values, shape = found.array(), tuple(d or 0 for d in want.shape)
    if want.open:
        rows = len(values) // want.stride if want.stride else 0
        if len(values) != rows * want.stride:
            fail(f"Key: {want.key}.  Can't parse serialized Example.")
        return values.reshape(rows, *shape[1:])
    if not found.found[0]:
        if not want.default.size:
            fail(required(want))
        # A copy: what a kernel gives is never part of what it got.
        return np.array(np.broadcast_to(want.default, shape))
    if len(values) != want.stride:
        fail(f"Key: {want.key}.  Can't parse serialized Example.")
    return values.reshape(shape)
