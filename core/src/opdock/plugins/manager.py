"""The plugin manager: lists, loads, probes and opens, and keeps what is broken from what works.

Nothing happens when this module is imported; every step is taken when it is first needed.
"""

from __future__ import annotations

import functools
import logging
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from opdock.codes import of_kind
from opdock.devices.routes import CopyRoute, RouteTable
from opdock.failures import failures
from opdock.kernels import kept
from opdock.kernels.select.selection import Tie
from opdock.plugins import discovery, hints, loading, ownership, probing
from opdock.plugins.clusters import ClusterEngineSpec
from opdock.plugins.opening import OpenDevice, furnish, open_device
from opdock.plugins.records import (
    GraphPass,
    GraphTransform,
    PluginError,
    PluginStatus,
    ProbedDevice,
    Requirement,
    ToleranceRow,
)
from opdock.plugins.state import Backend, Plugin, Quarantine
from opdock.util.shelter import ShelteredLock
from opdock.util.switches import switched_on

__all__ = [
    "OpenDevice",
    "PluginManager",
    "PluginStatus",
    "ProbedDevice",
    "get_manager",
    "reset_manager",
]

_log = logging.getLogger("opdock.plugins")

REGISTERED: Final = "registered"

P = ParamSpec("P")
T = TypeVar("T")

PlaceNode = Callable[[Any, Any, Any], "tuple[str, str] | None"]


