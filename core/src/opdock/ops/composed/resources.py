"""Resources that a program registers, so that what initializes variables initializes them too."""

from __future__ import annotations

from typing import Any, NamedTuple

from opdock import dtypes
from opdock.graph.nodes.collections import GraphKeys, add_to_collection, get_collection
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import device, name_scope
from opdock.ops.compare import logical_not
from opdock.ops.composed.masks import boolean_mask
from opdock.ops.control import group, no_op
from opdock.ops.joining import stack

__all__ = [
    "initialize_resources", "local_resources", "register_resource",
    "report_uninitialized_resources", "shared_resources",
]  # fmt: skip


class Resource(NamedTuple):
    """A resource: its handle, what makes it, and a boolean tensor that says whether it is there."""

    handle: Tensor
    create: Operation
    is_initialized: Tensor


def register_resource(
    handle: Tensor, create_op: Operation, is_initialized_op: Tensor, is_shared: bool = True
) -> None:
    """Registers a resource of the default graph.

    Args:
        handle: the resource.
        create_op: makes it.
        is_initialized_op: whether it is there.
        is_shared: whether all tasks share it; local ones are made by each task.
    """
    key = GraphKeys.RESOURCES if is_shared else GraphKeys.LOCAL_RESOURCES
    add_to_collection(key, Resource(handle, create_op, is_initialized_op))


def shared_resources() -> list[Resource]:
    """The registered resources that all tasks share."""
    return get_collection(GraphKeys.RESOURCES)


def local_resources() -> list[Resource]:
    """The registered resources that each task has for itself."""
    return get_collection(GraphKeys.LOCAL_RESOURCES)


def initialize_resources(resource_list: list[Resource], name: str = "init") -> Operation:
    """An operation that makes the given resources."""
    return group(*[r.create for r in resource_list], name=name) if resource_list else no_op(name)


def report_uninitialized_resources(
    resource_list: list[Resource] | None = None, name: str = "report_uninitialized_resources"
) -> Any:
    """A string tensor with the handles' names of the resources that are not there yet."""
    if resource_list is None:
        resource_list = shared_resources() + local_resources()
    with name_scope(name), device("/cpu:0"):
        if not resource_list:
            return constant([], dtypes.string)
        names = constant([r.handle.name for r in resource_list], dtypes.string)
        missing = logical_not(stack([r.is_initialized for r in resource_list]))
        return boolean_mask(names, missing)
