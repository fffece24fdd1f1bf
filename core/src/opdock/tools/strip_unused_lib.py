"""Cuts a graph down to what leads from given inputs to given outputs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from opdock.api.graph_util import extract_sub_graph
from opdock.io import protos
from opdock.tools.arguments import (
    ToolParser,
    add_json,
    add_switch,
    change,
    check_nodes,
    described_change,
    listed,
    split_by,
    type_number,
)
from opdock.tools.protos_in_files import read_message, write_message

__all__ = ["create_parser", "main", "strip_unused", "strip_unused_from_files"]


def strip_unused(
    input_graph_def: Any, input_node_names: Sequence[str], output_node_names: Sequence[str],
    placeholder_type_enum: Any,
) -> Any:  # fmt: skip
    """Cuts a graph; the inputs become placeholders.

    Args:
        input_graph_def: a `GraphDef`.
        input_node_names: the nodes that are to be fed.
        output_node_names: the nodes that are wanted.
        placeholder_type_enum: the inputs' `DataType`, or a list of one for each.

    Returns:
        The smaller `GraphDef`.

    Raises:
        ValueError: a name is that of a tensor.
        KeyError: an input is not in the graph.
    """
    names = list(input_node_names)
    for name in names:
        if ":" in name:
            raise ValueError(f"Name '{name}' appears to refer to a Tensor, not a Operation.")
    missing = set(names) - {node.name for node in input_graph_def.node}
    if missing:
        raise KeyError(f"The following input nodes were not found: {missing}")
    replaced = protos.GraphDef()
    for node in input_graph_def.node:
        made = replaced.node.add()
        if node.name not in names:
            made.CopyFrom(node)
            continue
        made.op, made.name = "Placeholder", node.name
        kind = placeholder_type_enum
        if isinstance(kind, list):
            kind = kind[names.index(node.name)]
        made.attr["dtype"].type = int(kind)
        for name in ("_output_shapes", "shape"):
            if name in node.attr:
                made.attr[name].CopyFrom(node.attr[name])
    return extract_sub_graph(replaced, list(output_node_names))


def strip_unused_from_files(
    input_graph: Any, input_binary: bool, output_graph: Any, output_binary: bool,
    input_node_names: str, output_node_names: str, placeholder_type_enum: Any,
) -> int | None:  # fmt: skip
    """`strip_unused` from a file to a file; names have commas between them.

    Returns:
        -1 if there is no output, None otherwise.

    Raises:
        IOError: there is no such file, or it cannot be parsed.
    """
    if not output_node_names:
        print("You need to supply the name of a node to --output_node_names.")
        return -1
    graph = read_message(input_graph, protos.GraphDef(), input_binary, "Input graph")
    out = strip_unused(
        graph, input_node_names.split(","), output_node_names.split(","), placeholder_type_enum
    )
    write_message(output_graph, out, output_binary)
    print(f"{len(out.node)} ops in the final graph.")
    return None


def create_parser(prog: str = "strip_unused") -> ToolParser:
    """The tool's options."""
    parser = ToolParser(prog=prog, description=__doc__)
    parser.add_argument("--input_graph", required=True, help="file of the GraphDef")
    add_switch(parser, "--input_binary", False, "whether the input is binary")
    parser.add_argument("--output_graph", required=True, help="file to write")
    add_switch(parser, "--output_binary", True, "whether to write a binary file")
    parser.add_argument(
        "--input_node_names", type=listed, required=True, help="nodes that are fed, by commas"
    )
    parser.add_argument(
        "--output_node_names", type=listed, required=True, help="nodes wanted, by commas"
    )
    parser.add_argument(
        "--placeholder_type_enum", type=split_by(",", type_number), default=[1],
        help="the inputs' types as numbers of DataType, one for all or by commas (default: 1)",
    )  # fmt: skip
    add_json(parser)
    return parser


def main(argv: Sequence[str] | None = None, prog: str = "strip_unused") -> int:
    """Runs the tool; returns its exit status."""
    args = create_parser(prog).parse_args(argv)
    kinds = args.placeholder_type_enum
    graph = read_message(args.input_graph, protos.GraphDef(), args.input_binary, "Input graph")
    check_nodes(graph, "--input_node_names", args.input_node_names)
    check_nodes(graph, "--output_node_names", args.output_node_names)
    out = strip_unused(
        graph, args.input_node_names, args.output_node_names,
        kinds if len(kinds) > 1 else kinds[0],
    )  # fmt: skip
    write_message(args.output_graph, out, args.output_binary)
    found = change(args.output_graph, graph, out)
    print(json.dumps(found, indent=2) if args.json else described_change(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
