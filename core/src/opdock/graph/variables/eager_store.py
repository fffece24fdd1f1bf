"""`EagerVariableStore`: what `get_variable` finds again where operations run as they are made."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.variables.resource_variable import ResourceVariable
from opdock.graph.variables.variable_store import VariableStore

__all__ = ["EagerVariableStore"]


class EagerVariableStore:
    """Keeps variables by name, so that functional layers share theirs from call to call.

        container = tf.contrib.eager.EagerVariableStore()
        for batch in dataset:
            with container.as_default():
                y = tf.layers.dense(batch, 10, name="l1")

    Args:
        store: a store of variables that is kept already, or None for a new one.

    Raises:
        ValueError: `store` does not keep variables of operations that run as they are made.
    """

    def __init__(self, store: VariableStore | None = None) -> None:
        if store is not None and not store.keeps:
            raise ValueError(
                "Cannot construct EagerVariableStore from a VariableStore object that does not "
                "hold eager variables."
            )
        self._store = VariableStore() if store is None else store
        self._store.keeps = True

    @contextlib.contextmanager
    def as_default(self) -> Iterator[None]:
        """`get_variable` takes from this store and puts into it inside."""
        state = get_default_graph()._scoped_state
        before = state.get("variable_store")
        state["variable_store"] = self._store
        try:
            yield
        finally:
            if before is None:
                del state["variable_store"]
            else:
                state["variable_store"] = before

    def variables(self) -> list[Any]:
        """All variables, by name."""
        return sorted(self._store._vars.values(), key=lambda v: v.name)

    def trainable_variables(self) -> list[Any]:
        """Those that optimizers update."""
        return [v for v in self.variables() if v.trainable]

    def non_trainable_variables(self) -> list[Any]:
        """Those that they do not."""
        return [v for v in self.variables() if not v.trainable]

    def copy(self) -> EagerVariableStore:
        """A store of variables of its own, with the values of the moment."""
        copied = EagerVariableStore()
        for name, v in self._store._vars.items():
            copied._store._vars[name] = ResourceVariable(
                v.read_value(), name=v.name.partition(":")[0], trainable=v.trainable
            )
        return copied
