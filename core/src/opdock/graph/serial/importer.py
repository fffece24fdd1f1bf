"""`import_graph_def`: a GraphDef's nodes as operations of the current graph."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, Final

from opdock import errors
from opdock.graph.control.v1_control_flow import MERGE, NEXT, V1_OPS
from opdock.graph.control.v1_functionalize import functionalize
from opdock.graph.nodes.devicespec import DeviceSpec
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.graph.serial.attr_proto import native_attr
from opdock.graph.serial.function_def import FunctionLibraryReader, common_shape
from opdock.graph.serial.graphdef import build_node
from opdock.graph.serial.import_arguments import (
    NODE_NAME,
    checked_graph_def,
    checked_input_map,
    checked_return_elements,
    converted,
    parse_input,
)
from opdock.graph.serial.import_compat import (
    check_unknown_attrs,
    forget_scalar_shape,
    narrowed,
    refine_shapes,
    strip_producer_defaults,
)
from opdock.io import protos
from opdock.shapes import Shape
from opdock.version import GRAPH_DEF_VERSION, GRAPH_DEF_VERSION_MIN_PRODUCER, VERSION

if TYPE_CHECKING:
    from opdock.graph.nodes.graph import Graph
    from opdock.graph.nodes.registry import OpSpec

_RESERVED: Final = {"_class": "list(string)", "_output_shapes": "list(shape)"}


def import_graph_def(
    graph_def: Any,
    input_map: dict[str, Any] | None = None,
    return_elements: list[str] | None = None,
    name: str | None = None,
    op_dict: Any = None,
    producer_op_list: Any = None,
) -> list[Any] | None:
    """Adds the nodes of a GraphDef to the current graph.

    Args:
        graph_def: a `GraphDef`.
        input_map: tensor names of `graph_def` ("x:0", "^op" for a control input) to tensors of
            the current graph that take their place.
        return_elements: names of operations ("op") and tensors ("op:0") to return.
        name: prefix of the new names, "import" by default; "" adds no prefix.
        op_dict: ignored, as in TF.
        producer_op_list: an `OpList` of the program that wrote the GraphDef; attributes that it
            added and left at their defaults are dropped.

    Returns:
        The requested elements in order, or None without `return_elements`.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: `graph_def` is malformed, a name of `input_map` or `return_elements` is not
            in it, or a type does not match.
        tf.errors.NotFoundError: an op type is not registered.
    """
    graph_def = checked_graph_def(graph_def)
    input_map = checked_input_map(input_map)
    return_elements = checked_return_elements(return_elements)
    if producer_op_list is not None:
        strip_producer_defaults(graph_def, producer_op_list)
    graph = get_default_graph()
    with name_scope(name, "import", list(input_map.values())) as scope:
        mapped = converted(input_map, name)
        return Importer(graph, graph_def, scope.rstrip("/"), mapped).run(return_elements)


# ---------------------------------------------------------------- the import
class Importer:
    """One import: the nodes of a GraphDef as operations of a graph, all of them or none."""

    def __init__(
        self,
        graph: Graph,
        graph_def: Any,
        prefix: str,
        input_map: dict[str, Any],
        functions: FunctionLibraryReader | None = None,
    ) -> None:
        self._graph = graph
        self._def = graph_def
        self._prefix = prefix
        self._map = {_canonical(k): v for k, v in input_map.items()}
        self._given = {_canonical(k): k for k in input_map}
        self._used: set[str] = set()
        self._nodes: dict[str, Any] = {}
        self._specs: dict[str, OpSpec] = {}
        self._new: dict[str, Operation] = {}
        self._names: dict[str, str] = {}
        self._functions = functions
        self._is_body = functions is not None  # which it is whose functions are known already

    def run(self, return_elements: list[str] | None) -> list[Any] | None:
        """Adds the nodes; the elements that are asked for in order, if any are."""
        self._graph._check_not_finalized()
        self._check_versions()
        self._check_nodes()
        if any(n.op in V1_OPS for n in self._def.node):
            self._order()  # the rewrite takes for granted that edges are there, and no cycles
            self._def, flat = functionalize(self._def)
            self._functions = FunctionLibraryReader(self._def.library, self._graph, flat)
            self._check_nodes()
        self._check_map()
        order = self._order()
        self._choose_names()
        first = len(self._graph._ops)
        devices, self._graph._scopes.devices = self._graph._scopes.devices, []
        try:
            for node in order:
                self._new[node.name] = self._import_node(node)
            self._graph._scopes.devices = devices
            self._place(order)
            self._merge_versions()
            return None if return_elements is None else [self.returned(e) for e in return_elements]
        except BaseException:
            self._undo(first)
            raise
        finally:
            self._graph._scopes.devices = devices

    def _undo(self, first: int) -> None:
        """Takes back the nodes of an import that failed: it adds all or none."""
        graph = self._graph
        with graph._lock:
            for op in graph._ops[first:]:
                del graph._nodes_by_name[op.name]
                graph._names_in_use.pop(op.name.lower(), None)
                for controller in graph._scopes.controllers:
                    controller.seen.discard(op)
                for tensor in op.inputs:
                    if tensor._consumers and op in tensor._consumers:
                        tensor._consumers.remove(op)
            del graph._ops[first:]
            graph._changed()

    # ------------------------------------------------------------ checks before any change
    def _check_versions(self) -> None:
        versions = self._def.versions
        if versions.producer < GRAPH_DEF_VERSION_MIN_PRODUCER:
            raise ValueError(
                f"GraphDef producer version {versions.producer} below min producer"
                f" {GRAPH_DEF_VERSION_MIN_PRODUCER} supported by TensorFlow {VERSION}.  Please"
                " regenerate your graph."
            )
        if versions.min_consumer > GRAPH_DEF_VERSION:
            raise ValueError(
                f"GraphDef min consumer version {versions.min_consumer} above current version"
                f" {GRAPH_DEF_VERSION} for TensorFlow {VERSION}.  Please upgrade TensorFlow."
            )
        if GRAPH_DEF_VERSION in versions.bad_consumers:
            raise ValueError(
                f"GraphDef disallows consumer version {GRAPH_DEF_VERSION}.  Please upgrade"
                " TensorFlow: this version is likely buggy."
            )

    def _merge_versions(self) -> None:
        """The graph is as old as its oldest part, and asks for what any part asks for."""
        versions, graph = self._def.versions, self._graph
        graph._producer = min(graph._producer, versions.producer)
        graph._min_consumer = max(graph._min_consumer, versions.min_consumer)
        graph._bad_consumers.update(versions.bad_consumers)

    def _check_nodes(self) -> None:
        self._nodes.clear()
        for node in self._def.node:
            if not NODE_NAME.match(node.name):
                raise ValueError(
                    f"Node '{node.name}': Node name contains invalid characters (op {node.op})"
                )
            if node.name in self._nodes:
                raise ValueError(f"Node '{node.name}' is not unique")
            self._nodes[node.name] = node
            self._specs[node.name] = self._spec_of(node)

    def _spec_of(self, node: Any) -> OpSpec:
        try:
            return self._library().op(node.op)
        except errors.NotFoundError as e:
            raise errors.NotFoundError(None, None, f"{e.message} (node '{node.name}')") from None

    def _check_map(self) -> None:
        """Every key of the map that no node uses must at least name an output of one."""
        self._used = {
            _canonical(text) for node in self._def.node for text in node.input if text
        } & set(self._map)
        missing = []
        for key in self._map:
            if key in self._used:
                continue
            name, index = parse_input(key)
            if name not in self._nodes or index > self._known_outputs(name):
                missing.append(self._given[key])
        if missing:
            raise ValueError(
                f"Attempted to map inputs that were not found in graph_def: [{', '.join(missing)}]"
            )

    def _known_outputs(self, name: str) -> int:
        """The highest index that a plain output list of the node has; no bound when it varies."""
        outputs = self._specs[name].definition.outputs
        return 1 << 20 if any(a.is_list for a in outputs) else len(outputs) - 1

    def _order(self) -> list[Any]:
        """The nodes so that inputs come first, otherwise in file order."""
        position = {name: i for i, name in enumerate(self._nodes)}
        waiting = [0] * len(position)
        users: list[list[int]] = [[] for _ in position]
        for i, node in enumerate(self._def.node):
            seen_control = False
            for text in node.input:
                try:
                    name, index = parse_input(text)
                except ValueError:
                    raise ValueError(f"Node '{node.name}': Unknown input node '{text}'") from None
                if seen_control and index >= 0:
                    raise ValueError(
                        f"Node '{node.name}': Control dependencies must come after regular"
                        " dependencies"
                    )
                seen_control = index < 0
                if _canonical(text) in self._map:
                    continue
                if name not in position:
                    raise ValueError(f"Node '{node.name}': Unknown input node '{text}'")
                if node.op in MERGE and self._nodes[name].op in NEXT:
                    continue  # the way back of a loop
                waiting[i] += 1
                users[position[name]].append(i)
        nodes = list(self._def.node)
        ready = [i for i, n in enumerate(waiting) if n == 0]
        heapq.heapify(ready)
        order = []
        while ready:
            i = heapq.heappop(ready)
            order.append(nodes[i])
            for user in users[i]:
                waiting[user] -= 1
                if waiting[user] == 0:
                    heapq.heappush(ready, user)
        if len(order) != len(nodes):
            stuck = [n for n, w in zip(nodes, waiting, strict=True) if w]
            raise ValueError(
                f"{len(stuck)} nodes in a cycle, e.g. {', '.join(repr(n.name) for n in stuck[:5])}"
            )
        return order

    def _choose_names(self) -> None:
        """Full names; one that the graph has already gets a number, as do its users' inputs."""
        existing = self._graph._nodes_by_name
        scopes = set()
        for name in list(existing):  # other threads may build too
            at = name.find("/")
            while at >= 0:
                scopes.add(name[:at])
                at = name.find("/", at + 1)
        taken = {self._full(n) for n in self._nodes}
        for name in self._nodes:
            full = self._full(name)
            if full in existing or full in scopes:
                number = 1
                while f"{full}_{number}" in existing or f"{full}_{number}" in taken:
                    number += 1
                full = f"{full}_{number}"
                taken.add(full)
            self._names[name] = full

    def _full(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    # ------------------------------------------------------------ nodes
    def _import_node(self, node: Any) -> Operation:
        spec = self._specs[node.name]
        inputs: list[Tensor] = []
        controls: list[Operation] = []
        for text in node.input:
            found = self._resolve(node, text)
            if isinstance(found, Tensor):
                inputs.append(found)
            else:
                controls.append(found)
        attrs = self._attributes(node, spec, inputs)
        shapes_attr = attrs.pop("_output_shapes", None)
        full = self._names[node.name]
        inputs = narrowed(self._graph, full, inputs, attrs)
        try:
            op = build_node(self._graph, spec, full, inputs, attrs)
        except TypeError as e:
            raise ValueError(f"Node '{full}': {e}") from e
        self._graph._names_in_use.setdefault(full.lower(), 1)
        if controls:
            op._add_control_inputs(controls)
        if shapes_attr is not None:
            refine_shapes(op, shapes_attr)
        return op

    def _resolve(self, node: Any, text: str) -> Tensor | Operation:
        mapped = self._map.get(_canonical(text))
        name, index = parse_input(text)
        if mapped is not None:
            if index < 0:
                return mapped.op if isinstance(mapped, Tensor) else mapped
            if isinstance(mapped, Operation):
                raise ValueError(f"input_map maps '{text}' to {mapped!r}, which is not a tensor")
            return mapped  # type: ignore[no-any-return]
        op = self._new[name]
        if index < 0:
            return op
        if index >= len(op.outputs):
            raise ValueError(
                f"Node '{node.name}': Connecting to invalid output {index} of source node {name}"
                f" which has {len(op.outputs)} outputs."
            )
        return op.outputs[index]

    def _attributes(self, node: Any, spec: OpSpec, inputs: list[Tensor]) -> dict[str, Any]:
        attrs: dict[str, Any] = {}
        for name, value in node.attr.items():
            try:
                attrs[name] = native_attr(value, spec.attr_type(name) or _RESERVED.get(name))
            except (TypeError, ValueError) as e:
                raise ValueError(f"Node '{node.name}', attr '{name}': {e}") from None
        check_unknown_attrs(spec, node.name, attrs)
        forget_scalar_shape(node.op, self._def.versions.producer, attrs)
        self._bind_flat(attrs, [t.raw_shape for t in inputs])
        for name, value in attrs.items():
            attrs[name] = self._with_functions(value)
        named = attrs.pop("_class", None) or []
        if not isinstance(named, list):
            raise ValueError(f"Attr '_class' of node '{node.name}' is no list of groups")
        groups = [self._colocation(node, g) for g in named]
        if any(groups):
            attrs["_class"] = [g for g in groups if g]
        return attrs

    def _bind_flat(self, attrs: dict[str, Any], shapes: list[Shape]) -> None:
        """Functions of rewritten control flow, built for the shapes that they are called with."""
        functions = self._functions
        named = {k: v.name for k, v in attrs.items() if isinstance(v, protos.NameAttrList)}
        names = {k: n for k, n in named.items() if functions and functions.is_flat(n)}
        if not names or functions is None:
            return
        if "body" in names:
            attrs["cond"], attrs["body"], attrs["output_shapes"] = functions.loop(
                names["cond"], names["body"], shapes
            )
            return
        for key, name in names.items():
            attrs[key] = functions.flat(name, shapes[1:])
        results = [[t.raw_shape for t in attrs[key].outputs] for key in names]
        attrs["output_shapes"] = [common_shape(a, b) for a, b in zip(*results, strict=True)]

    def _with_functions(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._with_functions(v) for v in value]
        if not isinstance(value, protos.NameAttrList):
            return value
        return self._library().function(value.name)

    def _library(self) -> FunctionLibraryReader:
        if self._functions is None:
            self._functions = FunctionLibraryReader(self._def.library, self._graph)
        return self._functions

    def _colocation(self, node: Any, group: Any) -> Any:
        """A group by the new name of its node; empty where a body's node is beside none of it."""
        text = group.decode(errors="backslashreplace") if isinstance(group, bytes) else group
        if not isinstance(text, str) or not text.startswith("loc:@"):
            return group
        target = text[5:]
        if target not in self._nodes:
            if self._is_body:
                return ""  # a node around the function, which gets what it works on from there
            raise ValueError(
                f"Node '{node.name}' expects to be colocated with unknown node '{target}'"
            )
        return f"loc:@{self._names[target]}"

    # ------------------------------------------------------------ devices
    def _place(self, order: list[Any]) -> None:
        """Each node keeps its own device, completed by the device scopes around the import; a
        node that is colocated with others takes theirs, whatever its own is."""
        colocated = []
        for node in order:
            op = self._new[node.name]
            partners = [n for g in op.colocation_groups() if (n := g[5:].decode()) != op.name]
            if partners:
                colocated.append((op, partners))
                continue
            op._device = _canonical_device(node)
            for function in reversed(self._graph._scopes.devices):
                if function is None:
                    break
                op._set_device(function(op))
        for op, partners in colocated:
            devices = (self._graph._nodes_by_name[p].device for p in partners)
            op._set_device(next(filter(None, devices), ""))

    # ------------------------------------------------------------ results
    def returned(self, element: str) -> Tensor | Operation:
        """What a name of the GraphDef stands for now."""
        if ":" not in element:
            if element not in self._new:
                raise ValueError(f"Requested return node '{element}' not found in graph def")
            return self._new[element]
        mapped = self._map.get(element)
        if isinstance(mapped, Tensor):
            return mapped
        name, index = parse_input(element)
        op = self._new.get(name)
        if op is None:
            raise ValueError(f"Requested return tensor '{element}' not found in graph def")
        if index >= len(op.outputs):
            raise ValueError(
                f"Invalid return output {index} of node '{name}', which has {len(op.outputs)}"
                " output(s)"
            )
        return op.outputs[index]


def _canonical(text: str) -> str:
    """Writes "x" as "x:0"; leaves control inputs alone."""
    return text if text.startswith("^") or ":" in text else f"{text}:0"


def _canonical_device(node: Any) -> str:
    try:
        return DeviceSpec.from_string(node.device).to_string() if node.device else ""
    except ValueError as e:
        raise ValueError(f"Node '{node.name}': {e}") from None


__all__ = ["Importer", "import_graph_def", "parse_input"]
