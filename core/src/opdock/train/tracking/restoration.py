"""Giving objects what a checkpoint says of them, those that exist now and those to come."""

from __future__ import annotations

import contextlib
import itertools
import sys
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opdock import errors
from opdock.api import logging
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import device, init_scope
from opdock.graph.variables.trackable import VARIABLE_VALUE_KEY, Trackable
from opdock.io.checkpoint_reader import CheckpointReader
from opdock.ops.io import restore_v2_op
from opdock.shapes import TensorShape
from opdock.train.saveable import SaveableObject
from opdock.train.tracking.base import PythonStateSaveable
from opdock.train.tracking.object_graph import Saveables
from opdock.util.interrupts import finalizer

__all__ = ["CheckpointInitialValueCallable", "Position", "Restoration", "node_names"]

restore_numbers = itertools.count()


def _check_numbers(proto: Any) -> None:
    """DataLossError where a node of an object graph leads to one that is not there."""
    named = {0}  # the root
    for node in proto.nodes:
        named.update(child.node_id for child in node.children)
        for slot in node.slot_variables:
            named |= {slot.original_variable_node_id, slot.slot_variable_node_id}
    if not all(0 <= number < len(proto.nodes) for number in named):
        raise errors.DataLossError(
            None, None,
            f"The object graph of the checkpoint has {len(proto.nodes)} nodes and leads to number "
            f"{max(named)}",
        )  # fmt: skip


@dataclass(frozen=True)
class _Slot:
    """A slot variable of a checkpoint, all by their numbers."""

    optimizer: int
    variable: int
    slot: int
    name: str


class _Rest:
    """Tells what of a checkpoint nobody took when its restore is over: when it is gone.

    Apart from the restore, which others may refer to in a circle.

    Args:
        proto: the checkpoint's `TrackableObjectGraph`.
        matched: the numbers of the objects that the program has.
        unused: attributes that their objects have not.
    """

    expected = True  # as long as it is being made

    def __init__(self, proto: Any, matched: set[int], unused: dict[int, list[str]]) -> None:
        self._proto, self._matched, self._unused = proto, matched, unused
        self.expected = False

    @finalizer
    def __del__(self) -> None:
        if self.expected or sys.is_finalizing():
            return
        names = node_names(self._proto)
        told = [
            f"Unresolved object in checkpoint: {names[number]}"
            for number in range(len(self._proto.nodes))
            if number not in self._matched
        ]
        told += [f"Unused attribute in object {names[n]}: {a}" for n, a in self._unused.items()]
        for line in told:
            logging.warning(line)
        if told:
            logging.warning(
                "A checkpoint was restored (e.g. tf.train.Checkpoint.restore or"
                " tf.keras.Model.load_weights) but not all checkpointed values were used. See above"
                " for specific issues. Use expect_partial() on the load status object, e.g."
                " tf.train.Checkpoint.restore(...).expect_partial(), to silence these warnings, or"
                " use assert_consumed() to make the check explicit."
            )


