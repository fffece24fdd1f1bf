"""Results that complain in the log if nobody uses them: what TF's `tf_should_use` does."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

from opdock.util.decorators import make_decorator
from opdock.util.interrupts import finalizer

__all__ = ["must_be_used", "should_use_result"]

_F = TypeVar("_F", bound=Callable[..., Any])
# Type -> the class of its values that are watched.
_watched: dict[type, type] = {}


class _Watch:
    """Whether a value has been used; as it goes, it says so if not."""

    _told: tuple[type, str, str] | None = None

    def __init__(self, value: Any, frame: FrameType | None, fatal: bool) -> None:
        self._fatal = fatal
        self._told = (
            type(value),
            repr(value),
            "".join(line.rstrip() for line in traceback.format_stack(frame, limit=5)),
        )

    def used(self) -> None:
        """Has nothing to say any more."""
        self._told = None

    @finalizer
    def __del__(self) -> None:
        if self._told is None:
            return
        from opdock.api import logging

        kind, text, stack = self._told
        bar = "=" * 34
        (logging.fatal if self._fatal else logging.error)(
            f"{bar}\nObject was never used (type {kind}):\n{text}\nIf you want to mark it as used "
            f'call its "mark_used()" method.\nIt was originally created here:\n{stack}\n{bar}'
        )


def must_be_used(x: Any, fatal_error: bool = False) -> Any:
    """A value that looks like `x`; if none of its attributes is ever asked for, the log says so.

    Args:
        x: any value; None and an empty list are returned as they are.
        fatal_error: whether the log's level is FATAL rather than ERROR.
    """
    if x is None or (isinstance(x, list) and not x):
        return x
    return _watch(x, sys._getframe(1), fatal_error)


def _watch(x: Any, frame: FrameType | None, fatal: bool) -> Any:
    kind = type(x)
    if kind not in _watched:
        _watched[kind] = _watching(kind)
    made: Any = object.__new__(_watched[kind])
    object.__setattr__(made, "_tf_should_use_helper", _Watch(x, frame, fatal))
    object.__setattr__(made, "_true_value", x)
    return made


def _watching(kind: Any) -> type:
    """A class of values that hand everything on to one of `kind`."""

    def true_value(self: Any) -> Any:
        object.__getattribute__(self, "_tf_should_use_helper").used()
        return object.__getattribute__(self, "_true_value")

    def get(self: Any, name: str) -> Any:
        if name == "mark_used":
            return getattr(true_value(self), "mark_used", lambda: None)
        return getattr(true_value(self), name)

    def put(self: Any, name: str, value: Any) -> None:
        setattr(true_value(self), name, value)

    return type(kind.__name__, (kind,), {"__getattribute__": get, "__setattr__": put})


def should_use_result(fn: _F) -> _F:
    """A decorator: if nobody uses the function's result, the log says so."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return _watch_result(fn(*args, **kwargs))

    return make_decorator(fn, wrapped, "should_use_result")  # type: ignore[return-value]


def _watch_result(x: Any) -> Any:
    if x is None or (isinstance(x, list) and not x):
        return x
    return _watch(x, sys._getframe(2), fatal=False)
