"""Lookup tables: the names of `tf.lookup`, and those of TF's module `lookup_ops` besides."""

from __future__ import annotations

import importlib
from typing import Any, Final

_WHERE: Final[dict[str, str]] = {
    name: module
    for module, names in {
        "initializers": (
            "KeyValueTensorInitializer TableInitializerBase TextFileIdTableInitializer "
            "TextFileIndex TextFileInitializer TextFileStringTableInitializer"
        ),
        "tables": "InitializableLookupTableBase LookupInterface StaticHashTable",
        "mutable": "DenseHashTable MutableHashTable",
        "vocabulary": (
            "FastHashSpec HasherSpec IdTableWithHashBuckets StaticVocabularyTable StrongHashSpec "
            "index_table_from_file index_table_from_tensor index_to_string_table_from_file "
            "index_to_string_table_from_tensor"
        ),
        "experimental": "experimental",
        "initialization": "initialize_all_tables tables_initializer",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{where}")
    value = globals()[name] = module if name == where else getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
