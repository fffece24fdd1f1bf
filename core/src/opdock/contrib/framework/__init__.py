"""`tf.contrib.framework`: argument scopes and nested structures."""

from __future__ import annotations

from opdock.contrib.framework.arg_scope import (
    add_arg_scope,
    arg_scope,
    arg_scoped_arguments,
    current_arg_scope,
    has_arg_scope,
)
from opdock.util import nest

__all__ = [
    "add_arg_scope", "arg_scope", "arg_scoped_arguments", "current_arg_scope", "has_arg_scope",
    "nest",
]  # fmt: skip
