"""Replicas that share variables: the first makes them, the others find them by name and order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

__all__ = ["make_fn"]

# What makes a name unique, at the end of each part of it.
_NUMBER = re.compile(r"_\d(?=/|$)")


def canonicalize_variable_name(name: str | None) -> str:
    """A name without the numbers that made it unique; "Variable" if there is none."""
    return "Variable" if name is None else _NUMBER.sub("", name)


def make_fn(shared_variable_store: dict[str, list[Any]], device_id: int) -> Callable[..., Any]:
    """A variable creator for `tf.variable_creator_scope` on one of several devices.

    Args:
        shared_variable_store: what all devices share; filled on the first.
        device_id: the number of the device; 0 makes the variables.

    Returns:
        The creator; where there is no variable to share it raises a RuntimeError.
    """
    taken: Counter[str] = Counter()

    def create_new_variable(next_creator: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        made = next_creator(*args, **kwargs)
        name = canonicalize_variable_name(kwargs.get("name"))
        shared_variable_store.setdefault(name, []).append(made)
        return made

    def reuse_variable(next_creator: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        name = canonicalize_variable_name(kwargs.get("name"))
        made = shared_variable_store.get(name, [])
        if taken[name] >= len(made):
            raise RuntimeError(
                f"Tried to create variable {kwargs.get('name')} with mismatching name on device "
                f"{device_id}"
            )
        taken[name] += 1
        return made[taken[name] - 1]

    return create_new_variable if device_id == 0 else reuse_variable
