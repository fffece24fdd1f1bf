"""The ladder: how a node finds its kernel on one device, with a reason for each rejection.

Own kernel, then portable kernel, then the op's decomposition, or the op in the other data format
between transposes; at last the kernel of a plugin that the backend does not admit. The next device
is `place`'s step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

from opdock import errors
from opdock.compiler.ir.block import COPY, Block, Node, Value
from opdock.compiler.ir.state import cell_inputs, written
from opdock.compiler.place.experience import Experience
from opdock.compiler.place.formats import in_other_format
from opdock.compiler.place.target import Target
from opdock.dtypes import DType
from opdock.failures import failures
from opdock.graph.control import func_graph
from opdock.graph.control.func_graph import arg_op
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.kernels.select.selection import Entry, Rejection, judge_alone, select
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.select.table import Kernel
from opdock.late import record
from opdock.shapes import Shape

MAX_DEPTH = 6
SESSION: Final = "session"
"""The plugin's name of kernels that the user gives to a session."""


@record(slots=True)
class Choice:
    """How a device would run a node.

    Attributes:
        kind: "builtin", "native", "portable" or "decomposed".
        kernel: the kernel, when there is a single one.
        plugin: where the kernel comes from.
        body: the traced decomposition.
        outputs: those of `body`.
        parts: the inner choices, by operation of `body`.
    """

    kind: str
    kernel: Kernel | None = None
    plugin: str = ""
    body: Any = None
    outputs: Sequence[Tensor] = ()
    parts: Mapping[Operation, Choice] | None = None


def node_sig(
    node: Node, target: Target | None, resources: Any = None, functions: Any = None
) -> NodeSig:
    """The signature under which kernels are chosen and bound."""
    # Made several times for every node, so loops are plain.
    consts, in_shapes, in_dtypes, in_names = {}, [], [], []
    for i, (before, index) in enumerate(node.inputs):
        if before.is_const:
            consts[i] = before.attrs["value"]
        in_shapes.append(before.out_shapes[index])
        in_dtypes.append(before.out_dtypes[index].base_dtype)
        # A copy is ours: who is told of the input knows the node that made it.
        in_names.append(before.inputs[0].node.name if before.op == COPY else before.name)
    out_dtypes = tuple([d.base_dtype for d in node.out_dtypes])
    return NodeSig(
        node.op, node.name, node.attrs, tuple(in_shapes), tuple(in_dtypes),
        tuple(node.out_shapes), out_dtypes, consts, None if target is None else target.device,
        resources, tuple(in_names), functions,
    )  # fmt: skip


def climb(
    node: Node, target: Target, resources: Any, experience: Experience, depth: int = 0
) -> tuple[Choice | None, list[Rejection]]:
    """The first rung of `target`'s ladder that admits `node`, and why the others do not."""
    rejections: list[Rejection] = []
    if node.builtin:
        return Choice("builtin", plugin="core"), rejections
    barred = experience.banned(node, target.name)
    if barred:
        return None, [Rejection(device=target.name, reason=barred)]
    try:
        index = target.index
        judged = index.judged(node.op, node.attrs, target.name)
        selection = judged.settled
        sig = None if selection is not None else node_sig(node, target, resources)
    except errors.OpError as e:
        return None, [Rejection(device=target.name, reason=f"the device did not open: {e}")]
    if selection is None:
        assert sig is not None
        selection = select(sig, index, target.name, judged)
    for kernel in experience.wanted(node, target.name) if experience.swaps else ():
        own = Entry(kernel, plugin=SESSION)
        answer = judge_alone(own, node_sig(node, target, resources), target.name)
        if isinstance(answer, Rejection):
            rejections.append(answer)
        elif (found := _first(node, target, [answer], experience, rejections)) is not None:
            return found, rejections
    rejections += selection.rejections
    admitted = () if selection.chosen is None else (selection.chosen, *selection.alternatives)
    mine = [e for e in admitted if not e.guest]
    guests = [e for e in admitted if e.guest]
    found = _first(node, target, mine, experience, rejections)
    if found is not None:
        return found, rejections + [_last(e, target) for e in guests]
    decomposed, why = decompose(node, target, resources, experience, depth)
    if decomposed is None and node.is_alias:
        return Choice("builtin", plugin="core"), rejections
    if decomposed is None:
        rejections.append(Rejection(device=target.name, kernel="decomposition", reason=why))
        return _first(node, target, guests, experience, rejections), rejections
    return decomposed, rejections + [_last(e, target) for e in guests]


