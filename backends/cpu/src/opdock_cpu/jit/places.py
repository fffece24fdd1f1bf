"""Where what a stretch works on lies: its temporaries in one piece of memory, and its words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from opdock.plugin import codegen

__all__ = ["Places", "views", "whole"]

_LINE: Final = 64
"""Bytes of a line of the cache: what lies apart is in lines of its own."""
_CELL: Final = 8
"""Bytes of a number that is folded."""


def whole(stretch: codegen.Stretch, name: str) -> codegen.Item:
    """What a view's name stands for."""
    kinds = {"x": stretch.inputs, "y": stretch.results, "s": stretch.temporaries}
    return kinds[name[0]][int(name[1:])]


class Places:
    """The places of a stretch's temporaries, and of what its folds keep meanwhile.

    A temporary's memory is that of later ones when nothing reads it any more, so that they stay in
    the nearest cache.

    Attributes:
        scratch: how many bytes they take.
        starts: where the words of each stage begin, once there are any.
    """

    def __init__(self, stretch: codegen.Stretch) -> None:
        self._stretch = stretch
        self._at: dict[str, int] = {}
        self._cells: list[list[int]] = []
        self._memory = _Memory()
        self._lay_out()
        self.scratch = max(_LINE, self._memory.size)
        self.starts: list[int] = []

    def words(self, kinds: Sequence[int]) -> list[int]:
        """For each stage its kind, and where its views and folds are: an array, and bytes there.

        Args:
            kinds: the stages'.
        """
        inputs = len(self._stretch.inputs)
        first = {"s": 0, "x": 1, "y": 1 + inputs}
        words: list[int] = []
        for stage, kind, cells in zip(self._stretch.stages, kinds, self._cells, strict=True):
            self.starts.append(len(words))
            words.append(kind)
            for view in views(stage):
                offset = view.offset * whole(self._stretch, view.name).dtype.size
                letter, number = view.name[0], int(view.name[1:])
                if letter == "s":
                    words += [0, self._at[view.name] + offset]
                else:
                    words += [first[letter] + number, offset]
            for cell in cells:
                words += [0, cell]
        return words

    def _lay_out(self) -> None:
        stages = self._stretch.stages
        last: dict[str, int] = {}
        for i, stage in enumerate(stages):
            last.update(dict.fromkeys([v.name for v in views(stage) if v.name[0] == "s"], i))
        ends: dict[int, list[str]] = {}
        for name, at in last.items():
            ends.setdefault(at, []).append(name)
        sizes: dict[str, int] = {}
        for i, stage in enumerate(stages):
            for name in [v.name for v in views(stage)]:
                if name[0] == "s" and name not in self._at:
                    item = whole(self._stretch, name)
                    sizes[name] = _lines(math.prod(item.shape) * item.dtype.size)
                    self._at[name] = self._memory.take(sizes[name])
            cells = [_lines(n * _CELL) for n in self._folded(stage)]
            self._cells.append([self._memory.take(n) for n in cells])
            for at, size in zip(self._cells[-1], cells, strict=True):
                self._memory.give(at, size)
            for name in ends.get(i, ()):
                self._memory.give(self._at[name], sizes[name])

    def _folded(self, stage: codegen.Part | codegen.Product) -> Iterator[int]:
        """How many numbers each fold of a stage gives."""
        if isinstance(stage, codegen.Part):
            for view in stage.results[len(stage.results) - len(stage.folds) :]:
                yield math.prod(whole(self._stretch, view.name).shape)


def _lines(nbytes: int) -> int:
    return -(-nbytes // _LINE) * _LINE


def views(stage: codegen.Part | codegen.Product) -> Sequence[codegen.View]:
    """What a stage reads, then what it writes."""
    if isinstance(stage, codegen.Product):
        return stage.a, stage.b, stage.result
    return *stage.inputs, *stage.results


class _Memory:
    """Hands out parts of a piece of memory that grows.

    Attributes:
        size: how large it is.
    """

    def __init__(self) -> None:
        self.size = 0
        self._free: dict[int, list[int]] = {}  # by size: what is small is of few sizes

    def take(self, size: int) -> int:
        """The place of so many bytes that nobody uses."""
        found = self._free.get(size)
        if found:
            return found.pop()
        self.size += size
        return self.size - size

    def give(self, at: int, size: int) -> None:
        """Says that they are free again."""
        self._free.setdefault(size, []).append(at)
