"""Tables that are filled once: `tf.lookup.StaticHashTable` and `tf.contrib.lookup.HashTable`."""

from __future__ import annotations

import uuid
from typing import Any

from opdock import dtypes, shapes
from opdock.dtypes import DType
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import init_scope, name_scope
from opdock.graph.variables.trackable_resources import CapturableResource
from opdock.lookup.initializers import TableInitializerBase
from opdock.ops.registry import get

__all__ = [
    "HashTable", "InitializableLookupTableBase", "LookupInterface", "StaticHashTable",
]  # fmt: skip


class LookupInterface(CapturableResource):
    """A table from keys to values that outlives a step.

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

    @property
    def name(self) -> str | None:
        """The name of the table's node, without scopes."""
        raise NotImplementedError

    def size(self, name: str | None = None) -> Tensor:
        """The number of entries, an int64 scalar."""
        raise NotImplementedError

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys."""
        raise NotImplementedError

    def _check_keys(self, keys: Any) -> None:
        if keys.dtype.base_dtype is not self._key_dtype:
            raise TypeError(
                f"Signature mismatch. Keys must be dtype {self._key_dtype!r}, got {keys.dtype!r}."
            )


class InitializableLookupTableBase(LookupInterface):
    """A table that an initializer fills.

    Args:
        default_value: the value of keys that are not there, a scalar.
        initializer: what fills it.
    """

    _initializer: TableInitializerBase

    def __init__(self, default_value: Any, initializer: TableInitializerBase) -> None:
        super().__init__(initializer.key_dtype, initializer.value_dtype)
        self._default_value = convert_to_tensor(default_value, self._value_dtype)
        shapes.merge(self._default_value.raw_shape, ())
        self._initializer = self._track_trackable(initializer, "_initializer")
        with init_scope():
            self._resource_handle = self._create_resource()
            self._init_op = self._initialize()

    def _create_resource(self) -> Tensor:
        raise NotImplementedError

    def _initialize(self) -> Operation:
        return self._initializer.initialize(self)

    @property
    def default_value(self) -> Tensor:
        """The value of keys that are not there."""
        return self._default_value

    @property
    def initializer(self) -> Operation:
        """The operation that fills the table; `tf.tables_initializer()` runs it too."""
        return self._init_op

    @property
    def init(self) -> Operation:
        """A deprecated name of `initializer`."""
        return self._init_op

    def size(self, name: str | None = None) -> Tensor:
        """The number of entries, an int64 scalar."""
        with name_scope(name, f"{self.name}_Size", [self.resource_handle]):
            return get("LookupTableSizeV2")(self.resource_handle)  # type: ignore[no-any-return]

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys.

        Args:
            keys: a tensor or SparseTensor of the key type.
            name: a name for the operation.

        Returns:
            A tensor or SparseTensor of the same shape.

        Raises:
            TypeError: the keys have another type.
            tf.errors.FailedPreconditionError: at run time, if the table has not been initialized.
        """
        self._check_keys(keys)
        dense = keys.values if isinstance(keys, SparseTensor) else convert_to_tensor(keys)
        with name_scope(
            name, f"{self.name}_Lookup", [self.resource_handle, dense, self._default_value]
        ):
            values = get("LookupTableFindV2")(self.resource_handle, dense, self._default_value)
        values.set_shape(dense.raw_shape)
        if isinstance(keys, SparseTensor):
            return SparseTensor(keys.indices, values, keys.dense_shape)
        return values


class StaticHashTable(InitializableLookupTableBase):
    """A table that an initializer fills once.

    Run `tf.tables_initializer()` before looking anything up.

    Args:
        initializer: what fills it.
        default_value: the value of keys that are not there, a scalar.
        name: a name for the operation.
    """

    def __init__(
        self, initializer: TableInitializerBase, default_value: Any, name: str | None = None
    ) -> None:
        # Copies of the graph share the table of the same name.
        shared = initializer._shared_name or f"hash_table_{uuid.uuid4()}"
        self._set_names(shared, name)
        super().__init__(default_value, initializer)

    def _set_names(self, shared_name: str | None, name: str | None) -> None:
        self._shared_name = shared_name
        self._name = name or "hash_table"
        self._table_name: str | None = None

    def _create_resource(self) -> Tensor:
        handle: Tensor = get("HashTableV2")(
            shared_name=self._shared_name, key_dtype=self._key_dtype,
            value_dtype=self._value_dtype, name=self._name,
        )  # fmt: skip
        self._table_name = handle.op.name.split("/")[-1]
        return handle

    @property
    def name(self) -> str | None:
        """The name of the table's node, without scopes."""
        return self._table_name

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys and all values, in one order."""
        with name_scope(name, f"{self.name}_Export", [self.resource_handle]):
            keys, values = get("LookupTableExportV2")(
                self.resource_handle, Tkeys=self._key_dtype, Tvalues=self._value_dtype
            )
        keys.set_shape([None])
        values.set_shape([None])
        return keys, values


class HashTable(StaticHashTable):
    """`tf.contrib.lookup.HashTable`: a `StaticHashTable` with a shared name of the caller's.

    Args:
        initializer: what fills it.
        default_value: the value of keys that are not there, a scalar.
        shared_name: tables of one name are one in a session; none is shared by default.
        name: a name for the operation.
    """

    def __init__(
        self, initializer: TableInitializerBase, default_value: Any,
        shared_name: str | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        self._set_names(shared_name, name)
        InitializableLookupTableBase.__init__(self, default_value, initializer)
