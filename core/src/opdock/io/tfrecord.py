"""`tf.python_io`: TFRecord files for programs."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from typing import Any, ClassVar, Self

from opdock import errors
from opdock.io.deflate import DeflateOptions
from opdock.io.files import as_path, tf_errors
from opdock.io.records import COMPRESSIONS, RecordWriter, open_for_writing, read_records

__all__ = ["TFRecordCompressionType", "TFRecordOptions", "TFRecordWriter", "tf_record_iterator"]


class TFRecordCompressionType:
    """The kinds of compression of a record file."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


class TFRecordOptions:
    """How a record file is compressed.

    All but the first matter to files that are written with compression; None leaves TF's choice.

    Args:
        compression_type: a `TFRecordCompressionType`, "", "ZLIB", "GZIP", or other options.
        flush_mode: how zlib is flushed whenever its buffer is full; Z_NO_FLUSH by default.
        input_buffer_size: the size of that buffer in bytes.
        output_buffer_size: the size of a buffer of TF's; it changes no file.
        window_bits: the size of zlib's window, and the wrapping.
        compression_level: 0 to 9.
        compression_method: zlib has one, 8.
        mem_level: 1 to 9.
        compression_strategy: one of zlib's.

    Raises:
        ValueError: an unknown kind of compression.
    """

    compression_type_map: ClassVar[dict[int, str]] = {
        TFRecordCompressionType.ZLIB: "ZLIB",
        TFRecordCompressionType.GZIP: "GZIP",
        TFRecordCompressionType.NONE: "",
    }

    def __init__(
        self, compression_type: Any = None, flush_mode: int | None = None,
        input_buffer_size: int | None = None, output_buffer_size: int | None = None,
        window_bits: int | None = None, compression_level: int | None = None,
        compression_method: int | None = None, mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:  # fmt: skip
        self.get_compression_type_string(compression_type)
        self.compression_type = compression_type
        self.flush_mode = flush_mode
        self.input_buffer_size = input_buffer_size
        self.output_buffer_size = output_buffer_size
        self.window_bits = window_bits
        self.compression_level = compression_level
        self.compression_method = compression_method
        self.mem_level = mem_level
        self.compression_strategy = compression_strategy

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """The text ("", "ZLIB", "GZIP") of options, a kind, or None.

        Raises:
            ValueError: there is no such kind.
        """
        if not options:
            return ""
        if isinstance(options, TFRecordOptions):
            return cls.get_compression_type_string(options.compression_type)
        found = options if isinstance(options, str) else cls.compression_type_map.get(options)
        if found not in cls.compression_type_map.values():
            raise ValueError(f'Not a valid compression_type: "{options}"')
        return str(found)

    def _deflate(self) -> DeflateOptions | None:
        """The options for zlib; None without compression."""
        usual = COMPRESSIONS[self.get_compression_type_string(self.compression_type)]
        if usual is None:
            return None
        given = {
            "flush_mode": self.flush_mode, "buffer_size": self.input_buffer_size,
            "window_bits": self.window_bits, "level": self.compression_level,
            "method": self.compression_method, "mem_level": self.mem_level,
            "strategy": self.compression_strategy,
        }  # fmt: skip
        return dataclasses.replace(usual, **{k: v for k, v in given.items() if v is not None})


class TFRecordWriter:
    """Writes records to a file.

    Args:
        path: the file.
        options: `TFRecordOptions`, or a kind of compression.

    Raises:
        ValueError: there is no such kind of compression.
        tf.errors.InvalidArgumentError: zlib does not know such options.
        tf.errors.NotFoundError: the directory does not exist.
    """

    def __init__(self, path: Any, options: Any = None) -> None:
        if not isinstance(options, TFRecordOptions):
            options = TFRecordOptions(options)
        kind = TFRecordOptions.get_compression_type_string(options)
        self._path = as_path(path)
        self._writer = RecordWriter(open_for_writing(self._path, kind, options._deflate()))

    def _check_open(self) -> None:
        if self._writer.closed:
            raise errors.FailedPreconditionError(
                None, None, f"Writer not initialized or previously closed: {self._path}"
            )

    def write(self, record: bytes) -> None:
        """Appends a record.

        Raises:
            TypeError: it is none of bytes.
            tf.errors.FailedPreconditionError: the file is closed.
        """
        if not isinstance(record, bytes):
            raise TypeError(f"expected bytes, {type(record).__name__} found")
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
