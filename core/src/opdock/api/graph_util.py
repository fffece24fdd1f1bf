"""`tf.graph_util`: GraphDefs cut to what an output needs, with variables frozen to constants."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.graph.nodes.operation import Operation
from opdock.graph.serial.importer import import_graph_def, parse_input
from opdock.io import protos
from opdock.io.tensor_proto import make_tensor_proto

__all__ = [
    "convert_variables_to_constants", "extract_sub_graph", "import_graph_def", "must_run_on_cpu",
    "remove_training_nodes", "tensor_shape_from_node_def_name",
]  # fmt: skip

_log = logging.getLogger("tensorflow")
_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")
_READERS = ("ReadVariableOp", "ResourceGather", "ResourceGatherNd")
_HANDS_ON = ("Switch", "Enter", "Exit", "Identity", "Merge", "NextIteration")


def _node_name(text: str) -> str:
    return parse_input(text)[0]


def graph_summary(
    graph_def: Any,
) -> tuple[dict[str, list[str]], dict[str, Any], dict[str, int]]:
    """What each node of a `GraphDef` needs, the nodes, and their numbers, all by name.

    A node needs its inputs and the nodes with which it is colocated.
    """
    nodes = {n.name: n for n in graph_def.node}
    needs = {
        name: [*map(_node_name, node.input), *_colocated(node)] for name, node in nodes.items()
    }
    return needs, nodes, {name: number for number, name in enumerate(nodes)}


def reachable_nodes(target_nodes: Iterable[str], name_to_input_name: Any) -> set[str]:
    """The names of the given nodes and of all that they need.

    Args:
        target_nodes: names of nodes.
        name_to_input_name: what each node needs, of `graph_summary`.
    """
    keep: set[str] = set()
    waiting = list(target_nodes)
    while waiting:
        name = waiting.pop()
        if name not in keep:
            keep.add(name)
            waiting.extend(name_to_input_name.get(name, ()))
    return keep


def extract_sub_graph(graph_def: Any, dest_nodes: Iterable[str]) -> Any:
    """The nodes that the given nodes need, and those with which they are colocated.

    Args:
        graph_def: a `GraphDef`.
        dest_nodes: names of nodes.

    Returns:
        A `GraphDef` with these nodes in their old order, and the same library and versions.

    Raises:
        TypeError: an argument has the wrong type.
        AssertionError: a name is not in the graph.
    """
    if not isinstance(graph_def, protos.GraphDef):
        raise TypeError("graph_def must be a graph_pb2.GraphDef proto.")
    if isinstance(dest_nodes, str):
        raise TypeError("dest_nodes must be a list.")
    inputs, _, _ = graph_summary(graph_def)
    wanted = list(dest_nodes)
    for name in wanted:
        if name not in inputs:
            raise AssertionError(f"{name} is not in graph")
    keep = reachable_nodes(wanted, inputs)
    out = protos.GraphDef()
    out.node.extend(n for n in graph_def.node if n.name in keep)
    out.library.CopyFrom(graph_def.library)
    out.versions.CopyFrom(graph_def.versions)
    return out


def convert_variables_to_constants(
    sess: Any, input_graph_def: Any, output_node_names: list[str],
    variable_names_whitelist: Iterable[str] | None = None,
    variable_names_blacklist: Iterable[str] | None = None,
) -> Any:  # fmt: skip
    """Freezes a graph: variables become constants with their current values.

    Args:
        sess: the session that holds the variables.
        input_graph_def: a `GraphDef`.
        output_node_names: the nodes to keep, with all that they need.
        variable_names_whitelist: variables to freeze, all when None.
        variable_names_blacklist: variables to leave as they are.

    Returns:
        A `GraphDef`.

    Raises:
        tf.errors.FailedPreconditionError: a variable has no value.
        ValueError: a variable's handle comes from an op that is none, or its rows are gathered in
            batches.
    """
    graph_def = extract_sub_graph(input_graph_def, output_node_names)
    allowed = None if variable_names_whitelist is None else set(variable_names_whitelist)
    denied = set(variable_names_blacklist or ())
    frozen = [
        n
        for n in graph_def.node
        if n.op in _VARIABLES and (allowed is None or n.name in allowed) and n.name not in denied
    ]
    values: dict[str, Any] = {}
    if frozen:
        reads = {"VarHandleOp": "/Read/ReadVariableOp"}
        found = sess.run([f"{n.name}{reads.get(n.op, '')}:0" for n in frozen])
        values = {n.name: v for n, v in zip(frozen, found, strict=True)}
    handed = _ways(graph_def, {n.name for n in frozen if n.op == "VarHandleOp"})
    out = protos.GraphDef()
    for node in graph_def.node:
        if node.name in values:
            out.node.append(_constant(node.name, node.attr["dtype"].type, values[node.name]))
        elif node.op in _READERS and _node_name(node.input[0]) in handed:
            out.node.extend(_read_of_constant(node))
        else:
            made = out.node.add()
            made.CopyFrom(node)
            if node.name in handed:
                made.attr["T"].CopyFrom(handed[node.name])
                made.attr.pop("_output_shapes", None)
    out.library.CopyFrom(graph_def.library)
    out.versions.CopyFrom(graph_def.versions)
    _log.info("Froze %d variables.", len(values))
    _log.info("Converted %d variables to const ops.", len(values))
    return out


def _ways(graph_def: Any, resources: set[str]) -> dict[str, Any]:
    """The nodes through which the handles of frozen variables come to those that read them, the
    variables among them, each with the type of the values that it hands on then.

    Raises:
        ValueError: something else than a variable is read.
    """
    nodes = {n.name: n for n in graph_def.node}
    found: dict[str, Any] = {}
    for reader in graph_def.node:
        if reader.op not in _READERS:
            continue
        way: dict[str, None] = {}
        waiting, sources = [_node_name(reader.input[0])], set()
        while waiting:
            name = waiting.pop()
            if name in way:
                continue
            way[name] = None
            op = nodes[name].op
            if op in _HANDS_ON:
                # Both ends of a Merge; a Switch has its handle first.
                count = len(nodes[name].input) if op == "Merge" else 1
                waiting += map(_node_name, nodes[name].input[:count])
            elif op == "VarHandleOp":
                sources.add(name)
            else:
                raise ValueError(
                    f"Cannot find the variable that is an input to the {reader.op}: '{name}' is a "
                    f"{op}."
                )
        if sources <= resources:
            found.update((name, reader.attr["dtype"]) for name in way)
    return found


def _read_of_constant(node: Any) -> list[Any]:
    """What reads of a constant as a node reads of a variable."""
    made = protos.NodeDef(name=node.name, device=node.device, input=node.input)
    if "_class" in node.attr:
        made.attr["_class"].CopyFrom(node.attr["_class"])
    if node.op == "ReadVariableOp":
        made.op = "Identity"
        made.attr["T"].CopyFrom(node.attr["dtype"])
        return [made]
    made.attr["Tparams"].CopyFrom(node.attr["dtype"])
    made.attr["Tindices"].CopyFrom(node.attr["Tindices"])
    if node.op == "ResourceGatherNd":
        made.op = "GatherNd"
        return [made]
    if "batch_dims" in node.attr and node.attr["batch_dims"].i:
        raise ValueError("batch_dims != 0 is not supported by freeze_graph.")
    axis = _constant(f"{node.name}/axis", node.attr["Tindices"].type, 0)
    made.op = "GatherV2"
    made.input.insert(2, axis.name)
    made.attr["Taxis"].CopyFrom(node.attr["Tindices"])
    return [axis, made]


def _constant(name: str, dtype: int, value: Any) -> Any:
    made = protos.NodeDef(name=name, op="Const")
    made.attr["dtype"].type = dtype
    made.attr["value"].tensor.CopyFrom(make_tensor_proto(np.asarray(value), dtype=dtype))
    return made


def _colocated(node: Any) -> list[str]:
    """The nodes with which a node asks to be on one device."""
    groups = node.attr["_class"].list.s if "_class" in node.attr else ()
    return [group[5:].decode() for group in groups if group.startswith(b"loc:@")]


def remove_training_nodes(input_graph: Any, protected_nodes: Iterable[str] | None = None) -> Any:
    """Removes nodes that only training needs: CheckNumerics, and Identity without control edges.

    Args:
        input_graph: a `GraphDef`.
        protected_nodes: names of nodes to keep.

    Returns:
        A `GraphDef` in which the users of removed nodes take their inputs.
    """
    protected = set(protected_nodes or ())
    nodes = {n.name: n for n in input_graph.node}
    checks = {n for n, v in nodes.items() if v.op == "CheckNumerics" and n not in protected}
    # Nobody needs to wait for a check that goes.
    inputs = {
        name: [t for t in node.input if not t.startswith("^") or t[1:] not in checks]
        for name, node in nodes.items()
    }
    controlled = {_node_name(t) for ts in inputs.values() for t in ts if t.startswith("^")}
    splice = {name: inputs[name][0] for name in checks if inputs[name]}
    for name, node in nodes.items():
        if node.op != "Identity" or name in protected or name in controlled or not inputs[name]:
            continue
        if not any(t.startswith("^") for t in inputs[name]) and not _reads(node, nodes):
            splice[name] = inputs[name][0]

    def resolve(text: str) -> str:
        seen = set()
        while not text.startswith("^") and text.partition(":")[0] in splice and text not in seen:
            seen.add(text)
            text = splice[text.partition(":")[0]]
        return text

    out = protos.GraphDef()
    for node in input_graph.node:
        if node.name in splice:
            continue
        made = out.node.add()
        made.CopyFrom(node)
        made.input[:] = [resolve(t) for t in inputs[node.name]]
        if any(name in splice for name in _colocated(made)):
            del made.attr["_class"]
    return out


def _reads(node: Any, nodes: dict[str, Any]) -> bool:
    """Whether an Identity reads something that changes or a control switch: it must stay."""
    source = nodes.get(_node_name(node.input[0]))
    return source is not None and source.op in (
        "Variable", "VariableV2", "Switch", "RefSwitch", "Merge", "Enter",
    )  # fmt: skip


def tensor_shape_from_node_def_name(graph: Any, input_name: str) -> Any:
    """The static shape of a tensor named as NodeDef inputs name it.

    Args:
        graph: the graph.
        input_name: the tensor's name, as "name" or "name:1".
    """
    name = input_name if ":" in input_name else f"{input_name}:0"
    return graph.get_tensor_by_name(name).get_shape()


_STATE = frozenset({
    "Assign", "AssignAdd", "AssignSub", "Queue", "ScatterAdd", "ScatterSub", "ScatterUpdate",
    "TruncatedNormal", "Variable", "VariableV2",
})  # fmt: skip
# Ops that TensorFlow has on the CPU alone for these types, which an attribute says.
_ON_CPU = {
    "Const": ("dtype", (dtypes.string, dtypes.int32)),
    "DynamicStitch": ("T", (dtypes.int32,)),
    "ParallelDynamicStitch": ("T", (dtypes.int32,)),
    "Cast": ("SrcT", (dtypes.int32,)),
}


def must_run_on_cpu(node: Any, pin_variables_on_cpu: bool = False) -> bool:
    """Whether a node has to run on the CPU in TensorFlow.

    Args:
        node: an Operation or a NodeDef.
        pin_variables_on_cpu: whether variables, and what writes them, count as such.
    """
    definition = node.node_def if isinstance(node, Operation) else node
    if pin_variables_on_cpu and definition.op in _STATE:
        return True
    attr, types = _ON_CPU.get(definition.op, ("", ()))
    return bool(types) and dtypes.as_dtype(definition.attr[attr].type) in types
