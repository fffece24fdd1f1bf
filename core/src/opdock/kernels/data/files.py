"""Datasets of what files hold: lines, records, names of files, rows of a database."""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, Final

import numpy as np

from opdock import dtypes, errors
from opdock.io import host_ops
from opdock.io.files import tf_errors
from opdock.io.records import open_for_reading, read_records
from opdock.kernels.data.base import Dataset, DatasetIterator, Element, State, invalid
from opdock.kernels.data.context import Context
from opdock.kernels.data.outcomes import load_error, save_error
from opdock.kernels.data.rows import stack

__all__ = [
    "FileDataset", "FixedLengthRecordDataset", "MatchingFilesDataset", "SqlDataset",
    "TFRecordDataset", "TextLineDataset",
]  # fmt: skip

_CHUNK: Final = 1 << 18


def texts(value: Any) -> list[str]:
    """A string scalar or vector as a list of texts."""
    flat = np.asarray(value, object).reshape(-1)
    return [v.decode() if isinstance(v, bytes) else str(v) for v in flat]


def string_element(data: bytes) -> Element:
    """An element of one string."""
    out = np.empty((), object)
    out[()] = data
    return (out,)


def chunks(file: IO[bytes]) -> Iterator[bytes]:
    """The bytes of a file that may be compressed.

    Raises:
        DataLossError: it is damaged.
    """
    while True:
        try:
            part = file.read(_CHUNK)
        except EOFError as e:
            raise errors.DataLossError(None, None, f"inflate() failed: {e}") from e
        if not part:
            return
        yield part


class FileDataset(Dataset):
    """What the files of a list hold, one after the other.

    Args:
        filenames: the files.
        compression: "", "ZLIB" or "GZIP".
        buffer_size: accepted as TF does; Python buffers what it reads.
        types, shapes: of the elements.
    """

    def __init__(
        self, filenames: Any, compression: str, buffer_size: int, types: Any = (dtypes.string,),
        shapes: Any = ((),),
    ) -> None:  # fmt: skip
        super().__init__(types, shapes)
        if np.ndim(filenames) > 1:
            raise invalid("`filenames` must be a scalar or a vector.")
        if compression not in ("", "ZLIB", "GZIP"):
            raise invalid("Unsupported compression_type.")
        if buffer_size < 0:
            raise invalid("`buffer_size` must be >= 0 (0 == default)")
        self.filenames = texts(filenames)
        self.compression = compression

    @abstractmethod
    def records(self, filename: str) -> Iterator[Any]:
        """What elements are made of in one file, and errors in the place of what cannot be made.

        Raises:
            OpError: the rest of the file cannot be read.
        """

    def columns(self, records: Sequence[Any]) -> Element:
        """The components of elements, a row for each of them."""
        return stack(records)

    def element(self, record: Any) -> Element:
        """The element that is made of a record."""
        found: Element = record
        return found

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _FileIterator(self)


class StringsDataset(FileDataset):
    """What the files of a list hold as strings."""

    def columns(self, records: Sequence[bytes]) -> Element:
        """One column."""
        out = np.empty(len(records), object)
        out[:] = records
        return (out,)

    def element(self, record: bytes) -> Element:
        """One string."""
        return string_element(record)


class _FileIterator(DatasetIterator):
    def __init__(self, dataset: FileDataset) -> None:
        self._dataset = dataset
        self._file = 0
        self._read = 0  # of the current file
        self._records: Iterator[Any] | None = None
        self._failed: Exception | None = None  # what comes next

    def next(self) -> Element | None:
        if self._failed is None:
            records, self._failed = self._some(1)
            if records:
                return self._dataset.element(records[0])
        error, self._failed = self._failed, None
        if error is not None:
            raise error.with_traceback(None)
        return None

    def columns(self, count: int) -> Element | None:
        if self._failed is not None:
            return None
        records, self._failed = self._some(count)
        return self._dataset.columns(records) if records else None

    def _some(self, count: int) -> tuple[list[Any], Exception | None]:
        """The next records: so many, or all before the end or an error, and the error."""
        found: list[Any] = []
        names = self._dataset.filenames
        while len(found) < count and self._file < len(names):
            if self._records is None:
                self._records = self._dataset.records(names[self._file])
            try:
                for record in self._records:
                    self._read += 1
                    if isinstance(record, Exception):
                        return found, record
                    found.append(record)
                    if len(found) == count:
                        return found, None
            except Exception as e:
                self._following()  # the rest of a damaged file is lost
                return found, e
            self._following()
        return found, None

    def _following(self) -> None:
        self._file, self._read, self._records = self._file + 1, 0, None

    def save(self) -> State:
        return {"file": self._file, "read": self._read, "failed": save_error(self._failed)}

    def restore(self, state: State) -> None:
        self._file, wanted, self._read = state["file"], state["read"], 0
        self._records = None
        self._failed = load_error(state["failed"])
        if wanted:
            self._records = self._dataset.records(self._dataset.filenames[self._file])
        while self._read < wanted and next(self._records or iter(()), None) is not None:
            self._read += 1

    def close(self) -> None:
        close = getattr(self._records, "close", None)
        if close is not None:
            close()
        self._file, self._read, self._records = len(self._dataset.filenames), 0, None


