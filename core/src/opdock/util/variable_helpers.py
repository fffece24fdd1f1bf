"""What TF's internal tree has beside `tf.variable_scope` and variables: the ops under them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import colocate_with, name_scope
from opdock.graph.variables.variable_scope import VariableScope, variable_scope
from opdock.ops.state import assign, variable_v2_op
from opdock.shapes import TensorShape

__all__ = ["init_variable", "pure_variable_scope", "variable_op", "variable_op_v2"]


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


def variable_op(
    shape: Any, dtype: Any, name: str = "Variable", set_shape: bool = True, container: str = "",
    shared_name: str = "",
) -> Tensor:  # fmt: skip
    """The reference of a variable, as the op alone makes it.

    Args:
        shape: the shape of the value.
        dtype: its type.
        name: a name for the op.
        set_shape: whether the shape holds; without it, any value may be assigned.
        container: the container that keeps the value.
        shared_name: the name it is kept under; the op's by default.
    """
    kept = {"container": container, "shared_name": shared_name}
    return variable_op_v2(shape if set_shape else None, dtype, name, **kept)


def variable_op_v2(
    shape: Any, dtype: Any, name: str = "Variable", container: str = "", shared_name: str = ""
) -> Tensor:
    """The reference of a variable, as the op alone makes it; see `variable_op`."""
    made: Tensor = variable_v2_op(
        shape=TensorShape(shape), dtype=dtypes.as_dtype(dtype), name=name, container=container,
        shared_name=shared_name,
    )  # fmt: skip
    return made


def init_variable(v: Tensor, init: Any, name: str = "init") -> Tensor:
    """Assigns a first value to the reference of a variable.

    Args:
        v: the reference.
        init: the value, or an initializer, which is called with shape and type.
        name: a name for the assignment, within that of the variable.
    """
    with name_scope(v.op.name + "/"), name_scope(name) as scope, colocate_with(v.op):
        if callable(init):
            if not v.shape.is_fully_defined():
                raise ValueError(f"The shape of {v.name!r} is unknown, which its initializer takes")
            init = init(v.shape.as_list(), v.dtype.base_dtype)
        assigned: Tensor = assign(v, init, name=scope)
        return assigned
