"""Says what a GraphDef holds: inputs, outputs, parameters, ops. TensorFlow's summarize_graph."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from opdock import errors, shapes
from opdock.graph.serial.attr_proto import decode_shape
from opdock.io.tensor_proto import make_ndarray
from opdock.tools.arguments import ToolParser, add_json, add_switch
from opdock.tools.protos_in_files import read_graph
from opdock.transforms.definitions import attribute
from opdock.transforms.editor import node_name
from opdock.transforms.order import in_order

__all__ = ["create_parser", "main", "summarize_graph"]

_VARIABLES: Final = ("Variable", "VariableV2", "VarHandleOp")
_NO_OUTPUTS: Final = ("Const", "Assign", "NoOp", "Placeholder")


def described(graph_def: Any) -> dict[str, Any]:
    """What `summarize_graph` says, as plain data.

    Raises:
        InternalError: an input of a node does not exist.
    """
    _check_inputs(graph_def)
    inputs, variables, outputs = _ends(graph_def)
    counts = _counts(graph_def)
    return {
        "inputs": [_as_data(n) for n in inputs],
        "variables": [_as_data(n) for n in variables],
        "outputs": [{"name": n.name, "op": n.op} for n in outputs],
        "const_parameters": counts[0], "variable_parameters": counts[1],
        "control_edges": counts[2],
        "devices": dict(Counter(n.device for n in graph_def.node if n.device)),
        "ops": dict(_op_types(graph_def).most_common()),
    }  # fmt: skip


def _as_data(node: Any) -> dict[str, Any]:
    dtype, shape = attribute(node, "dtype"), None
    if "shape" in node.attr:
        shape = decode_shape(node.attr["shape"].shape)
    return {
        "name": node.name,
        "type": None if dtype is None else dtype.name,
        "shape": None if shape is None else list(shape),
    }


def _ends(graph_def: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Inputs, variables and outputs of a graph."""
    inputs = [n for n in graph_def.node if n.op == "Placeholder"]
    variables = [n for n in graph_def.node if n.op in _VARIABLES]
    used = {node_name(text) for node in graph_def.node for text in node.input}
    outputs = [n for n in graph_def.node if n.name not in used and n.op not in _NO_OUTPUTS]
    return inputs, variables, outputs


def _counts(graph_def: Any) -> tuple[int, int, int]:
    """How many numbers constants and variables hold, and how many edges are of control."""
    constants = sum(_count(node) for node in graph_def.node if node.op == "Const")
    variables = sum(_count(node) for node in graph_def.node if node.op in _VARIABLES)
    edges = sum(text.startswith("^") for node in graph_def.node for text in node.input)
    return constants, variables, edges


def _op_types(graph_def: Any) -> Counter[str]:
    counts = Counter(n.op for n in graph_def.node)
    counts.update(n.op for f in graph_def.library.function for n in f.node_def)
    return counts


def summarize_graph(graph_def: Any, path: str = "", print_structure: bool = False) -> Iterator[str]:
    """The lines that TensorFlow's tool prints.

    Args:
        graph_def: a `GraphDef`.
        path: its file, for the command line that the last line proposes.
        print_structure: whether to list all nodes with their inputs.

    Raises:
        InternalError: an input of a node does not exist.
    """
    inputs, variables, outputs = _ends(graph_def)
    yield _found(inputs, "possible inputs", "inputs", _typed)
    yield _found(variables, "variables", "variables", _typed)
    yield _found(outputs, "possible outputs", "outputs", lambda n: f"(name={n.name}, op={n.op})")
    yield _parameters(graph_def)
    for device, count in sorted(Counter(n.device for n in graph_def.node if n.device).items()):
        yield f"{count} nodes assigned to device '{device}'"
    _check_inputs(graph_def)
    used = _op_types(graph_def).most_common()
    yield "Op types used: " + ", ".join(f"{n} {op}" for op, n in used)
    yield "To time it:"
    yield _benchmark_line([*inputs, *variables], outputs, path)
    if print_structure:
        nodes = {node.name: node for node in graph_def.node}
        for name in in_order(graph_def.node):
            yield _structure(nodes[name])