class TextLineDataset(StringsDataset):
    """Lines, without what ends them."""

    def records(self, filename: str) -> Iterator[bytes]:
        """The strings of one file."""
        with tf_errors(filename), open_for_reading(filename, self.compression) as file:
            begun: list[bytes] = []  # of a line that may be longer than any chunk
            for part in chunks(file):
                end, *lines = part.replace(b"\r", b"").split(b"\n")
                begun.append(end)
                if lines:
                    yield b"".join(begun)
                    yield from lines[:-1]
                    begun = lines[-1:]
            if any(begun):
                yield b"".join(begun)


class TFRecordDataset(StringsDataset):
    """The records of TFRecord files."""

    def records(self, filename: str) -> Iterator[bytes]:
        """The strings of one file."""
        return read_records(filename, self.compression)


class FixedLengthRecordDataset(StringsDataset):
    """Records of one length between a header and a footer."""

    def __init__(
        self, filenames: Any, header: int, record: int, footer: int, buffer_size: int,
        compression: str = "",
    ) -> None:  # fmt: skip
        super().__init__(filenames, compression, buffer_size)
        for value, what in ((header, "header_bytes"), (footer, "footer_bytes")):
            if value < 0:
                raise invalid(f"`{what}` must be >= 0")
        if record <= 0:
            raise invalid("`record_bytes` must be > 0")
        self._header, self._record, self._footer = header, record, footer

    def records(self, filename: str) -> Iterator[bytes]:
        """The strings of one file."""
        size, total = self._record, 0
        with tf_errors(filename), open_for_reading(filename, self.compression) as file:
            if not self.compression:
                self._check(filename, file.seek(0, 2))
                file.seek(0)
            parts: list[bytes] = []  # of what may be longer than any chunk
            ahead, left = 0, self._header
            for part in chunks(file):
                total += len(part)
                skipped = min(left, len(part))
                left -= skipped
                parts.append(part[skipped:])
                ahead += len(parts[-1])
                if left or ahead < size + self._footer:
                    continue
                held = b"".join(parts)
                whole = (ahead - self._footer) // size
                for i in range(whole):
                    yield held[i * size : (i + 1) * size]
                parts = [held[whole * size :]]
                ahead = len(parts[0])
        self._check(filename, total)

    def _check(self, filename: str, length: int) -> None:
        body = length - self._header - self._footer
        if body < 0 or body % self._record:
            raise invalid(
                f"Excluding the header ({self._header} bytes) and footer ({self._footer} bytes), "
                f'input file "{filename}" has body length {body} bytes, which is not an exact '
                f"multiple of the record length ({self._record} bytes)."
            )


class MatchingFilesDataset(Dataset):
    """The names of the files that match patterns, in order; NotFoundError where none does."""

    def __init__(self, patterns: Any) -> None:
        super().__init__([dtypes.string], [()])
        self._patterns = np.asarray(patterns, object)

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _NamesIterator(self._patterns)


class _NamesIterator(DatasetIterator):
    def __init__(self, patterns: Any) -> None:
        self._patterns = patterns
        self._names: Sequence[Any] | None = None
        self._next = 0

    def next(self) -> Element | None:
        if self._names is None:
            self._names = sorted(np.asarray(host_ops.matching_files(self._patterns)).reshape(-1))
        if not self._names:
            raise errors.NotFoundError(None, None, "Don't find any matched files")
        if self._next >= len(self._names):
            return None
        self._next += 1
        name = self._names[self._next - 1]
        return string_element(name if isinstance(name, bytes) else str(name).encode())

    def save(self) -> State:
        names = None if self._names is None else [string_element(n) for n in self._names]
        return {"next": self._next, "names": names}

    def restore(self, state: State) -> None:
        names = state["names"]
        self._next = state["next"]
        self._names = None if names is None else [n[0].item() for n in names]