def _alone(method: Callable[Concatenate[PluginManager, P], T]) -> Callable[..., T]:
    """A method that has the manager to itself; what it imports and asks may come back to it."""

    @functools.wraps(method)
    def call(self: PluginManager, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._lock.within(method, self, *args, **kwargs)

    return call


class PluginManager:
    """All plugins of this process; use `get_manager()`."""

    def __init__(self) -> None:
        self._lock = ShelteredLock()
        self._plugins: list[Plugin] = []
        self._discovered = False
        self._loading = False
        self._told: set[str] = set()
        self._relay = loading.new_relay()
        self._routes: RouteTable | None = None

    # ------------------------------------------------------------ states
    @_alone
    def discover(self) -> None:
        """Lists what is installed, without importing any of it."""
        if not self._discovered:
            self._discovered = True
            found = discovery.discover()
            ownership.refuse_twins(found)
            self._plugins += found

    @_alone
    def load(self) -> None:
        """Loads every plugin that is neither blocked nor broken.

        Does nothing when a plugin that is being loaded comes here, say because it reads a graph.

        Raises:
            PluginError: OPDOCK_STRICT_PLUGINS=1 and a plugin had to be quarantined.
        """
        if self._loading:
            return
        self._loading = True
        try:
            self._load_all()
        finally:
            self._loading = False

    def _load_all(self) -> None:
        self.discover()
        for plugin in list(self._plugins):
            if plugin.state == "listed":
                self._load(plugin)
            elif plugin.state == "quarantined" and plugin.kind != "blocked":
                _strict(plugin.error())
        for line in discovery.unknown(self._plugins):
            if line not in self._told:
                self._told.add(line)
                _log.warning("%s", line)
        self._clear_commons()

    @_alone
    def probe(self) -> None:
        """Loads, and asks every backend that has not been asked what devices there are."""
        self.load()
        waiting = [b for b in self._backends() if b.state == "loaded"]
        if not waiting:
            return
        probing.probe(waiting)
        for backend in waiting:
            if backend.state == "quarantined":
                level = logging.WARNING if backend.kind == "probe-timeout" else logging.INFO
                _log.log(
                    level, "backend %r: %s: %s", backend.spec.name, backend.kind, backend.reason
                )
                _strict(_backend_error(backend))

    @_alone
    def status(self) -> list[PluginStatus]:
        """Every plugin and its state, as far as it has been taken; imports nothing."""
        self.discover()
        return [p.status() for p in self._plugins]

    @_alone
    def hints(self) -> list[str]:
        """What the user might install for hardware that is visible but not served."""
        self.discover()
        return hints.missing_plugins(p.name for p in self._plugins)

    # ------------------------------------------------------------ registration
    @_alone
    def register(self, module: Any, name: str | None = None) -> PluginStatus:
        """Takes a module or object as a plugin, now; see `opdock.plugin.register`."""
        name = name or getattr(module, "__name__", None) or type(module).__name__
        plugin = Plugin(name=name, group=REGISTERED, target=name, source=module)
        again = [p for p in self._plugins if p.group == REGISTERED and p.name == name]
        for old in again:  # a notebook cell that runs a second time
            self._forget(old)
        self._plugins.append(plugin)
        self._load(plugin)
        self._clear_commons()
        if plugin.state == "quarantined":
            self._plugins.remove(plugin)
            raise plugin.error()
        self._furnish(plugin)
        return plugin.status()

    @_alone
    def unregister(self, name: str) -> None:
        """Forgets a plugin that `register` took; KeyError when there is none of that name."""
        found = [p for p in self._plugins if p.group == REGISTERED and p.name == name]
        if not found:
            raise KeyError(name)
        self._forget(found[0])
        self._furnish(found[0])

    def _furnish(self, plugin: Plugin) -> None:
        """Gathers the kernels of open devices anew, if a plugin that came or went is among them."""
        if not any(hasattr(plugin.module, hook) for hook in ("opdock_kernels", "opdock_fusions")):
            return
        loaded = [p for p in self._plugins if p.state == "loaded"]
        for backend in [*self._backends()]:
            for opened in backend.opened.values():
                furnish(opened, backend, loaded, self._expel)

    def _forget(self, plugin: Plugin) -> None:
        self._plugins.remove(plugin)
        if plugin.module is not None and self._relay.is_registered(plugin.module):
            self._relay.unregister(plugin.module)
        self._routes = None

    def _load(self, plugin: Plugin) -> None:
        try:
            loading.load(plugin)
            self._settle(plugin)
            self._relay.register(plugin.module, name=f"{plugin.group}:{plugin.name}:{id(plugin)}")
        except Quarantine as verdict:
            self._expel(plugin, verdict)
        else:
            self._routes = None

    def _expel(self, plugin: Plugin, verdict: Quarantine) -> None:
        if plugin.module is not None and self._relay.is_registered(plugin.module):
            self._relay.unregister(plugin.module)
        plugin.quarantine(verdict)
        self._routes = None
        _log.info(
            "plugin %r (%s) quarantined: %s: %s",
            plugin.name, plugin.origin, verdict.kind, verdict.reason,
        )  # fmt: skip
        if plugin.group != REGISTERED:
            _strict(plugin.error())

    def _settle(self, plugin: Plugin) -> None:
        """Finds out whether a plugin may have what it claims, before any of it counts."""
        others = [b for b in self._backends() if b.plugin is not plugin]
        losers: dict[Plugin, Quarantine] = {}
        for mine in plugin.backends:
            for loser, verdict in ownership.contest(mine, others):
                if loser is mine:
                    raise verdict
                losers[loser.plugin] = verdict
        for hook in ownership.NAMED:
            for weaker, verdict in ownership.contest_names(plugin, self._owned(hook), hook):
                if weaker is plugin:
                    raise verdict
                losers[weaker] = verdict
        if any(p.module is plugin.module for p in self._plugins if p is not plugin):
            raise Quarantine("duplicate", f"{plugin.target!r} is loaded under another name already")
        for weaker, verdict in losers.items():
            self._expel(weaker, verdict)

    def _clear_commons(self) -> None:
        """Expels who claims a type that others share, whoever came first."""
        for backend, verdict in ownership.usurpers([*self._backends()]):
            self._expel(backend.plugin, verdict)

    # ------------------------------------------------------------ devices
    @_alone
    def devices(self) -> list[ProbedDevice]:
        """All devices that probes found: highest priority first, then in plugin order."""
        self.probe()
        backends = [*self._backends()]
        for backend in backends:
            backend.outside = ownership.outside(backend, backends)
        found = [d for b in backends for d in b.probed()]
        found.sort(key=lambda d: -d.spec.priority)
        return found

    @_alone
    def open(self, probed: ProbedDevice) -> OpenDevice:
        """The open device of a record that `devices` gave; opened once a process.

        Raises:
            PluginError: it cannot be opened; the message says why.
        """
        backend = self._backend_of(probed)
        index = probed.attributes.index
        found: OpenDevice | None = backend.opened.get(index)
        if found is None:
            loaded = [p for p in self._plugins if p.state == "loaded"]
            found = open_device(backend, probed, loaded, self._expel)
            if backend.plugin.state == "quarantined":  # another of its hooks failed meanwhile
                found.device.close()
                raise backend.plugin.error()
            # The step of a signal handler may have opened it meanwhile, and goes on with that.
            mine, found = found, backend.opened.setdefault(index, found)
            if found is not mine:
                mine.device.close()
            backend.state = "open"
        return found

    @_alone
    def opened(self) -> list[OpenDevice]:
        """The devices that are open now."""
        return [o for b in self._backends() for o in b.opened.values()]

    @_alone
    def close(self) -> None:
        """Closes every open device; a later `open` makes it anew."""
        for backend in self._backends():
            for opened in backend.opened.values():
                opened.device.close()
            if backend.opened:
                backend.opened, backend.state = {}, "probed"
        kept.forget()

    @_alone
    def why_unavailable(self, device_type: str) -> str:
        """Why there is no device of a type, in words; empty when there is one.

        Args:
            device_type: a pool's type or a backend's own, e.g. "GPU".
        """
        self.probe()
        serving = [
            b for b in self._backends() if device_type in (b.spec.device_type, b.spec.own_type)
        ]
        if any(b.devices for b in serving):
            return ""
        lines = [_backend_line(b) for b in serving]
        out = [p for p in self._plugins if p.state == "quarantined"]
        # What is broken matters more than what the user has switched off.
        out.sort(key=lambda p: p.kind == "blocked")
        lines += [f"plugin {p.name!r} ({p.origin}): {p.kind}: {p.reason}" for p in out]
        lines += self.hints()
        told = "; ".join(lines) if lines else "`opdock doctor` lists what is installed"
        if serving:
            return f"no device of type {device_type}: {told}"
        return f"no installed plugin serves devices of type {device_type}: {told}"

    @_alone
    def unavailable(self) -> list[str]:
        """Why backends have no device, a line each: what their probes say, or how they failed."""
        self.probe()
        return [_backend_line(b) for b in self._backends() if not b.devices]

    # ------------------------------------------------------------ what else plugins bring
    @_alone
    def routes(self) -> RouteTable:
        """The copy routes of all plugins, but for those between the devices of others."""
        self.load()
        if self._routes is None:
            self._routes = RouteTable(self._valid_routes()[0])
        return self._routes

    def _valid_routes(self) -> tuple[list[CopyRoute], list[str]]:
        return ownership.valid_routes(self._owned("opdock_copy_routes"), [*self._backends()])

    @_alone
    def graph_passes(self) -> list[tuple[str, GraphPass]]:
        """The graph passes of all plugins, each with its plugin, by position and name."""
        self.load()
        passes = [(p.name, record) for p, record in self._owned("opdock_graph_passes")]
        return sorted(passes, key=lambda p: (p[1].position, p[1].name))

    @_alone
    def cluster_engines(self) -> list[ClusterEngineSpec]:
        """The cluster engines of all plugins, the preferred first."""
        self.load()
        found = [record for _, record in self._owned("opdock_cluster_engines")]
        return sorted(found, key=lambda spec: (-spec.priority, spec.name))

    @_alone
    def graph_transforms(self) -> list[tuple[str, GraphTransform]]:
        """The transforms of GraphDefs of all plugins, each with its plugin's name."""
        self.load()
        return [(p.name, record) for p, record in self._owned("opdock_graph_transforms")]

    @_alone
    def sample_modules(self) -> list[tuple[str, str]]:
        """The modules with samples for plugins' own ops: each with its plugin's name."""
        self.load()
        return [(p.name, module) for p, module in self._owned("opdock_samples")]

    @_alone
    def requirements(self, backend: str) -> list[Requirement | ToleranceRow]:
        """What plugins say that a backend does not do, or does less exactly.

        What others say of it counts for their own ops only.
        """
        self.load()
        return self._testimonies(backend)[0]

    @_alone
    def disputed(self) -> list[str]:
        """What of the plugins' routes and requirements does not count, in words, a line each."""
        self.load()
        notes = self._valid_routes()[1]
        for backend in [*self._backends()]:
            notes += self._testimonies(backend.spec.name)[1]
        return notes

    @_alone
    def unknown(self) -> list[str]:
        """What the user's environment names that is no plugin, in words, a line each."""
        self.load()
        return discovery.unknown(self._plugins)

    def _testimonies(self, backend: str) -> tuple[list[Requirement | ToleranceRow], list[str]]:
        kinds = (Requirement, ToleranceRow)
        owner = next((b for b in self._backends() if b.spec.name == backend), None)
        found: list[Requirement | ToleranceRow] = []
        notes: list[str] = []
        for plugin in list(self._plugins):
            try:
                records = loading.collect(plugin, "opdock_requirements", kinds, backend=backend)
            except Quarantine as verdict:
                self._expel(plugin, verdict)
                continue
            kept, told = ownership.testimony(plugin, records, owner)
            found += kept
            notes += told
        return found, notes

    @property
    @_alone
    def place_node_hook(self) -> PlaceNode | None:
        """`f(node, candidates, config) -> (device name, plugin) | None`; None without plugins."""
        self.load()
        if not self._relay.hook.opdock_place_node.get_hookimpls():
            return None
        return self._place_node

    def _place_node(self, node: Any, candidates: Any, config: Any) -> tuple[str, str] | None:
        names = {c.device for c in candidates}
        by_module = {id(p.module): p for p in self._plugins if p.module is not None}
        # One plugin at a time, in pluggy's order, so that it is known who answered.
        for implementation in reversed(self._relay.hook.opdock_place_node.get_hookimpls()):
            plugin = by_module[id(implementation.plugin)]
            assert plugin.relay is not None
            try:
                answer = plugin.relay.hook.opdock_place_node(
                    node=node, candidates=candidates, config=config
                )
            except failures() as e:
                told = f"opdock_place_node of plugin {plugin.name!r} failed on {node}"
                plugin.warn(f"{told}; it is left out", traceback.format_exc())
                _strict(PluginError(f"{told}: {type(e).__name__}: {e}", plugin.name))
                continue
            if answer in names:
                return answer, plugin.name
            if answer is not None:
                told = f"opdock_place_node of plugin {plugin.name!r} answered {answer!r} for {node}"
                plugin.warn(f"{told}, which is no candidate; ignored")
                _strict(PluginError(f"{told}, which is no candidate", plugin.name))
        return None

    @_alone
    def ties(self) -> list[Tie]:
        """Kernels of open devices that only the order of plugins tells apart."""
        return [tie for o in self.opened() for tie in o.kernels.ties()]

    @_alone
    def notes(self) -> list[str]:
        """What was put back or left out for the open devices, in words, each once."""
        return list(dict.fromkeys(note for o in self.opened() for note in o.notes))

    # ------------------------------------------------------------ internals
    def _backends(self) -> Iterator[Backend]:
        for plugin in self._plugins:
            yield from plugin.backends

    def _backend_of(self, probed: ProbedDevice) -> Backend:
        for backend in self._backends():
            if backend.spec is probed.spec:
                return backend
        for plugin in self._plugins:
            if plugin.name == probed.plugin and plugin.state == "quarantined":
                raise plugin.error()
        name = probed.spec.name
        raise PluginError(f"backend {name!r} is not in use any more", name)

    def _owned(self, hook: str) -> Iterator[tuple[Plugin, Any]]:
        for plugin in self._plugins:
            yield from ((plugin, record) for record in plugin.records.get(hook, ()))


def _strict(error: PluginError) -> None:
    if switched_on("OPDOCK_STRICT_PLUGINS"):
        raise error


def _backend_line(backend: Backend) -> str:
    hint = f" ({backend.hint})" if backend.hint else ""
    kind = f"{backend.kind}: " if backend.kind else "unavailable: "
    return f"plugin {backend.plugin.name!r} ({backend.plugin.origin}): {kind}{backend.reason}{hint}"


def _backend_error(backend: Backend) -> PluginError:
    told = of_kind(backend.kind, _backend_line(backend))
    return PluginError(told, backend.plugin.name, backend.kind, backend.traceback)


_manager: PluginManager | None = None
# Reentrant: the collector may run inside, and a finalizer that it calls may come here.
_manager_lock = threading.RLock()


def get_manager() -> PluginManager:
    """The process's plugin manager; made when first asked for, and empty until it is used."""
    global _manager
    with _manager_lock:
        if _manager is None:
            _manager = PluginManager()
        return _manager


def reset_manager() -> None:
    """Closes all devices and forgets all plugins; the next use reads the environment anew."""
    global _manager
    with _manager_lock:
        if _manager is not None:
            _manager.close()
        _manager = None
