"""Tables that steps write: `tf.contrib.lookup.MutableHashTable` and `MutableDenseHashTable`."""

from __future__ import annotations

from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.collections import GraphKeys, add_to_collection
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import colocate_with, executing_eagerly, name_scope
from opdock.lookup.tables import LookupInterface
from opdock.ops.registry import get
from opdock.train.saveable import SaveableObject, SaveSpec

__all__ = ["DenseHashTable", "MutableDenseHashTable", "MutableHashTable", "TableSaveable"]


class TableSaveable(SaveableObject):
    """A table in a checkpoint: its keys and its values.

    Args:
        table: what has `export()` and a `resource_handle`.
        name: the checkpoint's name of the table.
    """

    def __init__(self, table: Any, name: str) -> None:
        keys, values = table.export()
        specs = [SaveSpec(keys, "", f"{name}-keys"), SaveSpec(values, "", f"{name}-values")]
        super().__init__(table, specs, name)

    def restore(
        self, restored_tensors: list[Tensor], restored_shapes: Any, name: str | None = None
    ) -> Operation:
        """Makes the op that replaces all entries."""
        handle = self.op.resource_handle
        with name_scope(name, f"{self.name}_table_restore"), colocate_with(handle):
            return get("LookupTableImportV2")(handle, *restored_tensors)  # type: ignore[no-any-return]