class Restoration:
    """One restore of one checkpoint; it goes on for as long as new objects are attached.

    Args:
        proto: the checkpoint's `TrackableObjectGraph`.
        reader: the checkpoint.
        prefix: tensor that will hold the checkpoint's prefix.
        saveables: those that were made before.
        cache: restore ops by what they read, shared by all restores of the same objects.
    """

    def __init__(
        self, proto: Any, reader: CheckpointReader, prefix: Tensor, saveables: Saveables,
        cache: dict[str, Any],
    ) -> None:  # fmt: skip
        self.uid = next(restore_numbers)
        self.proto = proto
        self.reader = reader
        self.objects: weakref.WeakValueDictionary[int, Trackable] = weakref.WeakValueDictionary()
        self.matched: set[int] = set()
        self.unused_attributes: dict[int, list[str]] = {}
        self._rest = _Rest(proto, self.matched, self.unused_attributes)
        self.restore_ops: list[Any] = []
        # Gets the ops that restore objects which come later.
        self.on_new_ops: Callable[[list[Any]], Any] | None = None
        # Where they are made: None for the default graph of that time.
        self.graph: Graph | None = None
        self._prefix = prefix
        self._saveables = saveables
        self._cache = cache
        self.slots: dict[int, list[_Slot]] = {}
        self._waiting: dict[int, list[tuple[Trackable, _Slot]]] = {}
        self._rest.expected = True  # of a checkpoint that is damaged nothing can be told
        _check_numbers(proto)
        self._rest.expected = False
        for number, node in enumerate(proto.nodes):
            for s in node.slot_variables:
                slot = _Slot(
                    number, s.original_variable_node_id, s.slot_variable_node_id, s.slot_name
                )
                self.slots.setdefault(slot.variable, []).append(slot)

    def expect_partial(self) -> None:
        """Says that the checkpoint may hold more than the program takes."""
        self._rest.expected = True

    # ------------------------------------------------------------ objects
    def bind(self, number: int, trackable: Trackable) -> bool:
        """Notes which object a node stands for; whether it was not known before."""
        self.matched.add(number)
        known = self.objects.get(number)
        if known is not None:
            if known is not trackable:
                logging.warning(
                    "Inconsistent references when loading the checkpoint into this object graph."
                    " Either the Trackable object references in the Python program have changed in"
                    " an incompatible way, or the checkpoint was generated in an incompatible"
                    " program.\n\nTwo checkpoint references resolved to different objects (%s and"
                    " %s).",
                    known, trackable,
                )  # fmt: skip
            return False
        self.objects[number] = trackable
        for variable, slot in self._waiting.pop(number, ()):
            self._restore_slot(trackable, variable, slot)
        for slot in self.slots.pop(number, ()):
            optimizer = self.objects.get(slot.optimizer)
            if optimizer is None:
                self._waiting.setdefault(slot.optimizer, []).append((trackable, slot))
            else:
                self._restore_slot(optimizer, trackable, slot)
        return True

    def _restore_slot(self, optimizer: Any, variable: Trackable, slot: _Slot) -> None:
        make = getattr(optimizer, "_create_or_restore_slot_variable", None)
        if make is None or not hasattr(variable, "op"):
            raise errors.InvalidArgumentError(
                None, None,
                f"The checkpoint has a slot '{slot.name}' for a {type(variable).__name__} of a "
                f"{type(optimizer).__name__}, not for a variable of an optimizer",
            )  # fmt: skip
        position = Position(self, slot.slot)
        # Where operations run at once an optimizer makes the slot now, to be saved with the others.
        program = get_default_graph()._program
        with program.as_default() if program.eager else contextlib.nullcontext():
            found = make(position, slot.name, variable)
        # Keras' newer optimizers leave the restoring of what there is to their caller.
        if found is not None:
            position.restore(found)

    def restore(self, number: int, trackable: Trackable) -> None:
        """Restores an object that was just bound, and those behind it that exist."""
        saveables: dict[str, list[SaveableObject]] = {}
        waiting = deque([(number, trackable)])
        while waiting:
            current, holder = waiting.popleft()
            if self.uid > holder._update_uid:
                self._gather(current, holder, saveables)
                holder._self_update_uid = self.uid
            for child in self.proto.nodes[current].children:
                found = holder._lookup_dependency(child.local_name)
                if found is None:
                    position = Position(self, child.node_id)
                    holder._deferred_dependencies.setdefault(child.local_name, []).append(position)
                elif self.bind(child.node_id, found):
                    waiting.append((child.node_id, found))
        made = self._made(saveables)
        self.restore_ops += made
        if self.on_new_ops is not None and made:
            self.on_new_ops(made)

    def _gather(self, number: int, holder: Trackable, out: dict[str, list[SaveableObject]]) -> None:
        """The saveables of an object; state that lives in Python is given back at once."""
        known = holder._gather_saveables_for_checkpoint()
        for attribute in self.proto.nodes[number].attributes:
            key = attribute.checkpoint_key
            if key in self._cache:
                self.restore_ops += self._cache[key]
            elif attribute.name in known:
                for saveable in self._saveables.of(holder, attribute.name, key):
                    if isinstance(saveable, PythonStateSaveable):
                        values = [self.reader.get_tensor(spec.name) for spec in saveable.specs]
                        saveable.python_restore(values)
                    else:
                        out.setdefault(key, []).append(saveable)
            elif not attribute.optional_restore:
                self.unused_attributes.setdefault(number, []).append(attribute.name)

    def _made(self, saveables: dict[str, list[SaveableObject]]) -> list[Operation]:
        ops: list[Operation] = []
        for key, found in saveables.items():
            made = []
            for saveable in found:
                specs = saveable.specs
                with device("cpu:0"):
                    values = restore_v2_op(
                        self._prefix, [s.name for s in specs], [s.slice_spec for s in specs],
                        dtypes=[s.dtype for s in specs],
                    )  # fmt: skip
                made.append(saveable.restore(values, None))
            self._cache[key] = made
            ops += made
        return ops


@dataclass(frozen=True)
class Position:
    """A place in the graph of objects of a checkpoint that is being restored."""

    restoration: Restoration
    number: int

    @property
    def restore_uid(self) -> int:
        """The number of the restore."""
        return self.restoration.uid

    def is_simple_variable(self) -> bool:
        """Whether it is that of a variable on which nothing depends."""
        node = self.restoration.proto.nodes[self.number]
        return not node.children and [a.name for a in node.attributes] == [VARIABLE_VALUE_KEY]

    def value(self) -> Any:
        """The value of a variable of which `is_simple_variable` is true."""
        [attribute] = self.restoration.proto.nodes[self.number].attributes
        return self.restoration.reader.get_tensor(attribute.checkpoint_key)

    def value_shape(self) -> TensorShape:
        """The shape of that value."""
        [attribute] = self.restoration.proto.nodes[self.number].attributes
        return TensorShape(self.restoration.reader._shape_of(attribute.checkpoint_key))

    def restore(self, trackable: Trackable) -> None:
        """Gives an object what the checkpoint says of it and of all behind it."""
        graph = self.restoration.graph
        with graph.as_default() if graph else contextlib.nullcontext(), init_scope():
            if self.restoration.bind(self.number, trackable):
                self.restoration.restore(self.number, trackable)


class CheckpointInitialValueCallable:
    """An initializer that gives the value of a variable of a checkpoint.

    Args:
        checkpoint_position: the variable's position.
    """

    def __init__(self, checkpoint_position: Position) -> None:
        self.checkpoint_position = checkpoint_position

    def __call__(self, shape: Any = None, dtype: Any = None, **kwargs: Any) -> Tensor:
        """The value; TypeError if it has another shape than the one that is asked for."""
        value = self.checkpoint_position.value()
        return constant(value, dtype, shape, verify_shape=shape is not None)


def node_names(proto: Any) -> dict[int, str]:
    """The nodes of a `TrackableObjectGraph` by readable paths, "(root).model.kernel"."""
    names = {0: "(root)"}
    waiting = deque([0])
    while waiting:
        number = waiting.popleft()
        for child in proto.nodes[number].children:
            if child.node_id not in names:
                names[child.node_id] = f"{names[number]}.{child.local_name}"
                waiting.append(child.node_id)
    for number, node in enumerate(proto.nodes):
        for slot in node.slot_variables:
            original = names.get(slot.original_variable_node_id)
            names[slot.slot_variable_node_id] = (
                f"{names.get(number)}'s state '{slot.slot_name}' for {original}"
            )
    return names
