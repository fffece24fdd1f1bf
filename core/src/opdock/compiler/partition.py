"""Partition: every value gets to where it is used. Copies are nodes, so traces show them."""

from __future__ import annotations

from opdock.compiler.ir import COPY, FEED, HOST, Block, Node, Value
from opdock.compiler.target import Target

# Handles and references are names of state, not data: they are never copied.
_CONTROL = frozenset({"If", "While", "StatelessIf", "StatelessWhile"})


def partition(block: Block, results_at: str = HOST) -> None:
    """Inserts a copy wherever a value lives elsewhere than its consumer needs it.

    Args:
        block: changed in place.
        results_at: where the fetches must end: host memory, or a device for function bodies.
    """
    copies: dict[tuple[Value, str], Value] = {}
    fresh: list[Node] = []
    for node in block.nodes:
        _declare_memory(node)
        for i, value in enumerate(node.inputs):
            where = needed_at(node, i)
            if where is not None:
                node.inputs[i] = _at(block, value, where, node, copies, fresh)
        fresh.append(node)
    block.fetches = [
        v if i in block.cells or _names_state(v)
        else _at(block, v, results_at, None, copies, fresh)
        for i, v in enumerate(block.fetches)
    ]  # fmt: skip
    block.nodes = fresh
    # Constants that a twin replaced everywhere.
    block.sweep()


def _names_state(value: Value) -> bool:
    """Handles are passed on as they are."""
    return value.dtype.name in ("resource", "variant")


def location(value: Value) -> str:
    """Where a value lives: a device name, or `HOST`."""
    node = value.node
    if node.op == FEED:
        return str(node.attrs.get("at", HOST))
    if node.op == COPY:
        where: str = node.attrs["to"]
        return where
    if value.index in node.host_outputs or node.target is None or node.target.is_host:
        return HOST
    return node.target.name


def needed_at(node: Node, index: int) -> str | None:
    """Where input `index` of `node` must live; None when anywhere will do."""
    if node.target is None or index in cell_inputs(node):
        return None
    if index in node.host_inputs or node.target.is_host:
        return HOST
    return node.target.name


def _control_cells(node: Node) -> frozenset[int]:
    """Inputs of a control-flow node that its bodies take as variables."""
    first = 1 if node.op.endswith("If") else 0
    body = node.attrs["then_branch" if first else "body"]
    return frozenset(
        i + first
        for i, tensor in enumerate(body.inputs)
        if tensor.dtype._is_ref_dtype or tensor.dtype.name in ("resource", "variant")
    )


def cell_inputs(node: Node) -> frozenset[int]:
    """The flat indices of inputs that take a variable itself rather than its value."""
    if node.spec is None:
        return frozenset()
    if node.op in _CONTROL:
        return _control_cells(node)
    found: set[int] = set()
    start = 0
    for arg in node.spec.definition.inputs:
        count = 1
        if arg.number_attr:
            count = node.attrs[arg.number_attr]
        elif arg.type_list_attr:
            count = len(node.attrs[arg.type_list_attr])
        for i in range(start, start + count):
            if arg.is_ref or node.inputs[i].dtype.name in ("resource", "variant"):
                found.add(i)
        start += count
    return frozenset(found)


def _declare_memory(node: Node) -> None:
    """Argument names that a kernel wants in host memory, as flat input and output indices."""
    kernel, spec = node.kernel, node.spec
    if node.op in (
        "Shape",
        "ShapeN",
        "Size",
        "Rank",
        "IsVariableInitialized",
        "VarIsInitializedOp",
        "VariableShape",
    ):
        node.host_outputs = frozenset(range(len(node.out_dtypes)))
    if node.op in _CONTROL and node.op.endswith("If"):
        node.host_inputs = frozenset({0})
    if kernel is None or spec is None or not (kernel.host_inputs or kernel.host_outputs):
        return
    node.host_inputs = _flat(spec.definition.inputs, kernel.host_inputs, node)
    node.host_outputs = _flat(spec.definition.outputs, kernel.host_outputs, node)


def _flat(args: object, names: frozenset[str], node: Node) -> frozenset[int]:
    found: set[int] = set()
    start = 0
    for arg in args:  # type: ignore[attr-defined]
        count = 1
        if arg.number_attr:
            count = node.attrs[arg.number_attr]
        elif arg.type_list_attr:
            count = len(node.attrs[arg.type_list_attr])
        if arg.name in names:
            found.update(range(start, start + count))
        start += count
    return frozenset(found)


def _at(
    block: Block,
    value: Value,
    where: str,
    consumer: Node | None,
    copies: dict[tuple[Value, str], Value],
    fresh: list[Node],
) -> Value:
    here = location(value)
    if here == where:
        return value
    # What a reference refers to may change between two uses, so each use copies anew.
    known = None if value.dtype._is_ref_dtype else copies.get((value, where))
    if known is not None:
        return known
    if value.node.op == "Const":
        twin = _twin(value.node, None if where == HOST else consumer)
        fresh.append(twin)
        copies[(value, where)] = Value(twin, 0)
        return copies[(value, where)]
    source: Target | None = value.node.target if here != HOST else None
    target = consumer.target if consumer is not None and where != HOST else None
    if target is None and where != HOST:
        target = source
    node = Node(
        COPY,
        f"{value.node.name}/copy_to_{_short(where)}",
        spec=None,
        attrs={"from": here, "to": where},
        inputs=[value],
        out_dtypes=[value.dtype.base_dtype],
        out_shapes=[value.shape],
        origin=value.node.origin,
        order=value.node.id,
    )
    node.target = target or source
    node.how, node.why = "copy", f"{here} to {where}"
    block.copies += 1
    fresh.append(node)
    copies[(value, where)] = Value(node, 0)
    return copies[(value, where)]


def _short(where: str) -> str:
    """A place as part of a node name: "host", "GPU0"."""
    return where if where == HOST else "".join(where.rsplit(":", 2)[-2:])


def _twin(constant: Node, consumer: Node | None) -> Node:
    """A constant again, where it is needed: cheaper than copying it every step."""
    twin = Node(
        "Const",
        constant.name,
        spec=constant.spec,
        attrs=constant.attrs,
        inputs=[],
        out_dtypes=constant.out_dtypes,
        out_shapes=constant.out_shapes,
        origin=constant.origin,
        order=constant.id,
    )
    twin.target = consumer.target if consumer is not None else None
    twin.how, twin.why = "builtin", "constant copied when the program was prepared"
    return twin
