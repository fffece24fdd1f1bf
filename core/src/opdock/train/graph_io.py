"""`tf.train.write_graph`: a graph protobuf as a file."""

from __future__ import annotations

import os
from typing import Any

from opdock.graph.nodes.graph import Graph
from opdock.io.files import as_path, make_directories, write_file

__all__ = ["write_graph"]


def write_graph(graph_or_graph_def: Any, logdir: Any, name: str, as_text: bool = True) -> str:
    """Writes a graph to a file, which appears whole or not at all.

    Args:
        graph_or_graph_def: a `Graph` or a protobuf.
        logdir: the directory, made when missing.
        name: the file's name.
        as_text: write the text format instead of the binary one.

    Returns:
        The path of the file.
    """
    from google.protobuf import text_format

    proto = graph_or_graph_def
    if isinstance(proto, Graph):
        proto = proto.as_graph_def()
    directory = as_path(logdir)
    path = os.path.join(directory, name)
    if directory:
        make_directories(directory)
    data = text_format.MessageToString(proto).encode() if as_text else proto.SerializeToString()
    write_file(path, data)
    return path
