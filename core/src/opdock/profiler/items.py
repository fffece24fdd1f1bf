"""What views of a profile are made of: items with figures of their own and of all below them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from opdock.profiler.figures import Figures
from opdock.profiler.model import Line, ProfiledNode
from opdock.profiler.settings import Settings, all_match, matches

__all__ = ["ROOT", "Item", "by_name", "count", "downwards", "figure_named", "in_order", "may_show"]

ROOT: Final = "_TFProfRoot"
_FIGURE: Final = {
    "bytes": "requested_bytes", "peak_bytes": "peak_bytes", "residual_bytes": "residual_bytes",
    "output_bytes": "output_bytes", "micros": "exec_micros",
    "accelerator_micros": "accelerator_exec_micros", "cpu_micros": "cpu_exec_micros",
    "params": "parameters", "float_ops": "float_ops",
}  # fmt: skip
_SCOPE: Final = "_kTFScopeParent"


@dataclass(slots=True, eq=False)
class Item:
    """A scope, a node, an op type or a line.

    Attributes:
        name: what it is called.
        nodes: the nodes that it is itself, without those below it.
        children: the items below it: at first all, in the end those that are shown.
        groups: whether it stands for any number of nodes, which are counted by their types.
        accounted: whether its own figures count.
        counted: of `nodes`, those that count.
        own: the figures of `nodes`.
        total: those of all that is counted below it as well.
        line: the line that it is.
        suffix: what is behind the line's name.
    """

    name: str
    nodes: list[ProfiledNode] = field(default_factory=list)
    children: list[Item] = field(default_factory=list)
    groups: bool = False
    accounted: bool = True
    counted: list[ProfiledNode] = field(default_factory=list)
    own: Figures = field(default_factory=Figures)
    total: Figures = field(default_factory=Figures)
    line: Line | None = None
    suffix: str = ""

    @property
    def types(self) -> set[str]:
        """The types of its nodes."""
        nodes = self.counted if self.groups else self.nodes
        found: set[str] = set().union(*(node.types for node in nodes))
        return found or ({_SCOPE} if not self.groups else set())

    def add_up(self, children: Sequence[Item]) -> None:
        """Makes the total that of the item and of `children`."""
        self.total = self.own
        for child in children:
            self.total = self.total.plus(child.total)


def count(item: Item, settings: Settings) -> None:
    """Works out an item's own figures, and whether they count."""
    wanted = settings.account_type_regexes
    everything = all_match(wanted)
    matching = [n for n in item.nodes if everything or matches(wanted, *n.types)]
    item.accounted = everything or bool(matching)
    if not item.groups:
        item.accounted = everything or matches(wanted, *item.types)
    item.counted = matching if item.groups else item.nodes
    # A scope is a definition of its own, as it is in TensorFlow.
    item.own = Figures(definition_count=0 if item.groups or item.nodes else 1)
    for node in item.counted:
        item.own = item.own.plus(node.figures(settings.step))


def downwards(roots: Sequence[Item], below: Callable[[Item], Sequence[Item]]) -> Iterator[Item]:
    """All items, each before those below it. Graphs are deeper than Python may recurse."""
    waiting = list(reversed(roots))
    while waiting:
        item = waiting.pop()
        yield item
        waiting.extend(reversed(below(item)))


def by_name(item: Item, settings: Settings) -> bool:
    """Whether an item's name is among those to show."""
    shown = all_match(settings.show_name_regexes) or matches(settings.show_name_regexes, item.name)
    return shown and not matches(settings.hide_name_regexes, item.name)


def may_show(item: Item, settings: Settings, depth: int) -> bool:
    """Whether an item is shown: it is, or took, as much as the settings want.

    Of memory and time all that is below it counts; parameters and operations of a node are its own.
    """
    if item.name == ROOT:
        return True
    total, own = item.total, item.total if item.groups else item.own
    least: list[tuple[int, int]] = [
        (total.requested_bytes, settings.min_bytes),
        (total.peak_bytes, settings.min_peak_bytes),
        (total.residual_bytes, settings.min_residual_bytes),
        (total.output_bytes, settings.min_output_bytes),
        (total.exec_micros, settings.min_micros),
        (total.accelerator_exec_micros, settings.min_accelerator_micros),
        (total.cpu_exec_micros, settings.min_cpu_micros),
        (own.parameters, settings.min_params),
        (own.float_ops, settings.min_float_ops),
        (own.run_count, 0 if item.groups else settings.min_occurrence),
    ]
    enough = all(figure >= minimum for figure, minimum in least)
    return enough and depth <= settings.max_depth and by_name(item, settings)


def figure_named(option: str) -> str | None:
    """The figure that options call so; None if it is another column."""
    return _FIGURE.get(option)


def in_order(items: Sequence[Item], settings: Settings) -> list[Item]:
    """Items in the order that the settings want: by name, or with the greatest figure first."""
    if not settings.order_by:
        return list(items)
    figure = _FIGURE.get(settings.order_by)

    def rank(item: Item) -> int:
        if settings.order_by == "occurrence" and item.groups:
            return len(item.counted)
        return 0 if figure is None else int(getattr(item.total, figure))

    return sorted(items, key=lambda item: (-rank(item), item.name))
