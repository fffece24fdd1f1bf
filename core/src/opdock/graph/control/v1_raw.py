"""TF 1's first control flow as nodes of a graph here, read into functions for one program.

Whoever builds Switch, Merge, Enter and their like by hand has them in the graph, as in TF. What a
step needs of them, and all that depends on them, is copied into a function of its own, rewritten as
an imported GraphDef is; the rest of the graph stays as it is.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from opdock import errors
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.control.v1_conds import pinned
from opdock.graph.control.v1_control_flow import ENTER, EXIT, Rewriter, parse, text_of
from opdock.graph.control.v1_functionalize import finish, rewrite
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.traits import Control
from opdock.graph.serial.attr_proto import encode_attr
from opdock.graph.serial.function_def import FunctionLibraryReader
from opdock.graph.serial.importer import Importer
from opdock.io import protos


@dataclass
class Functional:
    """What took the place of a part of a graph.

    Attributes:
        graph: the function. Its outputs and targets are those of `tensors` and `ops`.
        sources: the tensors of the graph that its parameters stand for.
        tensors: fetches -> the results that stand for them.
        ops: targets -> the operations that stand for them.
        waits: operations of the function -> those of the graph that they stand for, so that
            others can wait for them.
    """

    graph: FuncGraph
    sources: list[Tensor] = field(default_factory=list)
    tensors: dict[Tensor, Tensor] = field(default_factory=dict)
    ops: dict[Operation, Operation] = field(default_factory=dict)
    waits: dict[Operation, Operation] = field(default_factory=dict)


def functional(
    inside: Sequence[Operation],
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    fed: Container[Tensor],
) -> Functional:
    """The part of a graph that first control flow decides about, as a function.

    Args:
        inside: what `switched` found.
        fetches, targets: what the step asks for; those outside of the part are passed over.
        fed: tensors that the caller supplies.

    Raises:
        InvalidArgumentError: a node takes values of different loops.
        UnimplementedError: a pattern has no functional form.
    """
    frames = _frames(inside, fed)
    for op in (*(t._op for t in fetches), *targets):
        if frames.get(op):
            raise errors.InvalidArgumentError(
                None, op,
                f"'{op.name}' cannot be fetched: it is in the frame '{_text(frames[op])}', and each"
                " turn has a value of its own. Fetch what an Exit hands on.",
            )  # fmt: skip
    return _Reader(inside, fed).read(fetches, targets)


class _Reader:
    def __init__(self, inside: Sequence[Operation], fed: Container[Tensor]) -> None:
        self._inside = {op.name: op for op in inside}
        self._members = set(inside)
        self._fed = fed
        self._def = protos.GraphDef()
        self._sources: dict[Tensor, str] = {}
        self._waits: dict[Operation, str] = {}
        self._functions: dict[str, FuncGraph] = {}
        self._results: dict[Tensor, str] = {}
        self._targets: dict[Operation, str] = {}

    def read(self, fetches: Iterable[Tensor], targets: Iterable[Operation]) -> Functional:
        for op in self._inside.values():
            self._write(op)
        for i, tensor in enumerate(fetches):
            if self._is_inside(tensor) and tensor not in self._results:
                # An identity of its own: what it takes may be another node before long.
                name = self._free(tensor.op.name, f"fetch{i}")
                node = self._def.node.add(name=name, op="Identity", input=[self._edge(tensor)])
                node.attr["T"].type = tensor._dtype.base_dtype.as_datatype_enum
                self._results[tensor] = name
        for i, op in enumerate(targets):
            if op in self._members:
                name = self._free(op.name, f"target{i}")
                self._def.node.add(name=name, op="NoOp", input=[f"^{op.name}"])
                self._targets[op] = name
        graph = Rewriter(self._def, chained=True)
        self._rewrite(graph)
        return self._import(graph)

    # ------------------------------------------------------------ nodes as they are
    def _is_inside(self, tensor: Tensor) -> bool:
        return tensor._op in self._members and tensor not in self._fed

    def _free(self, beside: str, name: str) -> str:
        """A name in the scope of another node, so that what belongs together is found together."""
        scope = beside.rpartition("/")[0]
        full = f"{scope}/opdock_{name}" if scope else f"opdock_{name}"
        while full in self._inside:
            full += "_"
        return full

    def _write(self, op: Operation) -> None:
        node = self._def.node.add(name=op.name, op=op.type, device=op.device)
        node.input.extend(self._edge(t) for t in op._inputs)
        node.input.extend(f"^{self._waited(c)}" for c in op._control_inputs)
        for key, value in op.attrs.items():
            encoded = encode_attr(value, op.spec.attr_type(key), self._name_of)
            node.attr[key].CopyFrom(encoded)
        if "_class" in node.attr:
            # What stands outside has its device from the graph; in here its name means nothing.
            kept = [g for g in op.colocation_groups() if g[5:].decode() in self._inside]
            node.attr["_class"].list.s[:] = kept

    def _edge(self, tensor: Tensor) -> str:
        if self._is_inside(tensor):
            return text_of((tensor._op.name, tensor._value_index))
        name = self._sources.get(tensor)
        if name is None:
            name = self._sources[tensor] = self._free("", f"source{len(self._sources)}")
            node = self._def.node.add(name=name, op="_Arg")
            node.attr["T"].type = tensor._dtype.as_datatype_enum
        return f"{name}:0"

    def _waited(self, op: Operation) -> str:
        if op in self._members:
            return op.name
        name = self._waits.get(op)
        if name is None:
            name = self._waits[op] = self._free("", f"awaited{len(self._waits)}")
            self._def.node.add(name=name, op="NoOp")
        return name

    def _name_of(self, function: FuncGraph) -> str:
        name = function.func_name
        while self._functions.setdefault(name, function) is not function:
            name += "_"
        return name

    # ------------------------------------------------------------ patterns
    def _rewrite(self, graph: Rewriter) -> None:
        """Every pattern; before, between and after them what no Merge closes is closed."""
        roots = [*self._results.values(), *self._targets.values()]
        again = True
        while again:
            # First all that is open: what one predicate decides about happens once.
            closed = [_close(graph, name, i) for i, name in enumerate(roots)]
            again = rewrite(graph) or any(closed)
        finish(graph)

    # ------------------------------------------------------------ the function
    def _import(self, rewriter: Rewriter) -> Functional:
        graph = _Copies(next(iter(self._members)).graph)
        made = Functional(graph, list(self._sources))
        given: dict[str, Any] = {}
        for tensor, name in self._sources.items():
            given[f"{name}:0"] = graph.add_input(tensor._dtype, tensor._shape, name)
        proto = rewriter.result()
        nodes = [n for n in proto.node if n.op != "_Arg"]
        used = {t if ":" in t else f"{t}:0" for n in nodes for t in n.input}
        del proto.node[:]
        proto.node.extend(nodes)
        reader = FunctionLibraryReader(proto.library, graph, rewriter.functions, self._functions)
        with graph.as_default():
            taken = {k: t for k, t in given.items() if k in used}
            Importer(graph, proto, "", taken, reader).run(None)
        _remember(graph, self._inside)
        operation = graph.get_operation_by_name
        made.tensors = {t: operation(n).outputs[0] for t, n in self._results.items()}
        made.ops = {op: operation(n) for op, n in self._targets.items()}
        made.waits = {
            operation(n): op for op, n in self._waits.items() if n in graph._nodes_by_name
        }  # fmt: skip
        graph.outputs = list(made.tensors.values())
        graph.targets = list(made.ops.values())
        return made


class _Copies(FuncGraph):
    """A function that takes no names from the graph: its nodes have those of their originals."""

    def __init__(self, outer: Graph) -> None:
        super().__init__("switched", outer)
        self._names_in_use = {}
        self._name_stack = ""


def _remember(graph: FuncGraph, originals: dict[str, Operation]) -> None:
    """Gives copies the lines of the user's that made their originals, for errors to tell."""
    for op in graph.get_operations():
        original = originals.get(op.name)
        if original is not None:
            op._frames = original._frames
            continue
        for value in op.attrs.values():
            if isinstance(value, FuncGraph):
                _remember(value, originals)


