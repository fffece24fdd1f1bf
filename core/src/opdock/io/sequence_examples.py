"""Serialized SequenceExamples as arrays: a context, and lists of features in steps of time."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from opdock import dtypes, shapes
from opdock.dtypes import DType
from opdock.io.examples import (
    Array,
    Column,
    Dense,
    Sparse,
    Wrong,
    column,
    column_of,
    fail,
    read,
    required,
    sparse_arrays,
)

_KINDS = {dtypes.int64: "int64", dtypes.float32: "float", dtypes.string: "bytes"}


def _flatten(columns: Sequence[Sequence[Array]]) -> list[Array]:
    """All first parts, all second parts, and so on."""
    return [part for parts in zip(*columns, strict=True) for part in parts]


# ---------------------------------------------------------------- batches
def parse_sequences(
    serialized: Sequence[bytes], names: Sequence[str], context: tuple[list[Sparse], list[Dense]],
    lists: tuple[list[Sparse], list[Dense]], may_lack: Collection[str],
) -> list[Array]:  # fmt: skip
    """What `ParseSequenceExample` gives.

    Args:
        serialized: the messages.
        names: for error messages; as many, or none.
        context: features of the context, sparse and dense.
        lists: features of the steps, sparse and dense; the shapes are those of one step.
        may_lack: the dense lists that may be missing, and count as empty then.

    Returns:
        Of the context: indices, values and shapes of sparse features, dense ones; of the lists the
        same, and the numbers of steps of the dense ones.

    Raises:
        InvalidArgumentError: a message is malformed, lacks a feature that has no default, or has
            one of another type or size.
    """
    sparse, dense = context
    for d, want in enumerate(dense):
        if want.default.size and not shapes.is_compatible(want.shape, want.default.shape):
            fail(
                f"default_value[{d}].shape() == {shapes.text(want.default.shape)} != "
                f"context_dense_shapes[{d}] == {shapes.text(want.shape)}"
            )
    examples = read(serialized, "SequenceExample")
    features = [e.context.feature for e in examples]
    found = [sparse_arrays(_context_column(features, w, names)) for w in sparse]
    filled = [_context_dense(features, w, names) for w in dense]
    steps = [e.feature_lists.feature_list for e in examples]
    listed = [_list_sparse(steps, w, names) for w in lists[0]]
    stacked = [_list_dense(steps, w, names, w.key in may_lack) for w in lists[1]]
    return [*_flatten(found), *filled, *_flatten(listed), *_flatten(stacked)]


def _name(names: Sequence[str], index: int) -> str:
    return names[index] if names else "<unknown>"


def _context_column(
    features: Sequence[Mapping[str, Any]], want: Sparse | Dense, names: Sequence[str]
) -> Column:
    try:
        return column(features, want.key, want.dtype)
    except Wrong as e:
        fail(f"Error in context feature {want.key} in example {_name(names, e.index)}")


def _context_dense(
    features: Sequence[Mapping[str, Any]], want: Dense, names: Sequence[str]
) -> Array:
    found = _context_column(features, want, names)
    shape = tuple(d or 0 for d in want.shape or ())
    size = math.prod(shape)
    there = np.array(found.found, np.bool_)
    counts = np.array(found.counts, np.int64)
    bad = np.flatnonzero(there & (counts != size))
    if len(bad):
        fail(f"Unexpected number of elements in example {_name(names, int(bad[0]))}")
    if not there.all() and not want.default.size:
        fail(required(want))
    out = np.empty((len(counts), size), want.dtype.np)
    out[there] = found.array().reshape(-1, size)
    if not there.all():
        out[~there] = np.broadcast_to(want.default, shape).reshape(-1)
    return out.reshape(len(counts), *shape)


def _list_columns(
    steps: Sequence[Mapping[str, Any]], want: Sparse | Dense, names: Sequence[str]
) -> tuple[Column, Array, list[bool]]:
    """All steps of all examples as one column, the number of steps of each, and which have any."""
    lists = [found.get(want.key) for found in steps]
    lengths = [0 if found is None else len(found.feature) for found in lists]
    try:
        steps_of_all = (f for found in lists if found is not None for f in found.feature)
        flat = column_of(steps_of_all, want.dtype)
    except Wrong as e:
        example = int(np.searchsorted(np.cumsum(lengths), e.index, side="right"))
        fail(f"Error in sequence feature {want.key} in example {_name(names, example)}")
    return flat, np.array(lengths, np.int64), [found is not None for found in lists]


def _list_sparse(
    steps: Sequence[Mapping[str, Any]], want: Sparse, names: Sequence[str]
) -> tuple[Array, Array, Array]:
    flat, lengths, _ = _list_columns(steps, want, names)
    inner, values, shape = sparse_arrays(flat)
    example = np.repeat(np.arange(len(lengths)), lengths)
    step = np.arange(len(example)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    which = inner[:, 0]
    indices = np.stack([example[which], step[which], inner[:, 1]], 1).astype(np.int64)
    return indices, values, np.array([len(lengths), lengths.max(initial=0), shape[1]], np.int64)


def _list_dense(
    steps: Sequence[Mapping[str, Any]], want: Dense, names: Sequence[str], may_lack: bool
) -> tuple[Array, Array]:
    flat, lengths, there = _list_columns(steps, want, names)
    if not may_lack and not all(there):
        fail(f"Missing feature {want.key} in example {_name(names, there.index(False))}")
    shape = tuple(d or 0 for d in want.shape or ())
    size = math.prod(shape)
    counts = np.array(flat.counts, np.int64)
    if (counts != size).any():
        bad = int(np.flatnonzero(counts != size)[0])
        example = int(np.searchsorted(np.cumsum(lengths), bad, side="right"))
        fail(
            f"Unexpected number of elements in feature {want.key}, example {_name(names, example)}"
        )
    longest = int(lengths.max(initial=0))
    out = np.zeros((len(lengths), longest, size), want.dtype.np)
    if want.dtype is dtypes.string:
        out[...] = b""
    out[np.arange(longest) < lengths[:, None]] = flat.array().reshape(-1, size)
    return out.reshape(len(lengths), longest, *shape), lengths


# ---------------------------------------------------------------- single ones
def parse_sequence(
    serialized: bytes, name: str, context: tuple[list[Sparse], list[Dense]],
    lists: tuple[list[Sparse], list[Dense]], may_lack: Collection[str],
) -> list[Array]:  # fmt: skip
    """What `ParseSingleSequenceExample` gives; as `parse_sequences`, without lengths."""
    for d, want in enumerate(context[1]):
        if want.default.size and not shapes.is_compatible(want.shape, want.default.shape):
            fail(
                f"def_value[{d}].shape() == {shapes.text(want.default.shape)} != "
                f"context_dense_shapes_[{d}] == {shapes.text(want.shape)}"
            )
    (example,) = read([serialized], "SequenceExample")
    where = f"Name: {name or '<unknown>'}, "
    features, steps = example.context.feature, example.feature_lists.feature_list
    found = [_one_sparse(features, w, where) for w in context[0]]
    filled = [_one_dense(features, w, where) for w in context[1]]
    listed = [_steps_sparse(steps.get(w.key), w, where) for w in lists[0]]
    stacked = [_steps_dense(steps.get(w.key), w, where, w.key in may_lack) for w in lists[1]]
    return [*_flatten(found), *filled, *_flatten(listed), *stacked]


def _wrong(what: str, dtype: DType, feature: Any) -> None:
    shown = " ".join(str(feature).split())
    kind = dtypes.proto_name(dtype)
    fail(f"{what}.  Data types don't match. Expected type: {kind}  Feature is: {shown}")


def _context_of(features: Mapping[str, Any], want: Sparse | Dense, where: str) -> Column:
    try:
        return column([features], want.key, want.dtype)
    except Wrong:
        _wrong(f"{where}Context feature: {want.key}", want.dtype, features[want.key])
        raise


def _one_sparse(
    features: Mapping[str, Any], want: Sparse, where: str
) -> tuple[Array, Array, Array]:
    values = _context_of(features, want, where).array()
    indices = np.arange(len(values), dtype=np.int64).reshape(-1, 1)
    return indices, values, np.array([len(values)], np.int64)


def _one_dense(features: Mapping[str, Any], want: Dense, where: str) -> Array:
    found = _context_of(features, want, where)
    shape = tuple(d or 0 for d in want.shape or ())
    if found.found[0]:
        _check_size(len(found.values), want, where, 0)
        return found.array().reshape(shape)
    if want.key in features:
        _wrong(f"{where}Context feature: {want.key}", want.dtype, features[want.key])
    if not want.default.size:
        fail(f"{where}Context feature '{want.key}' is required but could not be found.")
    return np.array(np.broadcast_to(want.default, shape))


def _check_size(count: int, want: Dense, where: str, index: int) -> None:
    if count != math.prod(d or 0 for d in want.shape or ()):
        fail(
            f"{where}Key: {want.key}, Index: {index}.  Number of {_KINDS[want.dtype]} values != "
            f"expected.  values size: {count} but output shape: {shapes.text(want.shape)}"
        )


def _list_of(messages: Sequence[Any], want: Sparse | Dense, what: str) -> Column:
    try:
        return column_of(messages, want.dtype)
    except Wrong as e:
        _wrong(f"{what}: {want.key}, Index: {e.index}", want.dtype, messages[e.index])
        raise


def _steps_sparse(found: Any, want: Sparse, where: str) -> tuple[Array, Array, Array]:
    messages = [] if found is None else list(found.feature)
    return sparse_arrays(_list_of(messages, want, f"{where}Feature List"))


def _steps_dense(found: Any, want: Dense, where: str, may_lack: bool) -> Array:
    if found is None and not may_lack:
        fail(
            f"{where}Feature list '{want.key}' is required but could not be found.  Did you mean "
            "to include it in feature_list_dense_missing_assumed_empty or "
            "feature_list_dense_defaults?"
        )
    messages = [] if found is None else list(found.feature)
    flat = _list_of(messages, want, f"{where}Feature list")
    for t, (count, there) in enumerate(zip(flat.counts, flat.found, strict=True)):
        if not there:
            _wrong(f"{where}Feature list: {want.key}, Index: {t}", want.dtype, messages[t])
        _check_size(count, want, where, t)
    return flat.array().reshape(len(messages), *(d or 0 for d in want.shape or ()))
