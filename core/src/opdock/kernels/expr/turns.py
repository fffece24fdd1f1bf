"""Loops whose turns are elementwise: what a backend that compiles them whole is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from opdock.dtypes import DType
from opdock.kernels.expr.lowering import Line

TURNS: Final = "opdock>Turns"
"""The op type of loops whose turns are elementwise. A backend that has a kernel for it gets them.

The kernel's `NodeSig` has one attribute, `turns`, a `Turns`. It binds to a `MakeTurns`, which
makes turns as long as the condition holds and nothing is in the way. What is in the way, an
index outside of an array or an element that is not there, ends it before that turn, without a word:
the loop goes on by single ops, which know what to say.
"""

READ: Final = 1
"""Mark of a place of an array: its element was read."""
CLEARED: Final = 2
"""Its element was dropped when it was read."""
WRITTEN: Final = 4
"""There is an element, or was one."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Item:
    """What one turn reads or writes in one piece.

    Attributes:
        dtype, shape: those of an element, or of a variable.
        changes: whether turns change it; of an array, whether they write.
        adds: of an array that turns write, whether an element that is there is added to.
    """

    dtype: DType
    shape: tuple[int, ...]
    changes: bool = False
    adds: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """What a turn computes in one shape.

    Attributes:
        shape: that of all results; inputs have it too or are scalars.
        line: the steps.
        names: what the line's inputs "x0", "x1", ... are, in order.
        results: what becomes of the line's results, in order.

    A name is a letter and a number: "v0" is the first variable, as the turn finds it or leaves it;
    "a0" the element that the turn reads from the first array or writes there; "p0" what it pops
    from the first list; "l0" what it pushes to the first one of those that grow.
    """

    shape: tuple[int, ...]
    line: Line
    names: tuple[str, ...]
    results: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Turns:
    """A loop.

    Attributes:
        variables: what goes from turn to turn, and what is there for all of them.
        arrays: those of which each turn reads or writes one element.
        pops: lists from whose ends each turn takes an element.
        pushes: lists to whose ends each turn adds one.
        condition: of scalar variables; its one result says whether there is another turn.
        places: the index in each array, of scalar variables and popped scalars.
        parts: all that a turn computes. No part's inputs are changed by another.
    """

    variables: tuple[Item, ...]
    arrays: tuple[Item, ...]
    pops: tuple[Item, ...]
    pushes: tuple[Item, ...]
    condition: Part
    places: Part
    parts: tuple[Part, ...]


class Rows(NamedTuple):
    """An array of a loop: its elements one after the other.

    Attributes:
        values: the elements, along the first dimension; those that are not there may be anything.
        marks: a byte for each: `READ`, `CLEARED` and `WRITTEN`, added up.
        mark: what a turn leaves there.
    """

    values: Array
    marks: Array
    mark: int


class MakeTurns(Protocol):
    """What a kernel of `TURNS` binds to."""

    @property
    def ready(self) -> bool:
        """Whether it may be called: who asks first begins to compile, and goes on meanwhile."""

    def __call__(
        self, variables: Sequence[Array], arrays: Sequence[Rows], pops: Sequence[Array],
        pushes: Sequence[Array], most: int,
    ) -> int:  # fmt: skip
        """Makes turns, and returns how many.

        All arrays are contiguous, in host memory, and of the types and shapes of `Turns`.

        Args:
            variables: those that change are written in place.
            arrays: written in place, and so are their marks.
            pops: from whose ends elements are taken, at least `most` each.
            pushes: filled from the front, with room for `most` elements.
            most: how many turns.
        """
