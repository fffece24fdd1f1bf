"""What a table is filled with: tensors of keys and values, or the lines of a file."""

from __future__ import annotations

import os
from typing import Any

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.nodes.collections import GraphKeys, add_to_collection
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import init_scope, name_scope
from opdock.graph.variables.trackable import Trackable
from opdock.graph.variables.trackable_resources import TrackableAsset
from opdock.ops.registry import get

__all__ = [
    "KeyValueTensorInitializer", "TableInitializerBase", "TextFileIdTableInitializer",
    "TextFileIndex", "TextFileInitializer", "TextFileStringTableInitializer",
]  # fmt: skip


class TableInitializerBase(Trackable):
    """Fills a table; subclasses say with what.

    Args:
        key_dtype: the type of the keys.
        value_dtype: the type of the values.
    """

    def __init__(self, key_dtype: Any, value_dtype: Any) -> None:
        self._key_dtype = dtypes.as_dtype(key_dtype)
        self._value_dtype = dtypes.as_dtype(value_dtype)

    @property
    def key_dtype(self) -> DType:
        """The type of the keys."""
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        """The type of the values."""
        return self._value_dtype

    def initialize(self, table: Any) -> Operation:
        """Makes the op that fills a table, and adds it to the collection of initializers."""
        raise NotImplementedError

    @property
    def _shared_name(self) -> str:
        """A name that tables with the same content share, or an empty one."""
        return ""

    def _check_types(self, table: Any) -> None:
        """TypeError unless the table has the types of the initializer."""
        for what in ("key", "value"):
            expected = getattr(table, f"{what}_dtype")
            found = getattr(self, f"{what}_dtype")
            if found.base_dtype is not expected:
                raise TypeError(f"Invalid {what} dtype, expected {expected!r} but got {found!r}.")


class KeyValueTensorInitializer(TableInitializerBase):
    """Fills a table with tensors.

    Args:
        keys: a vector.
        values: a vector of the same length.
        key_dtype: the type of keys that are no tensor.
        value_dtype: the type of values that are no tensor.
        name: a name for the operation.
    """

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        with init_scope():
            self._keys = convert_to_tensor(keys, key_dtype, "keys")
            self._values = convert_to_tensor(values, value_dtype, "values")
        self._name = "key_value_init" if name is None else name
        super().__init__(self._keys.dtype, self._values.dtype)

    def initialize(self, table: Any) -> Operation:
        """Makes the op that fills a table.

        Raises:
            TypeError: the table has other types.
        """
        self._check_types(table)
        with name_scope(self._name, None, [table.resource_handle, self._keys, self._values]):
            op: Operation = get("LookupTableImportV2")(
                table.resource_handle, self._keys, self._values
            )
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, op)
        return op


class TextFileIndex:
    """What a line of a file gives besides its columns, which have numbers from 0."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


def _check_index(what: str, index: int, dtype: DType) -> None:
    if index < -2:
        raise ValueError(f"Invalid {what} index {index}.")
    name = f"{what.capitalize()}s"
    if index == TextFileIndex.LINE_NUMBER and dtype is not dtypes.int64:
        raise ValueError(
            f"Signature mismatch. {name} must be dtype {dtypes.int64!r}, got {dtype!r}."
        )
    if index == TextFileIndex.WHOLE_LINE and dtype is not dtypes.string:
        if what == "key" and not dtype.is_integer:
            raise ValueError(f"Signature mismatch. Keys must be integer or string, got {dtype!r}.")
        if what == "value":
            raise ValueError(
                f"Signature mismatch. {name} must be dtype {dtypes.string!r}, got {dtype!r}."
            )


class TextFileInitializer(TableInitializerBase):
    """Fills a table with the lines of a file, an entry each.

    Args:
        filename: the path, a string or a scalar string tensor.
        key_dtype: the type of the keys.
        key_index: which column they are in, or `TextFileIndex`.
        value_dtype: the type of the values.
        value_index: which column they are in, or `TextFileIndex`.
        vocab_size: how many lines to read; all by default.
        delimiter: what separates columns, one character.
        name: a name for the operation.

    Raises:
        ValueError: there is no name, an index does not exist or does not go with its type.
    """

    def __init__(
        self, filename: Any, key_dtype: Any, key_index: int, value_dtype: Any, value_index: int,
        vocab_size: int | None = None, delimiter: str = "\t", name: str | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(filename, Tensor) and not filename:
            raise ValueError(f"Filename required for {name}.")
        key_dtype, value_dtype = dtypes.as_dtype(key_dtype), dtypes.as_dtype(value_dtype)
        _check_index("key", key_index, key_dtype)
        _check_index("value", value_index, value_dtype)
        if vocab_size is not None and vocab_size <= 0:
            raise ValueError(f"Invalid vocab_size {vocab_size}.")
        given = os.fspath(filename) if isinstance(filename, os.PathLike) else filename
        self._filename_arg = given
        self._filename = self._track_trackable(TrackableAsset(given), "_filename")
        self._key_index, self._value_index = key_index, value_index
        self._vocab_size, self._delimiter, self._name = vocab_size, delimiter, name
        super().__init__(key_dtype, value_dtype)

    def initialize(self, table: Any) -> Operation:
        """Makes the op that fills a table; a constant path goes to the collection of assets.

        Raises:
            TypeError: the table has other types.
        """
        self._check_types(table)
        with name_scope(self._name, "text_file_init", [table.resource_handle]):
            filename = convert_to_tensor(self._filename.asset_path, dtypes.string, "asset_filepath")
            op: Operation = get("InitializeTableFromTextFileV2")(
                table.resource_handle, filename, key_index=self._key_index,
                value_index=self._value_index,
                vocab_size=-1 if self._vocab_size is None else self._vocab_size,
                delimiter=self._delimiter,
            )  # fmt: skip
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, op)
        if filename.op.type == "Const":
            add_to_collection(GraphKeys.ASSET_FILEPATHS, filename)
        return op

    @property
    def _shared_name(self) -> str:
        size = f"_{self._vocab_size}" if self._vocab_size else ""
        return f"hash_table_{self._filename_arg}{size}_{self._key_index}_{self._value_index}"


class TextFileStringTableInitializer(TextFileInitializer):
    """Fills a table from int64 to strings, by default from line numbers to lines."""

    def __init__(
        self, filename: Any, key_column_index: int = TextFileIndex.LINE_NUMBER,
        value_column_index: int = TextFileIndex.WHOLE_LINE, vocab_size: int | None = None,
        delimiter: str = "\t", name: str | None = "text_file_string_table_init",
    ) -> None:  # fmt: skip
        super().__init__(
            filename, dtypes.int64, key_column_index, dtypes.string, value_column_index,
            vocab_size=vocab_size, delimiter=delimiter, name=name,
        )  # fmt: skip


class TextFileIdTableInitializer(TextFileInitializer):
    """Fills a table from strings, or integers, to int64: by default from lines to line numbers."""

    def __init__(
        self, filename: Any, key_column_index: int = TextFileIndex.WHOLE_LINE,
        value_column_index: int = TextFileIndex.LINE_NUMBER, vocab_size: int | None = None,
        delimiter: str = "\t", name: str | None = "text_file_id_table_init",
        key_dtype: Any = dtypes.string,
    ) -> None:  # fmt: skip
        super().__init__(
            filename, key_dtype, key_column_index, dtypes.int64, value_column_index,
            vocab_size=vocab_size, delimiter=delimiter, name=name,
        )  # fmt: skip
