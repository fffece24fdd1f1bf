"""Tables from words to numbers that have buckets for words they do not know, and back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.variables.trackable import Trackable
from opdock.lookup.initializers import (
    KeyValueTensorInitializer,
    TextFileIdTableInitializer,
    TextFileIndex,
    TextFileStringTableInitializer,
)
from opdock.lookup.tables import LookupInterface, StaticHashTable
from opdock.ops.array import size
from opdock.ops.cast import cast
from opdock.ops.compare import not_equal
from opdock.ops.control import no_op
from opdock.ops.encoding import as_string
from opdock.ops.fill import range
from opdock.ops.hashing import (
    string_to_hash_bucket,
    string_to_hash_bucket_fast,
    string_to_hash_bucket_strong,
)
from opdock.ops.registry import get

__all__ = [
    "FastHashSpec", "HasherSpec", "IdTableWithHashBuckets", "StaticVocabularyTable",
    "StrongHashSpec", "index_table_from_file", "index_table_from_tensor",
    "index_to_string_table_from_file", "index_to_string_table_from_tensor",
]  # fmt: skip


class HasherSpec(NamedTuple):
    """Which hash function chooses the bucket.

    Attributes:
        hasher: "fasthash", "legacy" or "stronghash".
        key: two integers, for the last one.
    """

    hasher: str
    key: Any


FastHashSpec = HasherSpec("fasthash", None)


class StrongHashSpec(HasherSpec):
    """SipHash under a key of two integers.

    Raises:
        ValueError: there are not two.
        TypeError: they are no integers.
    """

    __slots__ = ()

    def __new__(cls, key: Any) -> Self:
        """Checks the key."""
        if len(key) != 2:
            raise ValueError(f"key must have size 2, got {len(key)}.")
        if not all(isinstance(k, (int, np.integer)) for k in key):
            raise TypeError(f"Invalid key {key}. Must be unsigned integer values.")
        return super().__new__(cls, "stronghash", key)


_HASHERS: dict[str, Callable[..., Tensor]] = {
    "fasthash": string_to_hash_bucket_fast,
    "legacy": string_to_hash_bucket,
}


def _hasher(spec: HasherSpec) -> Callable[..., Tensor]:
    if spec.hasher == "stronghash":
        return functools.partial(string_to_hash_bucket_strong, key=spec.key)
    if spec.hasher not in _HASHERS:
        raise ValueError(f"Unknown hasher {spec.hasher}")
    return _HASHERS[spec.hasher]


def _check_key_dtypes(table: DType, keys: DType) -> None:
    """TypeError unless keys of one type can be looked up in a table with another."""
    if table not in (dtypes.int64, dtypes.string):
        raise TypeError(
            f"Invalid key dtype, expected one of {(dtypes.int64, dtypes.string)}, but got "
            f"{table!r}."
        )
    if table.is_integer != keys.is_integer:
        wanted = "integer" if keys.is_integer else "non-integer"
        raise TypeError(f"Invalid key dtype, expected {wanted} but got {table!r}.")


class IdTableWithHashBuckets(LookupInterface):
    """A table to int64 that gives keys which it does not have the number of a bucket.

    Args:
        table: from strings or int64 to int64; None to hash all keys.
        num_oov_buckets: how many buckets there are, behind the numbers of the table.
        hasher_spec: which hash function chooses the bucket.
        name: a name for the operations.
        key_dtype: the type of the keys; that of the table by default, else strings.

    Raises:
        ValueError: there is neither a table nor a bucket.
        TypeError: a type or `hasher_spec` is wrong.
    """

    _is_owner = False

    def __init__(
        self, table: Any, num_oov_buckets: int, hasher_spec: HasherSpec = FastHashSpec,
        name: str | None = None, key_dtype: Any = None,
    ) -> None:  # fmt: skip
        key_type = None if key_dtype is None else dtypes.as_dtype(key_dtype)
        name = name.rstrip("/") if name else name
        if table:
            key_type = table.key_dtype if key_type is None else key_type
            _check_key_dtypes(table.key_dtype, key_type)
            if table.value_dtype is not dtypes.int64:
                raise TypeError(
                    f"Invalid value dtype, expected {dtypes.int64!r} but got {table.value_dtype!r}."
                )
        else:
            if num_oov_buckets <= 0:
                raise ValueError("oov_buckets must be > 0 if no table is supplied.")
            key_type = dtypes.string if key_type is None else key_type
        if not key_type.is_integer and key_type is not dtypes.string:
            raise TypeError(f"Invalid key_dtype, expected integer or string, got {key_type!r}.")
        if not isinstance(hasher_spec, HasherSpec):
            raise TypeError(f"hasher_spec must be of type HasherSpec, got {hasher_spec}")
        self._table: Any = table or None
        self._num_oov_buckets, self._hasher_spec = num_oov_buckets, hasher_spec
        name = name or (table.name if table else "hash_bucket")
        self._table_name = name.split("/")[-1] if name else None
        super().__init__(key_type, dtypes.int64)
        if isinstance(self._table, Trackable):
            self._track_trackable(self._table, "_table")

    @property
    def initializer(self) -> Operation:
        """The operation that fills the table."""
        if self._table is not None:
            op: Operation = self._table.initializer
            return op
        with name_scope(None, "init"):
            return no_op()

    @property
    def init(self) -> Operation:
        """A deprecated name of `initializer`."""
        return self.initializer

    @property
    def resource_handle(self) -> Any:
        """The handle of the table, or None."""
        return None if self._table is None else self._table.resource_handle

    @property
    def name(self) -> str | None:
        """The name of the table, without scopes."""
        return self._table_name

    def size(self, name: str | None = None) -> Tensor:
        """The number of entries and buckets, an int64 scalar."""
        with name_scope(name, f"{self.name}_Size"):
            known: Tensor
            known = self._table.size() if self._table else convert_to_tensor(0, dtypes.int64)
            return known + self._num_oov_buckets

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The numbers of keys.

        Args:
            keys: a tensor or SparseTensor of the key type.
            name: a name for the operation.

        Returns:
            An int64 tensor or SparseTensor of the same shape.

        Raises:
            TypeError: the keys have another type.
        """
        self._check_keys(keys)
        dense = keys.values if isinstance(keys, SparseTensor) else keys
        if self._table and self._table.key_dtype.base_dtype is dtypes.int64:
            dense = cast(dense, dtypes.int64)
        if self._num_oov_buckets == 0:
            ids = self._table.lookup(dense, name=name)
        else:
            ids = self._bucketed(dense, name)
        if isinstance(keys, SparseTensor):
            return SparseTensor(keys.indices, ids, keys.dense_shape)
        return ids

    def _bucketed(self, keys: Tensor, name: str | None) -> Tensor:
        with name_scope(name, f"{self.name}_Lookup"):
            text = keys if keys.dtype.base_dtype is dtypes.string else as_string(keys)
            buckets = _hasher(self._hasher_spec)(
                text, num_buckets=self._num_oov_buckets, name="hash_bucket"
            )
            if not self._table:
                return buckets
            ids: Tensor = self._table.lookup(keys)
            known = not_equal(ids, self._table.default_value)
            return get("SelectV2")(known, ids, buckets + self._table.size())  # type: ignore[no-any-return]


