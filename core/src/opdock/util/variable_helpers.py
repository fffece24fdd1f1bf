"""What TF's internal tree has beside `tf.variable_scope`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opdock.graph.variables.variable_scope import VariableScope, variable_scope

__all__ = ["pure_variable_scope"]


@contextmanager
def pure_variable_scope(
    name_or_scope: Any, reuse: Any = None, initializer: Any = None, regularizer: Any = None,
    caching_device: Any = None, partitioner: Any = None, custom_getter: Any = None,
    old_name_scope: str | None = None, dtype: Any = None, use_resource: bool | None = None,
    constraint: Any = None,
) -> Iterator[VariableScope]:  # fmt: skip
    """A variable scope that opens no name scope.

    Args:
        name_or_scope: a name, or a scope to enter again.
        reuse: True, None (inherit) or AUTO_REUSE.
        initializer: default for variables inside, as all below.
        regularizer: see `tf.variable_scope`.
        caching_device: see `tf.variable_scope`.
        partitioner: see `tf.variable_scope`.
        custom_getter: see `tf.variable_scope`.
        old_name_scope: what the scope says of its original name scope.
        dtype: see `tf.variable_scope`.
        use_resource: see `tf.variable_scope`.
        constraint: see `tf.variable_scope`.
    """
    with variable_scope(
        name_or_scope, None, None, initializer, regularizer, caching_device, partitioner,
        custom_getter, reuse, dtype, use_resource, constraint, auxiliary_name_scope=False,
    ) as scope:  # fmt: skip
        if old_name_scope is not None:
            scope.original_name_scope = old_name_scope
        yield scope
