"""What a profile shows at a glance, by the names of TF's checkers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from opdock.profiler import trees
from opdock.profiler.items import Item
from opdock.profiler.model import Model
from opdock.profiler.op_types import op_type_list
from opdock.profiler.printing import time_text
from opdock.profiler.settings import Settings

__all__ = ["ALL_ADVICE", "advice"]

ALL_ADVICE: Final[dict[str, dict[str, str]]] = {
    "ExpensiveOperationChecker": {},
    "AcceleratorUtilizationChecker": {},
    "JobChecker": {},
    "OperationChecker": {},
}
_SHOWN: Final = 3
_DEEPEST: Final = 3
_LEAST_MICROS: Final = 1000


def advice(model: Model, checkers: Iterable[str]) -> dict[str, list[str]]:
    """The reports of each checker that there is. That of jobs is TensorFlow's makers' own."""
    return {name: list(_CHECKERS[name](model)) for name in checkers if name in _CHECKERS}


def _utilization(model: Model) -> Iterator[str]:
    """For each accelerator, the share of its last step in which it computed."""
    spans: dict[str, tuple[int, int]] = {}
    busy: dict[str, int] = {}
    for node in model.nodes.values():
        if not node.executions:
            continue
        last = node.executions[max(node.executions)]
        if not last.on_stream or not last.start:
            continue
        start, end = spans.get(node.device, (last.start, last.end))
        spans[node.device] = min(start, last.start), max(end, last.end)
        busy[node.device] = busy.get(node.device, 0) + last.figures.accelerator_exec_micros
    for device, (start, end) in sorted(spans.items()):
        share = busy[device] / (end - start)
        yield f"device: {device} {'low ' if share < 0.5 else ''}utilization: {share:.2f}"


def _operations(model: Model) -> Iterator[str]:
    """What could be made of faster ops. The compiler chooses formats itself."""
    types = {node.op_type for node in model.nodes.values()}
    named = any("BatchNorm" in name for name in model.nodes)
    if named and not any(name.startswith("FusedBatchNorm") for name in types):
        yield "Batch normalization is made of single ops: tf.nn.fused_batch_norm is one."


def _expensive(model: Model) -> Iterator[str]:
    """The op types, the scopes and the lines that took most of the time."""
    if not model.steps:
        return
    every = Settings.of(
        {"max_depth": 100, "order_by": "micros", "output": "none"}
        | dict.fromkeys(
            ("account_type_regexes", "start_name_regexes", "show_name_regexes"), (".*",)
        )
    )
    yield from _paragraph(_types(op_type_list(model, every)))
    yield from _paragraph(_scopes(trees.shown(trees.scope_tree(model), every)))
    if model.has_code:
        yield from _paragraph(_lines(trees.shown(trees.code_tree(model), every)))


def _paragraph(lines: Iterator[str]) -> Iterator[str]:
    text = "\n".join(lines)
    if text:
        yield text


def _types(root: Item) -> Iterator[str]:
    item, every = root, root.total.exec_micros
    for place in range(1, _SHOWN + 1):
        if not item.children:
            return
        (item,) = item.children
        share = 100 * item.own.exec_micros / every if every else 0
        yield f"top {place} operation type: {item.name}, {_took(item, True)} ({share:.2f}%)"


def _scopes(root: Item) -> Iterator[str]:
    for place, item in enumerate(root.children[:_SHOWN], 1):
        yield f"top {place} graph node: {item.name}, {_took(item)}"


def _lines(root: Item) -> Iterator[str]:
    """From where calls part first, the lines that took long, each with those that it calls."""
    while len(root.children) == 1:
        (root,) = root.children
    waiting = [(child, 0) for child in reversed(root.children[:_SHOWN])]
    while waiting:
        item, depth = waiting.pop()
        if item.total.exec_micros < _LEAST_MICROS or depth > _DEEPEST:
            continue
        yield f"{'  ' * depth}{item.name}, {_took(item)}"
        if len(item.children) > 1:
            waiting.extend((child, depth + 1) for child in reversed(item.children[:_SHOWN]))


def _took(item: Item, alone: bool = False) -> str:
    figures = item.own if alone else item.total
    return (
        f"cpu: {time_text(figures.cpu_exec_micros)}, accelerator:"
        f" {time_text(figures.accelerator_exec_micros)}, total: {time_text(figures.exec_micros)}"
    )


_CHECKERS: Final[dict[str, Callable[[Model], Iterator[str]]]] = {
    "AcceleratorUtilizationChecker": _utilization,
    "ExpensiveOperationChecker": _expensive,
    "OperationChecker": _operations,
}
