"""Whether a function has anything that could be rewritten, by its byte code.

A conversion takes milliseconds, and most functions that datasets apply are a line of calls of
TensorFlow's functions, of which a conversion would make the same line. What is not plainly so, is
converted.
"""

from __future__ import annotations

import builtins
import dis
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from opdock.ops.rewriting.rules import OVERLOADED, is_artifact, left_alone, needs_frame

__all__ = ["is_plain"]

_UNKNOWN: Final = object()
_TURNS: Final = ("JUMP", "FOR_ITER", "SEND", "UNARY_NOT", "YIELD", "RAISE", "IMPORT", "SUPER")
_GLOBALS: Final = ("LOAD_GLOBAL", "LOAD_NAME")
_CELLS: Final = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_ATTRIBUTES: Final = ("LOAD_ATTR", "LOAD_METHOD")


def is_plain(function: FunctionType) -> bool:
    """Whether a function runs straight on, and calls nothing that might be rewritten."""
    cells = function.__closure__ or ()
    closure = {}
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        try:
            closure[name] = cell.cell_contents
        except ValueError:  # assigned later
            closure[name] = _UNKNOWN

    def look_up(name: str) -> Any:
        found = function.__globals__.get(name, _UNKNOWN)
        return getattr(builtins, name, _UNKNOWN) if found is _UNKNOWN else found

    return _plain(function.__code__, look_up, closure)


def _plain(code: CodeType, look_up: Callable[[str], Any], closure: dict[str, Any]) -> bool:
    if any(isinstance(c, CodeType) for c in code.co_consts):
        return False  # a function within: what it is called with, and by whom, is not seen
    instructions = list(dis.get_instructions(code))
    if any(word in i.opname for i in instructions for word in _TURNS):
        return False
    value: Any = None
    is_called = False
    for instruction in instructions:
        name = instruction.opname
        if name in _ATTRIBUTES:
            if _is_librarys(value):
                value = getattr(value, instruction.argval, _UNKNOWN)
                is_called |= name == "LOAD_METHOD" or "NULL" in instruction.argrepr
                continue
            if value is _UNKNOWN or name == "LOAD_METHOD" or "NULL|self" in instruction.argrepr:
                return False  # a method of who knows what
        elif not _known(value) or (is_called and not callable(value)):
            return False  # the user's, or what is called is an item or so of it
        value, is_called = None, False
        if name in _GLOBALS:
            value = look_up(instruction.argval)
            is_called = "NULL" in instruction.argrepr
        elif name in _CELLS:
            value = closure.get(instruction.argval, _UNKNOWN)
        elif name == "PUSH_NULL":
            return False  # what is called is no global name and no attribute
    return True


def _is_librarys(value: Any) -> bool:
    """Whether what a value has is known: it is a module, or the class of a library."""
    return isinstance(value, ModuleType) or (isinstance(value, type) and left_alone(value))


def _known(value: Any) -> bool:
    """Whether a value that a function uses is nothing that would be rewritten."""
    if value is None or not callable(value):
        return value is not _UNKNOWN
    try:
        if value in OVERLOADED or needs_frame(value):
            return False
    except TypeError:  # it has no hash
        return False
    return is_artifact(value) or left_alone(value)
