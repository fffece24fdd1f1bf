"""Which of the names that were put back a program used, and where."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Final, TextIO

from opdock.mapping import after_import

# What stands between a program's line and a name that it uses.
_SKIPPED: Final = ("<frozen importlib", os.path.dirname(__file__), after_import.__file__)
_PLACES: Final = 3

# Name -> (what stands for it now, the places where it was used).
_used: dict[str, tuple[str, dict[str, None]]] = {}


def record(name: str, instead: str) -> None:
    """Notes that the program used a name; its place is the caller's nearest line outside here."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_SKIPPED):
        frame = frame.f_back
    place = "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
    _used.setdefault(name, (instead, {}))[1][place] = None


def tell(stream: TextIO) -> None:
    """Writes what was used: nothing if nothing was."""
    if not _used:
        return
    title = "opdock run: put back for this program, as the installed libraries have removed it"
    lines = [f"{title} (--no-legacy leaves it out):"]
    for name, (instead, places) in sorted(_used.items()):
        shown = [_short(p) for p in list(places)[:_PLACES]]
        more = f" and {len(places) - _PLACES} more" if len(places) > _PLACES else ""
        lines.append(f"  {name} -> {instead}  ({', '.join(shown)}{more})")
    stream.write("\n".join(lines) + "\n")
    stream.flush()


def _short(place: str) -> str:
    """A place below the current folder without it."""
    here = os.getcwd() + os.sep
    return place.removeprefix(here)
