"""Public names of other families, found when they are called for."""

from __future__ import annotations

import importlib
from typing import Any

from opdock import _api, errors


def public(name: str) -> Any:
    """What `tf.<name>` is.

    Raises:
        UnimplementedError: there is no such name in this version.
    """
    found = _api.NAMES.get(name)
    if found is None:
        raise errors.UnimplementedError(
            None, None, f"This needs tf.{name}, which this version of opdock does not have."
        )
    return getattr(importlib.import_module(found[0]), found[1])
