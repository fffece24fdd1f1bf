"""`opdock devices`: the devices that a session would see, best first."""

from __future__ import annotations

import click

from opdock.cli._command import Command, emit, json_option
from opdock.cli._report import DEVICE_KEYS, pool_rows, short, size
from opdock.cli._screen import Screen, working
from opdock.devices.pool import DevicePool
from opdock.plugins.manager import get_manager


@click.command(
    "devices", cls=Command, example="opdock devices --json", keys=DEVICE_KEYS, each="device"
)
@json_option
def command(json_output: bool) -> None:
    """List the devices that a session would see, best first."""
    manager = get_manager()
    with working("asking plugins for devices"):
        rows = pool_rows(DevicePool.build(manager.devices()))
    if json_output:
        emit(rows)
        return
    screen = Screen()
    columns = ("device", "also", "backend", "priority", "memory", "description")
    cells = [
        (
            short(row["name"]), ", ".join(short(a) for a in row["aliases"]),
            row["backend"] + ("" if row["automatic"] else " (on request)"),
            str(row["priority"]), size(row["memory_bytes"]), row["description"],
        )
        for row in rows
    ]  # fmt: skip
    if rows:
        screen.table(columns, cells, numbers=("priority", "memory"))
    else:
        screen.say("No device.")
    for reason in manager.unavailable():
        screen.say(reason, "no device: ", "yellow", indent=2)
    for hint in manager.hints():
        screen.say(hint, "hint: ", "yellow", indent=2)
