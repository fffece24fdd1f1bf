"""The programs of one set of fetches, by the shapes that are fed.

Shapes seen first get programs of their own. When there are several of those, one program with open
dimensions serves the rest, and a shape that keeps coming takes the place of one that does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from opdock import shapes
from opdock.graph.nodes.operation import Tensor
from opdock.runtime.fetch import fetched
from opdock.runtime.program.program import Program
from opdock.shapes import Shape

Key = tuple[tuple[Tensor, tuple[int, ...]], ...]
"""What is fed: each tensor with the shape of its value."""

_MOST: Final = 8  # programs by concrete shape before one with open shapes takes over
_SETTLED: Final = 32  # uses of one shape that make it worth a program of its own; then twice that
_COUNTED: Final = 256  # shapes whose uses are counted


class Entry:
    """A program with what its caller needs to know about each feed and fetch.

    Attributes:
        program: the program.
        plain: whether steps may take the straight line.
        copies: for each fetch whether others may hold its buffer.
        keep: the positions of feeds that outlive the step.
    """

    __slots__ = ("copies", "keep", "plain", "program")

    def __init__(self, program: Program, plain: bool) -> None:
        self.program = program
        self.plain = plain
        self.copies = [s in program.plan.shared for s in program.schedule.fetches]
        params, kept = program.schedule.params, program.plan.kept_params
        self.keep = [i for i, s in enumerate(params) if s in kept]

    def own(self, values: Sequence[Any]) -> Sequence[Any]:
        """The fed values, those that a variable or queue will hold as copies."""
        out = list(values)
        for i in self.keep:
            if type(out[i]) is np.ndarray:
                out[i] = out[i].copy()
        return out

    def deliver(self, raw: Sequence[Any]) -> list[Any]:
        """What a step returned as what the caller gets: scalars for 0-d, nothing shared."""
        out = []
        copies = self.copies
        for i, value in enumerate(raw):
            if type(value) is np.ndarray:
                out.append(value[()] if value.ndim == 0 else value.copy() if copies[i] else value)
            else:
                out.append(fetched(value, copies[i]))
        return out


Compile = Callable[["Sequence[Tensor]", "Sequence[Shape]"], Entry]


class Variants(dict[Any, Entry]):
    """Key to entry, for keys that have a program of their own; bounded.

    Attributes:
        epoch: changes whenever an entry goes.
    """

    __slots__ = ("_groups", "epoch")

    def __init__(self) -> None:
        super().__init__()
        self.epoch = 0
        self._groups: dict[tuple[Tensor, ...], _Group] = {}

    def find(self, key: Key, compile_: Compile) -> Entry:
        """The entry for a key that is not in the dictionary; callers take turns."""
        tensors = tuple(t for t, _ in key)
        group = self._groups.get(tensors)
        if group is None:
            group = self._groups[tensors] = _Group()
        if len(group.used) < _MOST:
            return self._add(group, key, compile_)
        if group.settled(key):
            worst = min(group.used, key=lambda k: self[k].program.steps_run - group.used[k])
            del self[worst], group.used[worst]
            self.epoch += 1
            return self._add(group, key, compile_)
        fed: list[Shape] = [shape for _, shape in key]
        if not group.fits(fed):
            seen: list[list[Shape]] = [[s for _, s in k] for k in group.used]
            group.open = generalize([*seen, fed, *([group.open] if group.open else [])])
            self["open", tensors] = compile_(tensors, group.open)
        return self["open", tensors]

    def _add(self, group: _Group, key: Key, compile_: Compile) -> Entry:
        entry = compile_([t for t, _ in key], [s for _, s in key])
        self[key] = entry
        group.used = {k: self[k].program.steps_run for k in (*group.used, key)}
        return entry


class _Group:
    """What is known of one list of fed tensors."""

    __slots__ = ("_counts", "_threshold", "open", "used")

    def __init__(self) -> None:
        # Keys with programs, and how many steps each had run when the last one was added.
        self.used: dict[Key, int] = {}
        self.open: list[Shape] = []
        self._counts: dict[Key, int] = {}
        self._threshold = _SETTLED

    def settled(self, key: Key) -> bool:
        """Counts one more use; whether the shape has come often enough."""
        count = self._counts.get(key, 0) + 1
        if count > self._threshold:
            # More shapes in turn than programs: each change has to be earned by more uses.
            self._threshold *= 2
            self._counts.clear()
            return True
        if len(self._counts) >= _COUNTED:
            self._counts.clear()
        self._counts[key] = count
        return False

    def fits(self, fed: Sequence[Shape]) -> bool:
        """Whether the program with open shapes takes these."""
        return bool(self.open) and all(map(shapes.is_compatible, self.open, fed))


def generalize(variants: list[list[Shape]]) -> list[Shape]:
    """For each feed the shape that fits all variants."""
    out: list[Shape] = []
    for seen in zip(*variants, strict=True):
        ranks = {None if s is None else len(s) for s in seen}
        if len(ranks) != 1 or None in ranks:
            out.append(None)
            continue
        columns = zip(*seen, strict=True)
        out.append(tuple(c[0] if len(set(c)) == 1 else None for c in columns))
    return out
