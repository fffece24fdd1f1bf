"""`tf.CriticalSection`: what no two steps, nor two parts of one, run at the same time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from opdock import dtypes
from opdock.graph.nodes.collections import add_to_collection, get_collection
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import (
    colocate_with,
    control_dependencies,
    executing_eagerly,
    init_scope,
    name_scope,
)
from opdock.ops.control import group
from opdock.ops.control import tuple as joined
from opdock.ops.identity import identity
from opdock.ops.mutex import consume_mutex_lock_op, mutex_lock_op, mutex_op
from opdock.util import nest

__all__ = ["CriticalSection"]

CRITICAL_SECTIONS: Final = "critical_sections"
CRITICAL_SECTION_EXECUTIONS: Final = "critical_section_executions"


@dataclass(frozen=True)
class _Execution:
    """What one call of `execute` locks and uses."""

    op: Operation
    handle: Tensor
    resources: frozenset[Tensor]
    exclusive_resource_access: bool


class CriticalSection:
    """Runs functions one at a time, across all steps of a session.

    Args:
        name: a name for the operations.
        shared_name: by which others of the session share it; the name by default.
        critical_section_def: not supported, as in TensorFlow 1.15.
        import_scope: not supported, as in TensorFlow 1.15.

    Raises:
        NotImplementedError: a definition is given.
        ValueError: a definition and a name are.
    """

    def __init__(
        self, name: str | None = None, shared_name: str | None = None,
        critical_section_def: Any = None, import_scope: str | None = None,
    ) -> None:  # fmt: skip
        if critical_section_def and name is not None:
            raise ValueError("critical_section_def and shared_name are mutually exclusive.")
        if critical_section_def:
            raise NotImplementedError("Not yet implemented")
        with name_scope(name, "CriticalSection", []) as scope, init_scope():
            container = get_default_graph()._container
            self._handle: Tensor = mutex_op(
                container=container or "", shared_name=shared_name or scope, name=scope
            )
        add_to_collection(CRITICAL_SECTIONS, self)

    @property
    def name(self) -> str:
        """The name of the operation that is the lock."""
        return self._handle.op.name

    def execute(
        self, fn: Callable[[], Any], exclusive_resource_access: bool = True,
        name: str | None = None,
    ) -> Any:  # fmt: skip
        """The results of `fn()`, whose operations run while the section is locked.

        Args:
            fn: a function without arguments.
            exclusive_resource_access: whether no other section may use the same resources.
            name: a name for the operations.

        Raises:
            ValueError: `fn` uses the section itself, or resources that another section uses.
        """
        with name_scope(name, "critical_section_execute", []):
            graph = get_default_graph()
            lock = mutex_lock_op(self._handle)
            before = len(graph.get_operations())
            with control_dependencies([lock]):
                result = fn()
            created = graph.get_operations()[before:]
            self._await_arguments(created, lock.op)
            used = frozenset(t for op in created for t in op.inputs if t.dtype is dtypes.resource)
            self._check(used, exclusive_resource_access)
            flat = [_after(item) for item in nest.flatten(result)]
            with control_dependencies([item for item in flat if item is not None]):
                with colocate_with(self._handle):
                    released = consume_mutex_lock_op(lock)
                done = nest.pack_sequence_as(result, joined(flat))
            with control_dependencies([released]):
                outputs = nest.map_structure(_after, done)
            add_to_collection(
                CRITICAL_SECTION_EXECUTIONS,
                _Execution(lock.op, self._handle, used, exclusive_resource_access),
            )
            return outputs

    def _await_arguments(self, created: list[Operation], lock: Operation) -> None:
        """Has the lock wait for all that the function needs, so that it is held briefly."""
        needed = {t.op for op in created for t in op.inputs}
        needed |= {c for op in created for c in op.control_inputs}
        own = {*created, *lock.control_inputs, *(t.op for t in lock.inputs), lock}
        arguments = [
            op for op in sorted(needed - own, key=lambda op: op._id) if op.graph is lock.graph
        ]
        if arguments:
            lock._add_control_input(group(*arguments))

    def _is_own(self, handle: Tensor) -> bool:
        op, own = handle.op, self._handle.op
        if op.type != "MutexV2" or not op.attrs["shared_name"]:
            return False
        same_place = op.device == own.device or op.attrs.get("_class") == own.attrs.get("_class")
        return bool(op.attrs["shared_name"] == own.attrs["shared_name"] and same_place)

    def _check(self, used: frozenset[Tensor], exclusive: bool) -> None:
        if any(self._is_own(t) for t in used):
            raise ValueError(
                "The function fn attempts to directly access the CriticalSection in which it would "
                "be running.  This is illegal and would cause deadlocks."
            )
        for other in get_collection(CRITICAL_SECTION_EXECUTIONS):
            if self._is_own(other.handle) or not (exclusive or other.exclusive_resource_access):
                continue
            if shared := used & other.resources:
                raise ValueError(
                    f"This execution would access resources: {list(shared)}.  Either this lock "
                    f"(CriticalSection: {self._handle}) or lock '{other.op.name}' "
                    f"(CriticalSection: {other.handle}) requested exclusive resource access of "
                    "this resource.  Did you mean to call execute with keyword argument "
                    "exclusive_resource_access=False?"
                )


def _after(item: Any) -> Any:
    """The same, behind the control dependencies that are in force."""
    if hasattr(item, "identity"):
        return item.identity()
    if item is None and executing_eagerly():  # of an operation that has run
        return None
    return group(item) if isinstance(item, Operation) else identity(item)
