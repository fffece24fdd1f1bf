"""The objects behind a root, and how a checkpoint names them."""

from __future__ import annotations

import contextlib
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from opdock import dtypes, errors
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.scopes import device
from opdock.graph.variables.trackable import (
    VARIABLE_VALUE_KEY,
    NotTrackable,
    Trackable,
    TrackableReference,
)
from opdock.io import protos
from opdock.train.saveable import (
    OBJECT_GRAPH_PROTO_KEY,
    SaveableObject,
    names_of,
    saveables_for,
)
from opdock.train.tracking.base import NoRestoreSaveable, PythonStateSaveable
from opdock.util.identities import ObjectIdentityDictionary

__all__ = ["ObjectGraph", "ObjectGraphView", "Saveables", "list_objects"]

# A dot escapes, so that no name holds what separates names.
_SEPARATOR, _ESCAPED = "/", ".S"
_ATTRIBUTES, _SLOTS = ".ATTRIBUTES", ".OPTIMIZER_SLOT"


def _escaped(name: str) -> str:
    return name.replace(".", "..").replace(_SEPARATOR, _ESCAPED)


class Saveables:
    """The saveables of objects, each made once: some make ops when they are made."""

    def __init__(self) -> None:
        self._known: weakref.WeakKeyDictionary[Trackable, dict[str, list[SaveableObject]]] = (
            weakref.WeakKeyDictionary()
        )

    def of(self, trackable: Trackable, attribute: str, key: str) -> list[SaveableObject]:
        """The saveables of one attribute of an object, under a key of the checkpoint.

        Raises:
            KeyError: the object has no such attribute.
            AssertionError: a saveable has another name.
        """
        known = self._known.setdefault(trackable, {})
        if key not in known:
            known[key] = _made(trackable, attribute, key)
        return known[key]


def _made(trackable: Trackable, attribute: str, key: str) -> list[SaveableObject]:
    made = trackable._gather_saveables_for_checkpoint()[attribute]
    if callable(made) and not isinstance(made, Trackable):
        made = made(name=key)
    found = [made] if isinstance(made, SaveableObject) else saveables_for({key: made})
    for saveable in found:
        if key not in saveable.name:
            raise AssertionError(
                f"The object {trackable} produced a SaveableObject with name '{saveable.name}' for"
                f" attribute '{attribute}'. Expected a name containing '{key}'."
            )
    return found


