"""Where something was made: what TF's `tf_stack`, `traceable_stack` and `registry` tell of it."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterable, Iterator, KeysView
from types import FrameType
from typing import Any, Final, NamedTuple, Self

__all__ = [
    "TB_CODEDICT",
    "TB_FILENAME",
    "TB_FUNCNAME",
    "TB_LINENO",
    "CurrentModuleFilter",
    "Registry",
    "StackFrame",
    "TraceableObject",
    "TraceableStack",
    "convert_stack",
    "extract_stack",
]  # fmt: skip

TB_FILENAME: Final = 0
TB_LINENO: Final = 1
TB_FUNCNAME: Final = 2
TB_CODEDICT: Final = 3


class StackFrame(NamedTuple):
    """One call of a stack, without its line of source."""

    filename: str
    lineno: int
    name: str
    globals: dict[str, Any]
    func_start_lineno: int


def extract_stack(limit: int | None = -1) -> list[StackFrame]:
    """The calls that led here, the innermost last.

    Args:
        limit: how many of the innermost to give; all if negative or None.
    """
    return _extract(sys._getframe(1), -1 if limit is None else limit)


def _extract(frame: FrameType | None, limit: int) -> list[StackFrame]:
    found: list[StackFrame] = []
    while frame is not None and len(found) != limit:
        code = frame.f_code
        found.append(
            StackFrame(
                code.co_filename, frame.f_lineno, code.co_name, frame.f_globals, code.co_firstlineno
            )
        )
        frame = frame.f_back
    return found[::-1]


def convert_stack(
    stack: Iterable[StackFrame], include_func_start_lineno: bool = False
) -> tuple[tuple[Any, ...], ...]:
    """A stack as `traceback` has it: file, line, function and source of each call.

    Args:
        stack: what `extract_stack` gave.
        include_func_start_lineno: whether the functions' first lines come as fifth element.
    """
    return tuple(_with_source(frame, include_func_start_lineno) for frame in stack)


def _with_source(frame: StackFrame, starts: bool) -> tuple[Any, ...]:
    linecache.checkcache(frame.filename)
    line = linecache.getline(frame.filename, frame.lineno, frame.globals).strip() or None
    found = (frame.filename, frame.lineno, frame.name, line)
    return (*found, frame.func_start_lineno) if starts else found


class CurrentModuleFilter:
    """A context in which TF leaves a module's calls out of what errors show.

    It does nothing here: errors name the user's line, whatever was called between.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: object) -> None:
        return None


# ------------------------------------------------------------------------------ traceable_stack
class TraceableObject:
    """An object and the place in the program that it comes from.

    Args:
        obj: the object.
        filename: the file.
        lineno: the line.
    """

    SUCCESS, HEURISTIC_USED, FAILURE = range(3)

    def __init__(self, obj: Any, filename: str | None = None, lineno: int | None = None) -> None:
        self.obj = obj
        self.filename = filename
        self.lineno = lineno

    def set_filename_and_line_from_caller(self, offset: int = 0) -> int:
        """Notes the caller's place, or that of the call so many calls before.

        Returns:
            SUCCESS, or HEURISTIC_USED where there are fewer calls: the outermost one's place then.
        """
        return self._note(_extract(sys._getframe(1), offset + 1), offset)

    def _note(self, stack: list[StackFrame], offset: int) -> int:
        if not stack:
            return self.FAILURE
        self.filename, self.lineno = stack[0].filename, stack[0].lineno
        return self.SUCCESS if len(stack) > offset else self.HEURISTIC_USED

    def copy_metadata(self) -> TraceableObject:
        """The place without the object."""
        return type(self)(None, self.filename, self.lineno)


class TraceableStack:
    """A stack of objects with the places that they come from.

    Args:
        existing_stack: what is on it at first; the list is copied.
    """

    def __init__(self, existing_stack: list[TraceableObject] | None = None) -> None:
        self._stack = list(existing_stack or ())

    def push_obj(self, obj: Any, offset: int = 0) -> int:
        """Puts an object on top, with the caller's place or that of so many calls before.

        Returns:
            What `TraceableObject.set_filename_and_line_from_caller` does.
        """
        traceable = TraceableObject(obj)
        self._stack.append(traceable)
        return traceable._note(_extract(sys._getframe(1), offset + 1), offset)

    def pop_obj(self) -> Any:
        """Takes the topmost object off."""
        return self._stack.pop().obj

    def peek_top_obj(self) -> Any:
        """The topmost object."""
        return self._stack[-1].obj

    def peek_objs(self) -> Iterator[Any]:
        """The objects, the topmost first."""
        return (traceable.obj for traceable in reversed(self._stack))

    def peek_traceable_objs(self) -> Iterator[TraceableObject]:
        """The objects with their places, the topmost first."""
        return reversed(self._stack)

    def __len__(self) -> int:
        return len(self._stack)

    def copy(self) -> TraceableStack:
        """Another stack of the same objects."""
        return TraceableStack(self._stack)


# ------------------------------------------------------------------------------------- registry
class Registry:
    """Objects by name, each with the place at which it was registered.

    Args:
        name: what is registered, as errors say it.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._registry: dict[str, tuple[Any, StackFrame]] = {}

    def register(self, candidate: Any, name: str | None = None) -> None:
        """Registers an object, under its own name where none is given.

        Raises:
            KeyError: there is one of this name.
        """
        name = name or str(candidate.__name__)
        if name in self._registry:
            place = self._registry[name][1]
            raise KeyError(
                f"Registering two {self._name} with name '{name}'! (Previous registration was in "
                f"{place.name} {place.filename}:{place.lineno})"
            )
        self._registry[name] = (candidate, _extract(sys._getframe(1), 1)[0])

    def list(self) -> KeysView[str]:
        """The names."""
        return self._registry.keys()

    def lookup(self, name: str | bytes) -> Any:
        """The object of a name.

        Raises:
            LookupError: there is none.
        """
        key = name.decode() if isinstance(name, bytes) else name
        if key not in self._registry:
            raise LookupError(f"{self._name} registry has no entry for: {key}")
        return self._registry[key][0]
