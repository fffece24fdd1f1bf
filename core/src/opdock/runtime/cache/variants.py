"""The programs of one set of fetches, by what is fed and its shapes.

Shapes seen first get programs of their own. When there are several of those, one program with open
dimensions serves the rest, and a shape that keeps coming takes the place of one that does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from opdock import errors, shapes
from opdock.graph.nodes.operation import Tensor
from opdock.runtime.running import Runnable
from opdock.shapes import Shape

Key = tuple[Any, ...]
"""What is fed: each tensor, followed by the shape of its value."""

_MOST: Final = 8
_SETTLED: Final = 32  # uses of one shape that make it worth a program of its own; then twice that
_COUNTED: Final = 256  # shapes whose uses are counted
_LISTS: Final = 32  # lists of fed tensors
_ARRAY: Final = np.ndarray


class Entry:
    """A program with what its caller needs to know about each feed and fetch.

    Attributes:
        program: the program.
        plain: whether steps may take the straight line.
        copies: for each fetch whether others may hold its buffer.
        keep: the positions of feeds that outlive the step.
    """

    __slots__ = ("copies", "keep", "plain", "program")

    def __init__(self, program: Runnable, plain: bool) -> None:
        self.program = program
        self.plain = plain
        self.copies, self.keep = program.shared_fetches, program.kept_feeds

    def own(self, values: Sequence[Any]) -> Sequence[Any]:
        """The fed values, those that a variable or queue will hold as copies."""
        out = list(values)
        for i in self.keep:
            if type(out[i]) is _ARRAY:
                out[i] = out[i].copy()
        return out

    def deliver(self, raw: Sequence[Any]) -> list[Any]:
        """What a step returned as what the caller gets: scalars for 0-d, nothing shared.

        Raises:
            InvalidArgumentError: a value is no data.
        """
        out = []
        for value, copy in zip(raw, self.copies):
            if type(value) is _ARRAY:
                if value.dtype.names is not None:
                    # Quantized numbers leave as the integers that hold them.
                    value = value.view(value.dtype[0])
                out.append(value[()] if not value.ndim else value.copy() if copy else value)
            elif value is None:
                raise errors.InvalidArgumentError(None, None, "The fetched tensor has no value.")
            else:
                out.append(value)
        return out


Compile = Callable[["Sequence[Tensor]", "Sequence[Shape]"], Entry]


class Variants(dict[Any, Entry]):
    """Key to entry, for keys that have a program of their own; bounded.

    Args:
        most: programs by concrete shape before one with open shapes takes over.
    """

    __slots__ = ("_groups", "_most")

    def __init__(self, most: int = _MOST) -> None:
        super().__init__()
        self._most = most
        self._groups: dict[tuple[Tensor, ...], _Group] = {}

    def find(self, key: Key, compile_: Compile) -> Entry:
        """The entry for a key that is not in the dictionary; callers take turns."""
        tensors, fed = key[::2], key[1::2]
        group = self._groups.get(tensors)
        if group is None:
            if len(self._groups) >= _LISTS:
                self._drop(next(iter(self._groups)))
            group = self._groups[tensors] = _Group()
        if len(group.used) < self._most:
            return self._add(group, key, compile_)
        if group.settled(key):
            worst = min(group.used, key=lambda k: self[k].program.steps_run - group.used[k])
            del self[worst], group.used[worst]
            return self._add(group, key, compile_)
        if not group.fits(fed):
            seen: list[list[Shape]] = [[*k[1::2]] for k in (*group.used, key)]
            group.open = generalize([*seen, *([group.open] if group.open else [])])
            self["open", tensors] = compile_(tensors, group.open)
        return self["open", tensors]

    def _add(self, group: _Group, key: Key, compile_: Compile) -> Entry:
        entry = compile_(key[::2], key[1::2])
        self[key] = entry
        group.used = {k: self[k].program.steps_run for k in (*group.used, key)}
        return entry

    def _drop(self, tensors: tuple[Tensor, ...]) -> None:
        for key in (*self._groups.pop(tensors).used, ("open", tensors)):
            self.pop(key, None)


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
