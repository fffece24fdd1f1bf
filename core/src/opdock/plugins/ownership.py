"""Who owns what: device types, pools and kernels, when several plugins want the same.

A plugin takes nothing from another. What two of them claim belongs to the one with the better
claim, whatever their priorities are and whichever came first; a guest in somebody else's pool, or
among somebody else's kernels, needs the owner's leave or the user's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from opdock.plugins.records import BackendSpec
from opdock.plugins.state import Backend, Plugin, Quarantine

__all__ = ["admitted", "contest", "is_named", "names_in", "outside", "rightful", "usurpers"]

ADMIT: Final = "OPDOCK_ADMIT"
"""The variable by which a user lets plugins in everywhere."""


# ---------------------------------------------------------------- names
def names_in(text: str) -> list[str]:
    """The words of a comma-separated list."""
    return [item.strip() for item in text.split(",") if item.strip()]


def is_named(plugin: Plugin, names: Iterable[str]) -> bool:
    """Whether one of the names is the plugin's or its distribution's."""
    return any(_is(name, plugin) for name in names)


def _is(name: str, plugin: Plugin) -> bool:
    return name == plugin.name or canonical(name) == canonical(plugin.distribution)


def canonical(distribution: str) -> str:
    """A distribution's name in the one spelling that package indexes compare."""
    return distribution.lower().replace("_", "-").replace(".", "-")


def rightful(plugin: Plugin, name: str) -> bool:
    """Whether a plugin comes from the distribution after which a name is called."""
    return canonical(plugin.distribution) == f"opdock-{canonical(name)}"


# ---------------------------------------------------------------- backends
def contest(mine: Backend, others: Sequence[Backend]) -> list[tuple[Backend, Quarantine]]:
    """Who must go because `mine` came, each with the reason; `mine` alone, or some of the others.

    Args:
        mine: a backend that is new.
        others: those of other plugins that are in use.
    """
    losers: list[tuple[Backend, Quarantine]] = []
    for other in others:
        for what in ("name", "own_type"):
            value = getattr(mine.spec, what)
            if value != getattr(other.spec, what):
                continue
            if _claim(mine, what) <= _claim(other, what):
                return [(mine, _taken(other, what, value))]
            losers.append((other, _taken(mine, what, value)))
            break
    return losers


def usurpers(backends: Sequence[Backend]) -> list[tuple[Backend, Quarantine]]:
    """Backends that call a type their own which others share, each with the reason.

    A type that backends of two plugins serve without owning it is common ground, unless a backend
    is called by its name.
    """
    found = []
    for mine in backends:
        own = mine.spec.own_type
        sharers = [b for b in backends if b.spec.device_type == own != b.spec.own_type]
        if mine.spec.name != own.lower() and len({b.plugin.origin for b in sharers}) > 1:
            told = " and ".join(repr(b.spec.name) for b in sharers)
            reason = f"the backends {told} share the type {own!r}, which nobody owns"
            found.append((mine, Quarantine("duplicate", reason)))
    return found


def _claim(backend: Backend, what: str) -> tuple[bool, bool, bool]:
    """How good a backend's claim to its name or its own type is; greater is better."""
    spec, plugin = backend.spec, backend.plugin
    called = what == "name" or spec.name == spec.own_type.lower()
    return called, called and rightful(plugin, spec.name), plugin.group != "registered"


def _taken(owner: Backend, what: str, value: str) -> Quarantine:
    plugin = owner.plugin
    told = f"{plugin.name!r} ({plugin.origin}) has a backend with the {what} {value!r} already"
    return Quarantine("duplicate", told)


# ---------------------------------------------------------------- guests
def admitted(guest: Plugin, host: BackendSpec, environ: Mapping[str, str] | None = None) -> bool:
    """Whether a backend lets another plugin into its pool and before its kernels.

    Args:
        guest: the other plugin.
        host: the backend.
        environ: where to read OPDOCK_ADMIT, by which the user overrules a backend that is silent.
    """
    environ = os.environ if environ is None else environ
    return is_named(guest, (*host.admits, *names_in(environ.get(ADMIT, ""))))


def outside(guest: Backend, backends: Iterable[Backend]) -> str:
    """Why a backend's devices do not join the pool of their type; empty when they do."""
    wanted = guest.spec.device_type
    if guest.spec.own_type == wanted:
        return ""
    for owner in backends:
        if owner.spec.own_type == wanted and owner is not guest:
            if owner.plugin is guest.plugin or admitted(guest.plugin, owner.spec):
                return ""
            return (
                f"the type {wanted} belongs to backend {owner.spec.name!r}, which does not admit "
                f"{guest.plugin.name!r} ({ADMIT}={guest.plugin.name} would)"
            )
    return ""
