"""Converts between GraphDefs, SavedModels and ONNX models.

    opdock convert --input=frozen.pb --output=model.onnx --inputs=x --outputs=logits
    opdock convert --input=export/1 --output=frozen.pb
    opdock convert --input=model.onnx --output=export/2

The kind of each is that of its name: `.onnx`, `.pb` and `.pbtxt`, or a directory, whose name ends
in a slash or in no suffix but a version, as `export/1.2` does, unless it is there. Inputs and
outputs are those of a SavedModel's signature and of an ONNX model; of a GraphDef they have to be
named.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from opdock import errors
from opdock.api.graph_util import convert_variables_to_constants, extract_sub_graph
from opdock.graph.nodes.graph import Graph
from opdock.graph.serial.importer import import_graph_def
from opdock.runtime.session import Session
from opdock.saved_model import loader
from opdock.saved_model.simple import simple_save
from opdock.tools.arguments import ToolParser, add_json, listed, naming
from opdock.tools.protos_in_files import read_graph, write_message
from opdock.tools.saved_model_utils import get_meta_graph_def

__all__ = ["convert", "create_parser", "main"]


class Model(NamedTuple):
    """A frozen graph and what it is for.

    Attributes:
        graph_def: a `GraphDef` without variables.
        inputs, outputs: tensors by the names that users know them by.
    """

    graph_def: Any
    inputs: dict[str, str]
    outputs: dict[str, str]


def convert(
    source: str, target: str, inputs: Sequence[str] = (), outputs: Sequence[str] = (),
    tag_set: str = "serve", signature: str = "serving_default",
) -> Model:  # fmt: skip
    """Converts one file or directory to another; what is written is whole or not there.

    Args:
        source: what to read.
        target: what to write.
        inputs, outputs: names of nodes or tensors; needed for a GraphDef.
        tag_set: the tags of a SavedModel's graph, with commas between them.
        signature: the signature of a SavedModel, which is read or written.

    Returns:
        What was converted.

    Raises:
        ValueError: names are missing, or the kind of a name is unknown.
        UnimplementedError: nodes cannot be translated, which it lists.
    """
    with naming("--output"):
        kind = _kind(target)
    model = _read(source, inputs, outputs, tag_set, signature)
    if kind == "onnx":
        from opdock.onnx import to_onnx, write_model

        write_model(target, to_onnx(model.graph_def, [*model.inputs.values()],
                                    [*model.outputs.values()]))  # fmt: skip
    elif kind == "saved_model":
        _save(model, target)
    else:
        write_message(target, model.graph_def, binary=kind == "pb")
    return model


def _kind(name: str) -> str:
    suffix = os.path.splitext(name.rstrip("/"))[1][1:]
    if os.path.isdir(name):
        return "saved_model"
    if suffix in ("onnx", "pb", "pbtxt"):
        return suffix
    is_folder = name.endswith("/") or not suffix or suffix.isdigit()
    if is_folder and not os.path.exists(name):
        return "saved_model"
    raise ValueError(
        f"{name} is neither a GraphDef (.pb, .pbtxt) nor an ONNX model (.onnx) nor a SavedModel's "
        "folder, whose name has no suffix or ends in a slash"
    )


def _read(
    source: str, inputs: Sequence[str], outputs: Sequence[str], tag_set: str, signature: str
) -> Model:
    with naming("--input"):
        kind = _kind(source)
    if kind == "onnx":
        from opdock.onnx import from_onnx, read_model

        return Model(*from_onnx(read_model(source)))
    if kind == "saved_model":
        return _frozen(source, tag_set, signature)
    if not inputs or not outputs:
        raise ValueError("A GraphDef does not say what it is for: give --inputs and --outputs")
    graph_def = read_graph(source)
    known = {node.name for node in graph_def.node}
    missing = [n for n in (*inputs, *outputs) if n.partition(":")[0] not in known]
    if missing:
        raise errors.NotFoundError(None, None, f"{source} has no nodes {', '.join(missing)}")
    plain = [name.partition(":")[0] for name in (*outputs, *inputs)]
    named = [{n.partition(":")[0]: _tensor(n) for n in names} for names in (inputs, outputs)]
    return Model(extract_sub_graph(graph_def, plain), *named)


def _tensor(name: str) -> str:
    return name if ":" in name else f"{name}:0"


def _frozen(directory: str, tag_set: str, key: str) -> Model:
    signatures = get_meta_graph_def(directory, tag_set).signature_def
    if key not in signatures:
        raise ValueError(f"{directory} has no signature '{key}', but {sorted(signatures)}")
    inputs, outputs = (
        {name: info.name for name, info in sorted(part.items())}
        for part in (signatures[key].inputs, signatures[key].outputs)
    )
    with Graph().as_default() as graph, Session(graph=graph) as session:
        loader.load(session, tag_set.split(","), directory)
        needed = [name.partition(":")[0] for name in (*outputs.values(), *inputs.values())]
        graph_def = convert_variables_to_constants(session, graph.as_graph_def(), needed)
    return Model(graph_def, inputs, outputs)


def _save(model: Model, directory: str) -> None:
    with Graph().as_default() as graph, Session(graph=graph) as session:
        import_graph_def(model.graph_def, name="")
        ends = [
            {name: graph.get_tensor_by_name(tensor) for name, tensor in part.items()}
            for part in (model.inputs, model.outputs)
        ]
        simple_save(session, directory, *ends)


def create_parser(prog: str = "convert") -> ToolParser:
    """The tool's options."""
    parser = ToolParser(
        prog=prog, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--input", required=True, help="what to read")
    parser.add_argument("--output", required=True, help="what to write")
    parser.add_argument("--inputs", type=listed, default=[], help="nodes, separated by commas")
    parser.add_argument("--outputs", type=listed, default=[], help="nodes, separated by commas")
    parser.add_argument("--tag_set", default="serve", help="of the SavedModel that is read")
    parser.add_argument(
        "--signature", default="serving_default", help="of the SavedModel that is read"
    )
    add_json(parser)
    return parser


def main(argv: Sequence[str] | None = None, prog: str = "convert") -> int:
    """Runs the tool; returns its exit status."""
    args = create_parser(prog).parse_args(argv)
    model = convert(
        args.input, args.output, args.inputs, args.outputs, args.tag_set, args.signature
    )
    if args.json:
        found = {
            "input": args.input, "output": args.output, "inputs": model.inputs,
            "outputs": model.outputs, "nodes": len(model.graph_def.node),
        }  # fmt: skip
        print(json.dumps(found, indent=2))
        return 0
    for what, part in (("inputs", model.inputs), ("outputs", model.outputs)):
        print(f"{what}: {', '.join(f'{name} ({tensor})' for name, tensor in part.items())}")
    print(f"{len(model.graph_def.node)} nodes: {args.input} -> {args.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
