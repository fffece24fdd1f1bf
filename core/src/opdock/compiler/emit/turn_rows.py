"""Whether the rows of what a loop computes go their ways apart: threads may share them.

So do the examples of a batch in a recurrent network. Who has some of the rows makes turn after turn
of them and waits for nobody, where sharing out each op of a turn would be a meeting of threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from opdock.kernels.expr.turns import Item, Part, Product, Turns, View

__all__ = ["rows_apart"]


def rows_apart(turns: Turns) -> int:
    """How many rows there are, or 0 if one takes something of another, or that cannot be said."""
    rows = {stage.shape[0] for stage in turns.stages if stage.shape}
    if len(rows) != 1:
        return 0
    count = rows.pop()
    known = _Known(turns, count)
    return count if all(map(known.apart, turns.stages)) else 0


class _Known:
    """What a loop's names are.

    Args:
        turns: the loop.
        rows: how many rows there may be.
    """

    def __init__(self, turns: Turns, rows: int) -> None:
        self._rows = rows
        self._items: dict[str, Item] = {
            f"{kind}{i}": item
            for kind, items in (
                ("v", turns.variables), ("a", turns.arrays), ("p", turns.pops),
                ("l", turns.pushes), ("s", turns.temporaries),
            )
            for i, item in enumerate(items)
        }  # fmt: skip
        self._written = {view.name for stage in turns.stages for view in _results(stage)}

    def apart(self, stage: Part | Product) -> bool:
        """Whether a stage takes of each row what lies in that row, and puts it there."""
        if isinstance(stage, Product):
            # All of the second matrix goes into each row.
            moved = stage.a.strides[:1] + (0, stage.a.strides[1])
            steady = stage.b.name not in self._written and stage.stays
            a, c = View(stage.a.name, moved, stage.a.offset), stage.result
            c = View(c.name, (*c.strides, 0), c.offset)
            return steady and self._in_row(a, stage.shape) and self._in_row(c, stage.shape)
        if not stage.shape:
            # Temporaries would be everybody's; what is left of the turn is written once.
            views = (*stage.inputs, *stage.results)
            return not stage.folds and all(map(self._is_number, views))
        reads = all(self._read(view, stage.shape) for view in stage.inputs)
        return reads and all(self._in_row(view, stage.shape) for view in stage.results)

    def _is_number(self, view: View) -> bool:
        """Whether a view is of one number, and no temporary."""
        return not self._items[view.name].shape and view.name[0] != "s"

    def _read(self, view: View, shape: tuple[int, ...]) -> bool:
        if self._is_number(view):
            return True  # each has it for itself
        alike = not view.strides or not view.strides[0]
        if alike and view.name not in self._written:
            return True
        return self._in_row(view, shape)

    def _in_row(self, view: View, shape: tuple[int, ...]) -> bool:
        """Whether a view's first index is a row of its item's, and it stays in that row."""
        item = self._items[view.name]
        if not item.shape or item.shape[0] != self._rows or not view.strides:
            return False
        width = math.prod(item.shape[1:])
        first, *rest = view.strides
        ends = [(n - 1) * s for n, s in zip(shape[1:], rest, strict=True)]
        near, far = (sum(e for e in ends if (e > 0) is ahead) for ahead in (False, True))
        return first == width and view.offset + near >= 0 and view.offset + far < width


def _results(stage: Part | Product) -> Iterator[View]:
    yield from (stage.result,) if isinstance(stage, Product) else stage.results
