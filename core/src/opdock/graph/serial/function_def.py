"""FunctionDefs as bodies of functional control flow."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from opdock import dtypes, errors
from opdock.graph.control.func_graph import FuncGraph, make_room
from opdock.graph.control.function_op import DefinedGraph, FunctionSpec
from opdock.graph.control.v1_control_flow import PARAMETER, FlatFunction
from opdock.graph.nodes import registry
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import OpSpec
from opdock.graph.serial.attr_proto import decode_shape, native_attr
from opdock.graph.serial.function_library import add_function
from opdock.io import protos
from opdock.shapes import Shape

if TYPE_CHECKING:
    from opdock.graph.nodes.graph import Graph


class FunctionLibraryReader:
    """Builds FuncGraphs from a FunctionDefLibrary, each once.

    Args:
        library: the library.
        outer: the graph in which the functions are called.
        flat: functions of rewritten control flow.
        built: functions that are there already, by name.
    """

    def __init__(
        self,
        library: Any,
        outer: Graph,
        flat: dict[str, FlatFunction] | None = None,
        built: dict[str, FuncGraph] | None = None,
    ) -> None:
        self._defs = {f.signature.name: f for f in library.function}
        self._gradients = {g.function_name: g.gradient_func for g in library.gradient}
        self._specs: dict[str, FunctionSpec] = {}
        self._flat = flat or {}
        self._built: dict[str, FuncGraph] = dict(built or {})
        self._open: list[str] = []
        self._nodes: tuple[Any, dict[str, Any]] | None = None  # of the definition asked for last
        self._outer = outer

    def function(self, name: str, defined: bool = False) -> FuncGraph:
        """The body of a function.

        Args:
            name: of the function.
            defined: whether it is an op type, with names of its own.

        Raises:
            ValueError: the library has no such function, or it is malformed.
            UnimplementedError: it is generic over types or calls itself.
        """
        built = self._built.get(name)
        if built is None:
            definition = self._defs.get(name)
            if definition is None:
                raise ValueError(f"Function '{name}' is not in the library of the GraphDef")
            if name in self._open:
                raise errors.UnimplementedError(None, None, f"Function '{name}' calls itself")
            self._open.append(name)
            if len(self._open) == 1:
                for callee in self._called_by(name):
                    self.spec(callee)
            make_room(len(self._open))
            built = self._built[name] = self._build(name, definition, defined)
            self._open.pop()
        return built

    def _called_by(self, name: str) -> list[str]:
        """The functions that one needs as op types, each behind those that it needs itself.

        Built in this order, they are not built within each other, however long a chain they are.
        """
        order: list[str] = []
        seen = {name}
        path = [(name, iter(self._defs[name].node_def))]
        while path:
            caller, nodes = path[-1]
            callee = next((n.op for n in nodes if n.op in self._defs and n.op not in seen), None)
            if callee is not None:
                seen.add(callee)
                if callee not in self._built:
                    path.append((callee, iter(self._defs[callee].node_def)))
            else:
                path.pop()
                order.append(caller)
        return order[:-1]

    def has(self, name: str) -> bool:
        """Whether the library has a function of this name."""
        return name in self._defs

    def spec(self, name: str) -> FunctionSpec:
        """A function as an op type; it is one of the outer graph's from then on.

        Raises:
            ValueError, UnimplementedError: see `function`.
        """
        found = self._specs.get(name)
        if found is None:
            body, definition = self.function(name, defined=True), self._defs[name]
            found = self._specs[name] = FunctionSpec(
                body, [arg.name for arg in definition.signature.output_arg],
                {k: native_attr(v) for k, v in definition.attr.items()},
                definition.signature.description,
            )  # fmt: skip
            if name in self._gradients:
                found.gradient_spec = self.spec(self._gradients[name])
                body.__dict__["_gradient_spec"] = found.gradient_spec
            add_function(self._outer, found)
        return found

    def op(self, name: str) -> OpSpec:
        """The op type of a node in a body: a function of the library, or a registered one."""
        return self.spec(name) if self.has(name) else registry.get(name)

    def is_flat(self, name: str) -> bool:
        """Whether the function comes from rewritten control flow: it has no shapes yet."""
        return name in self._flat

    def flat(self, name: str, shapes: list[Shape]) -> FuncGraph:
        """The body of a function of rewritten control flow for arguments of these shapes."""
        found = self._flat[name]
        graph = FuncGraph(name, self._outer)
        with graph.as_default():
            for dtype, shape in zip(found.parameters, shapes, strict=True):
                graph.add_input(dtype, shape)
        mapped = {f"{PARAMETER}{i}:0": t for i, t in enumerate(graph.inputs)}
        importer = self._importer(graph, protos.GraphDef(node=found.nodes), mapped)
        graph.outputs = [mapped[e] if e in mapped else importer.returned(e) for e in found.outputs]
        return graph

    def loop(
        self, cond: str, body: str, shapes: list[Shape]
    ) -> tuple[FuncGraph, FuncGraph, list[Shape]]:
        """Condition and body of a loop, and the shapes that hold in every turn."""
        while True:
            graph = self.flat(body, shapes)
            wider = [
                common_shape(a, t.raw_shape) for a, t in zip(shapes, graph.outputs, strict=True)
            ]
            if wider == shapes:
                return self.flat(cond, shapes), graph, shapes
            shapes = wider

    def _importer(self, graph: FuncGraph, nodes: Any, mapped: dict[str, Tensor]) -> Any:
        """Imports the nodes of a body into its graph."""
        # A body is imported as a graph is, and the importer reads the functions of a graph.
        from opdock.graph.serial.importer import Importer

        used = {t for n in nodes.node for t in n.input}
        with graph.as_default():
            given = {k: v for k, v in mapped.items() if k in used}
            importer = Importer(graph, nodes, "", given, self)
            importer.run(None)
        return importer

    def _build(self, name: str, definition: Any, defined: bool) -> FuncGraph:
        graph = (DefinedGraph if defined else FuncGraph)(name, self._outer)
        if defined:
            graph._scopes.devices = []  # It is the same function wherever it is read.
        edges: dict[str, str] = {}
        flat = protos.GraphDef()
        with graph.as_default():
            for index, arg in enumerate(definition.signature.input_arg):
                if not arg.type:
                    raise errors.UnimplementedError(
                        None, None, f"Function '{name}' is generic over '{arg.type_attr}'"
                    )
                dtype = dtypes.as_dtype(arg.type)
                graph.add_input(
                    dtype._as_ref if arg.is_ref else dtype, _arg_shape(definition, index),
                    _safe(arg.name),
                )  # fmt: skip
                edges[arg.name] = f"{PARAMETER}{index}:0"
        for node in definition.node_def:
            copy = flat.node.add()
            copy.CopyFrom(node)
            # A body has no node for a parameter, so a control edge from one means nothing.
            copy.input[:] = [
                self._flat_edge(t, edges, definition)
                for t in node.input
                if not (t.startswith("^") and t[1:] in edges)
            ]
        mapped = {f"{PARAMETER}{i}:0": t for i, t in enumerate(graph.inputs)}
        graph.outputs = self._import(graph, flat, mapped, edges, definition)
        returned = set(definition.control_ret.values())
        graph.targets = [
            op for op in graph.get_operations() if op.name in returned or _acts(op)
        ]  # fmt: skip
        return graph

    def _import(
        self, graph: FuncGraph, flat: Any, mapped: dict[str, Tensor], edges: Any, definition: Any
    ) -> list[Tensor]:
        importer = self._importer(graph, flat, mapped)
        outputs: list[Any] = []
        for arg in definition.signature.output_arg:
            edge = self._flat_edge(definition.ret[arg.name], edges, definition)
            if edge in mapped:
                outputs.append(mapped[edge])
            else:
                outputs.append(importer.returned(edge if ":" in edge else f"{edge}:0"))
        return outputs

    def _nodes_of(self, definition: Any) -> dict[str, Any]:
        """The nodes of a body, by name; the first, where several have one."""
        known = self._nodes
        if known is None or known[0] is not definition:
            nodes = {n.name: n for n in reversed(definition.node_def)}
            known = self._nodes = definition, nodes
        return known[1]

    def _flat_edge(self, text: str, edges: dict[str, str], definition: Any) -> str:
        """Turns "node:output:i" of a function body into "node:k" of a graph."""
        if text.startswith("^"):
            return text
        if text in edges:
            return edges[text]
        name, _, rest = text.partition(":")
        arg, _, number = rest.partition(":")
        node = self._nodes_of(definition).get(name)
        if node is None or not (number or "0").isdecimal():
            raise ValueError(f"Function '{definition.signature.name}' has no value '{text}'")
        return f"{name}:{_first_index(self.op(node.op), node, arg) + int(number or 0)}"


def _acts(op: Operation) -> bool:
    """Whether an operation of a function of a library runs for its own sake."""
    return op.type != "_Arg" and (
        bool(op.spec.stateful)
        or any(t._dtype._is_ref_dtype or t._dtype.name == "resource" for t in op.inputs)
    )


def common_shape(a: Shape, b: Shape) -> Shape:
    """What two shapes agree on."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))


def _arg_shape(definition: Any, index: int) -> Any:
    if index not in definition.arg_attr:
        return None
    known = definition.arg_attr[index].attr
    for key in ("_output_shapes", "_user_specified_shape"):
        if key in known and known[key].list.shape:
            return decode_shape(known[key].list.shape[0])
    return None


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]", "_", name) or "arg"


def _first_index(spec: OpSpec, node: Any, arg_name: str) -> int:
    """The flat index at which an output argument of a node starts."""
    first = 0
    for arg in spec.definition.outputs:
        if arg.name == arg_name:
            return first
        if arg.type_list_attr:
            first += len(native_attr(node.attr[arg.type_list_attr], "list(type)"))
        else:
            first += int(node.attr[arg.number_attr].i) if arg.number_attr else 1
    raise ValueError(f"Op {node.op} has no output '{arg_name}' (node '{node.name}')")
