"""Rows of CSV files as elements."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from opdock import dtypes
from opdock.dtypes import DType
from opdock.io.files import tf_errors
from opdock.io.records import open_for_reading
from opdock.kernels.data.base import Element, invalid
from opdock.kernels.data.files import FileDataset, chunks, string_element

__all__ = ["CsvDataset"]

_INTEGER: Final = re.compile(rb"\s*[+-]?[0-9]{1,40}\s*")
_FLOAT: Final = re.compile(
    rb"\s*[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan)\s*",
    re.IGNORECASE,
)
_NAMES: Final = {"int32": "int32", "int64": "int64", "float32": "float", "float64": "double"}


def check_record_default(index: int, default: Any) -> None:
    """Raises InvalidArgumentError unless a column has one default, or none."""
    if np.ndim(default) > 1:
        raise invalid("Each record default should be at most rank 1")
    if np.size(default) > 1:
        raise invalid(
            f"There should only be 1 default per field but field {index} has {np.size(default)}"
        )


def check_columns(chosen: Sequence[int], count: int, mark: bytes) -> None:
    """Raises InvalidArgumentError unless columns are chosen in order, one for each result."""
    if chosen and len(chosen) != count:
        raise invalid("select_cols should match output size")
    if any(a >= b for a, b in itertools.pairwise(chosen)):
        raise invalid("select_cols should be strictly increasing indices")
    if chosen and chosen[0] < 0:
        raise invalid("select_cols should be non-negative indices")
    if len(mark) != 1:
        raise invalid("field_delim should be only 1 char")


class CsvDataset(FileDataset):
    """Rows of fields, read as numbers and strings.

    Args:
        filenames, compression, buffer_size: as of any dataset of files.
        header: whether the first row of each file is left out.
        mark: what separates fields, one byte.
        quotes: whether double quotes enclose fields.
        missing: what stands for a field that is missing, as the empty field does.
        columns: the columns to keep, in order; all if empty.
        defaults: for each column what stands in for a missing field; empty where none may be.
        types, shapes: of the elements.
    """

    def __init__(
        self, filenames: Any, compression: str, buffer_size: int, header: bool, mark: bytes,
        quotes: bool, missing: bytes, columns: Sequence[int], defaults: Sequence[Any],
        types: Sequence[DType], shapes: Any,
    ) -> None:  # fmt: skip
        super().__init__(filenames, compression, buffer_size, types, shapes)
        for i, default in enumerate(defaults):
            check_record_default(i, default)
        check_columns(columns, len(types), mark)
        self._header, self._mark, self._quotes, self._missing = header, mark, quotes, missing
        self._columns = list(columns)
        self._readers = [
            _reader(i, t, np.asarray(d).reshape(-1))
            for i, (t, d) in enumerate(zip(types, defaults, strict=True))
        ]

    def records(self, filename: str) -> Iterator[Element | Exception]:
        """The elements of one file."""
        with tf_errors(filename), open_for_reading(filename, self.compression) as file:
            lines = _Lines(chunks(file))
            if self._header and next(self._rows(lines), None) is None:
                raise invalid(f"Can't read header of file {filename}")
            begin = lines.count
            for row in self._rows(lines):
                try:
                    if isinstance(row, Exception):
                        raise row
                    yield self._element(row)
                except ValueError as e:  # what follows may still be read
                    yield invalid(f"{e} (line {begin + 1} of {filename})")
                begin = lines.count

    def _rows(self, lines: _Lines) -> Iterator[list[bytes] | Exception]:
        for line in lines:
            if not self._quotes or b'"' not in line:
                yield line.split(self._mark)
                continue
            try:
                yield self._quoted_row(line, lines)
            except ValueError as e:
                yield e

    def _quoted_row(self, line: bytes, more: _Lines) -> list[bytes]:
        found: list[bytes] = []
        at, problem = 0, ""
        while at <= len(line):
            if line[at : at + 1] == b'"':
                field, line, at, ended = _quoted(line, at + 1, self._mark, more)
                problem = problem or ("" if ended else _UNESCAPED)
            else:
                end = line.find(self._mark, at)
                end = len(line) if end < 0 else end
                field = line[at:end]
                if b'"' in field:
                    problem = problem or "Unquoted fields cannot have quotes inside"
                at = end + 1
            found.append(field)
        if problem:
            raise ValueError(problem)
        return found

    def _element(self, row: list[bytes]) -> Element:
        count = len(self._readers)
        if self._columns:
            row = [row[c] for c in self._columns if c < len(row)]
        if len(row) > count:
            raise ValueError(f"Expect {count} fields but have more in record")
        missing = self._missing
        cells = [
            read(b"" if field == missing else field)
            for read, field in zip(self._readers, row, strict=False)
        ]
        if len(row) < count:
            raise ValueError(f"Expect {count} fields but have {len(row)} in record")
        return tuple(cells)


_UNESCAPED: Final = "Quote inside a string has to be escaped by another quote"


def _quoted(line: bytes, at: int, mark: bytes, more: _Lines) -> tuple[bytes, bytes, int, bool]:
    """A field from behind its first quote.

    Returns:
        The field, the line in which it ends, where the next field begins there, and whether every
        quote in it was escaped.
    """
    parts: list[bytes] = []
    well = True
    while True:
        end = line.find(b'"', at)
        if end < 0:
            ended = more.end
            following = next(more, None)
            if following is None and not well:
                raise ValueError(_UNESCAPED)
            if following is None:
                raise ValueError("Reached end of file without closing quoted field in record")
            parts.append(line[at:] + ended)
            line, at = following, 0
            continue
        after = line[end + 1 : end + 2]
        if after in (b"", mark):
            return b"".join([*parts, line[at:end]]), line, end + 2, well
        well = well and after == b'"'
        parts.append(line[at : end + 1])
        at = end + 2


class _Lines:
    """Lines that end with a line feed, a carriage return or both.

    Attributes:
        end: what ended the line that came last.
        count: how many have come.
    """

    def __init__(self, parts: Iterator[bytes]) -> None:
        self.end = b""
        self.count = 0
        self._found = self._split(parts)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        line, self.end = next(self._found)
        self.count += 1
        return line

    def _split(self, parts: Iterator[bytes]) -> Iterator[tuple[bytes, bytes]]:
        begun: list[bytes] = []  # of a line that may be longer than any part
        held = b""
        for part in parts:
            whole = held + part
            held = b"\r" if whole.endswith(b"\r") else b""  # a line feed may follow
            *pieces, rest = re.split(rb"(\r\n|\r|\n)", whole.removesuffix(held))
            if pieces:
                pieces[0] = b"".join([*begun, pieces[0]])
                begun = []
                yield from zip(pieces[::2], pieces[1::2], strict=True)
            begun.append(rest)
        line = b"".join(begun)
        if line or held:
            yield line, b""


def _reader(index: int, dtype: DType, default: Any) -> Callable[[bytes], Any]:
    """The function that reads a field of a column."""
    if dtype is dtypes.string:

        def text(field: bytes) -> Any:
            return string_element(field or _default(index, default))[0]

        return text
    integer, name = dtype.is_integer, _NAMES[dtype.name]
    pattern = _INTEGER if integer else _FLOAT

    def number(field: bytes) -> Any:
        if not field:
            return np.array(_default(index, default), dtype.np)
        if pattern.fullmatch(field):
            value = int(field) if integer else float(field)
            if not integer or dtype.min <= value <= dtype.max:
                return np.array(value, dtype.np)
        shown = field.decode(errors="replace")
        raise ValueError(f"Field {index} in record is not a valid {name}: {shown}")

    return number


def _default(index: int, default: Any) -> Any:
    if not default.size:
        raise ValueError(f"Field {index} is required but missing in record!")
    return default[0]
