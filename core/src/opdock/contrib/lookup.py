"""`tf.contrib.lookup`: lookup tables as programs of TF 1 make them."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.lookup import vocabulary
from opdock.lookup.initializers import (
    KeyValueTensorInitializer,
    TableInitializerBase,
    TextFileIdTableInitializer,
    TextFileIndex,
    TextFileInitializer,
    TextFileStringTableInitializer,
)
from opdock.lookup.mutable import MutableDenseHashTable, MutableHashTable
from opdock.lookup.tables import HashTable, InitializableLookupTableBase, LookupInterface
from opdock.lookup.vocabulary import (
    FastHashSpec,
    HasherSpec,
    IdTableWithHashBuckets,
    StrongHashSpec,
    index_table_from_file,
    index_to_string_table_from_file,
)

__all__ = [
    "FastHashSpec", "HashTable", "HasherSpec", "IdTableWithHashBuckets",
    "InitializableLookupTableBase", "KeyValueTensorInitializer", "LookupInterface",
    "MutableDenseHashTable", "MutableHashTable", "StrongHashSpec", "TableInitializerBase",
    "TextFileIdTableInitializer", "TextFileIndex", "TextFileInitializer",
    "TextFileStringTableInitializer", "index_table_from_file", "index_table_from_tensor",
    "index_to_string", "index_to_string_table_from_file", "index_to_string_table_from_tensor",
    "string_to_index", "string_to_index_table_from_file", "string_to_index_table_from_tensor",
]  # fmt: skip


def _check_mapping(mapping: Any) -> None:
    if mapping is None:
        raise ValueError("mapping must be specified.")


def index_table_from_tensor(
    mapping: Any, num_oov_buckets: int = 0, default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec, dtype: Any = dtypes.string, name: str | None = None,
) -> Any:  # fmt: skip
    """A table from the elements of a vector to their places.

    `mapping` is the vector; the other arguments are those of
    `opdock.lookup.vocabulary.index_table_from_tensor`.
    """
    _check_mapping(mapping)
    return vocabulary.index_table_from_tensor(
        mapping, num_oov_buckets, default_value, hasher_spec, dtype, name
    )


def index_to_string_table_from_tensor(
    mapping: Any, default_value: Any = "UNK", name: str | None = None
) -> Any:
    """A table from places to the strings of a vector, `mapping`."""
    _check_mapping(mapping)
    return vocabulary.index_to_string_table_from_tensor(mapping, default_value, name)


def string_to_index_table_from_file(
    vocabulary_file: Any = None, num_oov_buckets: int = 0, vocab_size: int | None = None,
    default_value: int = -1, hasher_spec: HasherSpec = FastHashSpec, name: str | None = None,
) -> Any:  # fmt: skip
    """Deprecated; see `index_table_from_file`."""
    return index_table_from_file(
        vocabulary_file, num_oov_buckets, vocab_size, default_value, hasher_spec, name=name
    )


def string_to_index_table_from_tensor(
    mapping: Any, num_oov_buckets: int = 0, default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec, name: str | None = None,
) -> Any:  # fmt: skip
    """Deprecated; see `index_table_from_tensor`."""
    with name_scope(name, "string_to_index") as scope:
        words = convert_to_tensor(mapping)
    if words.dtype.base_dtype is not dtypes.string:
        raise ValueError("string_to_index_table_from_tensor requires string.")
    return index_table_from_tensor(words, num_oov_buckets, default_value, hasher_spec, name=scope)


def string_to_index(
    tensor: Any, mapping: Any, default_value: int = -1, name: str | None = None
) -> Any:
    """Deprecated: the places of strings in a vector; see `index_table_from_tensor`."""
    table = index_table_from_tensor(mapping, default_value=default_value, name=name)
    return table.lookup(tensor)


def index_to_string(
    tensor: Any, mapping: Any, default_value: Any = "UNK", name: str | None = None
) -> Any:
    """Deprecated: the strings at some places; see `index_to_string_table_from_tensor`."""
    table = index_to_string_table_from_tensor(mapping, default_value=default_value, name=name)
    return table.lookup(tensor)
