"""What the columns of CSV files are called and hold, found out while the graph is built."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, Final

import numpy as np

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.operation import Tensor
from opdock.io import filesystems
from opdock.io.files import tf_errors

__all__ = [
    "column_names_of", "default_of", "files_of", "inferred_defaults", "opener_of",
    "sorted_columns",
]  # fmt: skip

_TYPES: Final = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.string)
"""From the narrowest to the widest."""
Open = Callable[[str], IO[str]]


def files_of(file_pattern: Any) -> list[str]:
    """The names of the files that match a pattern, or several, in order; ValueError for none."""
    patterns = file_pattern if isinstance(file_pattern, (list, tuple)) else [file_pattern]
    if not patterns:
        raise ValueError("File pattern is empty.")
    found = [name for p in patterns for name in filesystems.of(p).glob(p)]
    if not found:
        raise ValueError(f"No files match {file_pattern}.")
    return sorted(found)


def opener_of(compression_type: Any) -> Open:
    """How files are opened for a look at their columns.

    Raises:
        ValueError: the compression is not known, or none that can be read here.
    """
    kind = compression_type
    if isinstance(kind, Tensor):
        known = constant_value(kind)
        if known is None:
            raise ValueError("Received unkown compression_type")
        kind = known.item()
    kind = kind.decode() if isinstance(kind, bytes) else kind
    if kind == "GZIP":
        return lambda name: gzip.open(name, "rt", newline="")
    if kind == "ZLIB":
        raise ValueError(f"compression_type ({kind}) is not supported for probing columns")
    if kind not in (None, ""):
        raise ValueError(f"compression_type ({kind}) is not supported")
    return lambda name: open(name, encoding="utf-8", newline="")


def _reader(file: IO[str], mark: str, quotes: bool) -> Any:
    return csv.reader(file, delimiter=mark, quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE)


def column_names_of(filenames: Sequence[str], mark: str, quotes: bool, opened: Open) -> list[str]:
    """The names in the first rows of files.

    Raises:
        ValueError: a file is empty, or the names differ.
    """
    found: list[str] | None = None
    for name in filenames:
        with tf_errors(name), opened(name) as file:
            row = next(_reader(file, mark, quotes), None)
        if row is None:
            raise ValueError(
                f"Received StopIteration when reading the header line of {name}.  Empty file?"
            )
        if found is not None and row != found:
            raise ValueError("Files have different column names in the header row.")
        found = row
    return found or []


def sorted_columns(chosen: Sequence[Any], names: Sequence[str]) -> list[int]:
    """The numbers of columns given by number or name, in order.

    Raises:
        ValueError: there is no such column, or one is given twice.
    """
    numbers = {name: i for i, name in enumerate(names)}
    found = []
    for column in chosen:
        if isinstance(column, int):
            if not 0 <= column < len(names):
                raise ValueError(
                    f"Column index {column} specified in select_columns out of valid range."
                )
            found.append(column)
        elif column in numbers:
            found.append(numbers[column])
        else:
            raise ValueError(
                f"Value '{column}' specified in select_columns not a valid column index or name."
            )
    if len(set(found)) != len(found):
        raise ValueError("select_columns contains duplicate columns")
    return sorted(found)


def default_of(value: Any) -> Any:
    """A column's default: a type stands for a field that must be there."""
    if isinstance(value, (Tensor, list, tuple, np.ndarray)):
        return value
    try:
        dtype = dtypes.as_dtype(value)
    except TypeError:
        return value
    return constant([], dtype=dtype) if dtype in _TYPES else value


def inferred_defaults(
    filenames: Sequence[str], count: int, chosen: Sequence[int] | None, mark: str, quotes: bool,
    missing: str, header: bool, limit: int | None, opened: Open,
) -> list[Tensor]:  # fmt: skip
    """Defaults of the types that the first rows of files fit: zeros and empty strings.

    Raises:
        ValueError: a row has another number of fields.
    """
    columns = range(count) if chosen is None else chosen
    types: list[DType | None] = [None] * len(columns)
    for i, row in enumerate(_rows(filenames, count, mark, quotes, header, opened)):
        if limit is not None and i >= limit:
            break
        types = [_widened(t, row[c], missing) for t, c in zip(types, columns, strict=True)]
    known = [t or dtypes.string for t in types]
    return [constant(["" if t is dtypes.string else 0], dtype=t) for t in known]


def _rows(
    filenames: Sequence[str], count: int, mark: str, quotes: bool, header: bool, opened: Open
) -> Iterator[list[str]]:
    for name in filenames:
        with tf_errors(name), opened(name) as file:
            rows = _reader(file, mark, quotes)
            if header:
                next(rows, None)
            for row in rows:
                if len(row) != count:
                    raise ValueError(
                        "Problem inferring types: CSV row has different number of fields than "
                        "expected."
                    )
                yield row


def _widened(known: DType | None, text: str, missing: str) -> DType | None:
    """The narrowest type that holds what a column held so far and one more field."""
    if text in ("", missing):
        return known
    first = 0 if known is None else _TYPES.index(known)
    return next(t for t in _TYPES[first:] if _holds(t, text))


def _holds(dtype: DType, text: str) -> bool:
    if dtype is dtypes.string:
        return True
    try:
        if dtype.is_integer:
            return bool(dtype.min <= int(text) <= dtype.max)
        with np.errstate(over="ignore"):
            return bool(dtype.np.type(text) < np.inf)
    except (ValueError, OverflowError):
        return False