# ---------------------------------------------------------------- what no Merge closes
def _close(graph: Rewriter, name: str, index: int) -> bool:
    """Merges what a fetch or target takes, where it may be dead, with what happens then.

    TF fails where a fetch is dead, and passes over a target that is.
    """
    node = graph.nodes[name]
    found = pinned(graph, [parse(t) for t in node.input])
    if found is None:
        return False
    switch, side = found
    other = text_of((switch, 1 - side))
    is_target = node.op == "NoOp"
    if is_target:
        alive = graph.add(graph.unique(f"{name}_done"), "Identity", [text_of((switch, side))])
        alive.input.extend(node.input)
        dead = graph.add(graph.unique(f"{name}_dead"), "Identity", [other])
        dtype = graph.dtype((switch, side)).base_dtype.as_datatype_enum
        alive.attr["T"].type = dead.attr["T"].type = dtype
        edges = [alive.name, dead.name]
    else:
        dead = graph.add(graph.unique(f"{name}_dead"), "_DeadValue", [other])
        dtype = node.attr["T"].type
        dead.attr["T"].type, dead.attr["index"].i = dtype, index
        dead.attr["S"].type = graph.dtype((switch, side)).base_dtype.as_datatype_enum
        edges = [node.input[0], dead.name]
    merge = graph.add(graph.unique(f"{name}_merge"), "Merge", edges)
    merge.attr["T"].type, merge.attr["N"].i = dtype, len(edges)
    graph.merges.append(merge)
    node.input[:] = [f"^{merge.name}" if is_target else merge.name]
    return True


