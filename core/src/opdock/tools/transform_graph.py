"""Rewrites a GraphDef by transforms: TensorFlow's transform_graph."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from opdock.tools.arguments import (
    ToolParser,
    add_json,
    add_switch,
    change,
    check_nodes,
    described_change,
    listed,
    naming,
)
from opdock.tools.protos_in_files import read_graph, write_message
from opdock.transforms import find_transform, transform_graph, transform_names
from opdock.transforms.options import Option

__all__ = ["create_parser", "main"]


def create_parser(prog: str = "transform_graph") -> ToolParser:
    """The tool's options."""
    parser = ToolParser(
        prog=prog, description=__doc__, epilog=_listing(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--in_graph", required=True, help="file of the GraphDef, binary or text")
    parser.add_argument("--out_graph", required=True, help="file to write")
    parser.add_argument("--inputs", type=listed, default=[], help="nodes that are fed, by commas")
    parser.add_argument("--outputs", type=listed, default=[], help="nodes wanted, by commas")
    parser.add_argument("--transforms", required=True, help="names, with options in parentheses")
    add_switch(parser, "--output_as_text", False, "write text")
    add_json(parser)
    return parser


def main(argv: Sequence[str] | None = None, prog: str = "transform_graph") -> int:
    """Runs the tool; returns its exit status.

    Raises:
        NotFoundError: there is no graph.
        DataLossError: the file holds none.
        InvalidArgumentError: a transform or an option is unknown or malformed, or the graph is not
            what a transform asks for.
    """
    parser = create_parser(prog)
    args = parser.parse_args(argv)
    if not args.transforms.strip():
        parser.error("argument --transforms: You must specify at least one transform.")
    graph = read_graph(args.in_graph)
    for option in ("inputs", "outputs"):
        check_nodes(graph, f"--{option}", getattr(args, option))
    with naming("--transforms"):
        out = transform_graph(graph, args.inputs, args.outputs, args.transforms)
    write_message(args.out_graph, out, not args.output_as_text)
    found = change(args.out_graph, graph, out)
    print(json.dumps(found, indent=2) if args.json else described_change(found))
    return 0


def _listing() -> str:
    lines = ["transforms:"]
    for name in transform_names():
        found = find_transform(name)
        options = ", ".join(map(_written, found.options.values()))
        lines += [f"  {name}({options})" if options else f"  {name}", f"      {found.summary}"]
    return "\n".join(lines)


def _written(option: Option) -> str:
    if option.required or option.default is None or option.many:
        return option.name + " ..." * option.many
    value = str(option.default)
    return f"{option.name}={value.lower() if option.kind is bool else value}"


if __name__ == "__main__":
    sys.exit(main())
