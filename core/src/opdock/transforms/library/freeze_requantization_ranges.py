"""`freeze_requantization_ranges`: ranges of activations that were logged become constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from opdock import errors
from opdock.transforms.editor import Editor
from opdock.transforms.logged_ranges import logged_ranges
from opdock.transforms.registry import Context


def freeze_requantization_ranges(
    graph_def: Any, context: Context, *, min_max_log_file: str, min_percentile: float = 5.0,
    max_percentile: float = 5.0,
) -> Any:  # fmt: skip
    """Puts constants in the place of RequantizationRange ops, so that ranges need not be measured.

    Args:
        graph_def: a `GraphDef` that quantize_nodes made.
        context: its inputs and outputs.
        min_max_log_file: what the graph printed that insert_logging(op=RequantizationRange,
            show_name=true, message="__requant_min_max:") made of it, over many inputs.
        min_percentile: how many percent of the logged lower ends lie below the range.
        max_percentile: how many percent of the upper ends lie above it.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: no ranges are in the file, a node of it is not in the graph or is
            another op, or a percentage is not between 0 and 100.
    """
    editor = Editor(graph_def, context.ends)
    ranges = logged_ranges(
        "freeze_requantization_ranges", min_max_log_file, min_percentile, max_percentile
    )
    for name, ends in ranges:
        node = editor.nodes.get(name)
        if node is None:
            raise errors.InvalidArgumentError(
                None, None,
                "Nodes were found in the log file that aren't present in the graph: "
                f"'{name}' in min_max_log_file {min_max_log_file}",
            )  # fmt: skip
        if node.op != "RequantizationRange":
            raise errors.InvalidArgumentError(
                None, None,
                f"Node is expected to be a RequantizationRange op: {name}, but is: {node.op}",
            )  # fmt: skip
        for i, (which, end) in enumerate(zip(("min", "max"), ends, strict=True)):
            constant = editor.constant(editor.unique(f"{name}/frozen_{which}"), np.float32(end))
            editor.redirect(f"{name}:{i}", constant)
        editor.sweep([name])
    return editor.result()
