"""Kernels that parse Examples, by core's `host_ops`, and lines of CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from opdock.plugin import DType, KernelTable, NodeSig, checks, dtypes, host_ops
from opdock_cpu.text import csv, numbers
from opdock_cpu.text.arrays import Array, array_of, as_bytes, each, flat, one, shown
from opdock_cpu.text.packed import Packed, marks, packed

__all__ = ["table"]

table = KernelTable()
Outputs = Array | tuple[Array, ...]


def _result(parts: list[Array]) -> Outputs:
    return parts[0] if len(parts) == 1 else tuple(parts)


def _need_rank(value: Array, rank: int, name: str) -> None:
    if np.ndim(value) != rank:
        what = "vector" if rank else "scalar"
        raise checks.invalid(
            f"Expected {name} to be a {what}, got shape: {checks.dims(np.shape(value))}"
        )


def _names(names: Array, count: int, name: str) -> list[str]:
    _need_rank(names, 1, name)
    if np.size(names) not in (0, count):
        raise checks.invalid(
            f"Expected len({name}) == len(serialized), but got: {np.size(names)} vs. {count}"
        )
    return [shown(n) for n in flat(names)]


def _keys(values: Any) -> list[str]:
    return [shown(as_bytes(v) if isinstance(v, (str, bytes)) else one(v)) for v in values]


def _sparse(keys: Any, types: Any) -> list[Any]:
    return [host_ops.Sparse(k, t) for k, t in zip(_keys(keys), types, strict=True)]


def _dense(keys: Any, types: Any, shapes: Any, defaults: Any = None) -> list[Any]:
    values = [np.empty(0)] * len(types) if defaults is None else map(np.asarray, defaults)
    parts = zip(_keys(keys), types, shapes, values, strict=True)
    return [host_ops.Dense(*part) for part in parts]


@table.binder("ParseExample")
def parse_example(sig: NodeSig) -> Callable[..., Outputs]:
    """A batch of Examples."""
    attrs = sig.attrs
    sparse_count, dense_count = attrs["Nsparse"], attrs["Ndense"]

    def run(serialized: Array, names: Array, *rest: Array) -> Outputs:
        _need_rank(serialized, 1, "serialized")
        batch = flat(serialized)
        told = _names(names, len(batch), "names")
        sparse_keys, dense_keys = rest[:sparse_count], rest[sparse_count:][:dense_count]
        defaults = rest[sparse_count + dense_count :]
        sparse = _sparse(sparse_keys, attrs["sparse_types"])
        dense = _dense(dense_keys, attrs["Tdense"], attrs["dense_shapes"], defaults)
        return _result(host_ops.parse_batch(batch, told, sparse, dense))

    return run


@table.binder("ParseSingleExample")
def parse_single_example(sig: NodeSig) -> Callable[..., Outputs]:
    """One Example."""
    attrs = sig.attrs
    sparse = _sparse(attrs["sparse_keys"], attrs["sparse_types"])

    def run(serialized: Array, *defaults: Array) -> Outputs:
        _need_rank(serialized, 0, "serialized")
        dense = _dense(attrs["dense_keys"], attrs["Tdense"], attrs["dense_shapes"], defaults)
        return _result(host_ops.parse_one(one(serialized), sparse, dense))

    return run


@table.binder("ParseSequenceExample")
def parse_sequence_example(sig: NodeSig) -> Callable[..., Outputs]:
    """A batch of SequenceExamples."""
    attrs = sig.attrs
    context = _sparse(attrs["context_sparse_keys"], attrs["context_sparse_types"])
    lists = (
        _sparse(attrs["feature_list_sparse_keys"], attrs["feature_list_sparse_types"]),
        _dense(
            attrs["feature_list_dense_keys"], attrs["feature_list_dense_types"],
            attrs["feature_list_dense_shapes"],
        ),
    )  # fmt: skip
    may_lack = frozenset(_keys(attrs["feature_list_dense_missing_assumed_empty"]))

    def run(serialized: Array, names: Array, *defaults: Array) -> Outputs:
        _need_rank(serialized, 1, "serialized")
        batch = flat(serialized)
        told = _names(names, len(batch), "debug_name")
        dense = _dense(
            attrs["context_dense_keys"], attrs["Tcontext_dense"], attrs["context_dense_shapes"],
            defaults,
        )  # fmt: skip
        found = host_ops.parse_sequences(batch, told, (context, dense), lists, may_lack)
        return _result(found)

    return run


@table.binder("ParseSingleSequenceExample")
def parse_single_sequence_example(sig: NodeSig) -> Callable[..., Outputs]:
    """One SequenceExample."""
    attrs = sig.attrs
    counts = [
        attrs["Ncontext_sparse"], attrs["Ncontext_dense"], attrs["Nfeature_list_sparse"],
        attrs["Nfeature_list_dense"], len(attrs["Tcontext_dense"]),
    ]  # fmt: skip

    def run(serialized: Array, lacking: Array, *rest: Array) -> Outputs:
        _need_rank(serialized, 0, "serialized")
        _need_rank(lacking, 1, "feature_list_dense_missing_assumed_empty")
        *groups, (name,) = _groups(rest, counts)
        context = (
            _sparse(groups[0], attrs["context_sparse_types"]),
            _dense(groups[1], attrs["Tcontext_dense"], attrs["context_dense_shapes"], groups[4]),
        )
        lists = (
            _sparse(groups[2], attrs["feature_list_sparse_types"]),
            _dense(
                groups[3], attrs["feature_list_dense_types"], attrs["feature_list_dense_shapes"]
            ),
        )
        may_lack = [shown(key) for key in flat(lacking)]
        found = host_ops.parse_sequence(one(serialized), shown(one(name)), context, lists, may_lack)
        return _result(found)

    return run


def _groups(values: tuple[Array, ...], counts: list[int]) -> Iterator[tuple[Array, ...]]:
    """Runs of that many values, and what is left."""
    for count in counts:
        yield values[:count]
        values = values[count:]
    yield values


@table.kernel("DecodeJSONExample")
def decode_json_example(ctx: Any, examples: Array) -> Array:
    """Examples in JSON as serialized ones."""
    return each(host_ops.json_example, examples)


# ---------------------------------------------------------------- CSV
@table.binder("DecodeCSV")
def decode_csv(sig: NodeSig) -> Callable[..., Outputs]:
    """A column of each field."""
    attrs = sig.attrs
    mark, missing = as_bytes(attrs["field_delim"]), as_bytes(attrs["na_value"])
    types = [t.base_dtype for t in attrs["OUT_TYPE"]]
    chosen = [int(c) for c in attrs["select_cols"]]
    checks.check_columns(chosen, len(types), mark)
    quotes, limit = attrs["use_quote_delim"], chosen[-1] + 1 if chosen else 0

    def rows(lines: list[bytes]) -> Iterator[list[bytes]]:
        for i, row in enumerate(csv.rows(lines, mark, quotes, limit)):
            if chosen:
                row = [row[c] for c in chosen if c < len(row)]
            if len(row) != len(types):
                raise checks.invalid(
                    f"Expect {len(types)} fields but have {len(row)} in record {i}"
                )
            yield row

    def looped(records: Array, defaults: Sequence[Array]) -> list[Array] | None:
        """The columns, where lines are nothing but fields and all of these can be had."""
        whole = None if missing else packed(records)
        if whole is None or not csv.plain(whole.data.tobytes(), quotes):
            return None
        cells = whole.split(marks(mark), skip=False, empty=0)
        if cells is None:
            return None
        counts, starts, ends = cells
        fewest, most = (limit, None) if chosen else (len(types), len(types))
        if counts.min() < fewest or (most is not None and counts.max() > most):
            return None
        first, out = np.cumsum(counts) - counts, []
        for c, default, dtype in zip(chosen or range(len(types)), defaults, types, strict=True):
            at = first + c
            column = _column_of(whole, starts[at], ends[at], np.asarray(default), dtype)
            if column is None:
                return None
            out.append(column)
        return out

    def run(records: Array, *defaults: Array) -> Outputs:
        for f, default in enumerate(defaults):
            checks.check_record_default(f, default)
        shape = np.shape(records)
        found = looped(records, defaults)
        if found is not None:
            return _result([column.reshape(shape) for column in found])
        columns = list(zip(*rows(flat(records)), strict=True)) or [()] * len(types)
        out = []
        for f, (cells, default) in enumerate(zip(columns, defaults, strict=True)):
            values = _column(f, cells, np.asarray(default), missing, types[f])
            if types[f] is dtypes.string:
                out.append(array_of(values, shape))
            else:
                with np.errstate(over="ignore"):
                    out.append(np.array(values).astype(types[f].np).reshape(shape))
        return _result(out)

    return run


def _column_of(
    whole: Packed, starts: Array, ends: Array, default: Array, dtype: DType
) -> Array | None:
    """The values of one column; None if one is missing or is no such value."""
    absent = starts == ends
    given = np.flatnonzero(~absent)
    if given.size < starts.size and not default.size:
        return None
    starts, ends = starts[given], ends[given]
    if dtype is dtypes.string:
        values: Array = whole.pieces(starts, ends, given.shape)
    else:
        values, bad = numbers.read_pieces(whole, starts, ends, dtype.np)
        if bad is not None:
            return None
    if given.size == absent.size:
        return values
    out = np.full(absent.shape, default.reshape(-1)[0], dtype.np)
    out[given] = values
    return out


def _column(
    index: int, cells: tuple[bytes, ...], default: Array, missing: bytes, dtype: DType
) -> list[Any]:
    """The values of one column."""
    given = [cell for cell in cells if cell and cell != missing]
    values = given if dtype is dtypes.string else numbers.read_all(given, dtype.np)
    if len(given) == len(cells) and None not in values:
        return values
    stand_in = default.reshape(-1)[0] if default.size else None
    rest, out = iter(values), []
    for i, cell in enumerate(cells):
        if not cell or cell == missing:
            if stand_in is None:
                raise checks.invalid(f"Field {index} is required but missing in record {i}!")
            out.append(stand_in)
            continue
        value = next(rest)
        if value is None:
            kind = dtypes.proto_name(dtype)
            raise checks.invalid(
                f"Field {index} in record {i} is not a valid {kind}: {shown(cell)}"
            )
        out.append(value)
    return out
