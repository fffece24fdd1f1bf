"""The objects behind one as a model has them: functions, constants and signatures among them."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.trackable import Trackable
from opdock.graph.variables.trackable_resources import CapturableResource, owns_resource
from opdock.graph.variables.tracked_attributes import SavedFunction
from opdock.graph.variables.tracked_containers import DictWrapper, ListWrapper
from opdock.ops.composed.concrete_function import ConcreteFunction
from opdock.ops.composed.function import Function
from opdock.saved_model.signature_functions import SIGNATURES, SignatureMap
from opdock.train.tracking.object_graph import ObjectGraph

__all__ = ["CapturedConstant", "ModelView"]


class CapturedConstant:
    """A constant that functions use.

    Args:
        tensor: the constant in the program.
    """

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


class ModelView:
    """What is behind an object at one moment; attributes are asked once.

    Args:
        root: the object.

    Attributes:
        nodes: the objects, numbered as the model numbers them.
    """

    def __init__(self, root: Trackable) -> None:
        self._root = root
        self._cache: dict[Any, Any] = {}
        # Object -> what it depends on by name, functions apart. Objects stay alive meanwhile.
        self._children: dict[int, tuple[Any, dict[str, Any], dict[str, Any]]] = {}
        self._signatures: SignatureMap | None = None
        self.nodes: list[Any] = []
        self._ids: dict[int, int] = {}
        self._traced: dict[int, list[ConcreteFunction]] = {}

    # ------------------------------------------------------------ what objects depend on
    def children(self, owner: Trackable) -> dict[str, Any]:
        """The objects that one depends on, by name."""
        found = self._asked(owner)[1]
        if owner is self._root and self._signatures is not None:
            return {**found, SIGNATURES: self._signatures}
        return found

    def functions(self, owner: Trackable) -> dict[str, Any]:
        """The functions of an object, by name."""
        return self._asked(owner)[2]

    def _asked(self, owner: Trackable) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        if id(owner) not in self._children:
            found = self._named(owner)
            functions = {k: v for k, v in found.items() if isinstance(v, SavedFunction)}
            functions |= _own_functions(owner)
            rest = {k: v for k, v in found.items() if not isinstance(v, SavedFunction)}
            self._children[id(owner)] = owner, rest, functions
        return self._children[id(owner)]

    def _named(self, owner: Trackable) -> dict[str, Any]:
        found = owner._trackable_children("savedmodel", cache=self._cache)
        return {**found, **self._extra(owner, found)}

    def _extra(self, owner: Trackable, found: dict[str, Any]) -> dict[str, Any]:
        """What an object has in a model alone.

        Raises:
            ValueError: a dependency of the program's has such a name.
        """
        key = "extra", id(owner)
        if key not in self._cache:
            self._cache[key] = owner._list_extra_dependencies_for_serialization(self._cache)
        extra: dict[str, Any] = self._cache[key]
        for name, thing in extra.items():
            if found.get(name, thing) is not thing:
                raise ValueError(
                    f"Error when exporting object {owner} of with identifier="
                    f"{owner._object_identifier}. The object has an attribute named {name}, which"
                    f" is reserved. List of all reserved attributes: {list(extra)}"
                )
        return extra

    # ------------------------------------------------------------ freezing
    def add_signatures(self, signatures: SignatureMap) -> None:
        """Makes signatures an attribute of the root; ValueError where it has another one.

        Raises:
            ValueError: the root has something else of that name.
        """
        known = self._asked(self._root)[1].get(SIGNATURES)
        if known is not None and not getattr(known, "_is_signature_map", False):
            raise ValueError(
                f"Exporting an object {self._root} which has an attribute named '{SIGNATURES}'. "
                "This is a reserved attribute used to store SavedModel signatures in objects which "
                "come from `tf.saved_model.load`. Delete this attribute (e.g. 'del "
                f"obj.{SIGNATURES}') before saving if this shadowing is acceptable."
            )
        self._signatures = signatures

    def freeze(self) -> ObjectGraph:
        """Numbers the objects, functions last.

        Returns:
            The graph of those that are no functions.
        """
        self._trace_all()
        graph = ObjectGraph(self._root, self.children)
        self.nodes, self._ids = [], {}
        for thing in graph.objects:
            self._add(thing)
        for thing in graph.objects:
            for function in self.functions(thing).values():
                self._add(function)
                self._traced[id(function)] = _all_traced(function)
        return graph

    def _trace_all(self) -> None:
        """Traces all functions, which may make variables and so objects."""
        for thing in ObjectGraph(self._root, self.children).objects:
            for function in self.functions(thing).values():
                _all_traced(function)
        self._children = {
            key: (owner, self._named(owner), functions)
            for key, (owner, _, functions) in self._children.items()
        }
        for key, (owner, found, functions) in self._children.items():
            rest = {k: v for k, v in found.items() if not isinstance(v, SavedFunction)}
            self._children[key] = owner, rest, functions

    def _add(self, thing: Any) -> int:
        number = self._ids.get(id(thing))
        if number is None:
            number = self._ids[id(thing)] = len(self.nodes)
            self.nodes.append(thing)
        return number

    def add_constant(self, tensor: Tensor) -> int:
        """The number of a constant."""
        self.nodes.append(CapturedConstant(tensor))
        return len(self.nodes) - 1

    def number(self, thing: Any) -> int:
        """The number of an object or function."""
        return self._ids[id(thing)]

    def traced(self, function: Any) -> list[ConcreteFunction]:
        """The concrete functions of a function."""
        return self._traced[id(function)]

    def concrete_functions(self) -> list[ConcreteFunction]:
        """All concrete functions, each once."""
        found = {f.name: f for functions in self._traced.values() for f in functions}
        return list(found.values())


def _all_traced(function: Any) -> list[ConcreteFunction]:
    if isinstance(function, ConcreteFunction):
        return [function]
    return function._list_all_concrete_functions_for_serialization()  # type: ignore[no-any-return]


def _own_functions(owner: Any) -> dict[str, Any]:
    """The functions of signatures, lists and dicts, and those that make a resource."""
    if isinstance(owner, SignatureMap):
        return dict(owner)
    if owns_resource(owner) and "_create_resource" not in vars(owner):
        return _of_resource(owner)
    if isinstance(owner, (ListWrapper, DictWrapper)):
        pairs = owner.items() if isinstance(owner, DictWrapper) else enumerate(owner)
        return {str(key): value for key, value in pairs if isinstance(value, SavedFunction)}
    return {}


def _of_resource(resource: CapturableResource) -> dict[str, Any]:
    def made() -> Any:
        return resource._create_resource()

    def filled() -> int:
        resource._initialize()
        return 1

    def ended() -> int:
        if resource._resource_deleter is not None:
            resource._resource_deleter.destroy_resource()
        return 1

    return {
        "_create_resource": Function(made, "creator", []),
        "_initialize": Function(filled, "initializer", []),
        "_destroy_resource": Function(ended, "destroyer", []),
    }
