"""Writes a frozen graph, or that of a SavedModel, where TensorBoard shows it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from opdock.graph.nodes.graph import Graph
from opdock.graph.serial.importer import import_graph_def
from opdock.io import filesystems
from opdock.io.files import as_path
from opdock.summary.writer import FileWriter
from opdock.tools.protos_in_files import read_graph
from opdock.tools.saved_model_utils import get_meta_graph_def

__all__ = ["import_to_tensorboard", "main"]


def import_to_tensorboard(model_dir: Any, log_dir: Any, tag_set: str = "serve") -> None:
    """Writes a graph as an event file.

    Args:
        model_dir: a file that holds a GraphDef, or the directory of a SavedModel.
        log_dir: the directory for the event file.
        tag_set: the tags of the meta graph of a SavedModel, with commas between them.

    Raises:
        NotFoundError: there is no such file.
        DataLossError: it holds no GraphDef.
        OSError: the directory holds no SavedModel.
        RuntimeError: the SavedModel has no meta graph with these tags.
    """
    path = as_path(model_dir)
    if filesystems.of(path).isdir(path):
        definition = get_meta_graph_def(path, tag_set).graph_def
    else:
        definition = read_graph(path)
    graph = Graph()
    with graph.as_default():
        import_graph_def(definition)
    with FileWriter(log_dir) as writer:
        writer.add_graph(graph)
    print(f"Model Imported. Visualize by running: tensorboard --logdir={as_path(log_dir)}")


def main(argv: Sequence[str] | None = None, prog: str = "import_pb_to_tensorboard") -> int:
    """Runs the tool; returns its exit status."""
    parser = argparse.ArgumentParser(prog=prog, description=__doc__)
    parser.add_argument(
        "--model_dir", required=True, help="a GraphDef, or a SavedModel's directory"
    )
    parser.add_argument("--log_dir", required=True, help="the directory for TensorBoard")
    parser.add_argument("--tag_set", default="serve", help="of a SavedModel, separated by commas")
    args = parser.parse_args(argv)
    import_to_tensorboard(args.model_dir, args.log_dir, args.tag_set)
    return 0


if __name__ == "__main__":
    sys.exit(main())
