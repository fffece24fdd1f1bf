"""`tf.TFRecordReader` and its like: readers, as programs use them."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import refuse_eagerly
from opdock.io.tfrecord import TFRecordOptions
from opdock.ops.registry import get

__all__ = [
    "FixedLengthRecordReader", "IdentityReader", "LMDBReader", "ReaderBase", "TFRecordReader",
    "TextLineReader", "WholeFileReader",
]  # fmt: skip


class ReaderBase:
    """A reader: it takes names of files from a queue, and gives the records in them.

    Args:
        reader_ref: the handle.
        supports_serialize: whether `serialize_state` and `restore_state` work.
    """

    def __init__(self, reader_ref: Tensor, supports_serialize: bool = False) -> None:
        refuse_eagerly(
            "Readers are not supported when eager execution is enabled. Instead, please use "
            "tf.data to get data into your model."
        )
        self._reader_ref = reader_ref
        self._supports_serialize = supports_serialize

    @property
    def reader_ref(self) -> Tensor:
        """The handle."""
        return self._reader_ref

    @property
    def supports_serialize(self) -> bool:
        """Whether the state of the reader can be saved."""
        return self._supports_serialize

    def _do(self, what: str, *inputs: Any, name: str | None) -> Any:
        new = self._reader_ref.dtype is dtypes.resource
        return get(f"Reader{what}V2" if new else f"Reader{what}")(
            self._reader_ref, *inputs, name=name
        )

    def _queue(self, queue: Any) -> Tensor:
        """The handle of a queue, of the type that the reader's has."""
        handle: Tensor = queue if isinstance(queue, Tensor) else queue.queue_ref
        if self._reader_ref.dtype.base_dtype is handle.dtype.base_dtype:
            return handle
        return get("FakeQueue")(handle)  # type: ignore[no-any-return]

    def read(self, queue: Any, name: str | None = None) -> Any:
        """The next record; waits for the name of a file if there is none to be read.

        Args:
            queue: a queue of strings, or its handle.
            name: a name for the operation.

        Returns:
            A tuple (key, value) of scalar strings.

        Raises:
            tf.errors.OutOfRangeError: at run time, when the queue is closed and empty.
        """
        return self._do("Read", self._queue(queue), name=name)

    def read_up_to(self, queue: Any, num_records: Any, name: str | None = None) -> Any:
        """As `read`, but up to a number of records, of one file.

        Returns:
            A tuple (keys, values) of vectors of strings.
        """
        return self._do("ReadUpTo", self._queue(queue), num_records, name=name)

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """How many records the reader has given, an int64."""
        return self._do("NumRecordsProduced", name=name)  # type: ignore[no-any-return]

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """How many files the reader has finished, an int64."""
        return self._do("NumWorkUnitsCompleted", name=name)  # type: ignore[no-any-return]

    def serialize_state(self, name: str | None = None) -> Tensor:
        """The state of the reader as a string.

        Raises:
            tf.errors.UnimplementedError: at run time, for most kinds of readers.
        """
        return self._do("SerializeState", name=name)  # type: ignore[no-any-return]

    def restore_state(self, state: Any, name: str | None = None) -> Operation:
        """Puts the reader into a state that `serialize_state` gave."""
        return self._do("RestoreState", state, name=name)  # type: ignore[no-any-return]

    def reset(self, name: str | None = None) -> Operation:
        """Puts the reader into the state in which it was made; the rest of its file is dropped."""
        return self._do("Reset", name=name)  # type: ignore[no-any-return]


class WholeFileReader(ReaderBase):
    """Gives whole files: the key is the name, the value the content.

    Args:
        name: a name for the operation.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(get("WholeFileReaderV2")(name=name), supports_serialize=True)


class TextLineReader(ReaderBase):
    """Gives the lines of text files, without their ends; the key is "name:number of the line".

    Args:
        skip_header_lines: how many lines of each file are left out.
        name: a name for the operation.
    """

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        super().__init__(
            get("TextLineReaderV2")(skip_header_lines=skip_header_lines or 0, name=name)
        )


class FixedLengthRecordReader(ReaderBase):
    """Gives pieces of one length; the key is "name:number of the record".

    Args:
        record_bytes: the length.
        header_bytes: what is left out at the beginning of each file.
        footer_bytes: what is left out at the end of each file.
        hop_bytes: from one record's beginning to the next's; 0 for the length of a record.
        name: a name for the operation.
        encoding: "ZLIB" or "GZIP" for compressed files.
    """

    def __init__(
        self, record_bytes: int, header_bytes: int | None = None, footer_bytes: int | None = None,
        hop_bytes: int | None = None, name: str | None = None, encoding: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            get("FixedLengthRecordReaderV2")(
                record_bytes=record_bytes, header_bytes=header_bytes or 0,
                footer_bytes=footer_bytes or 0, hop_bytes=hop_bytes or 0, encoding=encoding or "",
                name=name,
            )
        )  # fmt: skip


class TFRecordReader(ReaderBase):
    """Gives the records of TFRecord files; the key is "name:place in the file".

    Args:
        name: a name for the operation.
        options: `tf.python_io.TFRecordOptions`, for compressed files.

    Raises:
        ValueError: there is no such kind of compression.
    """

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        kind = TFRecordOptions.get_compression_type_string(options)
        super().__init__(get("TFRecordReaderV2")(compression_type=kind, name=name))


class IdentityReader(ReaderBase):
    """Gives what is in the queue, as key and as value.

    Args:
        name: a name for the operation.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(get("IdentityReaderV2")(name=name), supports_serialize=True)


class LMDBReader(ReaderBase):
    """Gives the pairs of LMDB databases, which the package `lmdb` reads, in the order of keys.

    Args:
        name: a name for the operation.
        options: as TensorFlow, nothing looks at it.
    """

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        super().__init__(get("LMDBReader")(name=name))
