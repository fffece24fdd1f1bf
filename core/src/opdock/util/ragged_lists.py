"""Ragged values as nested lists, for whoever compares them."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["as_lists", "flat_and_form", "has_ragged", "ragged_rank"]


def has_ragged(*values: Any) -> bool:
    """Whether one of the values is a ragged tensor, or what a session gives for one."""
    return any(hasattr(value, "ragged_rank") for value in values)


def ragged_rank(value: Any) -> int:
    """In how many dimensions a value is ragged."""
    return int(getattr(value, "ragged_rank", 0))


def as_lists(value: Any) -> Any:
    """A value as nested lists of Python's own objects, text as bytes."""
    if hasattr(value, "to_list"):
        return as_lists(value.to_list())
    if isinstance(value, (np.ndarray, np.generic)):
        return as_lists(value.tolist())
    if isinstance(value, (list, tuple)):
        return [as_lists(item) for item in value]
    return value.encode() if isinstance(value, str) else value


def flat_and_form(value: Any) -> tuple[list[Any], Any]:
    """The numbers of nested lists, and the lists with a mark in the place of each."""
    if not isinstance(value, list):
        return [value], None
    parts = [flat_and_form(item) for item in value]
    return [x for numbers, _ in parts for x in numbers], [form for _, form in parts]
