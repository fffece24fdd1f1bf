"""`tf.python_io`: TFRecord files for programs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Self

from opdock import errors
from opdock.io.files import as_path, tf_errors
from opdock.io.records import RecordWriter, open_compressed, read_records

__all__ = ["TFRecordCompressionType", "TFRecordOptions", "TFRecordWriter", "tf_record_iterator"]


class TFRecordCompressionType:
    """The kinds of compression of a record file."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


_TEXT = {
    TFRecordCompressionType.NONE: "",
    TFRecordCompressionType.ZLIB: "ZLIB",
    TFRecordCompressionType.GZIP: "GZIP",
}


class TFRecordOptions:
    """How a record file is compressed.

    Args:
        compression_type: a `TFRecordCompressionType`, or "", "ZLIB", "GZIP".
        **unused: zlib's tuning parameters, accepted for TF's signature.

    Raises:
        ValueError: an unknown kind.
    """

    compression_type_map = _TEXT

    def __init__(self, compression_type: Any = None, **unused: Any) -> None:
        self.compression_type = self.get_compression_type_string(compression_type)

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """The text ("", "ZLIB", "GZIP") of options, a kind, or None."""
        if not options and options != 0:
            return ""
        if isinstance(options, TFRecordOptions):
            return options.compression_type
        found = _TEXT.get(options) if not isinstance(options, str) else options
        if found is None or found not in _TEXT.values():
            raise ValueError(f'Not a valid compression_type: "{options}"')
        return found


class TFRecordWriter:
    """Writes records to a file.

    Args:
        path: the file.
        options: `TFRecordOptions`, or a kind of compression.

    Raises:
        tf.errors.NotFoundError: the directory does not exist.
    """

    def __init__(self, path: Any, options: Any = None) -> None:
        kind = TFRecordOptions.get_compression_type_string(options)
        self._path = as_path(path)
        self._writer = RecordWriter(open_compressed(self._path, "wb", kind))

    def _check_open(self) -> None:
        if self._writer.closed:
            raise errors.FailedPreconditionError(
                None, None, f"Writer not initialized or previously closed: {self._path}"
            )

    def write(self, record: bytes) -> None:
        """Appends a record.

        Raises:
            tf.errors.FailedPreconditionError: the file is closed.
        """
        self._check_open()
        with tf_errors(self._path):
            self._writer.write(record)

    def flush(self) -> None:
        """Hands what was written to the operating system.

        Raises:
            tf.errors.FailedPreconditionError: the file is closed.
        """
        self._check_open()
        with tf_errors(self._path):
            self._writer.flush()

    def close(self) -> None:
        """Closes the file."""
        with tf_errors(self._path):
            self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def tf_record_iterator(
    path: str | bytes | os.PathLike[str], options: Any = None
) -> Iterator[bytes]:
    """Reads a record file.

    Args:
        path: the file.
        options: `TFRecordOptions`, or a kind of compression.

    Yields:
        The records.

    Raises:
        tf.errors.NotFoundError: no such file.
        tf.errors.DataLossError: the file is damaged.
    """
    return read_records(path, TFRecordOptions.get_compression_type_string(options))
