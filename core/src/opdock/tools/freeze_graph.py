"""Makes one GraphDef of a graph and a checkpoint: variables become constants."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from opdock.api.graph_util import convert_variables_to_constants
from opdock.graph.nodes.graph import Graph
from opdock.graph.serial.importer import import_graph_def
from opdock.io import protos
from opdock.io.checkpoint_reader import NewCheckpointReader
from opdock.io.files import as_path
from opdock.runtime.session import Session
from opdock.saved_model import loader, tag_constants
from opdock.tools.arguments import ToolParser, add_json, add_switch
from opdock.tools.protos_in_files import read_message, write_message
from opdock.tools.saved_model_utils import get_meta_graph_def
from opdock.train.checkpoint_management import checkpoint_exists
from opdock.train.saver import Saver, import_meta_graph

__all__ = ["create_parser", "freeze_graph", "freeze_graph_with_def_protos", "main"]


def freeze_graph_with_def_protos(
    input_graph_def: Any, input_saver_def: Any, input_checkpoint: Any, output_node_names: str,
    restore_op_name: Any, filename_tensor_name: Any, output_graph: Any, clear_devices: bool,
    initializer_nodes: str, variable_names_whitelist: str = "", variable_names_blacklist: str = "",
    input_meta_graph_def: Any = None, input_saved_model_dir: Any = None,
    saved_model_tags: Sequence[str] | None = None, checkpoint_version: int = 2,
) -> Any:  # fmt: skip
    """Freezes a graph that is in memory; lists of names have commas between them.

    Args:
        input_graph_def: a `GraphDef`.
        input_saver_def: a `SaverDef` of its saver, if it has one.
        input_checkpoint: the checkpoint's prefix.
        output_node_names: the nodes to keep, with all that they need.
        restore_op_name: not used.
        filename_tensor_name: not used.
        output_graph: the file to write, if any.
        clear_devices: take off the device of every node.
        initializer_nodes: nodes to run before the values are taken.
        variable_names_whitelist: variables to freeze, all when empty.
        variable_names_blacklist: variables to leave as they are.
        input_meta_graph_def: a `MetaGraphDef` in place of the graph.
        input_saved_model_dir: a SavedModel in place of the graph's checkpoint.
        saved_model_tags: the tags of its meta graph.
        checkpoint_version: `SaverDef.V2` or `SaverDef.V1`.

    Returns:
        The frozen `GraphDef`.

    Raises:
        ValueError: there is no checkpoint, no output or no variable.
    """
    if not input_saved_model_dir and not checkpoint_exists(input_checkpoint):
        raise ValueError(f"Input checkpoint '{as_path(input_checkpoint)}' doesn't exist!")
    if not output_node_names:
        raise ValueError("You need to supply the name of a node to --output_node_names.")
    source = input_meta_graph_def.graph_def if input_meta_graph_def else input_graph_def
    if clear_devices and source is not None:
        for node in source.node:
            node.device = ""
    with Graph().as_default() as graph, Session(graph=graph) as sess:
        if input_graph_def is not None and not input_saved_model_dir:
            import_graph_def(input_graph_def, name="")
        if input_saver_def is not None:
            Saver(saver_def=input_saver_def, write_version=checkpoint_version).restore(
                sess, input_checkpoint
            )
        elif input_saved_model_dir:
            loader.load(sess, saved_model_tags or [], input_saved_model_dir)
        else:
            if input_meta_graph_def is not None:
                saver = import_meta_graph(input_meta_graph_def, clear_devices=True)
                assert saver is not None
            else:
                saver = _saver_of(graph, input_checkpoint, checkpoint_version)
            saver.restore(sess, input_checkpoint)
            if initializer_nodes:
                sess.run(_listed(initializer_nodes))
        frozen = convert_variables_to_constants(
            sess, source, _listed(output_node_names) or [],
            variable_names_whitelist=_listed(variable_names_whitelist),
            variable_names_blacklist=_listed(variable_names_blacklist),
        )  # fmt: skip
    if output_graph:
        write_message(output_graph, frozen, binary=True)
    return frozen


def _listed(names: str) -> list[str] | None:
    return names.replace(" ", "").split(",") if names else None


def _saver_of(graph: Graph, checkpoint: Any, version: int) -> Saver:
    """A saver for those tensors of a checkpoint whose variables are in the graph."""
    names = NewCheckpointReader(checkpoint).get_variable_to_shape_map()
    operations = {op.name: op for op in graph.get_operations()}
    found = {name: operations[name].outputs[0] for name in names if name in operations}
    try:
        return Saver(var_list=found, write_version=version)
    except (TypeError, ValueError):
        parts = [name for name in operations if re.search(r"/part_\d+(/|$)", name)]
        if any(key in part for key in found for part in parts):
            raise ValueError(
                "Models containing partition variables cannot be converted from checkpoint files."
                " Please pass in a SavedModel using the flag --input_saved_model_dir."
            ) from None
        kinds = [op.type for op in operations.values()]
        if not any(k.startswith("Variable") or k.endswith("VariableOp") for k in kinds):
            raise ValueError(
                "No variables were found in this model. It is likely the model was frozen"
                " previously. You cannot freeze a graph twice."
            ) from None
        raise


def freeze_graph(
    input_graph: Any, input_saver: Any, input_binary: bool, input_checkpoint: Any,
    output_node_names: str, restore_op_name: Any, filename_tensor_name: Any, output_graph: Any,
    clear_devices: bool, initializer_nodes: str, variable_names_whitelist: str = "",
    variable_names_blacklist: str = "", input_meta_graph: Any = None,
    input_saved_model_dir: Any = None, saved_model_tags: str = tag_constants.SERVING,
    checkpoint_version: int = 2,
) -> Any:  # fmt: skip
    """`freeze_graph_with_def_protos` for messages in files, binary or text by `input_binary`.

    Returns:
        The frozen `GraphDef`.

    Raises:
        IOError: a file does not exist or cannot be parsed.
        ValueError: there is no checkpoint, no output or no variable.
    """
    graph_def = saver_def = meta_graph_def = None
    if input_saved_model_dir:
        graph_def = get_meta_graph_def(input_saved_model_dir, saved_model_tags).graph_def
    elif input_graph:
        graph_def = read_message(input_graph, protos.GraphDef(), input_binary, "Input graph")
    if input_meta_graph:
        meta_graph_def = read_message(
            input_meta_graph, protos.MetaGraphDef(), input_binary, "Input meta graph"
        )
    if input_saver:
        saver_def = read_message(input_saver, protos.SaverDef(), input_binary, "Input saver")
    return freeze_graph_with_def_protos(
        graph_def, saver_def, input_checkpoint, output_node_names, restore_op_name,
        filename_tensor_name, output_graph, clear_devices, initializer_nodes,
        variable_names_whitelist, variable_names_blacklist, meta_graph_def, input_saved_model_dir,
        _listed(saved_model_tags), checkpoint_version=checkpoint_version,
    )  # fmt: skip


def create_parser(prog: str = "freeze_graph") -> ToolParser:
    """The tool's options."""
    parser = ToolParser(prog=prog, description=__doc__)
    for name, text in (
        ("--input_graph", "file of the GraphDef"),
        ("--input_meta_graph", "file of a MetaGraphDef in its place"),
        ("--input_saved_model_dir", "directory of a SavedModel in its place"),
        ("--input_saver", "file of a SaverDef"),
        ("--input_checkpoint", "prefix of the checkpoint"),
        ("--output_graph", "file to write"),
        ("--output_node_names", "nodes wanted, by commas"),
        ("--restore_op_name", "not used"),
        ("--filename_tensor_name", "not used"),
        ("--initializer_nodes", "nodes to run before the values are taken, by commas"),
        ("--variable_names_whitelist", "variables to freeze, by commas (default: all)"),
        ("--variable_names_blacklist", "variables to leave, by commas"),
    ):
        parser.add_argument(name, default="", help=text)
    parser.add_argument(
        "--saved_model_tags", default=tag_constants.SERVING,
        help="those of the SavedModel's graph, by commas (default: serve)",
    )  # fmt: skip
    parser.add_argument(
        "--checkpoint_version", type=int, choices=(1, 2), default=2,
        help="the checkpoint's format (default: 2)",
    )  # fmt: skip
    add_switch(parser, "--input_binary", False, "whether the messages in files are binary")
    add_switch(parser, "--clear_devices", True, "take off the device of every node")
    add_json(parser)
    return parser


def main(argv: Sequence[str] | None = None, prog: str = "freeze_graph") -> int:
    """Runs the tool; returns its exit status."""
    options = vars(create_parser(prog).parse_args(argv))
    as_json = options.pop("json")
    try:
        frozen = freeze_graph(**options)
    except AssertionError as e:  # TensorFlow's error for a node that there is not
        raise ValueError(f"--output_node_names: {e}") from e
    ops = Counter(node.op for node in frozen.node)
    found = {
        "output": options["output_graph"], "nodes": len(frozen.node), "bytes": frozen.ByteSize(),
        "constants": ops["Const"],
    }  # fmt: skip
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        print(
            f"{found['output'] or 'frozen'}: {found['nodes']} nodes, {found['constants']} of them "
            f"constants, {found['bytes']:,} bytes"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
