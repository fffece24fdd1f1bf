"""Columns as configurations, which layers over them save with a model, and back.

A column is a tuple with names, and so is its configuration: a dictionary of plain values, where
types stand by their names, functions by theirs, and columns and initializers by class and
configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from opdock import dtypes
from opdock.dtypes import DType
from opdock.feature_column import categorical, dense, embedding, sequence
from opdock.feature_column.base import FeatureColumn
from opdock.graph.variables import initializers

__all__ = [
    "deserialize_feature_column", "deserialize_feature_columns", "serialize_feature_column",
    "serialize_feature_columns",
]  # fmt: skip

_COLUMNS: Final[dict[str, type]] = {
    column.__name__: column
    for column in (
        dense.BucketizedColumn, dense.NumericColumn,
        categorical.CrossedColumn, categorical.HashedCategoricalColumn,
        categorical.IdentityCategoricalColumn, categorical.SequenceCategoricalColumn,
        categorical.VocabularyFileCategoricalColumn, categorical.VocabularyListCategoricalColumn,
        categorical.WeightedCategoricalColumn,
        embedding.EmbeddingColumn, embedding.IndicatorColumn, embedding.SharedEmbeddingColumn,
        sequence.SequenceNumericColumn,
    )
}  # fmt: skip


def serialize_feature_column(fc: Any) -> Any:
    """The class and configuration of a column; a key stays a key.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(fc, str):
        return fc
    if not isinstance(fc, FeatureColumn):
        raise ValueError(f"Instance: {fc} is not a FeatureColumn")
    if hasattr(fc, "_get_config"):  # a column of someone else's
        config = fc._get_config()
    else:
        fields: Mapping[str, Any] = fc._asdict()  # type: ignore[attr-defined]
        config = {name: _plain(value) for name, value in fields.items()}
    return {"class_name": type(fc).__name__, "config": config}


def serialize_feature_columns(feature_columns: Iterable[Any]) -> list[Any]:
    """The class and configuration of each column."""
    return [serialize_feature_column(column) for column in feature_columns]


def deserialize_feature_column(
    config: Any,
    custom_objects: Mapping[str, Any] | None = None,
    columns_by_name: dict[str, FeatureColumn] | None = None,
) -> Any:
    """The column of a class and configuration; a key stays a key.

    Args:
        config: what `serialize_feature_column` returned.
        custom_objects: classes and functions by name, beside opdock's own.
        columns_by_name: columns that are there already, which are used again.

    Raises:
        ValueError: the configuration is malformed, or names what nobody knows.
    """
    if isinstance(config, str):
        return config
    custom = dict(custom_objects or {})
    made = {} if columns_by_name is None else columns_by_name
    kind, given = _class_and_config(config, {**_COLUMNS, **custom})
    if not issubclass(kind, FeatureColumn):
        raise ValueError(f"Expected FeatureColumn class, instead found: {kind}")
    if hasattr(kind, "_from_config"):
        column = kind._from_config(given, custom_objects=custom, columns_by_name=made)
    else:
        fields = kind._fields  # type: ignore[attr-defined]
        if {*given} != {*fields}:
            raise ValueError(f"Invalid config: {given}, expected keys: {fields}")
        column = kind(**{name: _revived(name, v, custom, made) for name, v in given.items()})
    # One column may wrap another of the same name.
    return made.setdefault(f"{kind.__name__}:{column.name}", column)


def deserialize_feature_columns(
    configs: Iterable[Any], custom_objects: Mapping[str, Any] | None = None
) -> list[Any]:
    """The columns of classes and configurations; what several share is made once."""
    made: dict[str, FeatureColumn] = {}
    return [deserialize_feature_column(one, custom_objects, made) for one in configs]


def _plain(value: Any) -> Any:
    if isinstance(value, DType):
        return value.name
    if isinstance(value, FeatureColumn):
        return serialize_feature_column(value)
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if hasattr(value, "get_config"):
        return {"class_name": type(value).__name__, "config": value.get_config()}
    if callable(value):
        return value.__name__
    return value


def _revived(name: str, value: Any, custom: dict[str, Any], made: dict[str, Any]) -> Any:
    if name == "dtype":
        return dtypes.as_dtype(value)
    if name == "normalizer_fn" and isinstance(value, str):
        if value not in custom:
            raise ValueError(f"Unknown function: {value}")
        return custom[value]
    if name == "initializer":
        kind, config = _class_and_config(value, {**vars(initializers), **custom})
        return kind.from_config(config)  # type: ignore[attr-defined]
    if isinstance(value, dict):
        return deserialize_feature_column(value, custom, made)
    if isinstance(value, list | tuple):  # a tuple that has been in a file is a list
        return tuple(_revived("", item, custom, made) for item in value)
    return value


def _class_and_config(serialized: Any, known: Mapping[str, Any]) -> tuple[type, dict[str, Any]]:
    if not isinstance(serialized, dict) or not {"class_name", "config"} <= serialized.keys():
        raise ValueError(f"Improper config format: {serialized}")
    kind = known.get(serialized["class_name"])
    if not isinstance(kind, type):
        raise ValueError(f"Unknown feature_column_v2: {serialized['class_name']}")
    return kind, serialized["config"]
