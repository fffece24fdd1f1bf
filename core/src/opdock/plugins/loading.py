"""Loading one plugin: import, API version, hook names, records; all before any of it counts."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pluggy

from opdock.devices.routes import CopyRoute
from opdock.failures import failures
from opdock.graph.nodes.registry import OpSpec
from opdock.nearest import meant
from opdock.plugins import hookspecs
from opdock.plugins.clusters import ClusterEngineSpec
from opdock.plugins.installed import Announcement
from opdock.plugins.ownership import NAMED
from opdock.plugins.records import (
    API_VERSION,
    BackendSpec,
    GraphPass,
    GraphTransform,
    check_version,
)
from opdock.plugins.state import Backend, Plugin, Quarantine
from opdock.util.shelter import sheltered

RECORD_HOOKS: Final[dict[str, type]] = {
    "opdock_backends": BackendSpec,
    "opdock_copy_routes": CopyRoute,
    "opdock_ops": OpSpec,
    "opdock_graph_passes": GraphPass,
    "opdock_cluster_engines": ClusterEngineSpec,
    "opdock_graph_transforms": GraphTransform,
    "opdock_samples": str,
}
"""Hooks without arguments: called once, when the plugin loads."""


class _Relay(pluggy.PluginManager):
    """One that does not look at what can be no hook: a session makes one for each plugin."""

    def parse_hookspec_opts(self, module_or_class: Any, name: str) -> Any:
        if not name.startswith("opdock_"):
            return None
        return super().parse_hookspec_opts(module_or_class, name)

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> Any:
        return None if name.startswith("__") else super().parse_hookimpl_opts(plugin, name)


def new_relay() -> pluggy.PluginManager:
    """A pluggy manager that knows the hooks and no plugin."""
    relay = _Relay(hookspecs.PROJECT)
    for group in hookspecs.GROUPS:
        relay.add_hookspecs(group)
    return relay


def load(plugin: Plugin) -> None:
    """Brings a listed plugin to state "loaded".

    Raises:
        Quarantine: with the kind and the reason; the plugin is left as it was.
    """
    module = _import(plugin)
    declared = getattr(module, "OPDOCK_API", None)
    if declared is not None:
        _check_api(_valid(lambda: check_version("OPDOCK_API", declared)))
    relay = new_relay()
    implemented = _implemented(relay, module)
    # A plugin for a newer API may implement hooks that are unknown here: the version is the better
    # reason, so backends are asked first.
    records = _early_backends(module, implemented)
    for spec in records.get("opdock_backends", ()):
        _check_api(spec.api)
    _check_hooks(relay, module, implemented)
    for hook, kind in RECORD_HOOKS.items():
        if hook in implemented and hook not in records:
            records[hook] = _collect(hook, getattr(relay.hook, hook), kind)
    _check_records(plugin, records)
    plugin.module, plugin.relay, plugin.records, plugin.state = module, relay, records, "loaded"
    plugin.backends = [Backend(spec, plugin) for spec in records.get("opdock_backends", ())]


@sheltered
def resolve(dotted: str) -> Any:
    """Imports "pkg.mod:attr"; ImportError or AttributeError when there is no such thing."""
    module, _, attr = dotted.partition(":")
    found: Any = importlib.import_module(module)
    for part in attr.split("."):
        found = getattr(found, part)
    return found


def _import(plugin: Plugin) -> Any:
    source = plugin.source
    try:
        if isinstance(source, Announcement):
            return source.load()
        if isinstance(source, Path):
            return _import_file(source)
    except KeyboardInterrupt:
        raise
    except BaseException as e:  # SystemExit too: a plugin must not end the program
        raise Quarantine.of("import-error", f"importing {plugin.target!r} failed", e) from None
    if isinstance(source, ModuleType):
        # Its dotted names must resolve, even if it was made by hand in a notebook.
        sys.modules.setdefault(source.__name__, source)
    return source


def _import_file(path: Path) -> ModuleType:
    # Under its plain name if that is free, so that "mybackend:probe" is found.
    name = path.stem if path.stem not in sys.modules else f"opdock_file_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _implemented(relay: pluggy.PluginManager, module: Any) -> list[str]:
    if module is None or isinstance(module, type):
        raise Quarantine("wrong-type", f"a plugin is a module or an object, got {module!r}")
    marked, bare = [], []
    for name in dir(module):
        options = relay.parse_hookimpl_opts(module, name)
        if options is not None:
            marked.append(options.get("specname") or name)
        elif name.startswith("opdock_") and callable(getattr(module, name, None)):
            bare.append(name)
    if not marked:
        hint = f"; {', '.join(bare)} lack @hookimpl" if bare else ""
        raise Quarantine("wrong-type", f"{_name(module)} implements no hook{hint}")
    return marked


def _name(module: Any) -> str:
    return getattr(module, "__name__", None) or type(module).__name__


def _early_backends(module: Any, implemented: list[str]) -> dict[str, tuple[Any, ...]]:
    """The backends, where one function of the hook's name tells of them; none under other names."""
    hook = "opdock_backends"
    implementation = getattr(module, hook, None)
    if implementation is None or implemented.count(hook) != 1:
        return {}
    return {hook: _collect(hook, lambda: [implementation()], BackendSpec)}


