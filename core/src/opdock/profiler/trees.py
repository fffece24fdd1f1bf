"""The views that are trees: by name scope, by what a node is made from, and by line of code."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Final

from opdock.profiler.figures import Figures
from opdock.profiler.items import ROOT, Item, count, downwards, in_order, may_show
from opdock.profiler.model import Line, Model, ProfiledNode
from opdock.profiler.settings import Settings, all_match, matches

__all__ = ["code_tree", "graph_tree", "scope_tree", "shown"]

_LONGEST: Final = 20


def scope_tree(model: Model) -> Item:
    """The nodes by their names: below each scope what is in it."""
    items: dict[str, Item] = {}
    for name in sorted(model.nodes):
        items[name] = Item(name, [model.nodes[name]])
    for name in sorted(model.nodes):
        while "/" in name:
            name = name.rpartition("/")[0]
            items.setdefault(name, Item(name))
    root = Item(ROOT)
    for name in sorted(items):
        parent = items[name.rpartition("/")[0]] if "/" in name else root
        parent.children.append(items[name])
    return root


def graph_tree(model: Model) -> Item:
    """The nodes by what they are made from: below those that nobody uses, their inputs.

    A node that several use stands below the first that is met, so that it counts once. What is in
    a circle that nothing outside of it uses is met nowhere.
    """
    used = {source for node in model.nodes.values() for source, _ in node.inputs}
    root = Item(ROOT)
    names = sorted((name for name in model.nodes if name not in used), reverse=True)
    waiting = [(root, name) for name in names]
    met: set[str] = set()
    while waiting:
        parent, name = waiting.pop()
        if name in met or name not in model.nodes:
            continue
        met.add(name)
        item = Item(name, [model.nodes[name]])
        parent.children.append(item)
        waiting.extend((item, source) for source, _ in reversed(model.nodes[name].inputs))
    return root


def code_tree(model: Model) -> Item:
    """The nodes by the calls that made them; a gradient's stand with its forward node's.

    A node knows the innermost calls alone. Those around them are taken from other nodes, as far as
    these agree.
    """
    callers = _callers(model)
    root = Item(ROOT, groups=True)
    known: dict[tuple[Item, str], Item] = {}
    gradients: list[tuple[str, ProfiledNode]] = []
    for name in sorted(model.nodes):
        node = model.nodes[name]
        forward = _forward_of(name)
        if forward is not None and node.lines:
            gradients.append((forward, node))
        elif node.lines:
            _leaf(root, _whole(node.lines, callers), "", known).nodes.append(node)
    for forward, node in gradients:
        source = model.nodes.get(forward)
        if source is not None and source.lines and _forward_of(forward) is None:
            lines = _whole(source.lines, callers)
            _leaf(root, lines, " (gradient)", known).nodes.append(node)
    return root


def _callers(model: Model) -> dict[Line, set[Line]]:
    """For each line, those from which its function was called."""
    found: dict[Line, set[Line]] = {}
    for node in model.nodes.values():
        for caller, line in pairwise(node.lines):
            found.setdefault(line, set()).add(caller)
    return found


def _whole(lines: list[Line], callers: dict[Line, set[Line]]) -> list[Line]:
    """The calls with those around them, while it is known which these were."""
    whole = list(reversed(lines))
    while len(around := callers.get(whole[-1], set()) - set(whole)) == 1:
        whole.extend(around)
    return whole[::-1]


def _forward_of(name: str) -> str | None:
    """The node whose gradient a node of `gradients/NAME_grad/` is a part of."""
    _, _, rest = name.partition("gradients/")
    forward, found, _ = rest.partition("_grad/")
    return forward if found and forward else None


def _leaf(root: Item, lines: list[Line], suffix: str, known: dict[tuple[Item, str], Item]) -> Item:
    """The item of the last of these calls; what is not known yet is added."""
    item = root
    for line in lines:
        key = (item, _called(line) + suffix)
        if key not in known:
            known[key] = Item(key[1], groups=True, line=line, suffix=suffix)
            item.children.append(known[key])
        item = known[key]
    return item


def _called(line: Line) -> str:
    function = line.function
    if len(function) >= _LONGEST:
        function = f"{function[: _LONGEST - 3]}..."
    return f"{os.path.basename(line.file)}:{line.number}:{function}"


def shown(root: Item, settings: Settings, skips: bool = False) -> Item:
    """The tree as it is shown, with the figures that count.

    Args:
        root: a tree, which is changed.
        settings: the options.
        skips: whether a node that does not count hands on those below it, and is itself left out.
    """
    _account(root, settings, skips)
    if not all_match(settings.start_name_regexes):
        root.children = _starts(root, settings)
    _select(root, settings)
    return root


def _account(root: Item, settings: Settings, skips: bool) -> None:
    """Leaves in the tree what counts, or is above what does."""
    instead: dict[Item, list[Item]] = {}
    for item in reversed(list(downwards(root.children, lambda item: item.children))):
        children = [kept for child in item.children for kept in instead.pop(child)]
        count(item, settings)
        if item.accounted or (children and not skips):
            item.children = children
            item.add_up(children)
            instead[item] = [item]
        else:
            instead[item] = children
    root.children = [kept for child in root.children for kept in instead[child]]
    root.add_up(root.children)
    # It is a definition of its own only where totals are those of what is shown, as in TensorFlow.
    root.accounted, root.own = False, Figures(definition_count=1)


def _starts(root: Item, settings: Settings) -> list[Item]:
    """The items nearest to the root whose names are among those to begin with."""
    begins = settings.start_name_regexes
    found: list[Item] = []

    def below(item: Item) -> list[Item]:
        if item is not root and matches(begins, item.name):
            found.append(item)
            return []
        return item.children

    for _ in downwards([root], below):
        pass
    return found


def _select(root: Item, settings: Settings) -> None:
    """Leaves in the tree what is shown, in order; what stood below something else moves up."""
    depths = {root: 1}
    visible: dict[Item, bool] = {}

    def below(item: Item) -> list[Item]:
        depth = depths[item]
        hidden = matches(settings.trim_name_regexes, item.name) or depth > settings.max_depth
        visible[item] = may_show(item, settings, depth) and not (hidden and item.groups)
        children = [] if hidden else item.children
        depths.update(dict.fromkeys(children, depth + 1))
        return children

    instead: dict[Item, list[Item]] = {}
    for item in reversed(list(downwards([root], below))):
        children = [kept for child in item.children for kept in instead.pop(child, [])]
        if not visible[item]:
            instead[item] = children
            continue
        instead[item] = [item]
        item.children = in_order(children, settings)
        if settings.account_displayed_op_only and not item.groups:
            item.add_up(item.children)
