"""What installed distributions announce, as `importlib.metadata.entry_points` has it.

That module imports parsers of messages, archives and sockets, sixteen milliseconds that a process
spends for nothing else, and then reads all that every installed package announces: together a sixth
of a first session. Here only folders are read, as installers leave them, and in them only what is
announced to those who ask. Where a distribution may be something else, in an archive or known to an
import hook alone, `importlib.metadata` is asked.
"""

from __future__ import annotations

import contextlib
import csv
import importlib
import itertools
import os
import re
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from typing import Any, Final

from opdock.late import record

__all__ = ["Announcement", "announced", "installed_files"]

_FOLDERS: Final = (".dist-info", ".egg-info")
_ABOUT: Final = ("METADATA", "PKG-INFO")


@record(frozen=True, slots=True)
class Announcement:
    """One line of what a distribution announces.

    Attributes:
        group, name, value: as it says there.
        distribution, version: whose it is.
    """

    group: str
    name: str
    value: str
    distribution: str = ""
    version: str = ""

    def load(self) -> Any:
        """Imports what the value names; raises what that raises."""
        module, _, path = self.value.partition("[")[0].partition(":")
        found: Any = importlib.import_module(module.strip())
        for name in filter(None, path.strip().split(".")):
            found = getattr(found, name)
        return found


def announced(*groups: str) -> list[Announcement]:
    """The entry points in some groups, without what importing `importlib.metadata` takes.

    Args:
        groups: their names, as `opdock.plugins`.

    Returns:
        Those of each distribution where `sys.path` finds it first.
    """
    folders = _folders()
    if any(map(_knows_others, sys.meta_path)) or any(map(_is_archive, folders)):
        return _asked(groups)
    first: dict[str, str] = {}
    for folder in folders:
        for name, path in _distributions(folder):
            first.setdefault(name, path)
    return [entry for path in first.values() for entry in _read(path, groups)]


def installed_files(distribution: str) -> list[str]:
    """The paths of what a wheel has installed; empty where no such distribution is.

    Args:
        distribution: its name.
    """
    wanted = _spelled(distribution)
    for folder in _folders():
        for name, path in _distributions(folder):
            if name == wanted:
                with (
                    contextlib.suppress(OSError),
                    open(os.path.join(path, "RECORD"), encoding="utf-8", newline="") as file,
                ):
                    rows = [row for row in csv.reader(file) if row]
                    return [os.path.normpath(os.path.join(folder, row[0])) for row in rows]
    return []


def _folders() -> list[str]:
    """Where distributions may be: programs put more than text into `sys.path`."""
    found = [os.fspath(path) for path in sys.path if isinstance(path, str | os.PathLike)]
    return [path or os.curdir for path in found if isinstance(path, str)]


def _spelled(name: str) -> str:
    """A distribution's name in the one spelling of all that mean it."""
    return re.sub("[-_.]+", "-", name).lower()


def _knows_others(finder: Any) -> bool:
    """Whether an import hook finds distributions elsewhere."""
    return finder is not PathFinder and hasattr(finder, "find_distributions")


def _is_archive(path: str) -> bool:
    return path.endswith(".egg") or os.path.isfile(path)


def _asked(groups: tuple[str, ...]) -> list[Announcement]:
    """What `importlib.metadata` finds."""
    from importlib.metadata import entry_points

    installed, found = entry_points(), []
    for entry in itertools.chain.from_iterable(installed.select(group=g) for g in groups):
        # Each of a distribution's properties reads all of its metadata anew.
        about = entry.dist.metadata if entry.dist else {"Name": "", "Version": ""}
        found.append(
            Announcement(entry.group, entry.name, entry.value, about["Name"], about["Version"])
        )
    return found


def _distributions(folder: str) -> Iterator[tuple[str, str]]:
    """The names of a folder's distributions, in one spelling, and where they say what they are."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if name.lower().endswith(_FOLDERS):  # of many names few are
            stem, _ = os.path.splitext(name)
            yield _spelled(stem.partition("-")[0]), os.path.join(folder, name)


def _read(path: str, groups: tuple[str, ...]) -> Iterator[Announcement]:
    """What one distribution announces in some groups."""
    try:
        with open(os.path.join(path, "entry_points.txt"), encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError):
        return
    if not any(f"[{group}]" in text for group in groups):
        return
    about, group = _about(path), ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[]")
        elif group in groups and "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield Announcement(group, name.strip(), value.strip(), about["Name"], about["Version"])


def _about(path: str) -> dict[str, str]:
    """A distribution's name and version."""
    found = {"Name": "", "Version": ""}
    for name in _ABOUT:
        with (
            contextlib.suppress(OSError),
            open(os.path.join(path, name), encoding="utf-8", errors="replace") as file,
        ):
            for line in itertools.takewhile(str.strip, file):
                key, _, value = line.partition(":")
                if key in found:
                    found[key] = found[key] or value.strip()
    return found
