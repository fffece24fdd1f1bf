"""Who owns what when several plugins want the same: types, pools, kernels, routes, passes, records.

A plugin takes nothing from another. What two of them claim belongs to the one with the better
claim, whatever their priorities are and whichever came first; a guest in somebody else's pool, or
among somebody else's kernels, needs the owner's leave or the user's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from opdock.devices.routes import CopyRoute
from opdock.plugins.patterns import FusionPattern
from opdock.plugins.records import BackendSpec, Requirement, ToleranceRow
from opdock.plugins.state import Backend, Plugin, Quarantine

__all__ = [
    "CORE_PASSES", "CORE_TRANSFORMS", "NAMED", "admitted", "contest", "contest_fusions",
    "contest_names", "is_named", "kin", "names_in", "outside", "rightful", "testimony", "usurpers",
    "valid_routes",
]  # fmt: skip

CORE_PASSES: Final = (
    "pieces", "fold", "branches", "loops", "dead", "simplify", "facts", "transposes", "reshapes",
    "algebra", "padding", "pools", "relaxed", "cse", "hoist", "layout", "fuse", "cluster",
    "updates", "segments", "turns", "memory",
)  # fmt: skip
"""Core's own passes that can be switched off, in their order; no plugin's pass or fusion has such a
name, which would switch both."""

CORE_TRANSFORMS: Final = (
    "add_default_attributes", "backport_concatv2", "backport_tensor_array_v3",
    "flatten_atrous_conv", "fold_batch_norms", "fold_constants", "fold_old_batch_norms",
    "freeze_requantization_ranges", "fuse_convolutions", "fuse_pad_and_conv",
    "fuse_resize_and_conv", "fuse_resize_pad_and_conv", "insert_logging", "merge_duplicate_nodes",
    "obfuscate_names", "quantize_layers", "quantize_nodes", "quantize_weights", "remove_attribute",
    "remove_control_dependencies", "remove_device", "remove_nodes", "rename_attribute", "rename_op",
    "round_weights", "set_device", "sort_by_execution_order", "sparsify_gather",
    "strip_unused_nodes",
)  # fmt: skip
"""Core's own transforms of GraphDefs, which no plugin's has the name of."""

NAMED: Final = {
    "opdock_graph_passes": ("graph pass", CORE_PASSES),
    "opdock_graph_transforms": ("graph transform", CORE_TRANSFORMS),
}
"""Hooks whose records users call by name: what they are called, and the names that core has."""

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


# ---------------------------------------------------------------- what users call by name
def contest_names(
    mine: Plugin, others: Iterable[tuple[Plugin, Any]], hook: str
) -> list[tuple[Plugin, Quarantine]]:
    """Who must go because `mine` brings a record of a name that is taken, with the reason.

    A name belongs to core if core has it; to the plugin that it begins with, `acme` for
    "acme_tidy"; else to the first one.

    Args:
        mine: a plugin that is new.
        others: the records that are in use, each with its plugin.
        hook: whose records they are, one of `NAMED`.
    """
    what, core = NAMED[hook]
    names = {p.name for p in mine.records.get(hook, ())}
    if taken := names.intersection(core):
        return [(mine, _core_has(what, min(taken)))]
    losers: list[tuple[Plugin, Quarantine]] = []
    for other, record in others:
        if other is mine or record.name not in names:
            continue
        if _name_claim(mine, record.name) <= _name_claim(other, record.name):
            return [(mine, _name_taken(other, what, record.name))]
        losers.append((other, _name_taken(mine, what, record.name)))
    return losers


def _name_claim(plugin: Plugin, name: str) -> tuple[bool, bool, bool]:
    called = name == plugin.name or name.startswith((f"{plugin.name}_", f"{plugin.name}>"))
    return called, called and rightful(plugin, plugin.name), plugin.group != "registered"


def _name_taken(owner: Plugin, what: str, name: str) -> Quarantine:
    told = f"{owner.name!r} ({owner.origin}) has a {what} {name!r} already"
    return Quarantine("duplicate", told)


def contest_fusions(patterns: Iterable[FusionPattern]) -> Quarantine | None:
    """Why a plugin with these fusions must go: one has the name of a pass of core's."""
    taken = sorted({p.name for p in patterns}.intersection(CORE_PASSES))
    return _core_has("fusion", taken[0]) if taken else None


