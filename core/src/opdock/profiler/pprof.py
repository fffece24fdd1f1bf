"""The view by line of code as a file for pprof."""

from __future__ import annotations

import gzip
import sys
from typing import Any

from opdock.io import files
from opdock.profiler.items import Item, figure_named
from opdock.profiler.model import Line
from opdock.profiler.settings import Settings

__all__ = ["write_pprof"]


def write_pprof(root: Item, settings: Settings) -> None:
    """Writes the shown lines with how many nodes they made and what these took.

    Where not one figure is selected there is no file, and that is said, as TensorFlow does.
    """
    figure = figure_named(settings.select[0]) if len(settings.select) == 1 else None
    if figure is None:
        print(
            f"No file for pprof is written: it has one figure, but selected is {settings.select}",
            file=sys.stderr,
        )
        return
    unit = figure.rpartition("_")[2]
    units = {"micros": "microseconds", "bytes": "bytes"}
    written = _File()
    written.add_type("count", "count")
    written.add_type(settings.select[0], units.get(unit, "count"))
    waiting: list[tuple[Item, tuple[int, ...]]] = [(child, ()) for child in root.children]
    while waiting:
        item, callers = waiting.pop()
        calls = (written.location(item), *callers)
        if item.counted:
            value = getattr(item.own, figure)
            written.profile.sample.add(location_id=calls, value=(len(item.counted), value))
        waiting.extend((child, calls) for child in item.children)
    content = gzip.compress(written.profile.SerializeToString(), mtime=0)
    files.write_file(files.as_path(settings.outfile), content)


class _File:
    """A profile that is being written, in which what occurs often stands once, under a number."""

    def __init__(self) -> None:
        from opdock.io.pprof_messages import Profile

        self.profile: Any = Profile(string_table=[""])
        self._strings = {"": 0}
        self._functions: dict[tuple[str, str, int], int] = {}
        self._locations: dict[tuple[str, Line], int] = {}

    def add_type(self, name: str, unit: str) -> None:
        """Says what the next number of each sample is."""
        self.profile.sample_type.add(type=self._string(name), unit=self._string(unit))

    def location(self, item: Item) -> int:
        """The number of an item's line."""
        line = item.line
        assert line is not None
        suffix = item.suffix
        key = (suffix, line)
        if key not in self._locations:
            self._locations[key] = len(self._locations) + 1
            location = self.profile.location.add(id=self._locations[key])
            location.line.add(function_id=self._function(line, suffix), line=line.number)
        return self._locations[key]

    def _function(self, line: Line, suffix: str) -> int:
        name = line.function + suffix
        key = (line.file, name, line.start)
        if key not in self._functions:
            self._functions[key] = len(self._functions) + 1
            self.profile.function.add(
                id=self._functions[key], name=self._string(name), system_name=self._string(name),
                filename=self._string(line.file), start_line=max(line.start, 0),
            )  # fmt: skip
        return self._functions[key]

    def _string(self, text: str) -> int:
        if text not in self._strings:
            self._strings[text] = len(self._strings)
            self.profile.string_table.append(text)
        return self._strings[text]