# ---------------------------------------------------------------- frames
def _frames(
    inside: Sequence[Operation], fed: Container[Tensor]
) -> dict[Operation, tuple[str, ...]]:
    """The frames, outermost first, in which the outputs of each operation are.

    Raises:
        InvalidArgumentError: an operation takes values of several, as TF's executor says.
    """
    frames: dict[Operation, tuple[str, ...]] = {}
    members = set(inside)

    def sources(op: Operation) -> list[Operation]:
        found = [t._op for t in op._inputs if t not in fed and t._op in members]
        found += [c for c in op._control_inputs if c in members]
        return [s for s in found if s._spec.traits.control is not Control.TURN]

    stack = list(inside)
    begun: set[Operation] = set()
    while stack:
        op = stack[-1]
        needed = [] if op in begun else [s for s in sources(op) if s not in frames]
        begun.add(op)
        if needed:
            stack += needed
            continue
        stack.pop()
        if op not in frames:
            frames[op] = _frame(op, [s for s in sources(op) if s in frames], frames)
    return frames


def _frame(
    op: Operation, sources: list[Operation], frames: dict[Operation, tuple[str, ...]]
) -> tuple[str, ...]:
    known = [s for s in sources if frames[s]] or sources
    for source in known[1:]:
        if frames[source] != frames[known[0]]:
            raise errors.InvalidArgumentError(
                None, op,
                f"{{{{node {op.name}}}}} has inputs from different frames. The input "
                f"{{{{node {known[0].name}}}}} is in frame '{_text(frames[known[0]])}'. The input "
                f"{{{{node {source.name}}}}} is in frame '{_text(frames[source])}'.",
            )  # fmt: skip
    around = frames[known[0]] if known else ()
    if op.type in ENTER:
        return (*around, op.attrs["frame_name"])
    return around[:-1] if op.type in EXIT else around


def _text(frame: tuple[str, ...]) -> str:
    return ";".join(frame)


__all__ = ["Functional", "functional"]