def _core_has(what: str, name: str) -> Quarantine:
    told = f"core has a pass {name!r} of its own, which a {what} of that name would displace"
    return Quarantine("duplicate", told)


# ---------------------------------------------------------------- copy routes
def valid_routes(
    brought: Iterable[tuple[Plugin, CopyRoute]], backends: Sequence[Backend]
) -> tuple[list[CopyRoute], list[str]]:
    """The routes that count, and what is to be said of the others, a line each.

    A route belongs to the backends at its ends, or to whom one of them admits. Of two plugins that
    bring the same one the destination's counts, which knows how its buffers are made.
    """
    owners = {b.spec.own_type: b for b in backends}
    found: dict[tuple[str, str, bool], list[tuple[Plugin, CopyRoute]]] = {}
    notes = []
    for plugin, route in brought:
        claim = _route_claim(plugin, route, owners)
        if not any(claim) and (route.src in owners or route.dst in owners):
            ends = (owners[t].spec.name for t in (route.src, route.dst) if t in owners)
            told = " or ".join(repr(name) for name in dict.fromkeys(ends))
            notes.append(
                f"{_told(plugin, route)}: it is not admitted by {told} "
                f"({ADMIT}={plugin.name} would let it in)"
            )
            continue
        key = route.src, route.dst, route.shares
        same = found.setdefault(key, [])
        if not same or kin(plugin, same[0][0]):
            same.append((plugin, route))
            continue
        first = same[0][0]
        loser, winner = plugin, first
        if claim > _route_claim(first, route, owners):
            loser, winner = first, plugin
            found[key] = [(plugin, route)]
        notes.append(f"{_told(loser, route)}: {winner.name!r} ({winner.origin}) brings one")
    return [route for same in found.values() for _, route in same], notes


def _told(plugin: Plugin, route: CopyRoute) -> str:
    who = f"{plugin.name!r} ({plugin.origin})"
    return f"the copy route {route.src} to {route.dst} of {who} is left out"


def _route_claim(
    plugin: Plugin, route: CopyRoute, owners: Mapping[str, Backend]
) -> tuple[bool, bool, bool]:
    """How good a plugin's claim to a route is; greater is better, and all False is none."""
    ends = [owners.get(place) for place in (route.dst, route.src)]
    mine = [end is not None and kin(plugin, end.plugin) for end in ends]
    leave = any(end is not None and admitted(plugin, end.spec) for end in ends)
    return mine[0], mine[1], leave


# ---------------------------------------------------------------- conformance
Record = Requirement | ToleranceRow


def testimony(
    plugin: Plugin, records: Sequence[Record], owner: Backend | None
) -> tuple[list[Record], list[str]]:
    """What a plugin says of a backend's conformance that counts, and what is to be said otherwise.

    Nobody excuses another's failures: of somebody else's backend a plugin speaks of its own ops
    only, unless it is admitted.
    """
    if owner is None or kin(plugin, owner.plugin) or admitted(plugin, owner.spec):
        return list(records), []
    ops = {op.name for op in plugin.records.get("opdock_ops", ())}
    kept = [r for r in records if (r.name if isinstance(r, Requirement) else r.op) in ops]
    if len(kept) == len(records):
        return kept, []
    told = (
        f"backend {owner.spec.name!r} does not admit {plugin.name!r} ({plugin.origin}): what it "
        f"says of that backend's conformance is left out, records: {len(records) - len(kept)} "
        f"({ADMIT}={plugin.name} would let them in)"
    )
    return kept, [told]


# ---------------------------------------------------------------- guests
def kin(plugin: Plugin, owner: Plugin) -> bool:
    """Whether two plugins are one author's: the same, or from one distribution."""
    if plugin is owner:
        return True
    return bool(plugin.distribution) and plugin.distribution == owner.distribution


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


def refuse_twins(found: Sequence[Plugin]) -> None:
    """Quarantines one of two entry points with one name in one group.

    The name is that of the distribution that is called after it; else the first one's.
    """
    seen: dict[tuple[str, str], Plugin] = {}
    for plugin in sorted(found, key=lambda p: not rightful(p, p.name)):
        if plugin.state != "listed":
            continue
        first = seen.setdefault((plugin.group, plugin.name), plugin)
        if first is not plugin:
            plugin.quarantine(
                Quarantine(
                    "duplicate", f"{first.origin} has an entry point {plugin.name!r} already"
                )
            )
