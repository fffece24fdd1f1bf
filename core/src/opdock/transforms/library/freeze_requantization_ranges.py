"""`freeze_requantization_ranges`: ranges of activations that were logged become constants."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from opdock import errors
from opdock.io.files import read_file
from opdock.transforms.editor import Editor
from opdock.transforms.registry import Context

_NUMBER: Final = r"\[([^\]\[]*)\]"
_LINE: Final = re.compile(rf";([^;]*)__print__;__requant_min_max:{_NUMBER}{_NUMBER}")


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
    for option, value in (("min", min_percentile), ("max", max_percentile)):
        if not 0 <= value <= 100:
            raise errors.InvalidArgumentError(
                None, None,
                f"freeze_requantization_ranges: {option}_percentile is {value:g}, not in [0, 100]",
            )  # fmt: skip
    editor = Editor(graph_def, context.ends)
    for name, (lows, highs) in _logged(min_max_log_file).items():
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
        ends = (
            _ranked(lows, min_percentile / 100),
            _ranked(highs, 1 - max_percentile / 100),
        )
        for i, (which, end) in enumerate(zip(("min", "max"), ends, strict=True)):
            constant = editor.constant(editor.unique(f"{name}/frozen_{which}"), np.float32(end))
            editor.redirect(f"{name}:{i}", constant)
        editor.sweep([name])
    return editor.result()


def _logged(path: str) -> dict[str, tuple[list[float], list[float]]]:
    found: dict[str, tuple[list[float], list[float]]] = {}
    for line in read_file(path).decode(errors="replace").splitlines():
        for name, low, high in _LINE.findall(line):
            try:
                ends = float(low), float(high)
            except ValueError:
                continue
            if np.all(np.isfinite(ends)):
                for values, end in zip(found.setdefault(name, ([], [])), ends, strict=True):
                    values.append(end)
    if not found:
        raise errors.InvalidArgumentError(
            None, None, f"No min/max range logs were found in the log file {path}"
        )
    return found


def _ranked(values: list[float], share: float) -> float:
    """The value with this share of the values below it; ranks are rounded up from the middle."""
    rank = int(np.floor(len(values) * share + 0.5))
    return sorted(values)[min(rank, len(values) - 1)]
