"""State of objects that is no variable: the saveables of Python strings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import device, init_scope
from opdock.graph.variables.trackable import (
    VARIABLE_VALUE_KEY,
    Trackable,
    TrackableReference,
    no_automatic_dependency_tracking,
    no_automatic_dependency_tracking_scope,
)
from opdock.ops.control import no_op
from opdock.train.saveable import OBJECT_GRAPH_PROTO_KEY, SaveableObject, SaveSpec

__all__ = [
    "OBJECT_GRAPH_PROTO_KEY", "VARIABLE_VALUE_KEY", "NoRestoreSaveable", "PythonState",
    "PythonStateSaveable", "PythonStringStateSaveable", "Trackable", "TrackableReference",
    "no_automatic_dependency_tracking", "no_automatic_dependency_tracking_scope",
]  # fmt: skip


class NoRestoreSaveable(SaveableObject):
    """A tensor that is saved and, when a checkpoint is restored, left alone.

    Args:
        tensor: the tensor, or a function that makes it.
        name: its key in the checkpoint.
        dtype: its type, for a function.
        device: its device, for a function.
    """

    def __init__(self, tensor: Any, name: str, dtype: Any = None, device: Any = None) -> None:
        super().__init__(tensor, [SaveSpec(tensor, "", name, dtype=dtype, device=device)], name)

    def restore(self, restored_tensors: list[Tensor], restored_shapes: Any) -> Operation:
        """Does nothing."""
        return no_op()


class PythonStateSaveable(SaveableObject):
    """State that lives in Python: it is fed when it is saved, and given back without a session."""

    def feed_dict_additions(self) -> dict[Tensor, Any]:
        """What to feed when the state is saved."""
        raise NotImplementedError("Calling an abstract method.")

    def python_restore(self, restored_strings: list[Any]) -> None:
        """Takes the values of the specs back."""
        raise NotImplementedError("Calling an abstract method.")


class PythonStringStateSaveable(PythonStateSaveable):
    """A Python string.

    Args:
        name: its key in the checkpoint.
        state_callback: returns the string to save.
        restore_callback: takes the string back; None if nobody needs it.
    """

    def __init__(
        self, name: str, state_callback: Callable[[], Any],
        restore_callback: Callable[[Any], Any] | None = None,
    ) -> None:  # fmt: skip
        self._state = state_callback
        self._take = restore_callback
        with init_scope(), device("/cpu:0"):
            self._string = constant("", dtypes.string)
        spec = SaveSpec(self._string, "", name, dtype=dtypes.string)
        super().__init__(self._string, [spec], name)
        self.optional_restore = restore_callback is None

    def feed_dict_additions(self) -> dict[Tensor, Any]:
        """The string as it is now."""
        return {self._string: self._state()}

    def python_restore(self, restored_strings: list[Any]) -> None:
        """Hands the string to the callback."""
        if self._take is not None:
            self._take(restored_strings[0])

    def restore(self, restored_tensors: list[Tensor], restored_shapes: Any) -> Operation:
        """Does nothing: `python_restore` has done it."""
        return no_op()


class PythonState(Trackable):
    """An object whose whole state is a string; subclass it with both methods."""

    def serialize(self) -> Any:
        """The state as a string."""
        raise NotImplementedError("Calling an abstract method.")

    def deserialize(self, string_value: Any) -> None:
        """Takes a state back."""
        raise NotImplementedError("Calling an abstract method.")

    def _gather_saveables_for_checkpoint(self) -> dict[str, Any]:
        def make(name: str = "") -> PythonStringStateSaveable:
            return PythonStringStateSaveable(name, self.serialize, self.deserialize)

        return {"py_state": make}
