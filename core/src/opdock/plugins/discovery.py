"""Discovery: lists what is installed without importing any of it, and applies the user's filters.

pluggy's own entry-point loader stops at the first plugin that fails; this loop belongs to us.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from opdock.nearest import meant
from opdock.plugins.installed import Announcement, announced
from opdock.plugins.ownership import ADMIT, is_named, names_in
from opdock.plugins.state import Plugin, Quarantine

GROUPS: Final = ("opdock.backends", "opdock.plugins")
FILE_GROUP: Final = "file"
MISSING: Final = "OPDOCK_PLUGINS"
"""The group of plugins that are nowhere, though that variable names them."""


def discover(environ: Mapping[str, str] | None = None) -> list[Plugin]:
    """Everything installed or named in the environment, in a stable order; nothing is imported.

    Args:
        environ: where to read OPDOCK_PLUGINS (names and ./files to use, all if it has no names) and
            OPDOCK_DISABLE (names not to use). A name is an entry point's or a distribution's.

    Returns:
        Plugins in state "listed", or "quarantined" as blocked.
    """
    environ = os.environ if environ is None else environ
    wanted, files = _split(environ.get("OPDOCK_PLUGINS", ""))
    disabled, _ = _split(environ.get("OPDOCK_DISABLE", ""))
    found = [_from_entry(entry) for entry in announced(*GROUPS)]
    # Not the order of sys.path: it changes with the current directory.
    found.sort(key=lambda p: (GROUPS.index(p.group), p.name, p.distribution.lower()))
    for plugin in found:
        if wanted and not is_named(plugin, wanted):
            plugin.quarantine(Quarantine("blocked", "OPDOCK_PLUGINS does not name it"))
        elif is_named(plugin, disabled):
            plugin.quarantine(Quarantine("blocked", "OPDOCK_DISABLE names it"))
    found += [_missing(name, found) for name in wanted if not _known(name, found)]
    found += [_from_file(path) for path in files]
    return found


def _from_entry(entry: Announcement) -> Plugin:
    return Plugin(
        name=entry.name,
        group=entry.group,
        target=entry.value,
        distribution=entry.distribution,
        version=entry.version,
        source=entry,
    )


def _from_file(text: str) -> Plugin:
    path = Path(text).expanduser().resolve()
    return Plugin(name=path.stem, group=FILE_GROUP, target=str(path), source=path)


def _missing(name: str, found: list[Plugin]) -> Plugin:
    plugin = Plugin(name=name, group=MISSING, target=name)
    installed = ", ".join(sorted({p.name for p in found})) or "none"
    plugin.quarantine(
        Quarantine("import-error", f"no such plugin is installed (installed: {installed})")
    )
    return plugin


def unknown(plugins: Sequence[Plugin], environ: Mapping[str, str] | None = None) -> list[str]:
    """What the environment names that is no plugin, in words, a line each.

    Who disables what is not installed has what is wanted: there only what is nearly the name of
    another is told of, so one setting serves machines with different plugins.

    Args:
        plugins: all that there are.
        environ: where to read the variables.
    """
    environ = os.environ if environ is None else environ
    there = [p for p in plugins if p.group != MISSING]
    names = sorted({name for p in there for name in (p.name, p.distribution) if name})
    installed = ", ".join(sorted({p.name for p in there})) or "none"
    lines = []
    for variable, always in (("OPDOCK_PLUGINS", True), (ADMIT, True), ("OPDOCK_DISABLE", False)):
        for name in _split(environ.get(variable, ""))[0]:
            hint = meant(name, names, 0.6 if always else 0.8)
            if not _known(name, there) and (always or hint):
                lines.append(
                    f"{variable} names {name!r}, and there is no such plugin (there are: "
                    f"{installed}){hint}"
                )
    return lines


def _split(text: str) -> tuple[list[str], list[str]]:
    """A comma-separated list as names and paths."""
    items = names_in(text)
    files = [i for i in items if i.endswith(".py") or "/" in i or os.sep in i]
    return [i for i in items if i not in files], files


def _known(name: str, found: Sequence[Plugin]) -> bool:
    return any(is_named(plugin, (name,)) for plugin in found)
