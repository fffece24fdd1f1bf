"""`opdock doctor`: every plugin with its state and the reason for it, versions, and hints."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from opdock.cli._report import as_json, pool_rows, short
from opdock.devices.pool import DevicePool
from opdock.plugins.loading import resolve
from opdock.plugins.manager import PluginManager, get_manager
from opdock.plugins.records import API_VERSION, PluginError, PluginStatus, ProbedDevice

if TYPE_CHECKING:
    from rich.console import Console

_PACKAGES: Final = ("opdock-core", "numpy", "pluggy", "protobuf", "tensorboard")
_COLORS: Final = {"open": "green", "probed": "green", "loaded": "green", "quarantined": "red"}


@click.command("doctor")
@click.option("--json", "json_output", is_flag=True, help="Print JSON instead of tables.")
@click.option("--open", "open_all", is_flag=True, help="Open every device and try its kernels.")
@click.option("--traceback", is_flag=True, help="Print the tracebacks of what failed.")
def command(json_output: bool, open_all: bool, traceback: bool) -> None:
    """Check the installation: plugins, devices, versions, and what to do about problems.

    The exit status is 1 when no device can be used.
    """
    manager = get_manager()
    probed = manager.devices()
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
        "ties": [str(tie) for tie in manager.ties()],
        "hints": manager.hints(),
    }
    if json_output:
        click.echo(as_json(report))
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
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    api = ".".join(str(n) for n in report["api_version"])
    console.print(f"plugin API {api}; {escape(versions)}\n")
    table = Table(title="plugins", title_justify="left")
    for column in ("plugin", "from", "state", "devices and reasons"):
        table.add_column(column, overflow="fold")
    for plugin in report["plugins"]:
        useful = any(b.devices for b in plugin.backends) or not plugin.backends
        color = _COLORS.get(plugin.state, "yellow") if useful or plugin.kind else "yellow"
        origin = f"{plugin.distribution} {plugin.version}".strip() or plugin.target
        told = "\n".join(_lines(plugin))
        table.add_row(plugin.name, escape(origin), f"[{color}]{plugin.state}[/]", escape(told))
    console.print(table)
    for device in report["devices"]:
        also = "".join(f" = {short(a)}" for a in device["aliases"])
        console.print(f"{short(device['name'])}{also}: {escape(device['description'])}")
    for note in report["notes"]:
        console.print(escape(note))
    for tie in report["ties"]:
        console.print(f"[yellow]tie[/]: {escape(tie)}")
    for fault in report["faults"]:
        console.print(f"[red]fault[/]: {escape(fault)}")
    for missing in report["unserved"]:
        console.print(f"[yellow]sibling[/]: {escape(missing)}")
    for failure in report["failures"]:
        console.print(f"[red]failed[/]: {escape(failure)}")
    for hint in report["hints"]:
        console.print(f"[yellow]hint[/]: {escape(hint)}")
    if traceback:
        _print_tracebacks(console, report["plugins"])


def _lines(plugin: PluginStatus) -> Iterator[str]:
    if plugin.kind and not plugin.backends:
        yield f"{plugin.kind}: {plugin.reason}"
    for backend in plugin.backends:
        count = len(backend.devices)
        if backend.state == "quarantined":
            yield f"{backend.own_type}: {backend.kind}: {backend.reason}"
        elif count:
            outside = f", not in the pool: {backend.outside}" if backend.outside else ""
            yield f"{backend.own_type}: {count} device{'' if count == 1 else 's'}{outside}"
        else:
            hint = f" ({backend.install_hint})" if backend.install_hint else ""
            yield f"{backend.own_type}: unavailable: {backend.reason}{hint}"
    if not plugin.backends and plugin.hooks:
        yield "hooks: " + ", ".join(plugin.hooks)


def _print_tracebacks(console: Console, plugins: list[PluginStatus]) -> None:
    for plugin in plugins:
        seen = dict.fromkeys([plugin.traceback, *(b.traceback for b in plugin.backends)])
        for text in filter(None, seen):
            console.print(f"\n{plugin.name}:", style="bold")
            console.print(text, markup=False, highlight=False)
