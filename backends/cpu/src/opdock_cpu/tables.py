"""Lookup tables in host memory."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import numpy as np

from opdock.plugin import DType, checks, dtypes, errors
from opdock_cpu.text.arrays import Array, array_of, shown

Key = Any
"""A number or a string, or a tuple of them where keys are vectors."""


def _failed(message: str) -> NoReturn:
    raise errors.FailedPreconditionError(None, None, message)


def _shown(value: Any) -> str:
    return shown(value) if isinstance(value, bytes) else str(value)


def _kind(dtype: DType) -> str:
    return dtypes.proto_name(dtype)


class Table:
    """Keys and values of one type and shape each.

    Args:
        name: for messages.
        key_dtype: of the keys.
        value_dtype: of the values.
        value_shape: of one value.
        key_shape: of one key.
    """

    def __init__(
        self, name: str, key_dtype: DType, value_dtype: DType, value_shape: tuple[int, ...] = (),
        key_shape: tuple[int, ...] = (),
    ) -> None:  # fmt: skip
        self.name = name
        self.key_dtype, self.value_dtype = key_dtype, value_dtype
        self.key_shape, self.value_shape = key_shape, value_shape
        self.lock = threading.RLock()
        self._entries: dict[Key, Any] = {}

    @property
    def initialized(self) -> bool:
        """Whether it may be asked."""
        return True

    def clear(self) -> None:
        """Forgets all entries."""
        with self.lock:
            self._entries = {}

    # ------------------------------------------------------------ reading
    def size(self) -> int:
        """The number of entries."""
        return len(self._entries)

    def find(self, keys: Array, default: Array) -> Array:
        """The values of keys, or the default.

        Raises:
            InvalidArgumentError: a shape does not fit the table.
            FailedPreconditionError: the table has not been initialized.
        """
        if not self.initialized:
            _failed("Table not initialized.")
        prefix = self._prefix(keys)
        if np.shape(default) != self.value_shape:
            raise checks.invalid(
                f"Expected shape {checks.dims(self.value_shape)} for default value, got "
                f"{checks.dims(np.shape(default))}"
            )
        missing = next(self._values(np.asarray(default)))
        with self.lock:
            get = self._entries.get
            found = [get(key, missing) for key in self._keys(keys)]
        return self._stacked(found, prefix)

    def export(self) -> tuple[Array, Array]:
        """All keys, and all values."""
        with self.lock:
            keys, values = list(self._entries), list(self._entries.values())
        return self._key_array(keys), self._stacked(values, (len(values),))

    # ------------------------------------------------------------ writing
    def insert(self, keys: Array, values: Array) -> None:
        """Adds entries, in place of those that have the same keys."""
        self._check_values(keys, values)
        with self.lock:
            # A find that is under way has the old dictionary's lock; entries change one by one.
            self._entries.update(zip(self._keys(keys), self._values(values), strict=True))

    def remove(self, keys: Array) -> None:
        """Takes entries away; keys that are not there are passed over."""
        self._prefix(keys)
        with self.lock:
            for key in self._keys(keys):
                self._entries.pop(key, None)

    def import_values(self, keys: Array, values: Array) -> None:
        """Replaces all entries."""
        self._check_values(keys, values)
        with self.lock:
            self._entries = dict(zip(self._keys(keys), self._values(values), strict=True))

    def initialize(self, keys: Array, values: Array) -> None:
        """Fills the table once and for all."""
        raise checks.invalid(f"Table {self.name} is not initializable")

    # ------------------------------------------------------------ arrays
    def check_types(self, key_dtype: DType, value_dtype: DType | None) -> None:
        """InvalidArgumentError unless keys and values have the table's types."""
        if key_dtype is not self.key_dtype:
            raise checks.invalid(
                f"Key must be type {_kind(self.key_dtype)} but got {_kind(key_dtype)}"
            )
        if value_dtype is not None and value_dtype is not self.value_dtype:
            raise checks.invalid(
                f"Value must be type {_kind(self.value_dtype)} but got {_kind(value_dtype)}"
            )

    def _prefix(self, keys: Array) -> tuple[int, ...]:
        """The shape of keys without that of one key."""
        return self._before_key(np.shape(keys))

    def _before_key(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        rank = len(self.key_shape)
        if shape[len(shape) - rank :] != self.key_shape:
            raise checks.invalid(
                f"Input key shape {checks.dims(shape)} must end with the table's key shape "
                f"{checks.dims(self.key_shape)}"
            )
        return shape[: len(shape) - rank]

    def _check_values(self, keys: Array, values: Array) -> None:
        expected = (*self._prefix(keys), *self.value_shape)
        if np.shape(values) != expected:
            raise checks.invalid(
                f"Expected shape {checks.dims(expected)} for value, got "
                f"{checks.dims(np.shape(values))}"
            )

    def _keys(self, keys: Array) -> Iterator[Key]:
        array = np.asarray(keys)
        if not self.key_shape:
            return iter(array.reshape(-1).tolist())
        return map(tuple, array.reshape(-1, math.prod(self.key_shape)).tolist())

    def _values(self, values: Array) -> Iterator[Any]:
        if not self.value_shape:
            return iter(np.asarray(values).reshape(-1).tolist())
        # Rows of an array of the table's own.
        return iter(np.array(values).reshape(-1, *self.value_shape))

    def _key_array(self, keys: list[Key]) -> Array:
        if self.key_dtype is dtypes.string and not self.key_shape:
            return array_of(keys, (len(keys),))
        return np.array(keys, self.key_dtype.np).reshape(len(keys), *self.key_shape)

    def _stacked(self, values: list[Any], prefix: tuple[int, ...]) -> Array:
        if self.value_dtype is dtypes.string and not self.value_shape:
            return array_of(values, prefix)
        return np.array(values, self.value_dtype.np).reshape((*prefix, *self.value_shape))


class StaticTable(Table):
    """A table that is filled once, and does not change then."""

    def __init__(self, name: str, key_dtype: DType, value_dtype: DType) -> None:
        super().__init__(name, key_dtype, value_dtype)
        self._filled = False

    @property
    def initialized(self) -> bool:
        """Whether it has been filled."""
        return self._filled

    def clear(self) -> None:
        """Forgets all entries; the table has to be filled again."""
        with self.lock:
            self._entries, self._filled = {}, False

    def insert(self, keys: Array, values: Array) -> None:
        """Refuses: only the initialization writes."""
        raise errors.UnimplementedError(
            None, None, f"Insert not supported by HashTable implementations: table {self.name}"
        )

    def remove(self, keys: Array) -> None:
        """Refuses: only the initialization writes."""
        raise errors.UnimplementedError(
            None, None, f"Remove not supported by HashTable implementations: table {self.name}"
        )

    def import_values(self, keys: Array, values: Array) -> None:
        """The same as to initialize."""
        self.initialize(keys, values)

    def initialize(self, keys: Array, values: Array) -> None:
        """Fills the table; a second time with as many entries does nothing.

        Raises:
            FailedPreconditionError: there is another number of entries already, or a key has two
                values.
        """
        self._check_values(keys, values)
        if not np.size(keys):
            raise checks.invalid("keys and values cannot be empty tensors.")
        self.fill(self._keys(keys), self._values(values), np.size(keys))

    def fill(self, keys: Iterable[Key], values: Iterable[Any], count: int) -> None:
        """`initialize` with Python values, `count` of them."""
        with self.lock:
            if self._filled:
                if count != len(self._entries):
                    _failed("Table was already initialized with different data.")
                return
            entries: dict[Key, Any] = {}
            for key, value in zip(keys, values, strict=True):
                known = entries.setdefault(key, value)
                if known is not value and known != value:
                    _failed(
                        f"HashTable has different value for same key. Key {_shown(key)} has "
                        f"{_shown(known)} and trying to add value {_shown(value)}"
                    )
            self._entries, self._filled = entries, True


class DenseTable(Table):
    """A mutable table that TF keeps in an array of buckets, which show when it is exported.

    Args:
        name: for messages.
        key_dtype: of the keys.
        value_dtype: of the values.
        value_shape: of one value.
        empty_key: what stands in an empty bucket; no key may be like it.
        deleted_key: what stands for a deleted key; or None.
        buckets: how many there are at first.
        load: how full they may get.
    """

    def __init__(
        self, name: str, key_dtype: DType, value_dtype: DType, value_shape: tuple[int, ...],
        empty_key: Array, deleted_key: Array | None, buckets: int, load: float,
    ) -> None:  # fmt: skip
        super().__init__(name, key_dtype, value_dtype, value_shape, np.shape(empty_key))
        if not 0 < load < 1:
            raise checks.invalid(f"max_load_factor must be between 0 and 1, got: {load}")
        if len(value_shape) > 1:
            raise checks.invalid(
                f"Empty value must be a scalar or a vector, got shape {checks.dims(value_shape)}"
            )
        if len(self.key_shape) > 1:
            raise checks.invalid(
                f"Empty key must be a scalar or a vector, got shape {checks.dims(self.key_shape)}"
            )
        self.empty = next(self._keys(empty_key))
        self.deleted = None
        if deleted_key is not None:
            if np.shape(deleted_key) != self.key_shape:
                raise checks.invalid(
                    "Empty and deleted keys must have same shape, got shapes: "
                    f"{checks.dims(self.key_shape)} and {checks.dims(np.shape(deleted_key))}"
                )
            self.deleted = next(self._keys(deleted_key))
            if self.deleted == self.empty:
                raise checks.invalid("Empty and deleted keys cannot be equal")
        if buckets < 4 or buckets & (buckets - 1):
            raise checks.invalid(
                f"Number of buckets must be at least 4 and a power of 2, got: {buckets}"
            )
        self._buckets, self._load = buckets, load
        # The values of deleted entries: they stay in their buckets until there are more of these.
        self._graves: list[Any] = []

    def _prefix(self, keys: Array) -> tuple[int, ...]:
        shape = np.shape(keys)
        expected = (shape[0] if shape else 1, *self.key_shape)
        if math.prod(shape) != math.prod(expected):
            raise checks.invalid(
                f"Expected key shape {checks.dims(expected)} got {checks.dims(shape)}"
            )
        return super()._prefix(keys)

    def _check_keys(self, keys: Array) -> None:
        for key in self._keys(keys):
            if key == self.empty:
                raise checks.invalid("Using the empty_key as a table key is not allowed")
            if self.deleted is not None and key == self.deleted:
                raise checks.invalid("Using the deleted_key as a table key is not allowed")

    def find(self, keys: Array, default: Array) -> Array:
        """The values of keys, or the default; InvalidArgumentError for the reserved keys."""
        self._prefix(keys)
        self._check_keys(keys)
        return super().find(keys, default)

    def insert(self, keys: Array, values: Array) -> None:
        """Adds entries, in place of those that have the same keys."""
        self._check_values(keys, values)
        self._check_keys(keys)
        with self.lock:
            # As TF does, without asking which of the keys are there already.
            pending = len(self._entries) + (np.shape(keys)[0] if np.ndim(keys) else 1)
            while pending > self._buckets * self._load:
                self._buckets *= 2
                self._graves.clear()
            super().insert(keys, values)

    def remove(self, keys: Array) -> None:
        """Takes entries away."""
        self._prefix(keys)
        self._check_keys(keys)
        with self.lock:
            for key in self._keys(keys):
                if key in self._entries:
                    self._graves.append(self._entries.pop(key))

    def import_values(self, keys: Array, values: Array) -> None:
        """Replaces all entries by those of buckets that are neither empty nor deleted."""
        self._check_buckets(np.shape(keys), np.shape(values))
        pairs = zip(self._keys(keys), self._values(values), strict=True)
        entries = {k: v for k, v in pairs if k not in (self.empty, self.deleted)}
        with self.lock:
            self._entries = entries
            self._buckets = max(4, 1 << (np.shape(keys)[0] - 1).bit_length())
            self._graves.clear()

    def _check_buckets(self, keys: tuple[int, ...], values: tuple[int, ...]) -> None:
        """Buckets are rows: a key or value that is a scalar stands in a column of one."""
        self._before_key(keys)
        expected = (*keys[:1], math.prod(self.key_shape))
        if keys != expected:
            raise checks.invalid(
                f"Expected key shape {checks.dims(expected)} got {checks.dims(keys)}"
            )
        expected = (*keys[:1], math.prod(self.value_shape))
        if values != expected:
            raise checks.invalid(
                f"Expected shape {checks.dims(expected)} for value, got {checks.dims(values)}"
            )

    def export(self) -> tuple[Array, Array]:
        """The keys and values of all buckets, a row each."""
        with self.lock:
            keys, values = list(self._entries), list(self._entries.values())
            graves = self._graves[: self._buckets - len(keys)]
            free = self._buckets - len(keys) - len(graves)
        zero: Any = b"" if self.value_dtype is dtypes.string else 0
        if self.value_shape:
            zero = np.full(self.value_shape, zero, self.value_dtype.np)
        keys += [self.deleted] * len(graves) + [self.empty] * free
        values += graves + [zero] * free
        rows = self._key_array(keys), self._stacked(values, (len(values),))
        return rows[0].reshape(len(keys), -1), rows[1].reshape(len(values), -1)
