"""Cuts a graph down to what leads from given inputs to given outputs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from opdock import dtypes
from opdock.api.graph_util import extract_sub_graph
from opdock.io import protos
from opdock.tools.arguments import add_switch
from opdock.tools.protos_in_files import read_message, write_message

__all__ = ["main", "strip_unused", "strip_unused_from_files"]


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


def main(argv: Sequence[str] | None = None, prog: str = "strip_unused") -> int:
    """Runs the tool; returns its exit status."""
    parser = argparse.ArgumentParser(prog=prog, description=__doc__)
    parser.add_argument("--input_graph", required=True)
    add_switch(parser, "--input_binary", False, "whether the input is binary")
    parser.add_argument("--output_graph", required=True)
    add_switch(parser, "--output_binary", True, "whether to write a binary file")
    parser.add_argument("--input_node_names", required=True, help="separated by commas")
    parser.add_argument("--output_node_names", required=True, help="separated by commas")
    parser.add_argument("--placeholder_type_enum", default="1", help="separated by commas")
    args = parser.parse_args(argv)
    kinds = [
        dtypes.as_dtype(int(k)).as_datatype_enum for k in args.placeholder_type_enum.split(",")
    ]
    done = strip_unused_from_files(
        args.input_graph, args.input_binary, args.output_graph, args.output_binary,
        args.input_node_names, args.output_node_names, kinds if len(kinds) > 1 else kinds[0],
    )  # fmt: skip
    return 0 if done is None else 1


if __name__ == "__main__":
    sys.exit(main())
