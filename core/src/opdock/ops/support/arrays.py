"""Tensor arrays that branches and turns return: of one storage, or as lists of their elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["arrays_as_lists", "arrays_differ", "storage_changes"]


def arrays_differ(items: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether arrays have other storage than those that may stand in their places."""
    return any(_differs(a, b) for a, b in zip(items, others, strict=False))


def storage_changes(starts: Sequence[Any], returned: Sequence[Any]) -> bool:
    """Whether a turn returns other storage in the place of an array that has one."""
    pairs = zip(starts, returned, strict=True)
    return any(_differs(a, b) and a._handle is not None for a, b in pairs)


def arrays_as_lists(items: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """The items, such arrays as lists."""
    return [a._as_list(b) if _differs(a, b) else a for a, b in zip(items, others, strict=True)]


def _differs(a: Any, b: Any) -> bool:
    both = hasattr(a, "_as_list") and hasattr(b, "_as_list")
    return both and a._handle is not b._handle
