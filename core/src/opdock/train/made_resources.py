"""Resources that an op makes, that are made with the variables, and that Savers save."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.collections import GraphKeys, add_to_collection
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.graph.variables.trackable import Trackable
from opdock.ops.composed.resources import register_resource
from opdock.train.saveable import SaveableObject, SaveSpec

__all__ = ["MadeResource", "MadeResourceSaveable"]


class MadeResourceSaveable(SaveableObject):
    """What a checkpoint keeps of a resource."""

    def __init__(self, owner: MadeResource, specs: list[SaveSpec]) -> None:
        super().__init__(owner.resource_handle, specs, owner.resource_handle.name)
        self._owner = owner

    def restore(self, restored_tensors: list[Tensor], restored_shapes: Any) -> Operation:
        """Makes the op that puts the resource back, making it first where it is missing."""
        with control_dependencies([self._owner.initializer]):
            return self._owner.restored(restored_tensors)


class MadeResource(Trackable):
    """A resource that an op makes, and that is registered to be made with the variables."""

    resource_handle: Tensor
    initializer: Operation

    def restored(self, values: list[Tensor]) -> Operation:
        """Makes the op that puts it back from what a checkpoint has of it."""
        raise NotImplementedError

    def _registered(self, is_initialized: Tensor, *, shared: bool = True) -> None:
        register_resource(self.resource_handle, self.initializer, is_initialized, shared)

    def _saved(self, specs: list[SaveSpec]) -> MadeResourceSaveable:
        saveable = MadeResourceSaveable(self, specs)
        add_to_collection(GraphKeys.SAVEABLE_OBJECTS, saveable)
        return saveable
