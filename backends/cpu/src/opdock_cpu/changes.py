"""Variables of which a part changes: the rest stays where it is.

A table of embeddings has many more rows than a step updates, and a copy of it takes as long as all
else together. What nobody else has read is written in place.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

__all__ = ["Combine", "change", "change_rows", "change_together", "may_write", "replace"]

_LITTLE: Final = 1 << 14
"""Bytes that are sooner copied than found out to be nobody else's; measured."""
Array = np.ndarray[Any, Any]
Combine = Callable[[Array, Array, Any], None]


def may_write(array: Array) -> bool:
    """Whether an array to which there is no further reference may be written.

    A view does not tell who else refers to the memory. And what kernels derive from weights, such
    as a layout of them, they know by a weak reference to the very array: that has to stay as it is.
    """
    flags = array.flags
    own = flags.owndata and flags.writeable and flags.c_contiguous
    return own and not weakref.getweakrefcount(array)


def _own(value: Array, alone: bool) -> Array:
    """The value's own buffer if it may be written, or a copy."""
    return value if alone and may_write(value) else value.copy()


def replace(target: Array, at: Array, rows: Array) -> None:
    """Puts rows into the places of a matrix."""
    target[at] = rows


def change(cell: Any, write: Callable[[Array], None]) -> None:
    """Has a part of a variable written.

    Args:
        cell: the variable; the caller holds its lock, and no reference to its value if that is to
            be written in place, as all but little ones are.
        write: changes the value that it is given.
    """
    value = cell.read()
    if value.nbytes <= _LITTLE:
        fresh = value.copy()
        write(fresh)
        cell.write(fresh)
        return
    del value
    cell.change(_own, write)


def change_rows(cell: Any, shape: tuple[int, int], combine: Combine, at: Array, rows: Any) -> None:
    """Has rows of a variable meet others, as `change`.

    Args:
        cell: the variable.
        shape: what the value is as a matrix.
        combine: writes into this matrix what comes of its rows at `at` and of `rows`.
        at: numbers of rows, all of which there are.
        rows: for each number a row.
    """
    change(cell, lambda value: combine(value.reshape(shape), at, rows))


def change_together(cells: Sequence[Any], write: Callable[[Sequence[Array]], None]) -> None:
    """Has a part of several variables of one shape written at once.

    Args:
        cells: the variables; as with `change`.
        write: changes what has to be changed, of contiguous values.
    """
    values = [cell.read() for cell in cells]
    if values[0].nbytes <= _LITTLE:
        fresh = [value.copy() for value in values]
        write(fresh)
        cells[0].write_all(cells, fresh)
        return
    del values
    _change_next(cells, [], write)


def _change_next(
    cells: Sequence[Any], held: list[Array], write: Callable[[Sequence[Array]], None]
) -> None:
    if not cells:
        write(held)
        return
    cells[0].change(_own, lambda value: _change_next(cells[1:], [*held, value], write))