class StaticVocabularyTable(IdTableWithHashBuckets):
    """A table of words with a bucket or more for words that it does not have.

    Args:
        initializer: what fills it, from strings or int64 to int64; None for buckets alone.
        num_oov_buckets: how many buckets there are, behind the numbers of the table.
        lookup_key_dtype: the type of the keys; that of the initializer by default, else strings.
        name: a name for the operations.

    Raises:
        ValueError: there is no bucket.
        TypeError: a type is wrong.
    """

    def __init__(
        self, initializer: Any, num_oov_buckets: int, lookup_key_dtype: Any = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        if num_oov_buckets <= 0:
            raise ValueError("oov_buckets must be > 0.")
        table = None
        if initializer:
            key_type = dtypes.as_dtype(lookup_key_dtype or initializer.key_dtype)
            _check_key_dtypes(initializer.key_dtype, key_type)
            if initializer.value_dtype is not dtypes.int64:
                raise TypeError(
                    f"Invalid value dtype, expected {dtypes.int64!r} but got "
                    f"{initializer.value_dtype!r}."
                )
            table = StaticHashTable(initializer, default_value=-1)
        else:
            key_type = dtypes.string
        super().__init__(table, num_oov_buckets, name=name, key_dtype=key_type)


# ---------------------------------------------------------------- from files and tensors
def index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    key_dtype: Any = dtypes.string,
    name: str | None = None,
    key_column_index: int = TextFileIndex.WHOLE_LINE,
    value_column_index: int = TextFileIndex.LINE_NUMBER,
    delimiter: str = "\t",
) -> Any:
    """A table from the lines of a file to their numbers.

    Args:
        vocabulary_file: the path, a string or a constant scalar tensor.
        num_oov_buckets: how many buckets there are for keys that are not in the file.
        vocab_size: how many lines to read; all by default.
        default_value: the number of keys that are not in the file, without buckets.
        hasher_spec: which hash function chooses the bucket.
        key_dtype: the type of the keys, strings or integers.
        name: a name for the operations.
        key_column_index: the column of the keys, or `TextFileIndex`.
        value_column_index: the column of the numbers, or `TextFileIndex`.
        delimiter: what separates columns.

    Returns:
        A table; run `tf.tables_initializer()` before looking anything up.

    Raises:
        ValueError: there is no file, or a number is out of range.
        TypeError: the keys are neither strings nor integers.
    """
    _check_file(vocabulary_file)
    _check_buckets(num_oov_buckets)
    key_type = dtypes.as_dtype(key_dtype)
    if vocab_size is not None and vocab_size < 1:
        shown = vocabulary_file
        if isinstance(shown, Tensor):
            shown = constant_value(shown) or "?"
        raise ValueError(
            f"vocab_size must be greater than 0, got {vocab_size}. vocabulary_file: {shown}"
        )
    _check_keys_of(key_type)
    with name_scope(name, "string_to_index"):
        with name_scope(None, "hash_table"):
            init = TextFileIdTableInitializer(
                vocabulary_file, vocab_size=vocab_size,
                key_dtype=dtypes.int64 if key_type.is_integer else key_type, name="table_init",
                key_column_index=key_column_index, value_column_index=value_column_index,
                delimiter=delimiter,
            )  # fmt: skip
            table = StaticHashTable(init, default_value)
        return _with_buckets(table, num_oov_buckets, hasher_spec, key_type)


