"""`tf.contrib.checkpoint`: containers and Python state that object-based checkpoints save."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from io import BytesIO
from typing import Any, Final

import numpy as np

from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.variables.template import capture_dependencies
from opdock.graph.variables.trackable import VARIABLE_VALUE_KEY, NoDependency, Trackable
from opdock.graph.variables.tracked_attributes import AutoTrackable as Checkpointable
from opdock.io.checkpoint_reader import NewCheckpointReader
from opdock.io.protos import TrackableObjectGraph as CheckpointableObjectGraph
from opdock.ops.control import no_op
from opdock.train.saveable import SaveableObject, SaveSpec
from opdock.train.tracking.base import PythonState
from opdock.train.tracking.base import PythonState as PythonStateWrapper
from opdock.train.tracking.containers import GrowingStructure, List, Mapping
from opdock.train.tracking.manager import CheckpointManager
from opdock.train.tracking.util import list_objects, object_metadata

CheckpointableBase = Trackable

__all__ = [
    "CheckpointManager", "Checkpointable", "CheckpointableBase", "CheckpointableObjectGraph",
    "List", "Mapping", "NoDependency", "NumpyState", "PythonStateWrapper", "UniqueNameTracker",
    "capture_dependencies", "dot_graph_from_checkpoint", "list_objects", "object_metadata",
    "split_dependency",
]  # fmt: skip


class UniqueNameTracker(GrowingStructure):
    """Objects by names of which no two are the same."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[str, int] = {}

    @property
    def _values(self) -> Iterable[Any]:
        return [dependency.ref for dependency in self._checkpoint_dependencies]

    def track(self, trackable: Any, base_name: str) -> Any:
        """Declares an object.

        Args:
            trackable: the object.
            base_name: its name; the second object of a name gets `name_1`.

        Returns:
            The object.

        Raises:
            ValueError: it is not trackable.
        """
        if not isinstance(trackable, Trackable):
            raise ValueError(
                f"Expected a trackable value, got {trackable} which does not inherit from "
                "tf.track.Trackable."
            )
        count = self._counts.get(base_name, 0)
        while self._lookup_dependency(_numbered(base_name, count)) is not None:
            count += 1
        self._counts[base_name] = count + 1
        return self._track_value(trackable, _numbered(base_name, count))


def _numbered(name: str, number: int) -> str:
    return f"{name}_{number}" if number else name


