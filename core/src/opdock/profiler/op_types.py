"""The view by op type: a list, in which each total is that of the type and of all after it."""

from __future__ import annotations

from itertools import pairwise

from opdock.profiler.items import ROOT, Item, count, in_order, may_show
from opdock.profiler.model import Model
from opdock.profiler.settings import Settings, all_match, matches

__all__ = ["op_type_list"]


def op_type_list(model: Model, settings: Settings) -> Item:
    """A root over the types that are shown, each the only child of the one before it."""
    types: dict[str, Item] = {}
    for name in sorted(model.nodes):
        node = model.nodes[name]
        types.setdefault(node.op_type, Item(node.op_type, groups=True)).nodes.append(node)
    for item in types.values():
        count(item, settings)
        item.add_up([])
    counted = [item for item in in_order(list(types.values()), settings) if item.accounted]
    root = Item(ROOT, groups=True)
    _accumulate(root, counted)
    listed = _listed(counted, settings)
    if settings.account_displayed_op_only:
        _accumulate(root, listed)
    for item, after in pairwise([root, *listed]):
        item.children = [after]
    return root


def _accumulate(root: Item, items: list[Item]) -> None:
    after: list[Item] = []
    for item in [*reversed(items), root]:
        item.add_up(after)
        after = [item]


def _listed(items: list[Item], settings: Settings) -> list[Item]:
    if not all_match(settings.start_name_regexes):
        begins = settings.start_name_regexes
        starts = (i for i, item in enumerate(items) if matches(begins, item.name))
        items = items[next(starts, 0 if not begins else len(items)) :]
    listed: list[Item] = []
    for depth, item in enumerate(items):
        if matches(settings.trim_name_regexes, item.name) or depth > settings.max_depth:
            break
        if may_show(item, settings, depth):
            listed.append(item)
    return listed
