"""The lines of the user's program from which operations were made."""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType

_PACKAGE_DIR = str(Path(__file__).resolve().parents[2]) + os.sep
_MAX_FRAMES = 4
# Around a command of opdock nothing is the user's, but the library that parsed its words.
_COMMANDS = os.path.join(_PACKAGE_DIR, "cli") + os.sep
_kinds: dict[CodeType, int] = {}
_USER, _INTERNAL, _COMMAND = range(3)
Frames = tuple[tuple[CodeType, int], ...]


class _Known(threading.local):
    """A frame that is being executed, and the user frames from there outwards."""

    frame: FrameType | None = None
    frames: Frames = ()


_known = _Known()


def capture_frames() -> Frames:
    """The innermost user frames as (code, instruction offset): cheap to take, decoded on demand."""
    frames: list[tuple[CodeType, int]] = []
    frame: FrameType | None = sys._getframe(1)
    known = _known.frame
    while frame is not None and len(frames) < _MAX_FRAMES:
        if frame is known:
            return (*frames, *_known.frames)[:_MAX_FRAMES]
        code = frame.f_code
        kind = _kinds.get(code)
        if kind is None:
            kind = _kinds[code] = _kind_of(code.co_filename)
        if kind == _COMMAND:
            break
        if kind == _USER:
            frames.append((code, frame.f_lasti))
        frame = frame.f_back
    return tuple(frames)


def _kind_of(file: str) -> int:
    if file.startswith(_COMMANDS):
        return _COMMAND
    return _INTERNAL if file.startswith(_PACKAGE_DIR) or file == _CONTEXTLIB else _USER


@contextlib.contextmanager
def frames_known(frame: FrameType) -> Iterator[None]:
    """Looks for user frames beyond `frame`, that of the caller, only once.

    What makes many operations for one call of the user is spared a walk for each.
    """
    frames = capture_frames()
    before = _known.frame, _known.frames
    _known.frame, _known.frames = frame, frames
    try:
        yield
    finally:
        _known.frame, _known.frames = before


_CONTEXTLIB = sys.modules["contextlib"].__file__ if "contextlib" in sys.modules else ""


def line_of(code: CodeType, lasti: int) -> int:
    """The source line of an instruction."""
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= lasti < end and number is not None:
            return number
    return line


def decoded(frames: Frames) -> list[tuple[str, int, str, str, int]]:
    """Frames, outermost first: (file, line, function, source line, the function's first line)."""
    found = []
    for code, lasti in reversed(frames):
        line = line_of(code, lasti)
        source = linecache.getline(code.co_filename, line).strip()
        found.append((code.co_filename, line, code.co_name, source, code.co_firstlineno))
    return found


def with_line(error: ValueError, frames: Frames) -> ValueError:
    """An error with the line of the user that caused it."""
    if not frames:
        return error
    code, lasti = frames[0]
    return ValueError(f"{error}\n  created at {code.co_filename}:{line_of(code, lasti)}")
