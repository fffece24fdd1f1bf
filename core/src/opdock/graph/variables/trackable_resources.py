"""Files and resources that functions take from outside and models of objects hold."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor, register_tensor_conversion_function
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import device as on_device
from opdock.graph.nodes.scopes import init_scope
from opdock.graph.variables.trackable import Trackable

__all__ = [
    "CapturableResource", "CapturableResourceDeleter", "ResourceTracker", "TrackableAsset",
    "TrackableResource", "owns_resource", "resource_tracker_scope",
]  # fmt: skip


class CapturableResourceDeleter:
    """What ends a resource when the object that holds it is gone, if its operations run at once.

    Args:
        destroy_resource_fn: ends it; subclasses may override `destroy_resource` instead, which
            models that are saved take along.
    """

    def __init__(self, destroy_resource_fn: Callable[[], Any] | None = None) -> None:
        self._destroy_resource = destroy_resource_fn
        self._graph = get_default_graph()

    def destroy_resource(self) -> Any:
        """Ends the resource."""
        return self._destroy_resource() if self._destroy_resource is not None else None

    def __del__(self) -> None:
        # Of a graph, the session that holds the resource ends it.
        if self._destroy_resource is None or not self._graph.eager or sys.is_finalizing():
            return
        with self._graph.as_default():
            self._destroy_resource()


class CapturableResource(Trackable):
    """An object behind a handle, such as a table, which models make and fill when loaded.

    Args:
        device: where it is made.
        deleter: what ends it.
    """

    _resource_handle: Any = None
    _resource_device = ""
    _resource_deleter: CapturableResourceDeleter | None = None
    # Whether there is a resource of the object's own, or it works with that of another.
    _is_owner = True

    def __init__(self, device: str = "", deleter: CapturableResourceDeleter | None = None) -> None:
        self._resource_device = device
        self._resource_deleter = deleter

    def _create_resource(self) -> Tensor:
        """Makes the handle."""
        raise NotImplementedError("TrackableResource._create_resource not implemented.")

    def _initialize(self) -> Any:
        """Makes what fills the resource, if anything does."""
        return None

    @property
    def resource_handle(self) -> Any:
        """The handle in the graph."""
        return self._resource_handle


class TrackableResource(CapturableResource):
    """A resource whose handle is made when it is asked for first; trackers around hear of it.

    Args:
        device: where it is made.
        deleter: what ends it.
    """

    def __init__(self, device: str = "", deleter: CapturableResourceDeleter | None = None) -> None:
        super().__init__(device, deleter)
        for tracker in _trackers:
            tracker.add_resource(self)

    @property
    def resource_handle(self) -> Any:
        """The handle."""
        if self._resource_handle is None:
            # A function that asks first takes the handle from outside, as others will.
            with init_scope(), on_device(self._resource_device):
                self._resource_handle = self._create_resource()
        return self._resource_handle


class ResourceTracker:
    """The resources that are made within its scope."""

    def __init__(self) -> None:
        self._resources: list[TrackableResource] = []

    @property
    def resources(self) -> list[TrackableResource]:
        """Those, in the order in which they were made."""
        return self._resources

    def add_resource(self, resource: TrackableResource) -> None:
        """Adds one."""
        self._resources.append(resource)


_trackers: list[ResourceTracker] = []


@contextlib.contextmanager
def resource_tracker_scope(resource_tracker: ResourceTracker) -> Iterator[None]:
    """Has a tracker hear of the resources that are made inside.

    Args:
        resource_tracker: the tracker.
    """
    _trackers.append(resource_tracker)
    try:
        yield
    finally:
        _trackers.remove(resource_tracker)


def owns_resource(thing: Any) -> bool:
    """Whether an object makes a resource of its own."""
    return isinstance(thing, CapturableResource) and thing._is_owner


class TrackableAsset(Trackable):
    """A file that a model takes along.

    Args:
        path: its place, a string or a scalar string tensor.
    """

    def __init__(self, path: Any) -> None:
        with init_scope(), on_device("CPU"):
            self._path = convert_to_tensor(path, dtypes.string, "asset_path")

    @property
    def asset_path(self) -> Tensor:
        """The place of the file."""
        return self._path


def _as_tensor(value: Any, dtype: Any = None, name: Any = None, as_ref: bool = False) -> Any:
    return value.asset_path


register_tensor_conversion_function(TrackableAsset, _as_tensor)