def _last(guest: Entry, target: Target) -> Rejection:
    """Why a kernel is not asked that a plugin has brought for another's backend."""
    reason = f"it comes last, as the backend does not admit the plugin: OPDOCK_ADMIT={guest.plugin}"
    name = guest.kernel.qualname
    return Rejection(device=target.name, kernel=name, plugin=guest.plugin, reason=reason)


def _first(
    node: Node, target: Target, entries: list[Entry], experience: Experience,
    rejections: list[Rejection],
) -> Choice | None:  # fmt: skip
    """The first kernel that has not given up on the node; those that have add a reason each."""
    for entry in entries:
        barred = experience.banned(node, target.name, entry.kernel.qualname)
        if not barred:
            kind = "portable" if entry.kernel.is_portable else "native"
            return Choice(kind, kernel=entry.kernel, plugin=entry.plugin)
        rejections.append(
            Rejection(
                device=target.name, kernel=entry.kernel.qualname, plugin=entry.plugin, reason=barred
            )
        )
    return None


def decompose(
    node: Node, target: Target, resources: Any, experience: Experience, depth: int = 0
) -> tuple[Choice | None, str]:
    """What `target` would run in the place of `node`; else the reason why it cannot."""
    fn = None if node.spec is None else node.spec.decomposition_fn
    turned = in_other_format(node) if fn is None else None
    if (fn is None and turned is None) or node.spec is None:
        return None, "the op has none"
    if node.attrs.get("use_locking") and written(node):
        return None, "its parts are not the one update that use_locking asks for"
    if depth >= MAX_DEPTH:
        return None, "nested too deeply"
    # What is read is a value, also where it comes of a reference to a variable.
    cells = cell_inputs(node)
    inputs = [
        (v.dtype if i in cells else v.dtype.base_dtype, v.shape) for i, v in enumerate(node.inputs)
    ]
    sig = node.shape_sig(node.spec)

    def build(*tensors: Tensor) -> Any:
        if turned is not None:
            return turned(*tensors)
        assert fn is not None
        return fn(sig, *tensors)

    try:
        body, result = trace_apart(f"{node.name}/decomposed", build, inputs)
    except (ValueError, TypeError, NotImplementedError) as e:
        return None, f"does not apply here: {e}"
    except failures() as e:
        return None, f"raised {type(e).__name__}: {e}{_at(fn)}"
    outputs = _as_list(result)
    if wrong := _misfit(outputs, node):
        return None, f"{wrong}{_at(fn)}"
    parts: dict[Operation, Choice] = {}
    inner = body_nodes(body, node)
    for op in body.get_operations():
        if op.spec is arg_op:
            continue
        choice, lost = climb(inner[op], target, resources, experience, depth + 1)
        if choice is None:
            return (
                None,
                f"its op {op.type} has no kernel here ({lost[-1].reason if lost else 'none'})",
            )
        parts[op] = choice
    return Choice("decomposed", plugin="core", body=body, outputs=outputs, parts=parts), ""


class _NoOuter:
    """Stands for the absent outer graph of a decomposition: it captures nothing."""

    seed = None
    _scopes = SimpleNamespace(colocation=(), devices=())
    _thread = SimpleNamespace(variable_creators=())
    _container = ""
    _name_stack = ""

    def __init__(self) -> None:
        self._collections: dict[Any, Any] = {}
        self._scoped_state: dict[Any, Any] = {}

    @property
    def _count(self) -> list[int]:
        """None yet: a decomposition numbers its operations itself."""
        return [0]

    def _names_of_bodies(self) -> dict[str, int]:
        """None yet: a decomposition has names of its own."""
        return {}

    def _may_capture(self, other: Any) -> bool:
        return False


