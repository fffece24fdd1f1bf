"""Calls: the nodes of a function in the place of each call of it.

What is called is then folded, fused and placed with the rest, and a call costs nothing. This comes
before all other passes, which know of no calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from opdock import errors, shapes
from opdock.compiler.clean.prune import doubt, give, is_doubted, prune
from opdock.compiler.ir.block import Block, Node, Value
from opdock.compiler.ir.state import has_effect
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.traits import Control

if TYPE_CHECKING:
    from opdock.graph.control.func_graph import FuncGraph
    from opdock.graph.nodes.operation import Operation


def calls(block: Block) -> None:
    """Resolves all calls, in place.

    Raises:
        InvalidArgumentError: a function gives another number or other types of results than its
            call has, or takes other shapes.
        ResourceExhaustedError: functions that call each other come to too many nodes.
    """
    if not _are_left(block):
        return
    _check_sizes(block)
    while _are_left(block):
        _once(block)


def _are_left(block: Block) -> bool:
    return any(t.control is Control.CALL for t in block.kinds())


_MOST: Final = 1 << 22
"""Nodes that calls may come to: thirty functions that call the one before twice are a billion."""


def _check_sizes(block: Block) -> None:
    sizes: dict[FuncGraph, int] = {}
    total = 0
    for node in block.nodes:
        if node.traits.control is not Control.CALL:
            continue
        function = _callee(node)
        total += _size(function, sizes)
        if total > _MOST:
            raise errors.ResourceExhaustedError(
                None, node.origin,
                f"'{node.name}' calls '{function.func_name}', which comes to {total} nodes with "
                f"all that it calls, more than {_MOST}",
            )  # fmt: skip


def _size(function: FuncGraph, sizes: dict[FuncGraph, int]) -> int:
    """How many nodes a function comes to; those that it calls are counted before, once each."""
    path = [function]
    while path:
        last = path[-1]
        ops = last.get_operations()
        called = [_called(op) for op in ops if op.spec.traits.control is Control.CALL]
        missing = [f for f in called if f not in sizes]
        if missing:
            path += missing
        else:
            sizes[last] = len(ops) + sum(sizes[f] for f in called)
            path.pop()
    return sizes[function]


def _called(op: Operation) -> FuncGraph:
    assert op.spec.callee_fn is not None
    function: FuncGraph = op.spec.callee_fn(op.attrs)
    return function


def _once(block: Block) -> None:
    mapping: dict[Value, Value] = {}
    controls: dict[Node, list[Node]] = {}
    fresh: list[Node] = []
    for node in block.nodes:
        if node.traits.control is not Control.CALL:
            fresh.append(node)
            continue
        node.inputs = [mapping.get(v, v) for v in node.inputs]
        body, results, ends = _inlined(node)
        fresh += body
        # Whoever asks for one result has the whole function called.
        block.targets += [n for n in ends if n not in block.targets]
        mapping.update(zip(node.values(), results, strict=True))
        ends = [*ends, *(n for n in body if has_effect(n)), *(v.node for v in results)]
        controls[node] = list(dict.fromkeys(ends or [*node.control, *_makers(node)]))
    block.nodes = fresh
    block.replace(mapping, controls)


def _makers(node: Node) -> list[Node]:
    return list(dict.fromkeys(v.node for v in node.inputs))


def _inlined(node: Node) -> tuple[list[Node], list[Value], list[Node]]:
    """The nodes of the function that a node calls, its results, and what runs without one."""
    function, doubted = _callee(node), is_doubted(node)
    feeds = []
    for parameter, value in zip(function.inputs, node.inputs, strict=True):
        if value.dtype.base_dtype is not parameter.dtype.base_dtype:
            raise errors.InvalidArgumentError(
                None, node.origin,
                f"Function '{function.func_name}' takes an argument of type "
                f"{parameter.dtype.name}, but is called with {value.dtype.name}",
            )  # fmt: skip
        if doubted:
            feeds.append((parameter, value.dtype, value.shape))
            continue
        if not shapes.is_compatible(value.shape, parameter.raw_shape):
            raise errors.InvalidArgumentError(
                None, node.origin,
                f"Function '{function.func_name}' takes an argument of shape "
                f"{shapes.text(parameter.raw_shape)}, but is called with "
                f"{shapes.text(value.shape)}",
            )  # fmt: skip
        feeds.append((parameter, value.dtype, shapes.merge(value.shape, parameter.raw_shape)))
    body = prune(function.outputs, function.targets, feeds)
    if doubted:
        doubt(body)
    give(body, node.inputs)
    made = set(body.nodes)
    results = [v if v.node in made else _passed_on(node, i, v) for i, v in enumerate(body.fetches)]
    nodes = [*body.nodes, *(v.node for v in results if v.node not in made)]
    # A call begins when all its arguments are there: what makes one may have an effect.
    used = {v.node for n in nodes for v in n.inputs}
    waits = [*node.control, *(n for n in _makers(node) if n not in used)]
    for inner in nodes:
        inner.name = f"{node.name}/{inner.name}"
        inner.requested = inner.requested or node.requested
        inner.id = node.id
        if not inner.is_const:
            inner.control = list(dict.fromkeys([*inner.control, *waits]))
    return nodes, results, [n for n in body.targets if has_effect(n) or not n.out_dtypes]


def _callee(node: Node) -> FuncGraph:
    assert node.spec is not None
    assert node.spec.callee_fn is not None
    function: FuncGraph = node.spec.callee_fn(node.attrs)
    wanted = [d.base_dtype for d in node.out_dtypes]
    given = [t.dtype.base_dtype for t in function.outputs]
    if wanted != given or len(function.inputs) != len(node.inputs):
        names = [[d.name for d in kinds] for kinds in (wanted, given)]
        raise errors.InvalidArgumentError(
            None, node.origin,
            f"'{node.name}' calls '{function.func_name}' with {len(node.inputs)} arguments and "
            f"expects results {names[0]}, but it takes {len(function.inputs)} and gives "
            f"{names[1]}",
        )  # fmt: skip
    return function


def _passed_on(node: Node, index: int, value: Value) -> Value:
    """A result that is an argument, as a value of the call, which may have to wait."""
    identity = get("Identity")
    made = Node(
        identity.name, f"result_{index}", spec=identity, attrs={"T": value.dtype.base_dtype},
        inputs=[value], out_dtypes=[value.dtype.base_dtype], out_shapes=[value.shape],
        origin=node.origin, requested=node.requested, order=node.id,
    )  # fmt: skip
    return Value(made, 0)