def _check_api(api: tuple[int, int]) -> None:
    own, theirs = ".".join(map(str, API_VERSION)), ".".join(map(str, api))
    told = f"written for plugin API {theirs}; this opdock-core has {own}"
    if api[0] < API_VERSION[0]:
        raise Quarantine("api-too-old", f"{told}: a newer release of the plugin is needed")
    if api[0] > API_VERSION[0] or api[1] > API_VERSION[1]:
        raise Quarantine("api-too-new", f"{told}: pip install --upgrade opdock-core")


def _check_hooks(relay: pluggy.PluginManager, module: Any, implemented: list[str]) -> None:
    known = {n for group in hookspecs.GROUPS for n in vars(group) if n.startswith("opdock_")}
    try:
        relay.register(module)
        relay.check_pending()
    except pluggy.PluginValidationError as e:
        unknown = [n for n in implemented if n not in known]
        if not unknown:
            raise Quarantine("unknown-hook", " ".join(str(e).split())) from None
        hint = meant(unknown[0], known)
        raise Quarantine("unknown-hook", f"there is no hook {unknown[0]!r}{hint}") from None


def _collect(hook: str, call: Callable[[], Iterable[Any]], kind: type) -> tuple[Any, ...]:
    """The records of one hook, in order, each of the right type."""
    try:
        found = [record for result in call() for record in result]
    except failures() as e:
        wrong = isinstance(e, (TypeError, ValueError))
        raise Quarantine.of("wrong-type" if wrong else "import-error", f"{hook}()", e) from None
    for record in found:
        if not isinstance(record, kind):
            raise Quarantine("wrong-type", f"{hook}() must yield {kind.__name__}, got {record!r}")
    return tuple(found)


def collect(plugin: Plugin, hook: str, kinds: tuple[type, ...], **arguments: Any) -> list[Any]:
    """Calls a hook with arguments on one plugin and checks what it yields.

    Raises:
        Quarantine: the hook failed, or yields something else.
    """
    if plugin.relay is None:
        return []
    try:
        results = getattr(plugin.relay.hook, hook)(**arguments)
        found = [record for result in results for record in result]
    except failures() as e:
        raise Quarantine.of("import-error", f"{hook}()", e) from None
    for record in found:
        if not isinstance(record, kinds):
            names = " or ".join(k.__name__ for k in kinds)
            raise Quarantine("wrong-type", f"{hook}() must yield {names}, got {record!r}")
    return found


def _check_records(plugin: Plugin, records: dict[str, tuple[Any, ...]]) -> None:
    backends = records.get("opdock_backends", ())
    names = [b.name for b in backends]
    if plugin.group == "opdock.backends" and names != [plugin.name]:
        told = f"yields {', '.join(names)}" if names else "yields no backend"
        raise Quarantine(
            "wrong-type",
            f"entry point {plugin.name!r} of group opdock.backends must yield one backend of that "
            f"name; it {told}",
        )
    for what, values in (
        ("backend", names),
        ("own type", [b.own_type for b in backends]),
        *((what, [r.name for r in records.get(hook, ())]) for hook, (what, _) in NAMED.items()),
        ("op", [o.name for o in records.get("opdock_ops", ())]),
    ):
        twice = sorted({v for v in values if values.count(v) > 1})
        if twice:
            raise Quarantine("duplicate", f"it yields {what} {twice[0]!r} twice")
    for op in records.get("opdock_ops", ()):
        if op.shape_fn is None:
            raise Quarantine("wrong-type", f"op {op.name!r} has no shape function")


def _valid(check: Callable[[], tuple[int, int]]) -> tuple[int, int]:
    try:
        return check()
    except TypeError as e:
        raise Quarantine("wrong-type", str(e)) from None