_NO_OUTER: Any = _NoOuter()


def trace_apart(
    name: str, build: Callable[..., Any], inputs: Sequence[tuple[DType, Shape]]
) -> tuple[Any, Any]:
    """The graph that `build` makes of parameters alone, and what it returned."""
    return func_graph.trace(name, build, inputs, outer=_NO_OUTER)


def _misfit(outputs: Sequence[Any], node: Node) -> str:
    """What is wrong about the results of a decomposition; empty if they can be the node's."""
    if len(outputs) != len(node.out_dtypes):
        return f"gives {len(outputs)} outputs, the op has {len(node.out_dtypes)}"
    for i, (found, dtype) in enumerate(zip(outputs, node.out_dtypes, strict=True)):
        if not isinstance(found, Tensor):
            return f"gives a {type(found).__name__} as output {i}, where a tensor is expected"
        if found.dtype.base_dtype is not dtype.base_dtype:
            return f"gives output {i} as {found.dtype.name}, the op has {dtype.name}"
    return ""


def _at(fn: Callable[..., Any] | None) -> str:
    """Where a function was written that an author of ops may have to mend."""
    code = getattr(fn, "__code__", None)
    return "" if code is None else f" ({code.co_filename}:{code.co_firstlineno})"


def _as_list(result: Any) -> list[Any]:
    if isinstance(result, Operation):
        return []
    if isinstance(result, (list, tuple)):
        return list(result)
    return [] if result is None else [result]


def body_nodes(body: Any, node: Node) -> dict[Operation, Node]:
    """The operations of a traced body as nodes, with arguments wired to the inputs of `node`."""
    made: dict[Operation, Node] = {}
    values: dict[Tensor, Value] = {}
    for op in body.get_operations():
        if op.spec is arg_op:
            values[op.outputs[0]] = node.inputs[op.attrs["index"]]
            continue
        inner = Node(
            op.type,
            f"{node.name}/{op.name}",
            spec=op.spec,
            attrs=op.attrs,
            inputs=[values[t] for t in op.inputs],
            out_dtypes=[t.dtype for t in op.outputs],
            out_shapes=[t.raw_shape for t in op.outputs],
            origin=node.origin,
            requested=node.requested,
            order=node.id,
        )
        inner.made_by = node.made_by
        inner.control = [made[c] for c in op.control_inputs if c in made]
        made[op] = inner
        values.update({t: Value(inner, i) for i, t in enumerate(op.outputs)})
    return made


def expand(block: Block, node: Node, choice: Choice) -> tuple[list[Node], dict[Value, Value]]:
    """The nodes of a decomposition in place of `node`, and where its outputs now come from."""
    assert choice.parts is not None
    made = body_nodes(choice.body, node)
    out: list[Node] = []
    mapping: dict[Value, Value] = {}
    values: dict[Tensor, Value] = {}
    for op in choice.body.get_operations():
        if op.spec is arg_op:
            values[op.outputs[0]] = node.inputs[op.attrs["index"]]
            continue
        inner, part = made[op], choice.parts[op]
        inner.inputs = [mapping.get(v, v) for v in inner.inputs]
        inner.control = [*inner.control, *node.control]
        inner.target, inner.how, inner.kernel = node.target, "decomposed", part.kernel
        inner.why = f"from {node.op} '{node.name}'"
        if part.kind == "decomposed":
            nested, nested_map = expand(block, inner, part)
            out += nested
            mapping.update(nested_map)
        else:
            if part.kind == "builtin":
                inner.how = "builtin"
            out.append(inner)
        values.update({t: Value(inner, i) for i, t in enumerate(op.outputs)})
    for i, tensor in enumerate(choice.outputs):
        value = values[tensor]
        mapping[Value(node, i)] = mapping.get(value, value)
    return out, mapping


__all__ = ["Choice", "Rejection", "climb", "decompose", "expand", "node_sig"]
