r"""Makes a frozen graph smaller and faster for inference, as TF's tool does.

    python -m opdock.tools.optimize_for_inference_lib --input frozen.pb --output small.pb \
        --input_names x --output_names y

What only training needs goes, batch normalization goes into the weights of the convolution before
it, and resizes and mirrored margins go into the convolution after them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock.api.graph_util import remove_training_nodes
from opdock.io import protos
from opdock.io.tensor_proto import make_ndarray
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
from opdock.tools.strip_unused_lib import strip_unused
from opdock.transforms.library.fold_old_batch_norms import fold_old_batch_norms
from opdock.transforms.library.fuse_convolutions import fuse_convolutions
from opdock.transforms.registry import Context

__all__ = [
    "create_parser", "ensure_graph_is_valid", "fold_batch_norms", "fuse_resize_and_conv", "main",
    "node_from_map", "node_name_from_input", "optimize_for_inference", "values_from_const",
]  # fmt: skip


def optimize_for_inference(
    input_graph_def: Any, input_node_names: Sequence[str], output_node_names: Sequence[str],
    placeholder_type_enum: Any, toco_compatible: bool = False,
) -> Any:  # fmt: skip
    """A graph that computes the same from the same inputs, with fewer nodes.

    Args:
        input_graph_def: a frozen `GraphDef`.
        input_node_names: nodes that will be fed; they become placeholders.
        output_node_names: nodes whose results are wanted.
        placeholder_type_enum: the type of the placeholders, or a list of types.
        toco_compatible: leave resizes and margins as they are, since converters may not know the
            ops that do them with a convolution.

    Raises:
        ValueError: names repeat, or an input of a node does not exist.
        KeyError: an input is not in the graph.
    """
    ensure_graph_is_valid(input_graph_def)
    graph = strip_unused(
        input_graph_def, input_node_names, output_node_names, placeholder_type_enum
    )
    context = Context(tuple(input_node_names), tuple(output_node_names))
    graph = fold_old_batch_norms(remove_training_nodes(graph, output_node_names), context)
    if not toco_compatible:
        graph = fuse_convolutions(graph, context)
    ensure_graph_is_valid(graph)
    return graph


def ensure_graph_is_valid(graph_def: Any) -> None:
    """Checks that names are unique and that inputs exist; ValueError if not."""
    known = set()
    for node in graph_def.node:
        if node.name in known:
            raise ValueError(f"Duplicate node names detected for {node.name}")
        known.add(node.name)
    for node in graph_def.node:
        for text in node.input:
            if node_name_from_input(text) not in known:
                raise ValueError(f"Input for {node.name} not found: {text}")


def node_name_from_input(node_name: str) -> str:
    """The node of an input such as "x", "x:1" or "^x"."""
    name, _, index = node_name.removeprefix("^").rpartition(":")
    return name if name and index.isdigit() else node_name.removeprefix("^")


def node_from_map(node_map: dict[str, Any], name: str) -> Any:
    """The node of an input; ValueError if there is none."""
    found = node_map.get(node_name_from_input(name))
    if found is None:
        raise ValueError(f"No node named '{name}' found in map.")
    return found


def values_from_const(node_def: Any) -> np.ndarray[Any, Any]:
    """The value of a constant; ValueError for a node of another op."""
    if node_def.op != "Const":
        raise ValueError(
            f"Node named '{node_def.name}' should be a Const op for values_from_const."
        )
    value: np.ndarray[Any, Any] = make_ndarray(node_def.attr["value"].tensor)
    return value


def fold_batch_norms(input_graph_def: Any) -> Any:
    """The transform `fold_old_batch_norms`.

    Args:
        input_graph_def: a frozen `GraphDef`.

    Returns:
        A `GraphDef` with as many results.

    Raises:
        ValueError: names repeat, or an input does not exist.
    """
    ensure_graph_is_valid(input_graph_def)
    return fold_old_batch_norms(input_graph_def, Context())


def fuse_resize_and_conv(input_graph_def: Any, output_node_names: Sequence[str]) -> Any:
    """The transform `fuse_convolutions`.

    Args:
        input_graph_def: a `GraphDef`.
        output_node_names: nodes whose results are wanted.

    Returns:
        A `GraphDef` with as many results.

    Raises:
        ValueError: names repeat, or an input does not exist.
    """
    ensure_graph_is_valid(input_graph_def)
    return fuse_convolutions(input_graph_def, Context(outputs=tuple(output_node_names)))


def create_parser(prog: str = "optimize_for_inference") -> ToolParser:
    """The tool's options."""
    parser = ToolParser(
        prog=prog, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--input", required=True, help="file of the frozen GraphDef")
    parser.add_argument("--output", required=True, help="file to write")
    parser.add_argument(
        "--input_names", type=listed, required=True, help="nodes that are fed, by commas"
    )
    parser.add_argument(
        "--output_names", type=listed, required=True, help="nodes wanted, by commas"
    )
    add_switch(parser, "--frozen_graph", True, "whether the files are binary")
    parser.add_argument(
        "--placeholder_type_enum", type=split_by(",", type_number), default=[1],
        help="the inputs' types as numbers of DataType, one for all or by commas (default: 1)",
    )  # fmt: skip
    add_json(parser)
    return parser


def main(argv: Sequence[str] | None = None, prog: str = "optimize_for_inference") -> int:
    """Runs the tool; returns its exit status."""
    args = create_parser(prog).parse_args(argv)
    graph = read_message(args.input, protos.GraphDef(), args.frozen_graph, "Input graph")
    kinds = args.placeholder_type_enum
    check_nodes(graph, "--input_names", args.input_names)
    check_nodes(graph, "--output_names", args.output_names)
    out = optimize_for_inference(
        graph, args.input_names, args.output_names,
        kinds if len(kinds) > 1 else kinds[0],
    )  # fmt: skip
    write_message(args.output, out, args.frozen_graph)
    found = change(args.output, graph, out)
    print(json.dumps(found, indent=2) if args.json else described_change(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
