"""What parsers need to know of columns, and placeholders for their features."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from opdock.api import logging
from opdock.contrib.layers.feature_column.base import FeatureColumn
from opdock.ops.composed.example_features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    VarLenFeature,
)
from opdock.ops.identity import placeholder, sparse_placeholder


def create_feature_spec_for_parsing(feature_columns: Any) -> dict[str, Any]:
    """Feature key -> what `tf.parse_example` needs to know of it, for columns or a dict of them.

    Raises:
        TypeError: something that is no column of tf.contrib.layers.
    """
    if isinstance(feature_columns, dict):
        feature_columns = feature_columns.values()
    spec: dict[str, Any] = {}
    for column in feature_columns:
        if not isinstance(column, FeatureColumn):
            raise TypeError(
                "feature_columns should only contain instances of _FeatureColumn. "
                f"Given column is {column}"
            )
        spec.update(column.config)
    return spec


def create_sequence_feature_spec_for_parsing(
    sequence_feature_columns: Any, allow_missing_by_default: bool = False
) -> dict[str, Any]:
    """The same for the features of each step of a sequence.

    Args:
        sequence_feature_columns: the columns.
        allow_missing_by_default: whether a sequence may lack a feature that has no default.

    Raises:
        TypeError: a feature of another kind.
    """
    spec: dict[str, Any] = {}
    for key, feature in create_feature_spec_for_parsing(sequence_feature_columns).items():
        if isinstance(feature, VarLenFeature):
            spec[key] = feature
            continue
        if not isinstance(feature, (FixedLenFeature, FixedLenSequenceFeature)):
            raise TypeError(f"Unsupported feature type: {type(feature).__name__}")
        default = feature.default_value
        if default is not None:
            logging.warning(
                'Found default value %s for feature "%s". Ignoring this value and setting '
                "`allow_missing=True` instead.", default, key,
            )  # fmt: skip
        spec[key] = FixedLenSequenceFeature(
            shape=feature.shape,
            dtype=feature.dtype,
            allow_missing=allow_missing_by_default or default is not None,
        )
    return spec


def make_place_holder_tensors_for_base_features(feature_columns: Any) -> dict[str, Any]:
    """Feature key -> a placeholder of its kind."""
    made: dict[str, Any] = {}
    for key, feature in create_feature_spec_for_parsing(feature_columns).items():
        name = f"Placeholder_{key}"
        if isinstance(feature, VarLenFeature):
            made[key] = sparse_placeholder(feature.dtype, name=name)
        else:
            made[key] = placeholder(feature.dtype, shape=(None, feature.shape[0]), name=name)
    return made


def check_feature_columns(feature_columns: Iterable[Any]) -> None:
    """Raises ValueError where there is a dict of columns, or two are one."""
    if isinstance(feature_columns, dict):
        raise ValueError("Expected feature_columns to be iterable, found dict.")
    seen: set[str] = set()
    for column in feature_columns:
        if column.key in seen:
            raise ValueError(
                f"Duplicate feature column key found for column: {column.name}. This usually means "
                "that the column is almost identical to another column, and one must be discarded."
            )
        seen.add(column.key)