@dataclass
class ObjectGraph:
    """The objects that can be reached from a root, numbered as a checkpoint numbers them.

    Args:
        root: where to begin.
        children: says by name what an object depends on; by default what the object itself says.
    """

    root: Trackable
    children: Callable[[Trackable], dict[str, Any]] = lambda trackable: (
        trackable._trackable_children()
    )
    objects: list[Trackable] = field(default_factory=list)
    _paths: dict[int, str] = field(default_factory=dict)
    _ids: dict[int, int] = field(default_factory=dict)
    # Optimizer's number -> (slot's name, variable's number, slot variable's number).
    _slots: dict[int, list[tuple[str, int, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        waiting = deque([self.root])
        self._paths[id(self.root)] = ""
        while waiting:
            current = waiting.popleft()
            self._add(current)
            start = self._paths[id(current)]
            for name, dependency in self.children(current).items():
                if id(dependency) not in self._paths:
                    path = f"{start}{_SEPARATOR}{_escaped(name)}" if start else _escaped(name)
                    self._paths[id(dependency)] = path
                    waiting.append(dependency)
        self._add_slots()

    def _add(self, trackable: Trackable) -> None:
        if isinstance(trackable, NotTrackable):
            raise NotImplementedError(
                f"The object {trackable} does not support object-based saving. File a feature"
                " request if this limitation bothers you. In the meantime, you can remove the"
                " dependency on this object and save everything else."
            )
        self._ids[id(trackable)] = len(self.objects)
        self.objects.append(trackable)

    def _add_slots(self) -> None:
        """Slot variables belong to an optimizer and a variable both, and come last."""
        reachable = list(self.objects)
        for optimizer in reachable:
            slot_names = getattr(optimizer, "get_slot_names", None)
            if slot_names is None:
                continue
            for name in slot_names():
                for variable in reachable:
                    slot = None
                    if VARIABLE_VALUE_KEY in variable._gather_saveables_for_checkpoint():
                        # Keras' optimizers raise where they have no slot.
                        with contextlib.suppress(AttributeError, KeyError):
                            slot = optimizer.get_slot(variable, name)  # type: ignore[attr-defined]
                    if slot is None:
                        continue
                    if id(slot) in self._ids:
                        raise NotImplementedError(
                            "A slot variable was re-used as a dependency of a Trackable object."
                            " This is not currently allowed."
                        )
                    ends = self._paths[id(optimizer)], _escaped(name)
                    path = _SEPARATOR.join((self._paths[id(variable)], _SLOTS, *ends))
                    self._paths[id(slot)] = path
                    self._add(slot)
                    numbers = self._ids[id(variable)], self._ids[id(slot)]
                    self._slots.setdefault(self._ids[id(optimizer)], []).append((name, *numbers))

    def paths(self) -> ObjectIdentityDictionary:
        """The way from the root to each object: references, the root's none."""
        found = ObjectIdentityDictionary()
        found[self.root] = ()
        for current in self.objects:
            for name, dependency in self.children(current).items():
                step = TrackableReference(name, dependency)
                found.setdefault(dependency, (*found[current], step))
        return found

    def slots_of(self, number: int) -> list[tuple[str, int, int]]:
        """The slots of an optimizer: name, number of the variable, number of the slot variable."""
        return self._slots.get(number, [])

    def key(self, trackable: Trackable, attribute: str) -> str:
        """What a checkpoint calls an attribute of an object."""
        return _SEPARATOR.join((self._paths[id(trackable)], _ATTRIBUTES, _escaped(attribute)))

    def serialize(self, known: Saveables) -> tuple[Any, list[SaveableObject], dict[Any, Any]]:
        """The graph as it is saved.

        Args:
            known: the saveables that were made before.

        Returns:
            A `TrackableObjectGraph`, the saveables of all objects, and what to feed for those that
            live in Python.
        """
        graph = protos.TrackableObjectGraph()
        saveables: list[SaveableObject] = []
        feeds: dict[Any, Any] = {}
        for number, trackable in enumerate(self.objects):
            node = graph.nodes.add()
            self._fill(node, number, trackable)
            for name in trackable._gather_saveables_for_checkpoint():
                key = self.key(trackable, name)
                found = known.of(trackable, name, key)
                attribute = node.attributes.add(name=name, checkpoint_key=key)
                # A maker of saveables is no variable, though it may stand in the place of one.
                if name == VARIABLE_VALUE_KEY and isinstance(_variable_of(trackable), Trackable):
                    attribute.full_name = next(iter(names_of([_variable_of(trackable)])))
                attribute.optional_restore = all(
                    getattr(s, "optional_restore", False) for s in found
                )
                for saveable in found:
                    if isinstance(saveable, PythonStateSaveable):
                        feeds.update(saveable.feed_dict_additions())
                saveables += found
        return graph, saveables, feeds

    def _fill(self, node: Any, number: int, trackable: Trackable) -> None:
        for name, dependency in self.children(trackable).items():
            node.children.add(node_id=self._ids[id(dependency)], local_name=name)
        for name, variable, slot in self.slots_of(number):
            node.slot_variables.add(
                slot_name=name, original_variable_node_id=variable, slot_variable_node_id=slot
            )


def _variable_of(trackable: Trackable) -> Any:
    return trackable._gather_saveables_for_checkpoint()[VARIABLE_VALUE_KEY]


class ObjectGraphView:
    """The objects behind one, as Keras and estimators ask for them.

    Args:
        root: where to begin, or a weak reference to it.
    """

    def __init__(self, root: Trackable | weakref.ref[Trackable]) -> None:
        self._root = root

    @property
    def root(self) -> Trackable:
        """Where it begins."""
        root = self._root() if isinstance(self._root, weakref.ref) else self._root
        assert root is not None
        return root

    def graph(self) -> ObjectGraph:
        """The objects as they are now."""
        return ObjectGraph(self.root)

    def breadth_first_traversal(self) -> tuple[list[Trackable], ObjectIdentityDictionary]:
        """The objects, nearest first, and the path of names to each."""
        graph = self.graph()
        return graph.objects, graph.paths()

    def list_objects(self) -> list[Trackable]:
        """The objects, slot variables of optimizers last."""
        return self.graph().objects

    def serialize_object_graph(self) -> tuple[list[SaveableObject], Any, dict[Any, Any]]:
        """What a checkpoint has of the objects.

        Returns:
            The saveables, a `TrackableObjectGraph`, and what to feed for what lives in Python.
        """
        proto, saveables, feeds = self.graph().serialize(Saveables())
        return saveables, proto, feeds

    def frozen_saveable_objects(
        self, object_map: Any = None, to_graph: Graph | None = None
    ) -> list[SaveableObject]:
        """What `tf.train.Saver` needs to write a checkpoint of objects as they are now.

        Args:
            object_map: None; objects are saved as they are.
            to_graph: the graph that gets the ops, the default one if None.

        Raises:
            UnimplementedError: other objects are to be saved in the place of some.
        """
        if object_map:
            raise errors.UnimplementedError(
                None, None, "frozen_saveable_objects: object_map stands for copies of variables, "
                "which opdock does not make",
            )  # fmt: skip
        with contextlib.nullcontext() if to_graph is None else to_graph.as_default():
            saveables, proto, _ = self.serialize_object_graph()
            with device("/cpu:0"):
                described = constant(proto.SerializeToString(deterministic=True), dtypes.string)
            return [*saveables, NoRestoreSaveable(described, OBJECT_GRAPH_PROTO_KEY)]


def list_objects(root_trackable: Trackable) -> list[Trackable]:
    """All objects that can be reached from one, slot variables of optimizers last."""
    return ObjectGraph(root_trackable).objects