# ---------------------------------------------------------------- NumPy arrays
class _Array(PythonState):
    """An array, which a checkpoint holds as a file of NumPy's."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def serialize(self) -> bytes:
        file = BytesIO()
        np.save(file, self.array, allow_pickle=False)
        return file.getvalue()

    def deserialize(self, string_value: bytes) -> None:
        self.array = np.load(BytesIO(string_value), allow_pickle=False)


class NumpyState(Trackable):
    """An object whose attributes are NumPy arrays, saved and restored without a session's help.

    A restore makes the attributes that the checkpoint has.
    """

    def _lookup_dependency(self, name: str, cached_dependencies: Any = None) -> Trackable:
        # A restore asks for what the checkpoint has: it gets a place for it.
        found = super()._lookup_dependency(name)
        if found is None:
            found = _Array(np.array([]))
            self._self_dependencies[name] = found
        return found

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__.get("_self_dependencies", {}).get(name)
        if found is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return found.array

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_self_"):
            super().__setattr__(name, value)
        elif isinstance(value, (np.ndarray, np.generic)):
            held: Any = self._lookup_dependency(name)
            held.array = value
            self._handle_deferred_dependencies(name, held)
        else:
            raise NotImplementedError(
                f"Assigned {value} to the {name} property of {self}, which is not a NumPy array. "
                "Mixing NumPy arrays and other trackable objects is not supported."
            )


# ---------------------------------------------------------------- tensors that go together
class _Callbacks(SaveableObject):
    """A tensor that a function gives when it is saved, and another takes when it is restored."""

    def __init__(
        self, name: str, dtype: Any, device: str, save: Callable[[], Tensor],
        restore: Callable[[Tensor], Any],
    ) -> None:  # fmt: skip
        self._take = restore
        super().__init__(save, [SaveSpec(save, "", name, dtype=dtype, device=device)], name)

    def restore(self, restored_tensors: list[Tensor], restored_shapes: Any) -> Any:
        return self._take(restored_tensors[0])


class _Buffers:
    """What is saved or restored of several components, until all of them have come."""

    def __init__(
        self, names: Sequence[str], fill: Callable[[dict[str, Tensor]], Any],
        consume: Callable[[dict[str, Tensor]], Any],
    ) -> None:  # fmt: skip
        self._names, self._fill, self._consume = names, fill, consume
        self._saved: dict[str, Tensor] = {}
        self._restored: dict[str, Tensor] = {}

    def save(self, name: str) -> Tensor:
        """A component; the first one asked for has all of them made."""
        if name not in self._saved:
            if self._saved:
                self._refuse(name, "saved")
            self._fill(self._saved)
        return self._saved.pop(name)

    def restore(self, name: str, tensor: Tensor) -> Operation:
        """Takes a component; with the last one all of them are given back."""
        if name in self._restored:
            self._refuse(name, "restored")
        self._restored[name] = tensor
        if len(self._restored) < len(self._names):
            return no_op()
        op: Operation = self._consume(self._restored)
        self._restored.clear()
        return op

    def _refuse(self, name: str, verb: str) -> None:
        raise AssertionError(
            f"Split dependency {name} unsynchronized. Split dependencies must be {verb} together."
        )


class _SplitDependency(Trackable):
    """A component, which a checkpoint takes for a variable."""

    def __init__(self, name: str, dtype: Any, device: str, buffers: _Buffers) -> None:
        self._make = functools.partial(
            _Callbacks, dtype=dtype, device=device, save=functools.partial(buffers.save, name),
            restore=functools.partial(buffers.restore, name),
        )  # fmt: skip

    def _gather_saveables_for_checkpoint(self) -> dict[str, Any]:
        return {VARIABLE_VALUE_KEY: self._make}


def split_dependency(
    component_names: Sequence[str], component_dtypes: Sequence[Any],
    fill_save_buffer_fn: Callable[[dict[str, Tensor]], Any],
    consume_restore_buffer_fn: Callable[[dict[str, Tensor]], Any], device: str,
) -> dict[str, Trackable]:  # fmt: skip
    """Objects that are saved each by itself, out of tensors that one function makes or takes.

    Args:
        component_names: their names.
        component_dtypes: the types of their tensors.
        fill_save_buffer_fn: puts the tensors to save into a dict, by these names.
        consume_restore_buffer_fn: takes a dict of restored tensors; returns an operation.
        device: the device of the operations that save and restore.

    Returns:
        The objects by name. All or none of them are to be saved.
    """
    buffers = _Buffers(component_names, fill_save_buffer_fn, consume_restore_buffer_fn)
    return {
        name: _SplitDependency(name, dtype, device, buffers)
        for name, dtype in zip(component_names, component_dtypes, strict=True)
    }


# ---------------------------------------------------------------- pictures
_POINT: Final = 'shape=point label="" width=.25'


def dot_graph_from_checkpoint(save_path: Any) -> str:
    """The graph of objects in a checkpoint, in the language of Graphviz.

    Args:
        save_path: the checkpoint's prefix.

    Raises:
        ValueError: the checkpoint is not object-based.
    """
    reader = NewCheckpointReader(save_path)
    shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    nodes = object_metadata(save_path).nodes
    slots = {slot.slot_variable_node_id for node in nodes for slot in node.slot_variables}
    lines = []
    for number, node in enumerate(nodes):
        look = _POINT
        if [a.name for a in node.attributes] == [VARIABLE_VALUE_KEY]:
            (value,) = node.attributes
            kind, color = ("Slot variable", "orange") if number in slots else ("Variable", "blue")
            key = value.checkpoint_key
            told = f"{kind} {_quoted(value.full_name)} shape={shapes[key]} {types[key].name}"
            look = f'{_POINT} color={color} tooltip="{told}"'
        elif node.slot_variables:
            look = f'{_POINT} color=red tooltip="Optimizer"'
        lines.append(f"N_{number} [{look}]")
        for child in node.children:
            lines.append(f'N_{number} -> N_{child.node_id} [label="{_quoted(child.local_name)}"]')
        for slot in node.slot_variables:
            end = f"N_{slot.slot_variable_node_id}"
            lines.append(f'N_{number} -> {end} [label="{_quoted(slot.slot_name)}" style=dotted]')
            lines.append(f"N_{slot.original_variable_node_id} -> {end} [style=dotted]")
    return "\n".join(["digraph {", *lines, "}", ""])


def _quoted(name: str) -> str:
    return name.replace('"', '\\"')
