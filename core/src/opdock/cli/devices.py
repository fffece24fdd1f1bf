"""`opdock devices`: the devices that a session would see, best first."""

from __future__ import annotations

import click

from opdock.cli._report import as_json, pool_rows, short, size
from opdock.devices.pool import DevicePool
from opdock.plugins.manager import get_manager


@click.command("devices")
@click.option("--json", "json_output", is_flag=True, help="Print JSON instead of a table.")
def command(json_output: bool) -> None:
    """List the devices that a session would see, best first."""
    manager = get_manager()
    pool = DevicePool.build(manager.devices())
    rows = pool_rows(pool)
    if json_output:
        click.echo(as_json(rows))
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    table = Table()
    for column in ("device", "also", "backend", "priority", "memory", "description"):
        table.add_column(column, overflow="fold", no_wrap=column == "device")
    for row in rows:
        also = ", ".join(short(a) for a in row["aliases"])
        backend = row["backend"] + ("" if row["automatic"] else " (on request)")
        description = escape(row["description"])
        memory, priority = size(row["memory_bytes"]), str(row["priority"])
        table.add_row(short(row["name"]), also, backend, priority, memory, description)
    console.print(table if rows else "No device.")
    for reason in manager.unavailable():
        console.print(f"[yellow]no device[/]: {escape(reason)}")
    for hint in manager.hints():
        console.print(f"[yellow]hint[/]: {escape(hint)}")
