"""Tables of what ops took in many steps, as TensorFlow's StatSummarizer prints them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.graph import Graph

__all__ = ["StepTables", "readable_bytes"]


@dataclass(slots=True)
class _Row:
    """What a node took in all steps, in microseconds and bytes, and what it made in the last."""

    name: str
    op: str
    start: int = 0
    first: int = 0
    total: int = 0
    memory: int = 0
    count: int = 0
    outputs: list[tuple[str, list[int]]] = field(default_factory=list)

    def made(self) -> list[dict[str, Any]]:
        """Its results: type and shape of each."""
        return [{"dtype": dtype, "shape": shape} for dtype, shape in self.outputs]


class StepTables:
    """Adds up traced steps.

    Args:
        graph: whose nodes ran; it says their op types.
    """

    def __init__(self, graph: Graph) -> None:
        self._types = {op.name: op.type for op in graph.get_operations()}
        self._rows: dict[str, _Row] = {}
        self._steps = 0

    def add(self, step_stats: Any) -> None:
        """Adds a step's `StepStats`."""
        self._steps += 1
        nodes = [node for device in step_stats.dev_stats for node in device.node_stats]
        begin = min((node.all_start_micros for node in nodes), default=0)
        for node in nodes:
            row = self._rows.get(node.node_name)
            if row is None:
                row = self._rows[node.node_name] = _Row(node.node_name, self._type(node))
                row.first = node.all_end_rel_micros
            row.start += node.all_start_micros - begin
            row.total += node.all_end_rel_micros
            row.memory += sum(m.total_bytes for m in node.memory)
            row.count += 1
            row.outputs = [_described(output.tensor_description) for output in node.output]

    def _type(self, node: Any) -> str:
        label = node.timeline_label.partition(" = ")[2]
        return label.partition("(")[0] or self._types.get(node.node_name, "?")

    def _ordered(self) -> list[_Row]:
        """In the order in which the nodes ran."""
        return sorted(self._rows.values(), key=lambda r: r.start / r.count)

    def records(self) -> list[dict[str, Any]]:
        """What each node took in a step on average, in the order in which they ran."""
        return [
            {
                "name": row.name, "op": row.op, "start_us": row.start / row.count,
                "us": row.total / row.count, "bytes": row.memory / row.count,
                "times": row.count / self._steps, "outputs": row.made(),
            }
            for row in self._ordered()
        ]  # fmt: skip

    def us_by_type(self) -> dict[str, float]:
        """What the nodes of each op type took together in a step on average, slowest first."""
        return {
            op: sum(row.total for row in rows) / self._steps
            for op, rows in _by_type(self._rows.values())
        }

    @property
    def steps(self) -> int:
        """How many steps were added."""
        return self._steps

    def size_lines(self) -> Iterator[str]:
        """The results of each node, as TF's tool tells them: tabs between name, count, and then
        type, rank and sizes of each."""
        yield f"{' Node output tensor sizes in run order ':=^60}"
        for row in self._ordered():
            words: list[Any] = [row.name, len(row.outputs)]
            for dtype, shape in row.outputs:
                words += [dtype, len(shape), *shape]
            yield "\t".join(map(str, words))

    def lines(
        self, run_order: int | None = 0, by_time: int | None = 10, by_memory: int | None = 10,
        by_type: bool = True, summary: bool = True,
    ) -> Iterator[str]:  # fmt: skip
        """The tables, line by line.

        Args:
            run_order: how many ops to list in the order in which they ran; 0 for all, None for no
                such table.
            by_time: how many ops to list, slowest first.
            by_memory: how many ops to list, those with the largest results first.
            by_type: whether to list op types.
            summary: whether to tell the totals.
        """
        rows = self._ordered()
        total = sum(row.total for row in rows) or 1
        for title, limit, ordered in (
            ("Run Order", run_order, rows),
            ("Top by Computation Time", by_time, sorted(rows, key=lambda r: -r.total)),
            ("Top by Memory Use", by_memory, sorted(rows, key=lambda r: -r.memory)),
        ):
            if limit is not None:
                yield from self._table(title, ordered[: limit or None], total)
        if by_type:
            yield from self._types_table(rows, total)
        if summary:
            memory = sum(row.memory for row in rows) / max(self._steps, 1)
            yield (
                f"{self._steps} steps, {len(rows)} nodes observed, "
                f"{total / max(self._steps, 1):.0f} us in ops and {readable_bytes(memory)} of "
                "results a step"
            )

    def _table(self, title: str, rows: Iterable[_Row], total: int) -> Iterator[str]:
        yield f"{f' {title} ':=^30}"
        yield (
            f"{'[node type]':>24} {'[start]':>9} {'[first]':>9} {'[avg ms]':>9} {'[%]':>7} "
            f"{'[cdf%]':>7} {'[mem KB]':>9} {'[times called]':>14}  [Name]"
        )
        so_far = 0
        for row in rows:
            so_far += row.total
            yield (
                f"{row.op:>24} {row.start / row.count / 1e3:9.3f} {row.first / 1e3:9.3f} "
                f"{row.total / row.count / 1e3:9.3f} {100 * row.total / total:6.2f}% "
                f"{100 * so_far / total:6.2f}% {row.memory / row.count / 1e3:9.3f} "
                f"{row.count / self._steps:14.4g}  {row.name}"
            )
        yield ""

    def _types_table(self, rows: Iterable[_Row], total: int) -> Iterator[str]:
        yield f"{' Summary by node type ':=^30}"
        yield (
            f"{'[Node type]':>24} {'[count]':>9} {'[avg ms]':>9} {'[avg %]':>8} {'[mem KB]':>10} "
            f"{'[times called]':>14}"
        )
        for op, members in _by_type(rows):
            took = sum(r.total for r in members)
            memory = sum(r.memory for r in members)
            yield (
                f"{op:>24} {len(members):9} {took / self._steps / 1e3:9.3f} "
                f"{100 * took / total:7.2f}% {memory / self._steps / 1e3:10.3f} "
                f"{sum(r.count for r in members) / self._steps:14.4g}"
            )
        yield ""


def _described(description: Any) -> tuple[str, list[int]]:
    sizes = [] if description.shape.unknown_rank else [dim.size for dim in description.shape.dim]
    return dtypes.as_dtype(description.dtype).name, sizes


def _by_type(rows: Iterable[_Row]) -> list[tuple[str, list[_Row]]]:
    """Rows by op type, slowest type first."""
    kinds: dict[str, list[_Row]] = {}
    for row in rows:
        kinds.setdefault(row.op, []).append(row)
    return sorted(kinds.items(), key=lambda kind: -sum(row.total for row in kind[1]))


def readable_bytes(count: float) -> str:
    """Bytes for people: "1.5 MB"."""
    for unit in ("B", "KB", "MB"):
        if count < 1000:
            return f"{count:.4g} {unit}"
        count /= 1000
    return f"{count:.4g} GB"