def _check_file(vocabulary_file: Any) -> None:
    if vocabulary_file is None or (isinstance(vocabulary_file, str) and not vocabulary_file):
        raise ValueError("vocabulary_file must be specified and must not be empty.")


def _check_buckets(count: int) -> None:
    if count < 0:
        raise ValueError(f"num_oov_buckets must be greater or equal than 0, got {count}.")


def _check_keys_of(dtype: DType) -> None:
    if not dtype.is_integer and dtype.base_dtype is not dtypes.string:
        raise TypeError("Only integer and string keys are supported.")


def _with_buckets(table: Any, count: int, spec: HasherSpec, key_dtype: DType) -> Any:
    if not count:
        return table
    return IdTableWithHashBuckets(table, count, hasher_spec=spec, key_dtype=key_dtype)


def index_table_from_tensor(
    vocabulary_list: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    dtype: Any = dtypes.string,
    name: str | None = None,
) -> Any:
    """A table from the elements of a vector to their places; see `index_table_from_file`.

    Args:
        vocabulary_list: a vector of keys, no two alike.
        num_oov_buckets: how many buckets there are for other keys.
        default_value: the number of other keys, without buckets.
        hasher_spec: which hash function chooses the bucket.
        dtype: the type of the keys, strings or integers.
        name: a name for the operations.

    Returns:
        A table; run `tf.tables_initializer()` before looking anything up.

    Raises:
        ValueError: there is no vector, or it is of another type.
        TypeError: the keys are neither strings nor integers.
    """
    if vocabulary_list is None:
        raise ValueError("vocabulary_list must be specified.")
    _check_buckets(num_oov_buckets)
    key_type = dtypes.as_dtype(dtype)
    _check_keys_of(key_type)
    with name_scope(name, "string_to_index"):
        keys = convert_to_tensor(vocabulary_list)
        if keys.dtype.is_integer != key_type.is_integer:
            wanted = "integer" if key_type.is_integer else "non-integer"
            raise ValueError(f"Expected {wanted}, got {keys.dtype!r}.")
        if not key_type.is_integer and keys.dtype.base_dtype is not key_type:
            raise ValueError(f"Expected {key_type!r}, got {keys.dtype!r}.")
        values = cast(range(size(keys)), dtypes.int64)
        with name_scope(None, "hash_table"):
            table_keys = cast(keys, dtypes.int64) if keys.dtype.is_integer else keys
            init = KeyValueTensorInitializer(
                table_keys, values, table_keys.dtype.base_dtype, dtypes.int64, name="table_init"
            )
            table = StaticHashTable(init, default_value)
        return _with_buckets(table, num_oov_buckets, hasher_spec, key_type)


def index_to_string_table_from_file(
    vocabulary_file: Any,
    vocab_size: int | None = None,
    default_value: Any = "UNK",
    name: str | None = None,
    key_column_index: int = TextFileIndex.LINE_NUMBER,
    value_column_index: int = TextFileIndex.WHOLE_LINE,
    delimiter: str = "\t",
) -> StaticHashTable:
    """A table from line numbers to the lines of a file.

    The arguments are those of `index_table_from_file`.

    Raises:
        ValueError: there is no file, or a number is out of range.
    """
    _check_file(vocabulary_file)
    if vocab_size is not None and vocab_size < 1:
        raise ValueError(f"vocab_size must be greater than 0, got {vocab_size}.")
    with name_scope(name, "index_to_string"):
        init = TextFileStringTableInitializer(
            vocabulary_file, vocab_size=vocab_size, name="table_init",
            key_column_index=key_column_index, value_column_index=value_column_index,
            delimiter=delimiter,
        )  # fmt: skip
        return StaticHashTable(init, default_value)


def index_to_string_table_from_tensor(
    vocabulary_list: Any, default_value: Any = "UNK", name: str | None = None
) -> StaticHashTable:
    """A table from places to the strings of a vector.

    Args:
        vocabulary_list: a string vector.
        default_value: the string of other numbers.
        name: a name for the operations.

    Raises:
        ValueError: there is no vector.
    """
    if vocabulary_list is None:
        raise ValueError("vocabulary_list must be specified.")
    with name_scope(name, "index_to_string"):
        words = convert_to_tensor(vocabulary_list, dtypes.string)
        keys = cast(range(size(words)), dtypes.int64)
        init = KeyValueTensorInitializer(
            keys, words, dtypes.int64, dtypes.string, name="table_init"
        )
        return StaticHashTable(init, default_value)
