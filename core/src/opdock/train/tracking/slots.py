"""What object-based checkpoints save of an optimizer: its variables, and those per variable."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.variables.trackable import Trackable, TrackableReference

__all__ = ["TrackedSlots"]


class TrackedSlots(Trackable):
    """The side of an optimizer that checkpoints see.

    A slot variable belongs to the optimizer and to another variable, so no name leads to it: a
    checkpoint finds it once it has found both. What is not there yet is restored when it is made.
    """

    _slots: dict[str, dict[Any, Any]]
    _non_slots: dict[tuple[str, Any], Any]

    def get_slot(self, var: Any, name: str) -> Any:
        """The slot `name` of a variable, or None."""
        raise NotImplementedError

    @property
    def _checkpoint_dependencies(self) -> list[TrackableReference]:
        program = get_default_graph()._program_key
        own = [
            TrackableReference(name, variable)
            for (name, where), variable in sorted(self._non_slots.items(), key=lambda i: i[0][0])
            if where is program
        ]
        return super()._checkpoint_dependencies + own

    def _lookup_dependency(self, name: str, cached_dependencies: Any = None) -> Trackable | None:
        found = super()._lookup_dependency(name)
        key = name, get_default_graph()._program_key
        return self._non_slots.get(key) if found is None else found

    def _create_or_restore_slot_variable(
        self, slot_variable_position: Any, slot_name: str, variable: Any
    ) -> None:
        """Takes what a checkpoint says of a slot, now or when the slot is made.

        Where operations run as they are made it is made now: a checkpoint that is saved before the
        next step of training has it too.
        """
        slot = self.get_slot(variable, slot_name)
        program = get_default_graph()._program
        at_once = program.eager and not program._variable_creator_stack
        if slot is None and at_once and slot_variable_position.is_simple_variable():
            with program.as_default():
                slot = self._made_slot(variable, slot_name, slot_variable_position.value())
        if slot is not None:
            slot_variable_position.restore(slot)
            return
        waiting = self._waiting_slots().setdefault((slot_name, variable.op), [])
        waiting.append(slot_variable_position)

    def _made_slot(self, variable: Any, slot_name: str, value: Any) -> Any:
        """A slot that did not exist, or None where only a step of training can make it."""
        return None

    def _waiting_slots(self) -> dict[tuple[str, Any], list[Any]]:
        found: dict[tuple[str, Any], list[Any]] = self.__dict__.setdefault(
            "_self_waiting_slots", {}
        )
        return found

    def _restore_slot_variable(self, slot_name: str, variable: Any, slot_variable: Any) -> None:
        """Gives a slot that was just made what checkpoints said of it."""
        positions = self._waiting_slots().pop((slot_name, variable.op), [])
        for position in sorted(positions, key=lambda p: int(p.restore_uid), reverse=True):
            position.restore(slot_variable)
