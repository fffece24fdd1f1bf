"""Profiles as text, in the layout of TF's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from opdock.profiler.figures import Figures
from opdock.profiler.items import Item
from opdock.profiler.model import Model, ProfiledNode
from opdock.profiler.settings import Settings

__all__ = ["input_shapes", "meaning", "op_type_lines", "time_text", "tree_lines"]

_BYTES: Final = {
    "bytes": ("requested bytes", "requested_bytes"),
    "peak_bytes": ("peak bytes", "peak_bytes"),
    "residual_bytes": ("residual bytes", "residual_bytes"),
    "output_bytes": ("output bytes", "output_bytes"),
}
_TIMES: Final = {
    "micros": ("total execution time", "exec_micros"),
    "accelerator_micros": ("accelerator execution time", "accelerator_exec_micros"),
    "cpu_micros": ("cpu execution time", "cpu_exec_micros"),
}
_COUNTS: Final = {
    "params": ("# parameters", "parameters"),
    "float_ops": ("# float_ops", "float_ops"),
}
_NUMBERS: Final = {**_BYTES, **_TIMES, **_COUNTS}
_WORDS: Final = {"device": "assigned devices", "op_types": "op types"}
_OF_NODES: Final = (*_COUNTS, *_BYTES, *_TIMES)
_OF_GROUPS: Final = (*_BYTES, *_TIMES, *_COUNTS)


_VIEWS: Final = {
    "scope": "nodes below the name scopes that they are in",
    "graph": "nodes above those that they are made from",
    "op": "op types, each with its nodes; totals are of it and of all below it",
    "code": "lines of code, each above those that it calls",
}
_MEANINGS: Final = {
    "params": "numbers in variables",
    "float_ops": "floating-point operations, by TensorFlow's rules for its ops",
    "bytes": "memory asked for",
    "peak_bytes": "memory held at most",
    "residual_bytes": "memory held at the end",
    "output_bytes": "memory of results",
    "micros": "time on devices and streams together",
    "accelerator_micros": "time by an accelerator's own clock",
    "cpu_micros": "time as the host sees it, waiting included",
    "device": "where nodes ran",
    "op_types": "op types, devices and types of op logs",
    "occurrence": "how often nodes ran and how many there are",
    "input_shapes": "the shapes of inputs",
}


def meaning(cmd: str, settings: Settings) -> Iterator[str]:
    """The lines that say what a view and its columns are."""
    yield f"\nDoc:\n{cmd}: {_VIEWS[cmd]}\n"
    for column, text in _MEANINGS.items():
        if column in settings.select:
            yield f"{column}: {text}\n"
    yield "\nProfile:\n"


def _number(count: int) -> str:
    for size, unit in ((10**9, "b"), (10**6, "m"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.2f}{unit}"
    return str(count)


def time_text(micros: int) -> str:
    """Microseconds, in the unit that makes them readable."""
    if micros >= 10**6:
        return f"{micros / 10**6:.2f}sec"
    return f"{micros / 1000:.2f}ms" if micros >= 1000 else f"{micros}us"


def _memory(count: int) -> str:
    if count >= 10**6:
        return f"{count / 10**6:.2f}MB"
    return f"{count / 1000:.2f}KB" if count >= 1000 else f"{count}B"


def _figure(column: str, figures: Figures) -> str:
    value = getattr(figures, _NUMBERS[column][1])
    if column in _BYTES:
        return _memory(value)
    return time_text(value) if column in _TIMES else _number(value)


def _selected(settings: Settings, order: tuple[str, ...]) -> list[str]:
    """The numbers to print, in the order of the view; the whole time has its parts beside it."""
    wanted = set(settings.select)
    if "micros" in wanted:
        wanted |= {"accelerator_micros", "cpu_micros"}
    return [column for column in order if column in wanted]


def _legend(settings: Settings, order: tuple[str, ...], occurrence: str) -> str:
    columns = [_NUMBERS[column][0] for column in _selected(settings, order)]
    columns += [text for name, text in _WORDS.items() if name in settings.select]
    if "occurrence" in settings.select:
        columns.append(f"op {occurrence} (run|defined)")
    if "input_shapes" in settings.select:
        columns.append("input shapes")
    return f"node name | {' | '.join(columns)}\n"


def tree_lines(root: Item, model: Model, settings: Settings) -> Iterator[str]:
    """The lines of a view that is a tree, each item a little further in than the one above it."""
    order, occurrence = (_OF_GROUPS, "occurrence") if root.groups else (_OF_NODES, "count")
    yield _legend(settings, order, occurrence)
    waiting = [(root, 0)]
    while waiting:
        item, indent = waiting.pop()
        yield f"{' ' * indent}{item.name} ({', '.join(_described(item, model, settings))})\n"
        waiting.extend((child, indent + 2) for child in reversed(item.children))


def _described(item: Item, model: Model, settings: Settings) -> Iterator[str]:
    if "params" in settings.select and not item.groups and item.nodes and item.nodes[0].shape:
        yield "x".join(map(str, item.nodes[0].shape))
    for column in _selected(settings, _OF_GROUPS if item.groups else _OF_NODES):
        unit = {"params": " params", "float_ops": " flops"}.get(column, "")
        yield _of(item, _figure(column, item.own), _figure(column, item.total)) + unit
    if "device" in settings.select and (devices := _devices(item)):
        yield devices
    if "op_types" in settings.select:
        yield "|".join(sorted(item.types))
    if item.groups:
        return
    if "occurrence" in settings.select:
        ran = _of(item, _number(item.own.run_count), _number(item.total.run_count))
        yield f"{ran}|{_of(item, '1', _number(item.total.definition_count))}"
    if "input_shapes" in settings.select:
        yield "|".join(_inputs(item.nodes[0], model)) if item.nodes else ""


def _of(item: Item, own: str, total: str) -> str:
    return f"{own if item.accounted else '--'}/{total}"


def _devices(item: Item) -> str:
    return "|".join(sorted({node.device for node in item.nodes if node.device}))


def _inputs(node: ProfiledNode, model: Model) -> Iterator[str]:
    for index, sizes in input_shapes(node, model).items():
        yield f"{index}:{'x'.join(map(str, sizes)) or 'unknown'}"


def input_shapes(node: ProfiledNode, model: Model) -> dict[int, tuple[int, ...]]:
    """The sizes of each input of a node; empty where they are not known."""
    found = {}
    for index, (source, output) in enumerate(node.inputs):
        shapes = model.nodes[source].output_shapes if source in model.nodes else []
        found[index] = shapes[output] if output < len(shapes) else ()
    return found


def op_type_lines(root: Item, model: Model, settings: Settings) -> Iterator[str]:
    """The lines of the view by op type: of each type its figures, and what shares they are."""
    yield _legend(settings, _OF_GROUPS, "occurrence")
    item = root
    while item.children:
        (item,) = item.children
        columns = [
            f"{_share(column, item, root):>30}" for column in _selected(settings, _OF_GROUPS)
        ]
        if "device" in settings.select:
            columns.append(_devices(item))
        if "op_types" in settings.select:
            columns.append("|".join(sorted(item.types)))
        if "occurrence" in settings.select:
            columns.append(f"{f'{item.own.run_count}|{len(item.counted)}':>10}")
        line = f"{item.name:<25}{', '.join(columns)}\n"
        if "input_shapes" in settings.select and item.counted:
            line = f"{line}\n" + "\n".join(_kinds(item, model, settings)) + "\n\n"
        yield line


def _share(column: str, item: Item, root: Item) -> str:
    """A type's figure, and which parts of all its total and it are."""
    name = _NUMBERS[column][1]
    own, total, every = (getattr(f, name) for f in (item.own, item.total, root.total))
    # Of bytes TensorFlow gives no shares where the type itself has none.
    whole = every if (own if column in _BYTES else total) else 0
    both, alone = (100 * part / whole if whole else 0 for part in (total, own))
    unit = {"params": " params", "float_ops": " float_ops"}.get(column, "")
    return f"{_figure(column, item.own)}{unit} ({both:.2f}%, {alone:.2f}%)"


def _kinds(item: Item, model: Model, settings: Settings) -> Iterator[str]:
    """The nodes of a type by the shapes of their inputs, those first that ran most often."""
    kinds: dict[str, list[Figures]] = defaultdict(list)
    for node in item.counted:
        kinds[",\t".join(_inputs(node, model))].append(node.figures(settings.step))
    runs = {kind: sum(f.run_count for f in figures) for kind, figures in kinds.items()}
    for kind in sorted(kinds, key=lambda kind: (-runs[kind], kind)):
        took = time_text(sum(figures.exec_micros for figures in kinds[kind]))
        yield (
            f"input_type: {kind}\t(run*{runs[kind]}|defined*{len(kinds[kind])})\texec_time: {took}"
        )
