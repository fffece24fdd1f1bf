"""Kernels of lookup tables, which are host resources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import KernelTable, NodeSig, checks, dtypes, errors, host_ops
from opdock_cpu.tables import DenseTable, StaticTable, Table
from opdock_cpu.text import numbers
from opdock_cpu.text.arrays import Array, as_bytes, shown

__all__ = ["table"]

table = KernelTable()

LINE_NUMBER, WHOLE_LINE = -1, -2


# ---------------------------------------------------------------- tables
def _named(sig: NodeSig, make: Callable[[str, Any, Any], Table]) -> Table:
    """The table of that name, made when missing."""
    attrs = sig.attrs
    name = attrs["shared_name"] or sig.name
    keys, values = attrs["key_dtype"].base_dtype, attrs["value_dtype"].base_dtype
    assert sig.resources is not None
    found: Table = sig.resources.get_or_create(
        "table", attrs["container"], name, lambda: make(name, keys, values)
    )
    if found.key_dtype is not keys or found.value_dtype is not values:
        raise checks.invalid(
            f"Conflicting key/value dtypes {dtypes.proto_name(keys)}->{dtypes.proto_name(values)} "
            f"with {dtypes.proto_name(found.key_dtype)}-{dtypes.proto_name(found.value_dtype)} for "
            f"table {name}"
        )
    return found


_NUMBERS = frozenset((dtypes.int32, dtypes.float32, dtypes.float64))
# TF's tables that are filled once have these types and no others.
_STATIC = {
    dtypes.int32: _NUMBERS | {dtypes.string},
    dtypes.int64: _NUMBERS | {dtypes.int64, dtypes.string},
    dtypes.string: _NUMBERS | {dtypes.int64, dtypes.string, dtypes.bool},
}


def _static_types(sig: NodeSig) -> bool | str:
    keys, values = sig.attrs["key_dtype"].base_dtype, sig.attrs["value_dtype"].base_dtype
    return (
        values in _STATIC.get(keys, ()) or f"there are no tables from {keys.name} to {values.name}"
    )


@table.binder("HashTable", "HashTableV2", keeps=(), when=_static_types)
def hash_table(sig: NodeSig) -> Callable[[], Table]:
    """A table that is filled once."""
    return lambda: _named(sig, StaticTable)


@table.binder("MutableHashTable", "MutableHashTableV2", keeps=())
def mutable_hash_table(sig: NodeSig) -> Callable[[], Table]:
    """A table of single values."""
    return lambda: _named(sig, Table)


def _value_shape(sig: NodeSig) -> tuple[int, ...]:
    shape = sig.attrs["value_shape"]
    if shape is None or None in shape:
        raise checks.invalid("The shape of a table's values must be fully defined")
    return tuple(shape)


@table.binder("MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", keeps=())
def mutable_hash_table_of_tensors(sig: NodeSig) -> Callable[[], Table]:
    """A table of vectors."""
    shape = _value_shape(sig)
    if len(shape) != 1:
        raise checks.invalid(f"Default value must be a vector, got shape {checks.dims(shape)}")
    return lambda: _named(sig, lambda name, keys, values: Table(name, keys, values, shape))


@table.binder("MutableDenseHashTable", "MutableDenseHashTableV2", keeps=())
def mutable_dense_hash_table(sig: NodeSig) -> Callable[..., Table]:
    """A table with keys that stand for empty and deleted buckets."""
    shape, attrs = _value_shape(sig), sig.attrs

    def run(empty: Array, deleted: Array | None = None) -> Table:
        def make(name: str, keys: Any, values: Any) -> Table:
            return DenseTable(
                name, keys, values, shape, empty, deleted, attrs["initial_num_buckets"],
                attrs["max_load_factor"],
            )  # fmt: skip

        return _named(sig, make)

    return run


# ---------------------------------------------------------------- what is done with them
def _both(*names: str) -> tuple[str, ...]:
    return tuple(name + suffix for name in names for suffix in ("", "V2"))


def _checked(found: Any, sig: NodeSig, keys: str, values: str | None) -> Table:
    if not isinstance(found, Table):
        raise checks.invalid(f"The handle is not one of a lookup table: {found!r}")
    found.check_types(sig.attrs[keys], None if values is None else sig.attrs[values])
    return found


@table.binder(*_both("LookupTableFind"), keeps=())
def find(sig: NodeSig) -> Callable[..., Array]:
    """The values of keys."""
    return lambda handle, keys, default: _checked(handle, sig, "Tin", "Tout").find(keys, default)


@table.binder(*_both("LookupTableInsert"), keeps=())
def insert(sig: NodeSig) -> Callable[..., None]:
    """Adds entries."""
    return lambda handle, keys, values: _checked(handle, sig, "Tin", "Tout").insert(keys, values)


@table.binder("LookupTableRemoveV2", keeps=())
def remove(sig: NodeSig) -> Callable[..., None]:
    """Takes entries away."""
    return lambda handle, keys: _checked(handle, sig, "Tin", None).remove(keys)


@table.kernel(*_both("LookupTableSize"), keeps=())
def size(ctx: Any, handle: Table) -> Array:
    """The number of entries."""
    return np.array(handle.size(), np.int64)


@table.binder(*_both("LookupTableExport"), keeps=())
def export(sig: NodeSig) -> Callable[..., tuple[Array, Array]]:
    """All entries."""
    return lambda handle: _checked(handle, sig, "Tkeys", "Tvalues").export()


@table.binder(*_both("LookupTableImport"), keeps=())
def import_values(sig: NodeSig) -> Callable[..., None]:
    """Replaces all entries."""

    def run(handle: Any, keys: Array, values: Array) -> None:
        _checked(handle, sig, "Tin", "Tout").import_values(keys, values)

    return run


@table.binder(*_both("InitializeTable"), keeps=())
def initialize(sig: NodeSig) -> Callable[..., None]:
    """Fills a table."""

    def run(handle: Any, keys: Array, values: Array) -> None:
        _checked(handle, sig, "Tkey", "Tval").initialize(keys, values)

    return run


# ---------------------------------------------------------------- from a file
@table.binder(*_both("InitializeTableFromTextFile"), keeps=())
def initialize_from_text_file(sig: NodeSig) -> Callable[..., None]:
    """Fills a table with the lines of a file."""
    attrs = sig.attrs
    indices = attrs["key_index"], attrs["value_index"]
    mark = as_bytes(attrs["delimiter"])
    if len(mark) != 1:
        raise checks.invalid("delimiter should be only 1 char")

    def run(handle: Any, filename: Array) -> None:
        if not isinstance(handle, StaticTable):
            raise checks.invalid(f"Table {getattr(handle, 'name', handle)} is not initializable")
        _check_indices(handle, *indices)
        name = host_ops.scalar_text(filename, "filename")
        lines = host_ops.vocabulary_lines(name, attrs["vocab_size"])
        rows = [_columns(line, name, i, indices, mark) for i, line in enumerate(lines)]
        keys = _values(lines, rows, indices[0], handle.key_dtype)
        values = _values(lines, rows, indices[1], handle.value_dtype)
        try:
            handle.fill(keys, values, len(lines))
        except errors.FailedPreconditionError:
            # A table that somebody has filled stays as it is.
            if not handle.initialized:
                raise

    return run


def _check_indices(target: Table, key_index: int, value_index: int) -> None:
    for what, index, dtype in (
        ("Key", key_index, target.key_dtype), ("Value", value_index, target.value_dtype),
    ):  # fmt: skip
        kind = dtypes.proto_name(dtype)
        whole = dtype is dtypes.string or (what == "Key" and dtype.is_integer)
        if index == LINE_NUMBER and dtype is not dtypes.int64:
            raise checks.invalid(
                f"{what} index for line number requires table {what.lower()} dtype of int64, got "
                f"{kind}"
            )
        if index == WHOLE_LINE and not whole:
            wanted = (
                "string or integer table key" if what == "Key" else "table value dtype of string"
            )
            raise checks.invalid(f"{what} index for whole line requires {wanted}, got {kind}")


def _columns(
    line: bytes, name: str, number: int, indices: tuple[int, int], mark: bytes
) -> list[bytes]:
    last = max(indices)
    if last < 0:
        return []
    parts = line.split(mark)
    if last >= len(parts):
        raise checks.invalid(
            f"Invalid number of columns in {name} line {number} ({shown(line)}) : expected {last} "
            f"got {len(parts)}"
        )
    return parts


def _values(lines: list[bytes], rows: list[list[bytes]], index: int, dtype: Any) -> list[Any]:
    if index == LINE_NUMBER:
        return list(range(len(lines)))
    texts = lines if index == WHOLE_LINE else [row[index] for row in rows]
    if dtype is dtypes.string:
        return texts
    if dtype not in (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64):
        raise checks.invalid(f"Data type {dtypes.proto_name(dtype)} not supported.")
    found = numbers.read_all(texts, dtype.np)
    if None in found:
        i = found.index(None)
        raise checks.invalid(
            f"Field {shown(texts[i])} in line {i} is not a valid {dtypes.proto_name(dtype)}."
        )
    # As the table's type has them, so that equal values are equal.
    return np.array(found, dtype.np).tolist()  # type: ignore[no-any-return]
