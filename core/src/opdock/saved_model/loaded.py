"""What the objects of a loaded model are in the program."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from opdock.dtypes import DType
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.trackable import NoDependency
from opdock.graph.variables.trackable_resources import CapturableResource, TrackableAsset
from opdock.graph.variables.tracked_attributes import AutoTrackable
from opdock.io.checkpoint_reader import NewCheckpointReader
from opdock.lookup.mutable import TableSaveable
from opdock.ops.composed.function import Function
from opdock.ops.io import restore_v2_op
from opdock.ops.registry import get
from opdock.util.interrupts import finalizer

__all__ = [
    "CallableObject", "LoadedAsset", "LoadedConstant", "LoadedObject", "LoadedResource",
    "LoadedTable", "table_types",
]  # fmt: skip


class LoadedObject(AutoTrackable):
    """An object whose class the model does not tell: its attributes are those that were saved."""


class CallableObject(LoadedObject):
    """One that could be called when it was saved."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the object as the saved one was called."""
        return vars(self)["__call__"](*args, **kwargs)


class LoadedResource(LoadedObject, CapturableResource):
    """A table or another resource that a function of the model makes.

    Args:
        graph: that in which it is made.

    Attributes:
        initializer: the operation that fills it.
    """

    initializer: Any = None
    _ends_in: Graph | None = None

    def made_in(self, graph: Graph, handle: Tensor) -> None:
        """Takes the handle; where operations run at once, the resource ends with this object."""
        self._resource_handle = handle
        if graph.eager and "_destroy_resource" in vars(self):
            self._ends_in = graph

    @finalizer
    def __del__(self) -> None:
        # Of a graph, the session that holds the resource ends it.
        if self._ends_in is not None and not sys.is_finalizing():
            with self._ends_in.as_default():
                vars(self)["_destroy_resource"]()


class LoadedTable(LoadedResource):
    """A table whose contents are in the model's checkpoint.

    Args:
        contents: the parts of it that are saved, with the checkpoint's keys of them.
        types: those of the keys and the values of its entries.
    """

    def __init__(self, contents: Mapping[str, str], types: tuple[DType, DType]) -> None:
        self._contents: Any = NoDependency(dict(contents))
        self._types = types

    def export(self) -> tuple[Tensor, Tensor]:
        """All keys and all values, in one order."""
        keys, values = self._types
        found: tuple[Tensor, Tensor] = get("LookupTableExportV2")(
            self.resource_handle, Tkeys=keys, Tvalues=values
        )
        return found

    def _gather_saveables_for_checkpoint(self) -> dict[str, Any]:
        return dict.fromkeys(self._contents, self._saveable)

    def _saveable(self, name: str = "table") -> TableSaveable:
        return TableSaveable(self, name)

    def restored(self, prefix: Tensor) -> Any:
        """Takes the contents from a checkpoint; gives what has to run for it in a graph."""

        def restore() -> int:
            for key in self._contents.values():
                saveable = self._saveable(key)
                names = [s.name for s in saveable.specs]
                values = restore_v2_op(prefix, names, [""] * len(names), dtypes=[*self._types])
                saveable.restore(values, None)
            return 1

        # As a function, whose tensors have no static shapes where operations run at once either:
        # what a table exports need not be what the op that imports says that it takes.
        return Function(restore, "restore", [])()


def table_types(path: str, contents: Mapping[str, str]) -> tuple[DType, DType] | None:
    """The types of a table's keys and values in a checkpoint; None if it holds another thing."""
    types = NewCheckpointReader(path).get_variable_to_dtype_map()
    for key in contents.values():
        if f"{key}-keys" not in types or f"{key}-values" not in types:
            return None
    key = next(iter(contents.values()))
    return types[f"{key}-keys"], types[f"{key}-values"]


class LoadedAsset(LoadedObject, TrackableAsset):
    """A file of the model."""


class LoadedConstant(LoadedObject):
    """A value that functions of the model use.

    Attributes:
        value: a tensor.
    """

    def __init__(self, value: Tensor) -> None:
        self.value = value