class _MutableTable(LookupInterface):
    """What tables that steps write have in common.

    Args:
        key_dtype: the type of the keys.
        value_dtype: the type of the values.
        default_value: the value of keys that are not there.
        shared_name: tables of one name are one in a session.
        name: a name for the operation.
        checkpoint: whether Savers save it.
        key_shape: of one key.
    """

    def __init__(
        self, key_dtype: Any, value_dtype: Any, default_value: Tensor, shared_name: str | None,
        name: str, checkpoint: bool, key_shape: tuple[int | None, ...] = (),
    ) -> None:  # fmt: skip
        super().__init__(key_dtype, value_dtype)
        self._default_value = default_value
        self._value_shape, self._key_shape = default_value.raw_shape, key_shape
        self._checkpoint, self._shared_name, self._name = checkpoint, shared_name, name
        self._resource_handle = self._create_resource()
        self._table_name = self._resource_handle.op.name.split("/")[-1]
        if checkpoint and not executing_eagerly():
            add_to_collection(GraphKeys.SAVEABLE_OBJECTS, TableSaveable(self, name))

    def _create_resource(self) -> Tensor:
        raise NotImplementedError

    def _attrs(self) -> dict[str, Any]:
        return {
            "shared_name": self._shared_name,
            "use_node_name_sharing": self._checkpoint and self._shared_name is None,
            "value_dtype": self._value_dtype, "name": self._name,
        }  # fmt: skip

    @property
    def name(self) -> str:
        """The name of the table's node, without scopes."""
        return str(self._table_name)

    def _gather_saveables_for_checkpoint(self) -> dict[str, Any]:
        """What a Saver that is given the table saves, by part: makers that take a name."""
        return {"table": lambda name=self._name: TableSaveable(self, name)}

    def size(self, name: str | None = None) -> Tensor:
        """The number of entries, an int64 scalar."""
        handle = self.resource_handle
        with name_scope(name, f"{self.name}_Size", [handle]), colocate_with(handle):
            return get("LookupTableSizeV2")(handle)  # type: ignore[no-any-return]

    def lookup(self, keys: Any, name: str | None = None) -> Tensor:
        """The values of keys, the default for those that are not there.

        Args:
            keys: of the key type; the last dimensions are those of a key.
            name: a name for the operation.

        Returns:
            A tensor with the shape of a value in place of that of a key.
        """
        handle = self.resource_handle
        with name_scope(name, f"{self.name}_lookup_table_find", [handle, keys]):
            tensor = convert_to_tensor(keys, self._key_dtype, "keys")
            with colocate_with(handle):
                values: Tensor = get("LookupTableFindV2")(handle, tensor, self._default_value)
        values.set_shape(self._found_shape(tensor))
        return values

    def _found_shape(self, keys: Tensor) -> shapes.Shape:
        known, rank = keys.raw_shape, len(self._key_shape)
        if known is None:
            return None
        if len(known) < rank:
            raise ValueError(
                f"Expected keys to have suffix {shapes.text(self._key_shape)} but saw shape: "
                f"{shapes.text(known)}"
            )
        return shapes.concat(known[: len(known) - rank], self._value_shape)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Operation:
        """Makes the op that adds entries, in place of those that have the same keys.

        Args:
            keys: of the key type.
            values: of the value type.
            name: a name for the operation.

        Raises:
            TypeError: keys or values have another type.
        """
        handle = self.resource_handle
        with name_scope(name, f"{self.name}_lookup_table_insert", [handle, keys, values]):
            key_tensor = convert_to_tensor(keys, self._key_dtype, "keys")
            value_tensor = convert_to_tensor(values, self._value_dtype, "values")
            with colocate_with(handle):
                return get("LookupTableInsertV2")(handle, key_tensor, value_tensor)  # type: ignore[no-any-return]

    def remove(self, keys: Any, name: str | None = None) -> Operation:
        """Makes the op that takes entries away; keys that are not there are passed over.

        Raises:
            TypeError: the keys have another type.
        """
        self._check_keys(keys)
        handle = self.resource_handle
        with name_scope(name, f"{self.name}_lookup_table_remove", [handle, keys]):
            return get("LookupTableRemoveV2")(handle, keys)  # type: ignore[no-any-return]

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys and all values, in one order."""
        handle = self.resource_handle
        with name_scope(name, f"{self.name}_lookup_table_export_values", [handle]):
            with colocate_with(handle):
                keys, values = get("LookupTableExportV2")(
                    handle, Tkeys=self._key_dtype, Tvalues=self._value_dtype
                )
        keys.set_shape(shapes.concat((None,), self._exported_shape(self._key_shape)))
        values.set_shape(shapes.concat((None,), self._exported_shape(self._value_shape)))
        return keys, values

    def _exported_shape(self, shape: shapes.Shape) -> shapes.Shape:
        """What `export` gives for a key or a value of this shape."""
        return shape


class MutableHashTable(_MutableTable):
    """A table that steps write, of scalars or vectors.

    Args:
        key_dtype: the type of the keys.
        value_dtype: the type of the values.
        default_value: the value of keys that are not there; its shape is that of a value.
        shared_name: tables of one name are one in a session.
        name: a name for the operation.
        checkpoint: whether Savers save it.
    """

    def __init__(
        self, key_dtype: Any, value_dtype: Any, default_value: Any,
        shared_name: str | None = None, name: str = "MutableHashTable", checkpoint: bool = True,
    ) -> None:  # fmt: skip
        default = convert_to_tensor(default_value, value_dtype)
        super().__init__(key_dtype, value_dtype, default, shared_name, name, checkpoint)

    def _create_resource(self) -> Tensor:
        attrs = {**self._attrs(), "key_dtype": self._key_dtype}
        if self._value_shape == ():
            return get("MutableHashTableV2")(**attrs)  # type: ignore[no-any-return]
        return get("MutableHashTableOfTensorsV2")(**attrs, value_shape=self._value_shape)  # type: ignore[no-any-return]


class DenseHashTable(_MutableTable):
    """A table that steps write; TF keeps it in an array of buckets.

    Args:
        key_dtype: the type of the keys.
        value_dtype: the type of the values.
        default_value: the value of keys that are not there; its shape is that of a value.
        empty_key: a key that never occurs: it stands for empty buckets.
        deleted_key: another one, for deleted entries.
        initial_num_buckets: how many buckets there are at first.
        name: a name for the operation.
        checkpoint: whether Savers save it.
    """

    _shared_name: str | None = None

    def __init__(
        self, key_dtype: Any, value_dtype: Any, default_value: Any, empty_key: Any,
        deleted_key: Any, initial_num_buckets: int | None = None,
        name: str = "MutableDenseHashTable", checkpoint: bool = True,
    ) -> None:  # fmt: skip
        key_type = dtypes.as_dtype(key_dtype)
        self._buckets = initial_num_buckets
        self._empty_key = convert_to_tensor(empty_key, key_type, "empty_key")
        self._deleted_key = convert_to_tensor(deleted_key, key_type, "deleted_key")
        default = convert_to_tensor(default_value, value_dtype, "default_value")
        super().__init__(
            key_type, value_dtype, default, self._shared_name, name, checkpoint,
            tuple(self._empty_key.raw_shape or ()),
        )  # fmt: skip

    def _create_resource(self) -> Tensor:
        return get("MutableDenseHashTableV2")(  # type: ignore[no-any-return]
            _here(self._empty_key), _here(self._deleted_key), **self._attrs(),
            value_shape=self._value_shape, initial_num_buckets=self._buckets,
        )  # fmt: skip

    def _exported_shape(self, shape: shapes.Shape) -> shapes.Shape:
        # A row of the array of buckets.
        return (shapes.num_elements(shape),)

    def insert_or_assign(self, keys: Any, values: Any, name: str | None = None) -> Operation:
        """The same as `insert`."""
        return self.insert(keys, values, name)

    def erase(self, keys: Any, name: str | None = None) -> Operation:
        """The same as `remove`."""
        return self.remove(keys, name)


def _here(tensor: Tensor) -> Tensor:
    """A constant in the graph that is being built: models have tables made in theirs."""
    value = None if tensor._op.graph is get_default_graph() else constant_value(tensor)
    return tensor if value is None else constant(value, tensor.dtype)


class MutableDenseHashTable(DenseHashTable):
    """A `DenseHashTable` that steps of a session may share.

    Args:
        key_dtype, value_dtype, default_value, empty_key, deleted_key, initial_num_buckets, name,
            checkpoint: see `DenseHashTable`.
        shared_name: tables of one name are one in a session.
    """

    def __init__(
        self, key_dtype: Any, value_dtype: Any, default_value: Any, empty_key: Any,
        deleted_key: Any, initial_num_buckets: int | None = None, shared_name: str | None = None,
        name: str = "MutableDenseHashTable", checkpoint: bool = True,
    ) -> None:  # fmt: skip
        self._shared_name = shared_name
        super().__init__(
            key_dtype, value_dtype, default_value, empty_key, deleted_key, initial_num_buckets,
            name, checkpoint,
        )  # fmt: skip