def _found(nodes: list[Any], what: str, none: str, told: Any) -> str:
    if not nodes:
        return f"No {none} spotted."
    return f"Found {len(nodes)} {what}: " + " ".join(told(node) for node in nodes)


def _typed(node: Any) -> str:
    dtype = attribute(node, "dtype")
    name = "invalid(0)" if dtype is None else f"{_name_of(dtype)}({dtype.as_datatype_enum})"
    return f"(name={node.name}, type={name}, shape={_shape(node)})"


def _name_of(dtype: Any) -> str:
    return "float" if dtype.name == "float32" else str(dtype.name)


def _shape(node: Any) -> str:
    if "shape" not in node.attr:
        return "None"
    shape = decode_shape(node.attr["shape"].shape)
    return "<unknown>" if shape is None else _sizes(shape, "?", "[", "]")


def _sizes(shape: shapes.Shape, unknown: str, start: str = "", end: str = "") -> str:
    sizes = [unknown if size is None else str(size) for size in shape or ()]
    return f"{start}{','.join(sizes)}{end}"


def _parameters(graph_def: Any) -> str:
    constants, variables, edges = _counts(graph_def)
    return (
        f"Found {constants} ({_readable(constants)}) const parameters, {variables} "
        f"({_readable(variables)}) variable parameters, and {edges} control_edges"
    )


def _count(node: Any) -> int:
    """How many numbers a constant or a variable holds; 0 if its shape is not known."""
    if node.op == "Const":
        sizes = [d.size for d in node.attr["value"].tensor.tensor_shape.dim]
        return int(np.prod(sizes, dtype=object))
    shape = attribute(node, "shape")
    return (shape is not None and shapes.num_elements(shape)) or 0


def _readable(number: int) -> str:
    value = float(number)
    for unit in ("", "k", "M", "B"):
        if value < 1000 or unit == "B":
            break
        value /= 1000
    return f"{value:.2f}{unit}" if unit else str(number)


def _check_inputs(graph_def: Any) -> None:
    known = {node.name for node in graph_def.node}
    lost = [
        f"Invalid input {node_name(text)} for node {node.name}"
        for node in graph_def.node
        for text in node.input
        if node_name(text) not in known
    ]
    if lost:
        raise errors.InternalError(
            None, None,
            "; ".join(["Invalid graph with inputs referring to nonexistent nodes", *lost]),
        )  # fmt: skip


def _benchmark_line(inputs: list[Any], outputs: list[Any], path: str) -> str:
    types = [attribute(node, "dtype") for node in inputs]
    shapes_ = [decode_shape(n.attr["shape"].shape) if "shape" in n.attr else None for n in inputs]
    return (
        f"opdock benchmark-model --graph={path} --show_flops"
        f" --input_layer={','.join(n.name for n in inputs)}"
        f" --input_layer_type={','.join('' if t is None else _name_of(t) for t in types)}"
        f" --input_layer_shape={':'.join(_sizes(s, '-1') for s in shapes_)}"
        f" --output_layer={','.join(n.name for n in outputs)}"
    )


def _structure(node: Any) -> str:
    line = f"{node.name} ({node.op}): [{', '.join(node.input)}]"
    if node.op == "Const":
        value = make_ndarray(node.attr["value"].tensor)
        text = np.array2string(value.ravel()[:3], separator=" ").strip("[]")
        more = "..." if value.size > 3 else ""
        kind = _name_of(attribute(node, "dtype"))
        line += f", value=Tensor<type: {kind} shape: {list(value.shape)} values: {text}{more}>"
    return line


def create_parser(prog: str = "summarize_graph") -> ToolParser:
    """The tool's options."""
    parser = ToolParser(prog=prog, description=__doc__)
    parser.add_argument("--in_graph", required=True, help="file of the GraphDef, binary or text")
    add_switch(parser, "--print_structure", False, "list all nodes with their inputs")
    add_json(parser)
    return parser


def main(argv: Sequence[str] | None = None, prog: str = "summarize_graph") -> int:
    """Runs the tool; returns its exit status."""
    args = create_parser(prog).parse_args(argv)
    if args.json:
        print(json.dumps(described(read_graph(args.in_graph)), indent=2))
        return 0
    for line in summarize_graph(read_graph(args.in_graph), args.in_graph, args.print_structure):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
