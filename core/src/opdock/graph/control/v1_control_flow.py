"""TF 1's first control flow, rewritten as functional If and While when a GraphDef is imported.

Old graphs hold branches and loops as nodes among the others: Switch and Merge around a branch, and
Enter, Exit and NextIteration around a loop. A program here is a straight line, so each such pattern
becomes one node that runs functions. Inner patterns go first; what an outer one then finds inside
is an ordinary node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from opdock import errors
from opdock.dtypes import DType, as_dtype, int32
from opdock.graph.nodes import registry
from opdock.graph.serial.attr_proto import encode_attr, native_attr
from opdock.io import protos

SWITCH: Final = frozenset({"Switch", "RefSwitch"})
MERGE: Final = frozenset({"Merge", "RefMerge"})
ENTER: Final = frozenset({"Enter", "RefEnter"})
EXIT: Final = frozenset({"Exit", "RefExit"})
NEXT: Final = frozenset({"NextIteration", "RefNextIteration"})
V1_OPS: Final = SWITCH | MERGE | ENTER | EXIT | NEXT | {"LoopCond"}

PARAMETER: Final = "opdock_arg"
_SMALL: Final = 256  # bytes up to which a constant is copied into a function instead of passed
Edge = tuple[str, int]  # node and output; -1 is a control edge


@dataclass
class FlatFunction:
    """A function body whose edges are a graph's: "node:k", and parameter i is "opdock_arg<i>:0"."""

    parameters: list[DType] = field(default_factory=list)
    nodes: list[Any] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    def add_constant(self, value: np.generic) -> None:
        """Adds a result that is a constant."""
        node = protos.NodeDef(name=f"{PARAMETER}_result{len(self.outputs)}", op="Const")
        array = np.asarray(value)
        node.attr["dtype"].type = as_dtype(array.dtype).as_datatype_enum
        node.attr["value"].CopyFrom(encode_attr(array, "tensor"))
        self.nodes.append(node)
        self.outputs.append(f"{node.name}:0")


def parse(text: str) -> Edge:
    """(node, output index) of an input, -1 for a control edge."""
    if text.startswith("^"):
        return text[1:], -1
    name, _, index = text.partition(":")
    return name, int(index) if index.isdecimal() else 0


def text_of(edge: Edge) -> str:
    """An edge as NodeDef writes it."""
    name, index = edge
    return f"^{name}" if index < 0 else f"{name}:{index}"


def unsupported(node: Any, why: str) -> errors.UnimplementedError:
    """The error for control flow that has no functional form here."""
    return errors.UnimplementedError(
        None,
        None,
        f"Node '{node.name}' ({node.op}) belongs to control flow of TF 1's first kind that is not"
        f" supported: {why}.",
    )


