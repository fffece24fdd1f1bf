"""Prune: the IR of just the nodes that the fetches need, with feeds cut in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from opdock import errors, shapes
from opdock.compiler.ir.block import FEED, Block, Node, Value, value_of
from opdock.compiler.ir.order import in_order
from opdock.compiler.ir.state import variable_name
from opdock.dtypes import DType
from opdock.graph.control.func_graph import arg_op
from opdock.graph.control.v1_switched import switched
from opdock.graph.nodes.constant_value import constant_for_shapes
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import PartialShape
from opdock.graph.nodes.traits import Control, Cost
from opdock.kernels.rank_words import refusal
from opdock.shapes import Shape

if TYPE_CHECKING:
    from opdock.graph.control.v1_raw import Functional

_DOUBTED: Final = "_doubted"
# What every operation is asked for, without a call of Python's.
_op, _dtype, _shape = attrgetter("_op"), attrgetter("_dtype"), attrgetter("_shape")


def prune(
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[tuple[Tensor, DType, Shape]],
) -> Block:
    """Builds the block of everything that `fetches` and `targets` depend on.

    Args:
        fetches: tensors to return.
        targets: operations to run for their effect.
        feeds: (tensor, type, concrete shape) that the caller supplies; any tensor can be fed.

    Raises:
        InvalidArgumentError: the graph has a cycle, or values of several loops meet.
        UnimplementedError: switches and loops stand in a pattern that has no functional form.
    """
    given = {t for t, _, _ in feeds}
    inside = _switches(fetches, targets, given)
    if inside:
        # Few programs have it, and it brings the importer of graphs.
        from opdock.graph.control.v1_raw import functional

        return _with_function(functional(inside, fetches, targets, given), fetches, targets, feeds)
    return as_written(fetches, targets, feeds)


def has_switches(
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[tuple[Tensor, DType, Shape]],
) -> bool:
    """Whether what is needed has conditions or loops that are built of Switches and Merges."""
    return bool(_switches(fetches, targets, {t for t, _, _ in feeds}))


def _switches(
    fetches: Sequence[Tensor], targets: Sequence[Operation], given: set[Tensor]
) -> list[Operation]:
    return switched([t._op for t in fetches if t not in given] + list(targets), given)


def give(body: Block, values: Sequence[Value]) -> None:
    """Puts values in the place of what a block is fed."""
    arguments: dict[Value, Value] = dict(zip(body.feeds, values, strict=True))
    body.feeds = []
    body.nodes = [n for n in body.nodes if n.op != FEED]
    body.replace(arguments, {})


def _with_function(
    made: Functional,
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[tuple[Tensor, DType, Shape]],
) -> Block:
    """The block where a function stands for a part of what is needed."""
    plain = [t for t in fetches if t not in made.tensors]
    waits = list(made.waits.values())
    others = [op for op in targets if op not in made.ops]
    block = as_written([*plain, *made.sources], [*others, *waits], feeds)
    sources = block.fetches[len(plain) :]
    arguments = [
        (t, v.dtype, v.shape) for t, v in zip(made.graph.inputs, sources, strict=True)
    ]  # fmt: skip
    inner = as_written(made.graph.outputs, made.graph.targets, arguments)
    stand_ins = dict(zip(made.waits, block.targets[len(others) :], strict=True))
    for node in inner.nodes:
        if node.origin in stand_ins:
            node.control = [*node.control, stand_ins[node.origin]]
    give(inner, sources)
    results = dict(zip(plain, block.fetches, strict=False))
    results.update(zip(made.tensors, inner.fetches, strict=True))
    ends = dict(zip(others, block.targets, strict=False))
    ends.update(zip(made.ops, inner.targets, strict=True))
    block.nodes += inner.nodes
    block.fetches = [results[t] for t in fetches]
    block.targets = [ends[op] for op in targets]
    return block


def as_written(
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    feeds: Sequence[tuple[Tensor, DType, Shape]],
    done: AbstractSet[Operation] = frozenset(),
) -> Block:
    """The block of a graph whose nodes all run: a node for each operation, and for each feed.

    But those in `done`: they have run, and what is needed of them is fed. Of references that they
    pass on, what these refer to stands in their place.
    """
    stands = references(done)
    block = Block()
    nodes: dict[Operation, Node] = {}
    values: dict[Tensor, Value] = {}
    alike = _Alike()
    for i, (tensor, dtype, shape) in enumerate(feeds):
        node = Node(
            FEED, tensor.name, spec=None, attrs={"index": i}, inputs=[], out_dtypes=[dtype],
            out_shapes=[shape], origin=tensor.op, requested=tensor.op.device, order=tensor.op._id,
        )  # fmt: skip
        values[tensor] = Value(node, 0)
        block.nodes.append(node)
        block.feeds.append(values[tensor])
    fed = dict(values)
    fetches = [stands.get(t, t) for t in fetches]
    roots = [t.op for t in fetches if t not in fed] + list(targets)
    # To wait for a fed placeholder is to wait for nothing.
    arrived = {t.op for t in fed if t.op.spec.traits.placeholder} - set(targets)
    arrived |= done
    doubtful = {
        t for t, v in fed.items() if _has_shaped(t) or not shapes.is_compatible(v.shape, t._shape)
    }
    for op in _in_order(roots, fed, arrived, stands):
        node = nodes[op] = _node(op, nodes, values, stands, alike)
        outputs = op.outputs
        if len(outputs) == 1 and outputs[0] not in fed:
            values[outputs[0]] = value_of((node, 0))
        elif outputs:
            made = zip(outputs, node.values(), strict=True)
            values.update((t, v) for t, v in made if t not in fed)
        if doubtful and not doubtful.isdisjoint(op._inputs):
            _doubt(node)
            doubtful.update(op.outputs)
        block.nodes.append(node)
    block.fetches = [values[t] for t in fetches]
    block.targets = [nodes[op] for op in targets]
    _release_constants(block)
    return block


def references(done: AbstractSet[Operation]) -> dict[Tensor, Tensor]:
    """The references that operations pass on, to those that they were given."""
    found = {}
    for op in done:
        for tensor in op.outputs:
            given: Tensor | None = tensor
            while given is not None and given.op in done and given.dtype._is_ref_dtype:
                given = next((t for t in given.op.inputs if t.dtype._is_ref_dtype), None)
            if given is not None and given is not tensor:
                found[tensor] = given
    return found


def _has_shaped(tensor: Tensor) -> bool:
    """Whether static shapes may rest on the value that the tensor has when nobody feeds it."""
    if tensor.op.spec.traits.placeholder or not tensor.dtype.is_numpy_compatible:
        return False
    known = constant_for_shapes(tensor)
    return any(known.shape or ()) if isinstance(known, PartialShape) else known is not None


def _in_order(
    roots: list[Operation],
    fed: dict[Tensor, Value],
    arrived: set[Operation],
    stands: dict[Tensor, Tensor],
) -> list[Operation]:
    """The operations that roots need, in executable order, earlier-made ones first.

    Raises:
        InvalidArgumentError: the graph has a cycle.
    """
    seen = set(arrived)
    order: list[Operation] = []
    waiting = list(roots)
    in_turn = True  # whether all that an operation needs was made before it
    while waiting:
        op = waiting.pop()
        if op in seen:
            continue
        seen.add(op)
        order.append(op)
        for other in _needed(op, fed, stands):
            if other not in seen:
                waiting.append(other)
            if other._id >= op._id:
                in_turn = False
    # The order in which the user made the ops is the one users expect, an update made last runs
    # last, and it is executable unless control inputs were added later.
    order.sort(key=attrgetter("_id"))
    if not in_turn and not _is_executable(order):
        _refuse_cycles(roots, fed, arrived, stands)
        order = _topological(order)
    return _blocking_last(order)


def _needed(
    op: Operation, fed: dict[Tensor, Value], stands: dict[Tensor, Tensor]
) -> list[Operation]:
    """What must run before an operation."""
    given = op._inputs
    if stands:
        needed = [stands.get(t, t)._op for t in given if t not in fed]
    elif fed.keys().isdisjoint(given):
        needed = list(map(_op, given))
    else:
        needed = [t._op for t in given if t not in fed]
    if op._control_inputs:
        # The arguments of a body are there when it is called.
        needed += [c for c in op._control_inputs if c.spec is not arg_op]
    return needed


def _refuse_cycles(
    roots: list[Operation],
    fed: dict[Tensor, Value],
    arrived: set[Operation],
    stands: dict[Tensor, Tensor],
) -> None:
    """Depth first from the roots, to find operations that wait for each other.

    Raises:
        InvalidArgumentError: there are some.
    """
    finished: dict[Operation, bool] = dict.fromkeys(arrived, True)
    stack = [(r, False) for r in reversed(roots)]
    while stack:
        op, done = stack.pop()
        if done:
            finished[op] = True
        elif op not in finished:
            finished[op] = False
            stack.append((op, True))
            for other in _needed(op, fed, stands):
                if not finished.get(other, True):
                    # It waits for this op, as all that is seen and not finished does.
                    path = [o for o, begun in stack if begun]
                    raise _cycle(path[path.index(other) :])
                stack.append((other, False))


def _blocking_last(order: list[Operation]) -> list[Operation]:
    """The same order, but what waits for other steps, and all that needs it, after the rest.

    What it waits for may never come if the rest fails, or the rest may be what brings it. For the
    same reason those that give something come before those that take.
    """
    if True not in [op._spec.traits.blocks for op in order]:
        return order
    turn: dict[Operation, int] = {}
    for op in order:
        own = 0
        if op.spec.traits.blocks:
            own = 2 if op.outputs else 1
        needs = [turn.get(t._op, 0) for t in op._inputs]
        needs += [turn.get(c, 0) for c in op._control_inputs]
        turn[op] = max(own, *needs, 0)
    return sorted(order, key=turn.__getitem__)


def _cycle(members: list[Operation]) -> errors.InvalidArgumentError:
    names = ", ".join(repr(op.name) for op in members[:5])
    return errors.InvalidArgumentError(
        None, members[0],
        f"Graph is invalid, contains a cycle with {len(members)} nodes, including: {names}",
    )  # fmt: skip


def _is_executable(order: list[Operation]) -> bool:
    ahead = set(order)
    for op in order:
        for t in op._inputs:
            if t._op in ahead:
                return False
        if op._control_inputs and not ahead.isdisjoint(op._control_inputs):
            return False
        ahead.discard(op)
    return True


def _topological(order: list[Operation]) -> list[Operation]:
    """The operations so that each follows what it needs, otherwise in the order of creation."""
    found = in_order(
        order, lambda op: (*(t._op for t in op._inputs), *op._control_inputs), lambda op: op._id
    )
    if len(found) < len(order):
        done = set(found)
        raise _cycle([op for op in order if op not in done])
    return found


class _Alike:
    """The types and the shapes of single results, each made once: most nodes of a program share
    them with others."""

    __slots__ = ("shapes", "types")

    def __init__(self) -> None:
        self.types: dict[int, Sequence[DType]] = {}  # by identity: types have a hash of Python's
        self.shapes: dict[Shape, Sequence[Shape]] = {}


def _node(
    op: Operation,
    nodes: dict[Operation, Node],
    values: dict[Tensor, Value],
    stands: dict[Tensor, Tensor],
    alike: _Alike,
) -> Node:
    # Most steps go on from nothing.
    given = [stands.get(t, t) for t in op._inputs] if stands else op._inputs
    outputs = op.outputs
    if len(outputs) == 1:
        dtype, shape = outputs[0]._dtype, outputs[0]._shape
        types, known = alike.types.get(id(dtype)), alike.shapes.get(shape)
        if types is None:
            types = alike.types[id(dtype)] = (dtype,)
        if known is None:
            known = alike.shapes[shape] = (shape,)
    else:
        types, known = tuple(map(_dtype, outputs)), tuple(map(_shape, outputs))
    node = Node(
        op._spec.name, op._name, spec=op._spec, attrs=op.attrs,
        inputs=tuple([values[t] for t in given]), out_dtypes=types, out_shapes=known, origin=op,
        requested=op._device, order=op._id,
    )  # fmt: skip
    if op._control_inputs:
        node.control = [nodes[c] for c in op._control_inputs if c in nodes]
    return node


def lone_node(op: Operation) -> Node:
    """An operation as a node without its inputs, to ask where it may run."""
    return Node(
        op.type, op.name, spec=op.spec, attrs=op.attrs, inputs=[], out_dtypes=[], out_shapes=[],
        origin=op, requested=op.device, order=op._id,
    )  # fmt: skip


def _release_constants(block: Block) -> None:
    """A constant waits for nothing: what it was made to wait for, its consumers wait for."""
    waits: dict[Node, Sequence[Node]] = {}
    kept = {*block.targets, *(v.node for v in block.fetches)}
    for node in block.nodes:
        if node.control:
            if waits:  # one constant may wait for another, and a node for one without its value
                node.control = [*dict.fromkeys(d for c in node.control for d in waits.get(c, (c,)))]
            if node.is_const:
                waits[node] = node.control
                if node not in kept:
                    node.control = []
                continue
        if waits:
            behind = [c for source, _ in node.inputs for c in waits.get(source, ())]
            if behind:
                node.control = [*dict.fromkeys([*node.control, *behind])]


def refine_shapes(block: Block) -> None:
    """Runs every shape function again, now that the shapes of the feeds are known.

    Raises:
        InvalidArgumentError: the fed shapes do not fit an op; the message names both.
    """
    for node in block.nodes:
        if not _may_be_told(node):
            continue
        try:
            node.infer()
        except ValueError as e:
            raise errors.InvalidArgumentError(
                None, node.origin, runtime_text(node, str(e))
            ) from None


def doubt(block: Block) -> None:
    """Leaves nothing of what is known of shapes but what shape functions will find again."""
    for node in block.nodes:
        if node.op == FEED or (node.spec and node.spec.shape_fn and _may_be_told(node)):
            _doubt(node)


def doubt_variables(block: Block, names: AbstractSet[str]) -> None:
    """Leaves nothing of what rests on the shapes of some variables."""
    doubtful = {n for n in block.nodes if n.traits.holds and variable_name(n) in names}
    for node in block.nodes if doubtful else ():
        if node in doubtful or not doubtful.isdisjoint(v.node for v in node.inputs):
            _doubt(node)
            doubtful.add(node)


def reshaped_variables(block: Block) -> Iterator[str]:
    """The variables that the block itself may give other shapes than the graph says."""
    for node in block.nodes:
        if node.attrs.get("validate_shape") is False:
            variable, value = node.inputs[:2]
            if variable.node.traits.holds and variable.shape not in (None, value.shape):
                yield variable_name(variable.node)


def is_doubted(node: Node) -> bool:
    """Whether the functions of a node may get values of other shapes than they were made for."""
    return _DOUBTED in node.attrs


def _doubt(node: Node) -> None:
    node.out_shapes = [None] * len(node.out_dtypes)
    if node.traits.control is not Control.NONE:
        node.attrs = {**node.attrs, _DOUBTED: True}


def _may_be_told(node: Node) -> bool:
    """Whether shapes of a node depend on more than its attributes."""
    return bool(node.inputs or node.traits.foreign) and not node.is_const


def forget_claims(block: Block) -> None:
    """Lets results have any shape that a step alone hands out: nothing is compiled for them."""
    claiming = [n for n in block.nodes if n.claimed]
    used = {v for n in block.nodes for v in n.inputs} if claiming else set()
    for node in claiming:
        node.claimed = tuple(i for i in node.claimed if Value(node, i) in used)


def runtime_text(node: Node, text: str) -> str:
    """What a step says where a shape function refuses the shapes that it has, and where."""
    inputs = node.inputs
    words = refusal(node.spec, [v.shape for v in inputs], node.attrs) if node.spec else None
    if words is not None:
        text = f"{words.removesuffix('.')}. {text}"
    elif len(inputs) == 2 and text.startswith("Dimensions must be equal"):
        a, b = shapes.text(inputs[0].shape), shapes.text(inputs[1].shape)
        if node.traits.cost is Cost.PRODUCT:
            text = f"Matrix size-incompatible: In[0]: {a}, In[1]: {b}. {text}"
        else:
            text = f"Incompatible shapes: {a} vs. {b}. {text}"
    line = node.origin.user_line if node.origin is not None else ""
    return f"{text}\n\t [[node {node.name} (defined at {line})]]" if line else text
