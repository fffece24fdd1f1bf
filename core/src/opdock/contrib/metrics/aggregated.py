"""Several metrics, their values apart from the operations that update them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["aggregate_metric_map", "aggregate_metrics"]


def aggregate_metrics(*value_update_tuples: tuple[Any, Any]) -> tuple[list[Any], list[Any]]:
    """A list of the values, and a list of the update operations.

    Args:
        value_update_tuples: metrics, each a pair of both.

    Raises:
        ValueError: there is none.
    """
    if not value_update_tuples:
        raise ValueError("Expected at least one value_tensor/update_op pair")
    values, updates = zip(*value_update_tuples, strict=True)
    return list(values), list(updates)


def aggregate_metric_map(
    names_to_tuples: Mapping[str, tuple[Any, Any]],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A dict of the values, and a dict of the update operations, by name.

    Args:
        names_to_tuples: metrics by name, each a pair of both.
    """
    values = {name: value for name, (value, _) in names_to_tuples.items()}
    return values, {name: update for name, (_, update) in names_to_tuples.items()}
