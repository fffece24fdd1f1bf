"""`opdock doctor`: every plugin with its state and the reason for it, versions, and hints."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from opdock.cli._command import Command, emit, json_option
from opdock.cli._report import pool_rows, short
from opdock.cli._screen import Screen, styled, working
from opdock.codes import of_kind
from opdock.devices.pool import DevicePool
from opdock.plugins.loading import resolve
from opdock.plugins.manager import PluginManager, get_manager
from opdock.plugins.records import API_VERSION, PluginError, PluginStatus, ProbedDevice

if TYPE_CHECKING:
    from rich.text import Text

_PACKAGES: Final = ("opdock-core", "numpy", "pluggy", "protobuf", "tensorboard")
_COLORS: Final = {"open": "green", "probed": "green", "loaded": "green", "quarantined": "red"}
_TOLD: Final = (
    ("unknown", "unknown", "yellow"), ("ties", "tie", "yellow"), ("faults", "fault", "red"),
    ("unserved", "sibling", "yellow"), ("failures", "failed", "red"), ("hints", "hint", "yellow"),
)  # fmt: skip
"""Parts of the report that are lines: key, what stands before each, its colour."""


_KEYS: Final = {
    "api_version": "of the plugin API: major, minor",
    "versions": "of Python, the platform and the packages that matter",
    "plugins": "each with its state, its backends and the reasons",
    "devices": "as `opdock devices --json` has them",
    "notes": "what backends say of the libraries that they use",
    "failures": "devices that could not be opened (--open)",
    "faults": "kernels that gave something wrong (--open)",
    "unserved": "types that an op lacks on a device, though its like has them (--open)",
    "unknown": "what the environment names that is no plugin",
    "ties": "kernels between which the names of plugins decide",
    "hints": "what to do about hardware that no plugin serves",
}


@click.command(
    "doctor", cls=Command, example="opdock doctor", found="no device can be used", keys=_KEYS
)
@json_option
@click.option("--open", "open_all", is_flag=True, help="Open every device and try its kernels.")
@click.option("--traceback", is_flag=True, help="Print the tracebacks of what failed.")
def command(json_output: bool, open_all: bool, traceback: bool) -> None:
    """Check the installation: plugins, devices, versions, and what to do about problems."""
    manager = get_manager()
    with working("asking plugins for devices"):
        probed = manager.devices()
    with working("trying the kernels of every device"):
        failures = _open(manager) if open_all else []
        faults, unserved = _tried(manager) if open_all else ([], [])
    report = {
        "api_version": list(API_VERSION),
        "versions": _versions(),
        "plugins": manager.status(),
        "devices": pool_rows(DevicePool.build(probed)),
        "notes": [*_notes(probed), *manager.notes(), *manager.disputed()],
        "failures": failures,
        "faults": faults,
        "unserved": unserved,
        "unknown": manager.unknown(),
        "ties": [str(tie) for tie in manager.ties()],
        "hints": manager.hints(),
    }
    if json_output:
        emit(report)
    else:
        _print(report, traceback)
    if not probed:
        raise SystemExit(1)


def _open(manager: PluginManager) -> list[str]:
    failures = []
    for probed in manager.devices():
        try:
            manager.open(probed)
        except PluginError as e:
            failures.append(str(e))
    return failures


def _tried(manager: PluginManager) -> tuple[list[str], list[str]]:
    """What is wrong with the kernels of the open devices, and what is missing beside them."""
    from opdock.testing.harness import trial

    opened = manager.opened()
    faults = [line for o in opened for line in trial.faults(o)]
    return faults, [line for o in opened for line in trial.unserved(o)]


def _notes(devices: list[ProbedDevice]) -> list[str]:
    """What the backends that have a device tell about the libraries they use."""
    found: list[str] = []
    for spec in {d.spec.name: d.spec for d in devices if d.spec.notes}.values():
        try:
            found += [f"{spec.name}: {line}" for line in resolve(spec.notes)()]
        except Exception as e:
            found.append(f"{spec.name}: {spec.notes} failed: {type(e).__name__}: {e}")
    return found


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def _print(report: dict[str, Any], traceback: bool) -> None:
    screen = Screen()
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    api = ".".join(str(n) for n in report["api_version"])
    screen.say(f"plugin API {api}; {versions}")
    screen.blank()
    columns = ("plugin", "from", "state", "devices and reasons")
    screen.table(columns, [_row(p) for p in report["plugins"]], title="plugins")
    screen.blank()
    for device in report["devices"]:
        also = "".join(f" = {short(a)}" for a in device["aliases"])
        screen.say(device["description"], f"{short(device['name'])}{also}: ", indent=2)
    for note in report["notes"]:
        screen.say(note, indent=2)
    for key, label, color in _TOLD:
        for line in report[key]:
            screen.say(line, f"{label}: ", color, indent=2)
    if traceback:
        _print_tracebacks(screen, report["plugins"])


def _row(plugin: PluginStatus) -> tuple[str, str, Text, str]:
    useful = any(b.devices for b in plugin.backends) or not plugin.backends
    color = _COLORS.get(plugin.state, "yellow") if useful or plugin.kind else "yellow"
    origin = f"{plugin.distribution} {plugin.version}".strip() or plugin.target
    return plugin.name, origin, styled(plugin.state, color), "\n".join(_lines(plugin))


def _lines(plugin: PluginStatus) -> Iterator[str]:
    if plugin.kind and not plugin.backends:
        yield of_kind(plugin.kind, f"{plugin.kind}: {plugin.reason}")
    for backend in plugin.backends:
        count = len(backend.devices)
        if backend.state == "quarantined":
            yield of_kind(backend.kind, f"{backend.own_type}: {backend.kind}: {backend.reason}")
        elif count:
            outside = f", not in the pool: {backend.outside}" if backend.outside else ""
            yield f"{backend.own_type}: {count} device{'' if count == 1 else 's'}{outside}"
        else:
            hint = f" ({backend.install_hint})" if backend.install_hint else ""
            yield f"{backend.own_type}: unavailable: {backend.reason}{hint}"
    if not plugin.backends and plugin.hooks:
        yield "hooks: " + ", ".join(plugin.hooks)


def _print_tracebacks(screen: Screen, plugins: list[PluginStatus]) -> None:
    for plugin in plugins:
        seen = dict.fromkeys([plugin.traceback, *(b.traceback for b in plugin.backends)])
        for text in filter(None, seen):
            screen.blank()
            screen.say("", f"{plugin.name}:", "bold")
            click.echo(text)
