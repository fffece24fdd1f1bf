"""Models of `tf.saved_model.save`, which are graphs of objects, as objects in a graph.

The model says of each object what it is and which others it depends on. Variables are made with
their values in the model's checkpoint as initial values, tables by the functions that make them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

from opdock import dtypes, errors
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.nodes.collections import GraphKeys, add_to_collection
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.default_session import get_provided_session
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import control_dependencies, executing_eagerly, name_scope
from opdock.graph.serial.function_def import FunctionLibraryReader
from opdock.graph.variables.flavour import VariableAggregation, VariableSynchronization
from opdock.graph.variables.resource_variable import ResourceVariable
from opdock.graph.variables.trackable import VARIABLE_VALUE_KEY, Trackable
from opdock.graph.variables.tracked_containers import DictWrapper, ListWrapper
from opdock.io import protos
from opdock.io.tensor_proto import make_ndarray
from opdock.ops.composed.concrete_function import ConcreteFunction, add_body
from opdock.ops.control import group
from opdock.ops.io import restore_v2_op
from opdock.saved_model import revived, utils
from opdock.saved_model.loaded import (
    CallableObject,
    LoadedAsset,
    LoadedConstant,
    LoadedObject,
    LoadedResource,
    LoadedTable,
    table_types,
)
from opdock.saved_model.restored_function import (
    RestoredFunction,
    restored,
    restored_signature,
)
from opdock.saved_model.signature_functions import SignatureMap
from opdock.shapes import TensorShape
from opdock.train.tracking.util import object_metadata
from opdock.util import nest

__all__ = ["load_objects", "load_objects_around"]


# Gives an object an attribute: the object, its name, its value.
_Setter = Callable[[Any, str, Any], None]


def load_objects(meta: Any, export_dir: str) -> Any:
    """The root of a meta graph's objects, with all behind it, in the default graph.

    Args:
        meta: a `MetaGraphDef` with an object graph.
        export_dir: the model's directory.

    Raises:
        DataLossError: the object graph contradicts itself.
        NotFoundError: the checkpoint lacks a variable.
        UnimplementedError: an object is of a kind that is not known here.
    """
    return _Loader(meta, export_dir).load()[0]


def load_objects_around(
    meta: Any, export_dir: str, known: Mapping[str, tuple[Any, _Setter] | None]
) -> dict[str, Any]:
    """Objects of a meta graph, some of which there are already; see `load_partial`.

    Args:
        meta: a `MetaGraphDef` with an object graph.
        export_dir: the model's directory.
        known: the ways to objects, and for each the object with its setter, or None.

    Raises:
        ValueError: a way leads to no object; and what `load_objects` raises.
    """
    numbers = {way: _number_at(meta.object_graph_def, way) for way in known}
    given = {numbers[way]: found for way, found in known.items() if found is not None}
    objects = _Loader(meta, export_dir, given).load()
    session = None if executing_eagerly() else get_provided_session()
    if session is not None:
        # The library initializes its own variables there; these it does not know.
        session.run([
            thing.initializer for number, thing in enumerate(objects)
            if isinstance(thing, ResourceVariable) and number not in given
        ])  # fmt: skip
    return {way: objects[number] for way, number in numbers.items()}


def _number_at(graph: Any, way: str) -> int:
    """The number of the object at "root.name.name"; names may have dots themselves."""
    number, rest = 0, way.removeprefix("root")
    while rest:
        steps = [
            child for child in graph.nodes[number].children
            if f"{rest}.".startswith(f".{child.local_name}.")
            and 0 <= child.node_id < len(graph.nodes)
        ]  # fmt: skip
        if not steps:
            raise ValueError(f"The model has no object at {way!r}: nothing at {rest!r}.")
        taken = max(steps, key=lambda child: len(child.local_name))
        number, rest = taken.node_id, rest[len(taken.local_name) + 1 :]
    return number


class _Loader:
    def __init__(
        self, meta: Any, export_dir: str, known: Mapping[int, tuple[Any, _Setter]] | None = None
    ) -> None:
        self._graph: Graph = get_default_graph()
        self._outside = self._graph.get_name_scope()
        self._scope = self._graph.unique_name("loaded", mark_as_used=False)
        self._meta = protos.MetaGraphDef()
        self._meta.CopyFrom(meta)
        utils.rename_shared(self._meta, f"_{self._scope}")
        self._dir = export_dir
        self._nodes = self._meta.object_graph_def.nodes
        self._concrete = self._meta.object_graph_def.concrete_functions
        self._library = FunctionLibraryReader(self._meta.graph_def.library, self._graph)
        self._objects: list[Any] = []
        self._known = known or {}
        # What gives objects their attributes, where they or their kind say.
        self._setters = {number: setter for number, (_, setter) in self._known.items()}

    def load(self) -> list[Any]:
        if not self._nodes:
            raise errors.DataLossError(None, None, f"The model in {self._dir!r} has no objects.")
        with name_scope(self._scope):
            slots = self._slots()
            numbers = range(len(self._nodes))
            self._objects = [None if n in slots else self._made(n) for n in numbers]
            for number, (optimizer, slot) in slots.items():
                self._objects[number] = self._made_slot(number, optimizer, slot)
            for number, node in enumerate(self._nodes):
                for child in node.children:
                    self._attach(number, child.local_name, child.node_id)
            for thing in self._objects:
                if isinstance(thing, LoadedResource):
                    self._begin(thing)
        return self._objects

    # ------------------------------------------------------------ objects
    def _made(self, number: int) -> Any:
        if number in self._known:
            thing = self._known[number][0]
            if isinstance(thing, ResourceVariable):
                value = self._saved(number, thing.name, thing.dtype, thing.shape)
                thing._initializer_op = thing.assign(value(), read_value=False)
            return thing
        kind = self._nodes[number].WhichOneof("kind")
        make: Callable[[Any, int], Any] | None = getattr(self, f"_make_{kind}", None)
        if make is None:
            raise errors.UnimplementedError(
                None, None,
                f"The model in {self._dir!r} holds an object of the kind {kind!r}, which opdock "
                "does not know. tf.saved_model.load(session, tags, export_dir) loads its "
                "signatures into a session.",
            )  # fmt: skip
        return make(getattr(self._nodes[number], kind), number)

    def _make_user_object(self, proto: Any, number: int) -> Any:
        if proto.identifier in ("trackable_list_wrapper", "trackable_tuple_wrapper"):
            return ListWrapper()
        if proto.identifier == "trackable_dict_wrapper":
            return DictWrapper()
        if proto.identifier == "signature_map":
            return SignatureMap({})
        found = revived.deserialize(proto)
        if found is not None:
            self._setters[number] = found[1]
            return found[0]
        names = [child.local_name for child in self._nodes[number].children]
        return CallableObject() if "__call__" in names else LoadedObject()

    def _make_variable(self, proto: Any, number: int) -> ResourceVariable:
        dtype = dtypes.as_dtype(proto.dtype)
        with name_scope(f"{self._outside}/" if self._outside else None):
            # As in TF it can be trained, but no optimizer of the program does so by itself.
            shape = TensorShape(proto.shape)
            made = ResourceVariable(
                self._saved(number, proto.name, dtype, shape),
                trainable=False, name=proto.name or None, dtype=dtype, shape=shape,
                synchronization=VariableSynchronization(proto.synchronization),
                aggregation=VariableAggregation(proto.aggregation),
            )  # fmt: skip
            made._trainable = proto.trainable
            return made

    def _saved(self, number: int, name: str, dtype: Any, shape: Any) -> Callable[[], Tensor]:
        """What gives the value that a variable has in the checkpoint.

        Raises:
            NotFoundError: it has none there.
        """
        key = self._keys.get(number, {}).get(VARIABLE_VALUE_KEY)
        if key is None:
            raise errors.NotFoundError(
                None, None,
                f"The checkpoint of the model in {self._dir!r} has no value for the variable "
                f"{name!r}.",
            )  # fmt: skip

        def saved() -> Tensor:
            value: Tensor = restore_v2_op(self._prefix, [key], [""], dtypes=[dtype])[0]
            value.set_shape(shape)
            return value

        return saved

    def _slots(self) -> dict[int, tuple[int, Any]]:
        """The numbers of slot variables, with those of the optimizers that have them."""
        found = {}
        for optimizer, node in enumerate(self._nodes):
            for slot in node.slot_variables:
                numbers = slot.slot_variable_node_id, slot.original_variable_node_id
                for number in numbers:
                    if not 0 <= number < len(self._nodes):
                        raise self._contradiction(f"object {number}")
                found[numbers[0]] = optimizer, slot
        return found

    def _made_slot(self, number: int, optimizer: int, slot: Any) -> Any:
        """A slot variable: its optimizer makes it, if it is one that does."""
        owner, variable = self._objects[optimizer], self._objects[slot.original_variable_node_id]
        add = getattr(owner, "add_slot", None)
        proto = self._nodes[number].variable
        if add is None or number in self._known or not isinstance(variable, ResourceVariable):
            return self._made(number)
        saved = self._saved(
            number, proto.name, dtypes.as_dtype(proto.dtype), TensorShape(proto.shape)
        )
        with name_scope(f"{self._outside}/" if self._outside else None):
            return add(variable, slot.slot_name, initializer=lambda shape=None, dtype=None: saved())

    def _make_asset(self, proto: Any, number: int) -> LoadedAsset:
        files = self._meta.asset_file_def
        if not 0 <= proto.asset_file_def_index < len(files):
            raise self._contradiction(f"asset {proto.asset_file_def_index}")
        name = os.path.basename(files[proto.asset_file_def_index].filename)
        return LoadedAsset(os.path.join(utils.get_assets_dir(self._dir), name))

    def _make_constant(self, proto: Any, number: int) -> LoadedConstant:
        found = [n for n in self._meta.graph_def.node if n.name == proto.operation]
        if not found or found[0].op != "Const":
            raise self._contradiction(f"constant {proto.operation!r}")
        return LoadedConstant(constant(make_ndarray(found[0].attr["value"].tensor)))

    def _make_function(self, proto: Any, number: int) -> RestoredFunction:
        return RestoredFunction(
            proto.function_spec,
            [restored(name, *self._parts(name)) for name in proto.concrete_functions],
        )

    def _make_bare_concrete_function(self, proto: Any, number: int) -> ConcreteFunction:
        return restored_signature(proto, *self._parts(proto.concrete_function_name))

    def _make_resource(self, proto: Any, number: int) -> LoadedResource:
        contents = self._keys.get(number)
        if contents is None:
            return LoadedResource()
        types = table_types(utils.get_variables_path(self._dir), contents)
        if types is None:
            raise errors.UnimplementedError(
                None, None,
                f"The model in {self._dir!r} holds a resource whose contents {list(contents)} are "
                "in its checkpoint, which opdock can restore for tables only.",
            )  # fmt: skip
        return LoadedTable(contents, types)

    # ------------------------------------------------------------ what they depend on
    def _attach(self, owning: int, name: str, number: int) -> None:
        if not 0 <= number < len(self._objects):
            raise self._contradiction(f"object {number}")
        owner, child = self._objects[owning], self._objects[number]
        if owning in self._setters:
            self._setters[owning](owner, name, child)
        elif isinstance(owner, ListWrapper):
            if name.isdigit():
                # What is no object of the model left its place.
                owner.extend([None] * (int(name) + 1 - len(owner)))
                owner[int(name)] = child
        elif isinstance(owner, DictWrapper):
            owner[name] = child
        elif isinstance(owner, SignatureMap):
            owner._add_signature(name, child)
        elif isinstance(owner, LoadedObject):
            setattr(owner, name, child)
        elif isinstance(owner, Trackable) and not isinstance(owner, RestoredFunction):
            owner._track_trackable(child, name, overwrite=True)

    def _begin(self, resource: LoadedResource) -> None:
        """Has the operation made that fills a resource, and run with those of the tables."""
        begin = vars(resource).get("_initialize")
        if begin is None:
            return
        # A call, so that what the body knows by name outlasts it where operations run at once.
        found = nest.flatten(begin())
        if isinstance(resource, LoadedTable):
            self._handle(resource)
            with control_dependencies(found):
                found = nest.flatten(resource.restored(self._prefix))
        if not self._graph.eager:
            resource.initializer = group(*found)
            add_to_collection(GraphKeys.TABLE_INITIALIZERS, resource.initializer)

    # ------------------------------------------------------------ functions
    def _parts(self, name: str) -> tuple[Any, Callable[[], FuncGraph], Callable[[], list[Tensor]]]:
        if name not in self._concrete:
            raise self._contradiction(f"function {name!r}")
        proto = self._concrete[name]

        def captures() -> list[Tensor]:
            return [self._captured(number) for number in proto.bound_inputs]

        def body() -> FuncGraph:
            found = self._library.function(name)
            if proto.bound_inputs and not found.outside:
                # The last parameters, as of a body that was traced.
                last = found.inputs[-len(proto.bound_inputs) :]
                found.outside.update(zip(last, captures(), strict=True))
            return found

        return proto, body, captures

    def _captured(self, number: int) -> Tensor:
        """The tensor by which functions know an object."""
        if not 0 <= number < len(self._objects):
            raise self._contradiction(f"object {number}")
        thing = self._objects[number]
        if isinstance(thing, ResourceVariable):
            return thing.handle
        if isinstance(thing, LoadedAsset):
            return thing.asset_path
        if isinstance(thing, LoadedConstant):
            return thing.value
        if isinstance(thing, LoadedResource):
            return self._handle(thing)
        raise self._contradiction(f"the value of object {number}")

    def _handle(self, resource: LoadedResource) -> Tensor:
        if resource.resource_handle is None:
            (function,) = vars(resource)["_create_resource"].concrete_functions
            with self._graph.as_default(), name_scope(f"{self._scope}/"):
                results, _ = add_body(function._body(), function.captured_inputs)
            resource.made_in(self._graph, results[0])
        handle: Tensor = resource.resource_handle
        return handle

    # ------------------------------------------------------------ values
    @cached_property
    def _prefix(self) -> Tensor:
        return constant(utils.get_variables_path(self._dir), dtypes.string)

    @cached_property
    def _keys(self) -> dict[int, dict[str, str]]:
        """The checkpoint's keys of what objects hold, by the objects' numbers in the model."""
        tracked = object_metadata(utils.get_variables_path(self._dir)).nodes
        found: dict[int, dict[str, str]] = {}
        waiting, pairs = [(0, 0)], {0: 0}
        while waiting:
            ours, theirs = waiting.pop()
            for attribute in tracked[theirs].attributes:
                found.setdefault(ours, {})[attribute.name] = attribute.checkpoint_key
            for pair in self._steps(self._nodes[ours], tracked[theirs]):
                if pair[0] not in pairs and max(pair[1], 0) < len(tracked):
                    pairs[pair[0]] = pair[1]
                    waiting.append(pair)
        return found

    def _steps(self, saved: Any, tracked: Any) -> Iterator[tuple[int, int]]:
        """The objects that an object leads to, in the model and in its checkpoint."""
        children = {child.local_name: child.node_id for child in tracked.children}
        for child in saved.children:
            if child.local_name in children and child.node_id < len(self._nodes):
                yield child.node_id, children[child.local_name]
        slots = {
            (s.slot_name, i): s.slot_variable_node_id for i, s in enumerate(tracked.slot_variables)
        }
        for i, slot in enumerate(saved.slot_variables):
            if (slot.slot_name, i) in slots and slot.slot_variable_node_id < len(self._nodes):
                yield slot.slot_variable_node_id, slots[slot.slot_name, i]

    def _contradiction(self, what: str) -> errors.OpError:
        return errors.DataLossError(
            None, None, f"The model in {self._dir!r} speaks of {what}, which it does not hold."
        )
