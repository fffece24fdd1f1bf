"""What profiles know of nodes beyond the graph, as an OpLogProto: operations, types and lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Operation
from opdock.io import files
from opdock.profiler.operations import MeasuredGraph, measured_shapes, operations
from opdock.profiler.options import TRAINABLE_VARIABLES
from opdock.profiler.statistics import get_stats_for_node_def, is_counted

__all__ = ["merge_default_with_oplog", "write_op_log"]


class _Strings(dict[str, int]):
    """Numbers for strings, which stand in the log once; 0 is that of what is not known."""

    def __init__(self) -> None:
        super().__init__(none=0)

    def number(self, text: str | None) -> int:
        return self.setdefault(text, len(self)) if text else 0


def merge_default_with_oplog(
    graph: Graph | None,
    op_log: Any = None,
    run_meta: Any = None,
    add_trace: bool = True,
    add_trainable_var: bool = True,
) -> Any:
    """An OpLogProto of a graph, and of what the caller knows of it.

    Args:
        graph: the graph, the default graph when None.
        op_log: the caller's OpLogProto: its types are added, its operations and lines count first.
        run_meta: a RunMetadata, whose shapes count where the graph's are not known.
        add_trace: whether to note which lines made the nodes.
        add_trainable_var: whether trainable variables are to have the type "_trainable_variables".
    """
    from opdock.io import protos

    graph = get_default_graph() if graph is None else graph
    strings = _Strings()
    found = _counted(operations(graph), _measured(run_meta, graph), run_meta is None)
    if add_trace:
        _add_lines(found, operations(graph), strings)
    if add_trainable_var:
        for variable in graph.get_collection(GraphKeys.TRAINABLE_VARIABLES):
            name = variable.op.name
            entry = found.setdefault(name, protos.OpLogEntry(name=name))
            entry.types.append(TRAINABLE_VARIABLES)
    merged = protos.OpLogProto()
    if op_log is not None:
        merged.CopyFrom(op_log)
    _merge(merged, found)
    merged.id_to_string.update({number: text for text, number in strings.items()})
    return merged


def _measured(run_meta: Any, graph: Graph) -> dict[str, Any]:
    return measured_shapes(graph, run_meta) if run_meta is not None else {}


def _counted(nodes: Iterable[Operation], measured: Any, tell: bool) -> dict[str, Any]:
    """An entry for each node of which floating-point operations are known."""
    from opdock.io import protos

    found, unknown = {}, 0
    for op in nodes:
        if not is_counted(op.type, "flops"):
            continue  # a constant's NodeDef may be large
        graph: Any = MeasuredGraph(op.graph, measured) if measured else op.graph
        try:
            count = get_stats_for_node_def(graph, op.node_def, "flops").value
        except ValueError:  # a shape is not known
            unknown += 1
            continue
        if count:
            found[op.name] = protos.OpLogEntry(name=op.name, float_ops=int(count))
    if unknown and tell:
        print(f"{unknown} ops are not counted: their shapes are not known.", file=sys.stderr)
    return found


def _add_lines(found: dict[str, Any], nodes: Iterable[Operation], strings: _Strings) -> None:
    from opdock.io import protos

    for op in nodes:
        entry = found.setdefault(op.name, protos.OpLogEntry(name=op.name))
        for file, line_number, function, line, start in op.traceback_with_start_lines:
            entry.code_def.traces.add(
                file_id=strings.number(file), lineno=line_number or -1,
                function_id=strings.number(function), line_id=strings.number(line),
                func_start_line=start or -1,
            )  # fmt: skip


def _merge(merged: Any, found: dict[str, Any]) -> None:
    by_name = {entry.name: entry for entry in merged.log_entries}
    for name, entry in found.items():
        known = by_name.get(name)
        if known is None:
            merged.log_entries.append(entry)
            continue
        known.types.extend(entry.types)
        if not known.float_ops:
            known.float_ops = entry.float_ops
        if not known.code_def.traces:
            known.code_def.CopyFrom(entry.code_def)


def write_op_log(
    graph: Graph | None,
    log_dir: str,
    op_log: Any = None,
    run_meta: Any = None,
    add_trace: bool = True,
) -> None:
    """Writes the OpLogProto of a graph into the file `tfprof_log` of a directory.

    Args:
        graph: the graph, the default graph when None.
        log_dir: the directory, which has to be there.
        op_log: what the caller knows of nodes, an OpLogProto.
        run_meta: a RunMetadata, whose shapes count where the graph's are not known.
        add_trace: whether to note which lines made the nodes.

    Raises:
        NotFoundError: there is no such directory.
    """
    merged = merge_default_with_oplog(graph, op_log, run_meta, add_trace)
    path = os.path.join(files.as_path(log_dir), "tfprof_log")
    files.write_file(path, merged.SerializeToString())
