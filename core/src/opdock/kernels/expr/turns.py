"""Loops of small turns: what a backend that compiles them whole is given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from opdock.dtypes import DType
from opdock.kernels.expr.lowering import Line
from opdock.late import record

TURNS: Final = "opdock>Turns"
"""The op type of loops of small turns. A backend that has a kernel for it gets them.

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

_TOGETHER: Final = 64
"""Multiplications and additions of a product that take the time of one element elsewhere."""

Array = np.ndarray[Any, Any]


@record(frozen=True, slots=True)
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


@record(frozen=True, slots=True)
class View:
    """Where the elements of an input or a result lie.

    A name is a letter and a number: "v0" is the first variable, as the turn finds it or leaves it;
    "a0" the element that the turn reads from the first array or writes there; "p0" what it pops
    from the first list; "l0" what it pushes to the first one of those that grow; "s0" is the first
    temporary. Where the name stands for one number, strides do not count.

    Attributes:
        name: of what.
        strides: how many elements to go for each index of what reads or writes.
        offset: the place of the first element.
    """

    name: str
    strides: tuple[int, ...] = ()
    offset: int = 0


@record(frozen=True, slots=True)
class Part:
    """What a turn computes element by element in one shape.

    Attributes:
        shape: the walk: each input and result has a stride for each dimension.
        line: the steps.
        inputs: what the line's inputs "x0", "x1", ... are, in order.
        results: what becomes of the line's results, in order.
        folds: for each of the last results how it is folded along the dimensions in which it has
            no stride: "sum", "mean", "prod", "max" or "min". Such a result is a temporary.
    """

    shape: tuple[int, ...]
    line: Line
    inputs: tuple[View, ...]
    results: tuple[View, ...] = ()
    folds: tuple[str, ...] = ()


@record(frozen=True, slots=True)
class Product:
    """A product of matrices that a turn computes.

    Attributes:
        shape: rows, columns, and what is summed along.
        a: strides for rows and sums.
        b: strides for sums and columns; that of columns is 1.
        result: a temporary, row by row.
        stays: whether the second matrix is the same in all turns.
    """

    shape: tuple[int, int, int]
    a: View
    b: View
    result: View
    stays: bool = False


@record(frozen=True, slots=True)
class Turns:
    """A loop.

    Attributes:
        variables: what goes from turn to turn, and what is there for all of them.
        arrays: those of which each turn reads or writes one element.
        pops: lists from whose ends each turn takes an element.
        pushes: lists to whose ends each turn adds one.
        temporaries: what a turn computes for later parts of itself.
        condition: of scalar variables; its one result says whether there is another turn.
        places: the index in each array, of scalar variables and popped scalars.
        before: what is the same in all turns, in order.
        stages: all that a turn computes, in order. A variable that is one number is read as the
            turn found it; another one is read no more when it has been written, but by the part
            that writes the element just read.
        apart: the rows, along the first dimension of all that stages compute but single numbers, of
            which none takes anything of another: each may go through many turns by itself. 0 where
            that cannot be said.
    """

    variables: tuple[Item, ...]
    arrays: tuple[Item, ...]
    pops: tuple[Item, ...]
    pushes: tuple[Item, ...]
    temporaries: tuple[Item, ...]
    condition: Part
    places: Part
    before: tuple[Part | Product, ...]
    stages: tuple[Part | Product, ...]
    apart: int = 0

    @property
    def work(self) -> int:
        """About how many elements a turn computes."""
        return sum(
            math.prod(s.shape) // (_TOGETHER if isinstance(s, Product) else 1) for s in self.stages
        )


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


class MakeSome(Protocol):
    """What makes turns of variables that are known."""

    def __call__(
        self, arrays: Sequence[Rows], pops: Sequence[Array], pushes: Sequence[Array], most: int
    ) -> int:
        """Makes turns, and returns how many.

        All arrays are contiguous, in host memory, and of the types and shapes of `Turns`.

        Args:
            arrays: written in place, and so are their marks.
            pops: from whose ends elements are taken, at least `most` each.
            pushes: filled from the front, with room for `most` elements.
            most: how many turns.
        """


class MakeTurns(Protocol):
    """What a kernel of `TURNS` binds to."""

    @property
    def ready(self) -> bool:
        """Whether it may be called: who asks first begins to compile, and goes on meanwhile."""

    def __call__(self, variables: Sequence[Array]) -> MakeSome:
        """What makes turns, one call after the other, of the same variables.

        Args:
            variables: contiguous, in host memory; those that change are written in place, and
                nobody else writes the others meanwhile.
        """
