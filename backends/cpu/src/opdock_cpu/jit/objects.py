"""Where generated code finds the elements of arrays: in NumPy's own objects.

The head of an array's object is part of NumPy's binary interface, which every extension module is
compiled for. Before anything relies on it, an array is looked at in this process: an interpreter
that lays objects out otherwise is noticed, and nothing is generated for it.
"""

from __future__ import annotations

import functools
from typing import Final

import numpy as np

from opdock_cpu.jit.compiled import ffi
from opdock_cpu.jit.plan import Code

__all__ = ["items", "kind", "memory", "why_not"]

# In bytes: the type of any object, where a list's items are; what an array says of itself.
_TYPE: Final = 8
_ITEMS: Final = 24
_DATA: Final = 16
_FLAGS: Final = 64
_ROWS: Final = 0x1 | 0x100
"""The flags of arrays whose elements lie in a row, where their type may lie."""


def kind() -> int:
    """What `memory` finds in a value %array: the type of arrays."""
    return id(np.ndarray)


@functools.cache
def why_not() -> str | None:
    """Why this interpreter's objects are not as code expects them; None if they are."""
    rows, columns = np.zeros((2, 3)), np.zeros((2, 3)).T
    pair = [rows, columns]
    place = _word(id(pair) + _ITEMS)
    as_said = (
        place % 8 == 0
        and [_word(place), _word(place + 8)] == [id(rows), id(columns)]
        and all(_word(id(a) + _TYPE) == id(np.ndarray) for a in pair)
        and all(_word(id(a) + _DATA) == a.__array_interface__["data"][0] for a in pair)
        and [_word(id(a) + _FLAGS) & _ROWS == _ROWS for a in pair] == [True, False]
    )
    return None if as_said else "this interpreter lays arrays out in a way that is not known"


def _word(place: int) -> int:
    """Eight bytes of memory as a number."""
    return int.from_bytes(ffi().buffer(ffi().cast("char *", place), 8), "little")


def items(code: Code, values: str) -> str:
    """Where a list has its objects.

    Args:
        code: takes the instruction.
        values: the list's address.
    """
    return code.put(f"load ptr, ptr {code.at('i8', values, str(_ITEMS))}")


def memory(code: Code, thing: str, odd: str, name: str) -> str:
    """Where an array's elements begin.

    Args:
        code: takes the instructions; they end in a block that is open.
        thing: the object's address.
        odd: the block for what is no array whose elements lie in a row.
        name: of the blocks that there will be.
    """
    kind = code.put(f"load i64, ptr {code.at('i8', thing, str(_TYPE))}")
    code.add(f"%{name}.is = icmp eq i64 {kind}, %array",
             f"br i1 %{name}.is, label %{name}, label %{odd}")  # fmt: skip
    code.block(name)
    flags = code.put(f"load i32, ptr {code.at('i8', thing, str(_FLAGS))}")
    flags = code.put(f"and i32 {flags}, {_ROWS}")
    code.add(f"%{name}.has = icmp eq i32 {flags}, {_ROWS}",
             f"br i1 %{name}.has, label %{name}.rows, label %{odd}")  # fmt: skip
    code.block(f"{name}.rows")
    return code.put(f"load ptr, ptr {code.at('i8', thing, str(_DATA))}")