class SqlDataset(Dataset):
    """The rows that a query finds in a SQLite database."""

    def __init__(self, driver: str, source: str, query: str, types: Any, shapes: Any) -> None:
        super().__init__(types, shapes)
        if driver != "sqlite":
            raise invalid(f"The database type, {driver}, is not supported by SqlDataset.")
        for shape in self.shapes:
            if shape != ():
                raise invalid("Each element of `output_shapes` must be a scalar.")
        self.source, self.query = source, query

    def iterator(self, context: Context) -> DatasetIterator:
        """A new iterator, before the first element."""
        return _SqlIterator(self)


class _SqlIterator(DatasetIterator):
    def __init__(self, dataset: SqlDataset) -> None:
        self._dataset = dataset
        self._rows: Iterator[Any] | None = None
        self._read = 0

    def next(self) -> Element | None:
        if self._rows is None:
            self._rows = self._query()
        row = next(self._rows, None)
        if row is None:
            return None
        self._read += 1
        return tuple(_cell(v, t) for v, t in zip(row, self._dataset.types, strict=True))

    def _query(self) -> Iterator[Any]:
        import sqlite3  # not every Python has it

        count = len(self._dataset.types)
        try:
            connection = sqlite3.connect(self._dataset.source, check_same_thread=False)
            try:
                cursor = connection.execute(self._dataset.query)
                columns = len(cursor.description or ())
                if columns != count:
                    raise invalid(
                        f"The number of columns in query ({columns}) must match the number of "
                        f"elements in output_types ({count})."
                    )
                yield from cursor
            finally:
                connection.close()
        except sqlite3.Error as e:
            # An error of the library's own module, rather than of SQLite, has no code.
            code = _SQLITE_ERRORS.get(getattr(e, "sqlite_errorcode", 0) & 0xFF, errors.UnknownError)
            raise code(
                None, None, f"Failed to read the database {self._dataset.source}: {e}"
            ) from None

    def save(self) -> State:
        return {"read": self._read}

    def restore(self, state: State) -> None:
        self._read, self._rows = 0, None
        while self._read < state["read"] and self.next() is not None:
            pass

    def close(self) -> None:
        close = getattr(self._rows, "close", None)
        if close is not None:
            close()


_SQLITE_ERRORS: Final[Mapping[int, type[errors.OpError]]] = {
    3: errors.PermissionDeniedError,  # SQLITE_PERM
    4: errors.AbortedError,
    5: errors.UnavailableError,  # SQLITE_BUSY
    6: errors.UnavailableError,  # SQLITE_LOCKED
    7: errors.UnavailableError,  # SQLITE_NOMEM
    8: errors.FailedPreconditionError,  # SQLITE_READONLY
    9: errors.CancelledError,  # SQLITE_INTERRUPT
    11: errors.DataLossError,  # SQLITE_CORRUPT
    14: errors.InvalidArgumentError,  # SQLITE_CANTOPEN
    18: errors.ResourceExhaustedError,  # SQLITE_TOOBIG
    20: errors.FailedPreconditionError,  # SQLITE_MISMATCH
    23: errors.PermissionDeniedError,  # SQLITE_AUTH
    26: errors.InvalidArgumentError,  # SQLITE_NOTADB
}
"""TF's error for SQLite's codes; what is not listed, a wrong query above all, is unknown to it."""

_INTEGER: Final = re.compile(rb"[ \t\n\r\f\v]*([+-]?[0-9]+)")
_REAL: Final = re.compile(rb"[ \t\n\r\f\v]*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)")


def _cell(value: Any, dtype: Any) -> Any:
    """A value of a row as a scalar of a type, by SQLite's conversions."""
    if value is None:
        value = b"" if dtype is dtypes.string else 0
    if dtype is dtypes.string:
        return string_element(value if isinstance(value, bytes) else _text(value).encode())[0]
    if isinstance(value, (bytes, str)):
        text = value if isinstance(value, bytes) else value.encode()
        found = (_REAL if dtype.is_floating else _INTEGER).match(text)
        value = 0 if found is None else float(found[1]) if dtype.is_floating else _long(found[1])
    if dtype.is_floating:
        return np.array(value, dtype.np)
    bounds = np.iinfo(np.int64)
    whole = value if isinstance(value, int) else int(min(max(value, bounds.min), bounds.max))
    return np.array(min(max(whole, bounds.min), bounds.max), np.int64).astype(dtype.np)


def _text(value: Any) -> str:
    """As SQLite writes it: at least one digit behind the point."""
    if not isinstance(value, float):
        return str(value)
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    digits, e, power = f"{value:.15g}".partition("e")
    return (digits if "." in digits else f"{digits}.0") + e + power


def _long(digits: bytes) -> int:
    # Python refuses very many digits, and twenty of them are beyond the bounds anyway.
    sign, body = digits[:1].strip(b"0123456789"), digits.lstrip(b"+-").lstrip(b"0")
    return int(sign + (body[:20] or b"0"))
