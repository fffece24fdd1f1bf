"""Pieces: results that are made one at a time, each where it is first used, and inputs that are
taken one at a time.

A restore reads a whole model by one op, and its results would all be in memory until the last is
assigned. Ops that declare `pieces` can do the same in two steps: one that finds out whether all
results can be had, and one a result that makes it.

A save writes a whole model by one op, for which all variables of a device would be brought to the
host first. Ops that declare `gathers` begin, take one input after the other, and conclude: each
input is brought once what came before is written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from opdock import dtypes
from opdock.compiler.ir.block import Block, Node, Value
from opdock.graph.nodes import registry
from opdock.kernels.select.arguments import positions


def pieces(block: Block) -> None:
    """Puts, in place, nodes for single results and single inputs in the place of those of several.

    Who waits for a node of several results without using one waits for all that it does, so such a
    node stays as it is.
    """
    kinds = block.kinds()
    if any(t.pieces is not None for t in kinds):
        _results(block)
    if any(t.gathers is not None for t in kinds):
        _inputs(block)


def _results(block: Block) -> None:
    waited_for = {c for node in block.nodes for c in node.control}.union(block.targets)
    several = [n for n in block.nodes if _divisible(n) and n not in waited_for]
    if not several:
        return
    mapping: dict[Value, Value] = {}
    firsts = {node: _first(node) for node in several}
    for node, first in firsts.items():
        mapping.update((value, _piece(value, first)) for value in node.values())
        block.folded.append((node.name, node.op, "pieces: each result is made where it is used"))
    ahead = _first_used(block, mapping)
    nodes: list[Node] = []
    for node in block.nodes:
        nodes += ahead[node]
        nodes.append(firsts.get(node, node))
    block.nodes = nodes + ahead[None]
    block.replace(mapping, {})


def _inputs(block: Block) -> None:
    last: dict[Node, list[Node]] = {}
    nodes: list[Node] = []
    for node in block.nodes:
        chain = _chain(node) if node.traits.gathers is not None else []
        if chain:
            last[node] = chain[-1:]
            block.folded.append((node.name, node.op, "pieces: its inputs are taken one by one"))
        nodes += chain or [node]
    if last:
        block.nodes = nodes
        block.replace({}, last)


def _chain(node: Node) -> list[Node]:
    """What does the work of a node an input at a time; empty if there is one alone."""
    assert node.traits.gathers is not None
    assert node.spec is not None
    begin, take, conclude = node.traits.gathers
    arguments = node.spec.definition.inputs
    gathered = positions(arguments, node.attrs)[arguments[-1].name]
    if len(gathered) < 2 or "_kernel" in node.attrs:
        return []
    before = node.inputs[: gathered[0]]
    made = [_derived(node, begin, f"{node.name}/begin", dict(node.attrs), before, [dtypes.variant])]
    for index, at in enumerate(gathered):
        value = _source(node.inputs[at])
        attrs = {**_group(node), "dtype": value.dtype.base_dtype, "index": index}
        inputs = [Value(made[-1], 0), value]
        made.append(_derived(node, take, f"{node.name}/{index}", attrs, inputs, [dtypes.variant]))
    made.append(_derived(node, conclude, node.name, _group(node), [Value(made[-1], 0)], []))
    return made


def _source(value: Value) -> Value:
    """What a value is handed on from: a copy on the host that was asked for is made when needed."""
    while value.node.is_alias and not value.node.control:
        given = value.node.inputs[0]
        if given.dtype._is_ref_dtype:
            break
        value = given
    return value


def _divisible(node: Node) -> bool:
    return (
        node.traits.pieces is not None and len(node.out_dtypes) > 1 and "_kernel" not in node.attrs
    )


def _first_used(block: Block, made: dict[Value, Value]) -> dict[Node | None, list[Node]]:
    """The pieces to make before each node; before None, those that are only fetched."""
    ahead: dict[Node | None, list[Node]] = defaultdict(list)
    seen: set[Value] = set()
    users = [(node, node.inputs) for node in block.nodes]
    for user, values in [*users, (None, block.fetches)]:
        for value in values:
            if value in made and value not in seen:
                seen.add(value)
                ahead[user].append(made[value].node)
    return ahead


def _first(node: Node) -> Node:
    """What stands for the node as a whole."""
    assert node.traits.pieces is not None
    return _derived(
        node, node.traits.pieces[0], node.name, dict(node.attrs), list(node.inputs),
        [dtypes.variant],
    )  # fmt: skip


def _piece(value: Value, first: Node) -> Value:
    """What makes one result."""
    node, index = value
    assert node.traits.pieces is not None
    made = _derived(
        node, node.traits.pieces[1], f"{node.name}/{index}",
        {**_group(node), "dtype": value.dtype, "index": index}, [Value(first, 0)], [value.dtype],
    )  # fmt: skip
    made.out_shapes = [value.shape]
    return Value(made, 0)


def _group(node: Node) -> dict[str, object]:
    """The attribute that says what a node shares a device with, if it has it."""
    return {k: v for k, v in node.attrs.items() if k == "_class"}


def _derived(
    node: Node, op: str, name: str, attrs: dict[str, object], inputs: Sequence[Value],
    out_dtypes: list[dtypes.DType],
) -> Node:  # fmt: skip
    made = Node(
        op, name, spec=registry.get(op), attrs=attrs, inputs=inputs, out_dtypes=out_dtypes,
        out_shapes=[()] * len(out_dtypes), origin=node.origin, requested=node.requested,
        order=node.id,
    )  # fmt: skip
    made.control = list(node.control)
    return made
