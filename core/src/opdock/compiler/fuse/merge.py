"""Merge: parts that had to wait for something else join later ones.

A part whose results only one other part reads joins it. One of which only reductions come waits for
a part that reads what it reads.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter, itemgetter
from typing import Final

from opdock.compiler.fuse.parts import Part, Parts
from opdock.compiler.fuse.recompute import recomputed, whole_inputs
from opdock.compiler.ir.block import Node, Value

_Readers = list[tuple[int, int, Part]]  # by turn, then by place
_MOST_LATER: Final = 32
"""Nodes that may be moved behind a part together with the reductions that they wait for."""
_MOST_TRIED: Final = 32
"""Of the parts that read an array too, the nearest that are asked to take reductions in."""


def merge(parts: Parts) -> None:
    """Joins parts to later ones that read what they compute, or what they read.

    Args:
        parts: of the parts found, those that are left stay in the same order; owners and turns
            change with them.
    """
    for part in parts.found:
        into = _reader(parts, part)
        if into is not None and parts.fit(part, into):
            here = whole_inputs(parts, into)
            inside = set(part.nodes)
            results = sum(parts.flow.leaves(n, inside) for n in part.nodes)
            # Else it would keep more alive than it saves.
            if len(whole_inputs(parts, part) - here) <= results:
                _move(parts, part, into)
    readers: dict[Value, _Readers] = {}
    late: set[Part] = set()
    for part in parts.found:
        ends = _movable(parts, part) if part.ends else None
        companion = None if ends is None else _companion(parts, ends, readers, late)
        if ends is not None and companion is not None:
            _move(parts, ends, companion)
            part.ends = []
    parts.found = sorted((p for p in parts.found if p.all()), key=attrgetter("turn"))


def _move(parts: Parts, part: Part, into: Part) -> None:
    """Leaves a part empty."""
    parts.owner.update(dict.fromkeys(part.all(), into))
    into.join(part, parts.flow.place)
    part.nodes, part.ends = [], []


def _reader(parts: Parts, part: Part) -> Part | None:
    """The one other part of the same key that waits for this one, if nothing else does."""
    found: Part | None = None
    if part.ends or any(Value(n, 0) in parts.flow.fetched for n in part.nodes):
        return None
    for node in part.nodes:
        parts.visits += 1
        for user in parts.flow.after.get(node, ()):
            other = parts.owner.get(user)
            if other is part:
                continue
            if other is None or other.key != part.key or found not in (None, other):
                return None
            found = other
    return found


def _movable(parts: Parts, part: Part) -> Part | None:
    """What can run later of a part with reductions: all if only they come of it, or they alone.

    They go alone where what they read is cheap, so that whoever takes them computes it again.
    """
    inside = set(part.all())
    if not any(
        Value(n, 0) in parts.flow.fetched
        or any(u not in inside for u in parts.flow.after.get(n, ()))
        for n in part.nodes
    ):
        return part
    alone = Part(part.key, [], part.ends, turn=part.turn)
    return None if any(v.node in inside for v in recomputed(parts, alone)[1]) else alone


def _companion(
    parts: Parts, part: Part, readers: dict[Value, _Readers], late: set[Part]
) -> Part | None:
    """A later part that reads all that some reductions read, and waits for none of them.

    Parts of one node may have to run after it for that; they are then in `late`.
    """
    read = recomputed(parts, part)[1] if not part.nodes else whole_inputs(parts, part)
    home = parts.owner[part.ends[0]]
    here = part.turn, parts.flow.place[part.all()[0]]
    near: set[tuple[int, int, Part]] = set()
    for value in read:
        if value not in readers:
            readers[value] = _readers(parts, value)
        at = bisect_left(readers[value], here)
        near.update(readers[value][max(at - _MOST_TRIED, 0) : at + _MOST_TRIED])
    for turn, _, other in sorted(near, key=itemgetter(0, 1)):
        if turn < part.turn or other is home or other in late or other.key != part.key:
            continue
        if not other.all() or not parts.fit(part, other):
            continue
        # What is computed again is asked for only where it may count.
        lacking = read - whole_inputs(parts, other)
        if lacking and not lacking <= recomputed(parts, other)[1]:
            continue
        behind = _behind(parts, part, other)
        if behind is not None:
            for node in behind:
                owner = parts.owner.get(node)
                if owner is None:
                    parts.turn[node] = turn + 1
                else:
                    owner.turn = turn + 1
                    late.add(owner)
            return other
    return None


def _readers(parts: Parts, value: Value) -> _Readers:
    """The parts that read a value, or compute it again because it is cheap, by their turns."""
    users, candidates = parts.flow.users, parts.candidates
    found: dict[Part, None] = {}
    for user in users.get(value, ()):
        if user in candidates:
            found[parts.owner[user]] = None
            if candidates[user].reduce is None:
                again = [u for u in users.get(Value(user, 0), ()) if u in candidates]
                found.update(dict.fromkeys(parts.owner[u] for u in again))
                parts.visits += len(again)
    parts.visits += len(found)
    return sorted((p.turn, parts.flow.place[p.all()[0]], p) for p in found)


def _behind(parts: Parts, part: Part, into: Part) -> list[Node] | None:
    """What must run after `into` once a part is in it.

    Parts run by their turns before and after that, those of one turn as they were found. This stays
    so as long as no part is joined to one that was moved.

    Returns:
        None if `into` is among it, or it is much, or in parts of more than an elementwise node.
    """
    found: dict[Node, None] = {}
    stack = part.all()
    while stack:
        parts.visits += 1
        for node in parts.flow.after.get(stack.pop(), ()):
            owner = parts.owner.get(node)
            when = parts.turn[node] if owner is None else owner.turn
            if node in found or when > into.turn or owner is parts.owner[part.ends[0]]:
                continue
            several = owner is not None and (owner.ends or len(owner.nodes) > 1)
            if owner is into or several or len(found) == _MOST_LATER:
                return None
            found[node] = None
            stack.append(node)
    return list(found)