class Rewriter:
    """The nodes of a graph being rewritten.

    Args:
        graph_def: the graph.
        chained: whether a Switch may take what is on a side of another one already, of the same
            predicate. `tf.cond` never made such; looking for them takes its time.
    """

    def __init__(self, graph_def: Any, chained: bool = False) -> None:
        self._def = graph_def
        self.chained = chained
        self.nodes: dict[str, Any] = {}
        for node in graph_def.node:
            copy = protos.NodeDef()
            copy.CopyFrom(node)
            self.nodes[node.name] = copy
        self.functions: dict[str, FlatFunction] = {}
        # Merges of loops: they close a cycle, so no walk may go through them.
        self.loop_merges = {
            n.name
            for n in self.nodes.values()
            if n.op in MERGE and any(self.op(parse(t)[0]) in NEXT for t in n.input)
        }
        self.switches = [n for n in self.nodes.values() if n.op in SWITCH]
        self.merges = [n for n in self.nodes.values() if n.op in MERGE]
        self.exits = [n for n in self.nodes.values() if n.op in EXIT]
        self.frames: dict[str, list[Any]] = {}
        for node in self.nodes.values():
            if node.op in ENTER:
                self.frames.setdefault(node.attr["frame_name"].s.decode(), []).append(node)
        self.done: set[str] = set()

    @property
    def merging(self) -> set[str]:
        """The Merges of loops that are there still."""
        return self.loop_merges - self.done

    def op(self, name: str) -> str:
        """The op type of a node; "" when there is none of that name."""
        node = self.nodes.get(name)
        return "" if node is None else str(node.op)

    def result(self, *, whole: bool = False) -> Any:
        """The rewritten graph. What still hangs on a switch or a loop was inside of one.

        Args:
            whole: whether it is a graph that steps are taken of, and no step. There a switch that
                leads to no merge is in no branch: a step reads what hangs on it.
        """
        users: dict[str, list[str]] = {}
        for node in self.nodes.values():
            for text in node.input:
                users.setdefault(parse(text)[0], []).append(node.name)
        dropped = [n.name for n in self.nodes.values() if n.op in V1_OPS]
        if whole and any(self.op(name) in SWITCH for name in dropped):
            merged = self._merged()
            dropped = [n for n in dropped if self.op(n) not in SWITCH or n in merged]
        gone = set(dropped)
        while dropped:
            for user in users.get(dropped.pop(), ()):
                if user not in gone:
                    gone.add(user)
                    dropped.append(user)
        out = protos.GraphDef()
        out.versions.CopyFrom(self._def.versions)
        out.library.CopyFrom(self._def.library)
        for node in self.nodes.values():
            if node.name not in gone:
                made = out.node.add()
                made.CopyFrom(node)
                keep_colocation(made, lambda name: name in self.nodes and name not in gone)
        return out

    def _merged(self) -> set[str]:
        """The nodes of the graph as it was from which a merge or a part of a loop follows."""
        inputs = {n.name: [parse(t)[0] for t in n.input] for n in self._def.node}
        waiting = [n.name for n in self._def.node if n.op in V1_OPS - SWITCH]
        found = set(waiting)
        while waiting:
            for source in inputs.get(waiting.pop(), ()):
                if source not in found:
                    found.add(source)
                    waiting.append(source)
        return found

    # ------------------------------------------------------------ making nodes
    def unique(self, name: str) -> str:
        """A node name that is free."""
        found, number = name, 1
        while found in self.nodes or found in self.functions:
            found, number = f"{name}_{number}", number + 1
        return found

    def add(self, name: str, op: str, inputs: Iterable[str]) -> Any:
        """Adds a node."""
        node = self.nodes[name] = protos.NodeDef(name=name, op=op, input=list(inputs))
        return node

    def replace_by_identity(self, name: str, source: str) -> None:
        """Makes an Enter, a Merge or an Exit the identity of what it takes or is replaced by."""
        old = self.nodes[name]
        is_ref = old.op.startswith("Ref") and self.dtype(parse(source))._is_ref_dtype
        new = protos.NodeDef(name=name, op="RefIdentity" if is_ref else "Identity")
        new.device = old.device
        new.input.append(source)
        new.attr["T"].type = old.attr["T"].type % 100
        self.nodes[name] = new

    def redirect(self, old: Edge, new: Edge) -> None:
        """Has all who take one edge take another."""
        for node in self.nodes.values():
            for i, text in enumerate(node.input):
                if parse(text) == old:
                    node.input[i] = text_of(new)

    # ------------------------------------------------------------ looking around
    def region(
        self, roots: Iterable[Edge], stop: Callable[[str], bool]
    ) -> tuple[set[str], set[Edge]]:
        """Nodes from which the roots follow, up to where `stop` holds; and the edges there."""
        seen: set[str] = set()
        stops: set[Edge] = set()
        waiting = list(roots)
        while waiting:
            edge = waiting.pop()
            name = edge[0]
            if stop(name):
                stops.add(edge)
            elif name not in seen and name in self.nodes:
                seen.add(name)
                waiting.extend(parse(t) for t in self.nodes[name].input)
        return seen, stops

    def inside(self, region: set[str], stop: Callable[[str], bool]) -> set[str]:
        """The nodes of a region that depend on a stop: the others are of the graph around it."""
        depends: dict[str, bool] = {}
        for root in region:
            waiting = [root]
            while waiting:
                name = waiting[-1]
                if name in depends:
                    waiting.pop()
                    continue
                sources = [parse(t)[0] for t in self.nodes[name].input]
                open_sources = [s for s in sources if s in region and s not in depends]
                if open_sources and not any(stop(s) for s in sources):
                    waiting.extend(open_sources)
                    continue
                depends[name] = any(stop(s) or depends.get(s, False) for s in sources)
                waiting.pop()
        return {name for name, inner in depends.items() if inner}

    def is_small_constant(self, name: str) -> bool:
        """Whether a node is a constant that a function may as well have for its own."""
        node = self.nodes[name]
        return bool(node.op == "Const" and node.attr["value"].ByteSize() <= _SMALL)

    def dtype(self, edge: Edge) -> DType:
        """The element type of an output."""
        node = self.nodes[edge[0]]
        if node.op == "_Arg":
            return as_dtype(node.attr["T"].type)
        if node.op in MERGE and edge[1] == 1:
            return int32
        if node.op in SWITCH | ENTER | MERGE | EXIT | NEXT:
            found = as_dtype(node.attr["T"].type).base_dtype
            return found.as_ref if node.op.startswith("Ref") else found
        index = edge[1]
        definition = registry.get(node.op).definition
        for arg in definition.outputs:
            if arg.type_list_attr:
                types = native_attr(node.attr[arg.type_list_attr], "list(type)")
            else:
                count = int(node.attr[arg.number_attr].i) if arg.number_attr else 1
                default = definition.attrs[arg.type_attr].default if arg.type_attr else None
                known = arg.dtype or (
                    native_attr(node.attr[arg.type_attr], "type")
                    if arg.type_attr in node.attr
                    else default
                )
                if known is None:
                    raise unsupported(node, f"it has no attribute '{arg.type_attr}'")
                if index < count:
                    return known.as_ref if arg.is_ref else known
                types = [known] * min(count, 1 << 20)
            if index < len(types):
                return types[index]  # type: ignore[no-any-return]
            index -= len(types)
        raise unsupported(node, f"it has no output {edge[1]}")

    # ------------------------------------------------------------ making functions
    def function(
        self, members: Iterable[str], mapping: dict[Edge, int], outputs: Iterable[Edge]
    ) -> FlatFunction:
        """A body of copies of `members`, in which the mapped edges are parameters."""
        body = FlatFunction()
        names = set(members)
        parameter = {edge: f"{PARAMETER}{i}:0" for edge, i in mapping.items()}
        for name in self.nodes:
            if name not in names:
                continue
            copy = protos.NodeDef()
            copy.CopyFrom(self.nodes[name])
            edges = [parse(t) for t in copy.input]
            copy.input[:] = [
                parameter.get(e) or text_of(e) for e in edges if e[1] >= 0 or e[0] in names
            ]
            keep_colocation(copy, names.__contains__)
            body.nodes.append(copy)
        for i, edge in enumerate(outputs):
            if edge not in parameter:
                body.outputs.append(text_of(edge))
                continue
            # A function returns values of its own.
            name = f"{PARAMETER}_result{i}"
            node = protos.NodeDef(name=name, op="Identity", input=[parameter[edge]])
            node.attr["T"].type = self.dtype(edge).base_dtype.as_datatype_enum
            body.nodes.append(node)
            body.outputs.append(f"{name}:0")
        return body

    def is_stateful(self, members: Iterable[str]) -> bool:
        """Whether any of these nodes is."""
        return any(
            registry.get(self.op(n)).stateful
            or any(a.is_ref for a in registry.get(self.op(n)).definition.inputs)
            for n in members
        )

    def outside_edges(self, region: set[str], inner: set[str]) -> list[Edge]:
        """Edges from the graph around into the inner nodes, in file order."""
        found: dict[Edge, None] = {}
        for name in self.nodes:
            if name in inner:
                for text in self.nodes[name].input:
                    edge = parse(text)
                    outer = edge[0] in region and edge[0] not in inner and edge[1] >= 0
                    if outer and not self.is_small_constant(edge[0]):
                        found[edge] = None
        return list(found)


def keep_colocation(node: Any, known: Callable[[str], bool]) -> None:
    """Drops colocation with nodes that are elsewhere now."""
    if "_class" not in node.attr:
        return
    groups = node.attr["_class"].list
    kept = [g for g in groups.s if not g.startswith(b"loc:@") or known(g[5:].decode())]
    if len(kept) < len(groups.s):
        del node.attr["_class"]
        if kept:
            node.attr["_class"].list.s.extend(kept)
